"""From the paths a user gives to the files to read: which ones, in which order, under which names.

Nothing is opened here except folders. Whatever is passed over (hidden and generated folders, links that leave
the given folder, pipes, devices, what cannot be listed) comes back as a `Problem`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rlm_core.errors import CorpusError

GENERATED: Final = frozenset({"node_modules", "__pycache__", "CVS"})
_NAMED: Final = 5  # how many passed-over names one line shows
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNDECODED: Final = re.compile("[\ud800-\udfff]")
_SPECIAL: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One line: a file (or folder) that is not in the corpus, and why."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file to read: its real path, the document name, and the path as the user would write it."""

    path: str
    name: str
    shown: str


@dataclass(slots=True)
class _Item:
    """A file or link met on the way; `base` is the path its name is cut from, `keep` how many parts of it."""

    path: str
    base: str
    keep: int
    shown: str
    given: str
    root: str
    link: bool


@dataclass(slots=True)
class _Walk:
    """The state of one walk over all given paths."""

    skip: str
    items: list[_Item] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, shown: str, message: str) -> None:
        self.problems.append(Problem(printable(shown), message))


def find_files(paths: Sequence[Path], skip: Path) -> tuple[list[Found], list[Problem]]:
    """All files under the paths, depth first in sorted order; the folder `skip` (our own texts) is left out.

    Raises `CorpusError` for a path that does not exist, and when no path is given.
    """
    if not paths:
        raise CorpusError("no file or folder was given: name at least one")
    walk = _Walk(os.path.realpath(skip))
    for path in paths:
        _given(walk, str(path))
    items = _resolved(walk)
    names = _unique_names(items)
    return [Found(i.path, n, printable(i.shown)) for i, n in zip(items, names, strict=True)], walk.problems


def printable(text: str) -> str:
    """A name for one line of UTF-8: control characters escaped, undecodable bytes shown as U+FFFD."""
    return _CONTROL.sub(
        lambda m: m[0].encode("unicode_escape").decode("ascii"), _UNDECODED.sub("\ufffd", text)
    )


def _given(walk: _Walk, given: str) -> None:
    """One path as the user gave it; a link is followed here, because it was named."""
    try:
        mode = os.stat(given).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise CorpusError(f"{printable(given)} does not exist: check the path") from None
    except (OSError, ValueError) as error:
        walk.problem(given, f"cannot be looked at ({_why(error)}): check its permissions")
        return
    root = os.path.realpath(given)
    if stat.S_ISDIR(mode):
        _folder(walk, root, given)
    elif stat.S_ISREG(mode):
        walk.items.append(_Item(root, os.path.abspath(given), 1, given, given, root, False))
    else:
        walk.problem(given, f"{_kind(mode)}, not a file: save its content to a file and add that")


def _folder(walk: _Walk, root: str, given: str) -> None:
    """Everything below one folder. A stack, as folders may be nested deeper than Python can recurse."""
    passed_over: list[str] = []
    stack: list[os.DirEntry[str]] = _entries(walk, root, given)
    while stack:
        entry = stack.pop()
        relative = entry.path[len(root) :].lstrip(os.sep)
        shown = os.path.join(given, relative)
        try:
            if _is_passed_over(walk, entry):
                passed_over.append(relative)
            elif entry.is_dir(follow_symlinks=False):
                stack.extend(_entries(walk, entry.path, shown))
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                keep = relative.count(os.sep) + 1
                walk.items.append(_Item(entry.path, entry.path, keep, shown, given, root, entry.is_symlink()))
            else:
                kind = _kind(entry.stat(follow_symlinks=False).st_mode)
                walk.problem(shown, f"{kind}, not a file: it is never opened")
        except OSError as error:
            walk.problem(shown, f"cannot be looked at ({_why(error)}): check its permissions")
    if passed_over:
        walk.problem(given, _passed_over_line(passed_over))


def _entries(walk: _Walk, folder: str, shown: str) -> list[os.DirEntry[str]]:
    """The entries of one folder in reverse order, ready to be popped."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError as error:
        walk.problem(shown, f"the folder cannot be listed ({_why(error)}): check its permissions")
        return []


def _is_passed_over(walk: _Walk, entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in GENERATED:
        return True
    if not entry.is_dir(follow_symlinks=False):
        return False
    return entry.path == walk.skip or os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


def _passed_over_line(names: list[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return (
        f"{len(names):,} hidden or generated {'entry' if len(names) == 1 else 'entries'} passed over "
        f"({shown}{more}): give such a path itself to read it"
    )


def _resolved(walk: _Walk) -> list[_Item]:
    """Each file once. Links are decided last, when it is known what is read anyway."""
    known = {item.path for item in walk.items if not item.link}
    kept: dict[str, _Item] = {}
    again: Counter[str] = Counter()
    for item in walk.items:
        if item.link:
            if not _follow(walk, item, known):
                continue
            known.add(item.path)
        elif item.path in kept:
            again[item.given] += 1
            continue
        kept[item.path] = item
    for given, count in again.items():
        walk.problem(given, f"{count:,} {'file was' if count == 1 else 'files were'} given twice: read once")
    return list(kept.values())


def _follow(walk: _Walk, item: _Item, known: set[str]) -> bool:
    """Whether a link leads to a file of its folder that is not read anyway; sets the item's real path."""
    try:
        target = os.path.realpath(item.path, strict=True)
        mode = os.stat(target).st_mode
    except OSError as error:
        loop = error.errno == errno.ELOOP
        walk.problem(item.shown, "a link that leads back to itself" if loop else "a link to nothing")
        return False
    if os.path.commonpath([item.root, target]) != item.root:
        walk.problem(item.shown, "a link that leaves the folder, not followed: give its target to read it")
    elif stat.S_ISDIR(mode):
        walk.problem(item.shown, "a link to a folder, not followed: files are read under their own names")
    elif not stat.S_ISREG(mode):
        walk.problem(item.shown, f"a link to {_kind(mode)}, not followed")
    elif target in known:
        walk.problem(
            item.shown, f"a link to {printable(os.path.basename(target))}, read once under its own name"
        )
    else:
        item.path = target
        return True
    return False


def _unique_names(items: list[_Item]) -> list[str]:
    """Names relative to the given folder; where two collide, as many parent folders as it takes."""
    parts = [item.base.strip(os.sep).split(os.sep) for item in items]
    keep = [item.keep for item in items]
    while True:
        names = [printable("/".join(p[-k:])) for p, k in zip(parts, keep, strict=True)]
        counts = Counter(names)
        longer = [i for i, name in enumerate(names) if counts[name] > 1 and keep[i] < len(parts[i])]
        if not longer:
            return numbered(names)
        for i in longer:
            keep[i] += 1


def numbered(names: Sequence[str]) -> list[str]:
    """Unique names, by a number behind: for names that differ only in what cannot be shown."""
    taken = set(names)
    seen: set[str] = set()
    unique = []
    for name in names:
        number, candidate = 1, name
        while candidate in seen or (candidate != name and candidate in taken):
            number += 1
            candidate = f"{name} ({number})"
        seen.add(candidate)
        unique.append(candidate)
    return unique


def _kind(mode: int) -> str:
    return next((name for test, name in _SPECIAL if test(mode)), "a special file")


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
