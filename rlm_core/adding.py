"""Adding: files become documents in a staging folder, with progress on the way."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rlm_core.add_progress import Watcher
from rlm_core.canonical import CanonicalWriter
from rlm_core.errors import CorpusError
from rlm_core.manifest import Contents, checked_name, default_name
from rlm_core.readers.dispatch import FileReader, Taken
from rlm_core.readers.many import read_all
from rlm_core.readers.reading import Reading
from rlm_core.readers.text import replace_surrogates
from rlm_core.staging import Staging
from rlm_core.walk import Problem, find_files, numbered, printable

_PROBLEMS_SHOWN: Final = 5
_WRITE_CHARS: Final = 1 << 20


def add_files(
    paths: Sequence[Path], corpora: Path, name: str | None, encoding: str | None, progress: Watcher | None
) -> tuple[Path, Contents]:
    """As `Corpus.add`; gives the folder of the corpus and what it holds."""
    name = None if name is None else checked_name(name)
    encoding = None if encoding is None else checked_encoding(encoding)
    found, problems = find_files(paths, corpora)
    with Staging(corpora) as staging:
        reader = FileReader(staging.texts, staging.work, encoding)
        taken: list[Taken] = []
        for items in read_all(found, reader, progress):
            problems += [item for item in items if isinstance(item, Problem)]
            taken += [item for item in items if isinstance(item, Taken)]
        names = numbered([item.name for item in taken])  # a file may be called as one in an archive is
        for title, item in zip(names, taken, strict=True):
            staging.take(title, item.path, item.reading)
        if not staging.documents:
            where = ", ".join(printable(str(path)) for path in paths)
            raise CorpusError(f"there is no document to read in {where}: {_listed(problems, where)}")
        fallback = default_name([printable(os.path.basename(os.path.abspath(path))) for path in paths])
        return staging.publish(problems, name, fallback)


def add_texts(
    texts: str | Sequence[str] | Mapping[str, str], corpora: Path, name: str | None
) -> tuple[Path, Contents]:
    """As `Corpus.from_texts`; gives the folder of the corpus and what it holds."""
    name = None if name is None else checked_name(name)
    problems: list[Problem] = []
    with Staging(corpora) as staging:
        for title, text in _named_texts(texts):
            if text:
                staging.take(title, "", _write_text(text, staging.texts))
            else:
                problems.append(Problem(title, "an empty text: nothing to read"))
        if not staging.documents:
            raise CorpusError("there is no text to read: every text is empty, or none was given")
        return staging.publish(problems, name, "")


def checked_encoding(encoding: str) -> str:
    """The encoding under its usual name. Raises `CorpusError` for one that does not exist."""
    try:
        found = codecs.lookup(encoding)
        b"x".decode(encoding, "replace")  # refuses codecs that are not for text
        codecs.getincrementaldecoder(encoding)
    except (LookupError, UnicodeError, ValueError):
        raise CorpusError(
            f"there is no text encoding {printable(encoding)!r}: use a name such as cp1252 or shift_jis"
        ) from None
    return found.name


def _named_texts(texts: str | Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    if isinstance(texts, str):
        named: list[tuple[Any, Any]] = [("text", texts)]
    elif isinstance(texts, Mapping):
        named = list(texts.items())
    else:
        named = [(f"text-{number}", text) for number, text in enumerate(texts, 1)]
    for name, text in named:
        if not isinstance(name, str) or not isinstance(text, str):
            raise CorpusError(f"{name} is {type(text).__name__}: names and texts must be str")
    return list(
        zip(numbered([printable(name) for name, _ in named]), (text for _, text in named), strict=True)
    )


def _write_text(text: str, folder: Path) -> Reading:
    """One text in memory as a canonical text."""
    clean, surrogates = replace_surrogates(text)
    writer = CanonicalWriter(folder)
    try:
        for start in range(0, len(clean), _WRITE_CHARS):
            writer.write(clean[start : start + _WRITE_CHARS])
        measured = writer.close()
    finally:
        writer.discard()
    count = f"{surrogates:,} lone surrogate{'' if surrogates == 1 else 's'}"
    return Reading(
        measured, "text/plain", "utf-8", False, 0, (f"{count} shown as U+FFFD",) if surrogates else ()
    )


def _listed(problems: Sequence[Problem], named: str) -> str:
    """The first problems in one line; the path that was named already is not said again."""
    shown = [
        problem.message if problem.path == named else f"{problem.path}: {problem.message}"
        for problem in problems[:_PROBLEMS_SHOWN]
    ]
    if len(problems) > _PROBLEMS_SHOWN:
        shown.append(f"and {len(problems) - _PROBLEMS_SHOWN:,} more")
    return "; ".join(shown) or "the folder is empty"
