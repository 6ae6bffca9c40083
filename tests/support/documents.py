"""Documents for readers of formats: those that other programs made, small packages, what a reader says."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlm_core.readers import Unreadable

DOCUMENTS = Path(__file__).parent.parent / "fixtures" / "documents"
GOOD = DOCUMENTS / "good"
READERS = {
    ".docx": "docx", ".pptx": "pptx", ".xlsx": "sheets", ".xls": "sheets", ".ods": "sheets", ".pdf": "pdf",
    ".parquet": "parquet", ".html": "html", ".eml": "mail",
}  # fmt: skip
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


class Recorder:
    """An output that keeps what it is given."""

    def __init__(self) -> None:
        self.text = ""
        self.table = ""
        self.media_type = ""
        self.sections: list[list[Any]] = []
        self.remarks: list[str] = []
        self.problems: list[tuple[str, str]] = []
        self.attached: dict[str, bytes] = {}
        self._open = False

    def write(self, text: str) -> None:
        self.text += text

    def section(self, kind: str, label: str, columns: dict[str, str] | None = None) -> None:
        self.end_section()
        self.sections.append([kind, label, len(self.text), -1, columns])
        self._open = True

    def end_section(self) -> None:
        if self._open:
            self.sections[-1][3] = len(self.text)
        self._open = False

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def problem(self, name: str, text: str) -> None:
        self.problems.append((name, text))

    def attach(self, name: str, data: bytes) -> None:
        self.attached[name] = data

    @property
    def parts(self) -> dict[str, str]:
        """Label of a section -> its text."""
        return {label: self.text[start:end] for _, label, start, end, _ in self.sections}

    @property
    def columns(self) -> dict[str, Any]:
        """Label of a section -> its columns."""
        return {label: columns for _, label, _, _, columns in self.sections}


def read(path: Path) -> Recorder:
    """What the reader for files of this name gives."""
    out = Recorder()
    importlib.import_module(f"rlm_core.readers.formats.{READERS[path.suffix]}").read(str(path), out)
    out.end_section()
    return out


def refusal(path: Path) -> str:
    """Why the reader for files of this name refuses it."""
    with pytest.raises(Unreadable) as caught:
        read(path)
    return str(caught.value)


def package(path: Path, parts: Mapping[str, str]) -> Path:
    """An Office file of these parts; the relations are those to the main part unless given."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def relations(*entries: tuple[str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(entries, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}">{inner}</Relationships>'
