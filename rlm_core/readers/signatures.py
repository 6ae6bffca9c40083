"""What kind of file it is: by its content first, by its name second."""

from __future__ import annotations

from typing import Final

VERSIONS: Final = {
    "pdf": 1, "docx": 1, "pptx": 1, "sheets": 1, "parquet": 1, "html": 1, "mail": 1,
}  # fmt: skip
"""Reader -> version, part of every corpus id with such a document: raise it when it reads differently."""
