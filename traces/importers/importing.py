"""Files and folders taken into a home: the format of each is found by its content, a module reads it.

Nothing here raises for a bad file: whatever cannot be had is a `Refused` with one sentence, and all the rest
comes in. A reader that fails in a way nobody foresaw is a defect of ours: it costs the rest of its file, and
its traceback goes into the logs of the home.
"""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RLMScopeError
from rlm_core.telemetry import preview
from traces.home import Home
from traces.importers import IMPORTERS, unpacking
from traces.importers.foreign import ForeignRun
from traces.importers.names import Names, import_fact
from traces.importers.source import Source
from traces.importers.unpacking import Readable, Unpacked, blocks_of, copied, is_packed, place_in, unpacked
from traces.importers.writing import Written, stem_of, write_run

MOST_FILES: Final = 10_000  # of one folder or archive
_DEEPEST: Final = 40  # folders inside each other
_PACKED_TWICE: Final = 2  # an archive may hold archives, but those hold none
_NAMED: Final = 3  # of the files that are left out


@dataclass(frozen=True, slots=True)
class Imported:
    """One run that is in the home now; `new` is False where it was there already.

    `question` is its first line of at most 200 characters, None where the record has none. `missing` and
    `problems` are sentences: what the record does not say, and what of it is unreadable.
    """

    run_id: str
    format: str
    engine: str
    file: str
    new: bool
    question: str | None
    missing: tuple[str, ...]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        said = {name: getattr(self, name) for name in Imported.__slots__}
        return said | {"missing": list(self.missing), "problems": list(self.problems)}


@dataclass(frozen=True, slots=True)
class Refused:
    """A file, or the rest of one, of which nothing could be had, and why, in one sentence.

    `harmless` are files of no known format beside others of a folder that were read.
    """

    file: str
    why: str
    harmless: bool = False


def each_once(runs: Iterable[Imported]) -> list[tuple[Imported, int]]:
    """What came in with how often it was met: a run that is met again, with nothing else to be said of it, is
    counted with the first.
    """
    found: dict[Any, list[Imported]] = {}
    for one in runs:
        found.setdefault((one.run_id, one.missing, one.problems), []).append(one)
    return [(same[0], len(same)) for same in found.values()]


def import_paths(home: Home, paths: Sequence[Path], format: str | None = None) -> list[Imported | Refused]:
    """Take in what files, folders and archives (zip, gz) hold, in their order. `format` is a key of
    `IMPORTERS` by which files are read whatever they look like.

    Raises InputError for a format that does not exist, and nothing else.
    """
    work = _Import(home, _checked(format))
    for path in paths:
        work.take(Source(path, path.name or path.absolute().name or str(path)))
    return work.done


def import_upload(
    home: Home, files: Iterable[tuple[str, Readable]], format: str | None = None
) -> list[Imported | Refused]:
    """`import_paths` for files that come as streams with their names; a name with slashes stands inside a
    folder, and what has the first part of its name in common is one folder.
    """
    work = _Import(home, _checked(format))
    with tempfile.TemporaryDirectory(prefix="rlmscope-import-") as made:
        singles, tree = Path(made, "files"), Path(made, "folders")
        sources: dict[Path, Source] = {}
        for number, (name, stream) in enumerate(files):
            beside = "/" in name.replace("\\", "/").strip("/")
            root = tree if beside else singles / str(number)
            try:
                target = place_in(root, name)
                copied(blocks_of(stream), target)
            except (InputError, OSError) as error:
                work.refuse(name, error)
                continue
            top = root / target.relative_to(root).parts[0]
            sources[top] = Source(top, top.name)
        for source in sources.values():
            work.take(source)
    return work.done


def _checked(format: str | None) -> str | None:
    if format is not None and format not in IMPORTERS:
        raise InputError(f"there is no format {format[:40]!r}; there are {', '.join(IMPORTERS)}")
    return format


@dataclass(slots=True)
class _Import:
    """One import under way; `done` is what came of it so far."""

    home: Home
    format: str | None
    done: list[Imported | Refused] = field(default_factory=list)
    names: Names = field(init=False)
    known: int = 0  # files and folders of a known format
    unknown: list[str] = field(default_factory=list)  # files of the present folder that are of none
    seen: int = 0  # files of the present folder
    states: dict[object, list[str]] | None = None  # runs of the home by `sc.IMPORT_STEM`, when first needed
    room: int = 0  # bytes that may still be unpacked of the present archive and those inside it

    def __post_init__(self) -> None:
        self.names = Names(self.home)

    def take(self, source: Source) -> None:
        """What a person named: a file, a folder or an archive."""
        self.known, self.unknown, self.seen = 0, [], 0
        try:
            if source.is_folder:
                self._folder(source, 0, 0)
            elif source.path.is_file():
                self._file(source, 0)
            else:
                if os.path.exists(source.path):
                    self.refuse(source.name, InputError("it is neither a file nor a folder"))
                else:  # named as it was given: where it was looked for is what matters
                    self.refuse(str(source.path), InputError("there is no file or folder of that name"))
                return
        except (RLMScopeError, OSError) as error:
            self.refuse(source.name, error)
            return
        self._say_unknown(source)

    def refuse(self, file: str, error: BaseException) -> None:
        """Note that something could not be had."""
        if isinstance(error, RLMScopeError):
            why = str(error)
            if why.startswith(f"{file} "):  # the file is named once, in front of the sentence
                why = f"it {why.removeprefix(f'{file} ')}"
        elif isinstance(error, OSError):
            why = f"it cannot be read: {error.strerror or error}."
        else:
            where = _logged(self.home, error)
            why = f"the reader failed ({type(error).__name__}), which was not expected; {where}"
        self.done.append(Refused(file, why))

    def _say_unknown(self, source: Source) -> None:
        if not self.unknown:
            if not self.known:
                self.done.append(Refused(source.name, "it is empty"))
            return
        formats = ", ".join(IMPORTERS)
        if not self.known:
            what = "it holds no record" if source.is_folder or len(self.unknown) > 1 else "it is no record"
            nothing = source.path.is_file() and not source.path.stat().st_size
            words = "it is empty" if nothing else f"{what} of a known format ({formats})"
            self.done.append(Refused(source.name, words))
            return
        count, names = len(self.unknown), ", ".join(self.unknown[:_NAMED])
        more = f" and {count - _NAMED} more" if count > _NAMED else ""
        self.done.append(Refused(source.name, f"of no known format: {names}{more}", harmless=True))

    def _folder(self, folder: Source, depth: int, packed: int) -> None:
        if (format := self._format_of(folder)) is not None:
            self._read(format, folder)
            return
        for entry in sorted(os.scandir(folder.path), key=lambda entry: entry.name):
            inner = folder.inside(entry.name)
            self.seen += 1
            if self.seen > MOST_FILES:
                raise InputError(f"it holds more than {MOST_FILES:,} files; import parts of it")
            if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
                try:
                    self._folder(inner, depth + 1, packed)
                except OSError as error:  # it costs this folder, not what stands beside it
                    self.refuse(inner.name, error)
            elif entry.is_file(follow_symlinks=False):
                self._file(inner, packed)
            else:
                self.unknown.append(inner.name)

    def _file(self, source: Source, packed: int) -> None:
        try:
            if is_packed(source):
                if packed == _PACKED_TWICE:
                    raise InputError("archives inside archives inside archives are not opened")
                self.room = self.room if packed else unpacking.MOST_BYTES
                with unpacked(source, self.room) as inner:
                    self.room -= inner.size
                    self._inside(inner, packed + 1)
                return
        except (RLMScopeError, OSError) as error:
            self.known += 1
            self.room = 0 if isinstance(error, unpacking.TooMuch) else self.room
            self.refuse(source.name, error)
            return
        if (format := self._format_of(source)) is not None:
            self._read(format, source)
        elif (cannot := _unreadable(source)) is not None:
            self.known += 1
            self.refuse(source.name, cannot)
        else:
            self.unknown.append(source.name)

    def _inside(self, inner: Unpacked, packed: int) -> None:
        for name, why in inner.refused:
            self.done.append(Refused(name, why))
        if inner.source.is_folder:
            self._folder(inner.source, 0, packed)
        else:
            self._file(inner.source, packed)

    def _format_of(self, source: Source) -> str | None:
        if self.format is not None:
            return self.format if not source.is_folder or self._recognised(self.format, source) else None
        return next((format for format in IMPORTERS if self._recognised(format, source)), None)

    def _recognised(self, format: str, source: Source) -> bool:
        try:
            module = _module(format)
            return module is not None and bool(module.recognises(source))
        except (RLMScopeError, OSError):
            return False
        except Exception as error:  # a defect of this reader must not keep the others from looking
            _logged(self.home, error)
            return False

    def _read(self, format: str, source: Source) -> None:
        self.known += 1
        count = 0
        try:
            for written in self._runs(format, source):
                count += 1
                self.done.append(_imported(written, format, source.name))
            if not count:
                raise InputError("it holds no run")
        except Exception as error:
            foreign = _not_utf8(source) if isinstance(error, InputError) and not count else None
            self.refuse(source.name, foreign or error)

    def _runs(self, format: str, source: Source) -> Iterator[Written]:
        module = _module(format)
        if module is None:
            raise InputError(f"this program cannot read the format {format}")
        if format == sc.IMPORT_OWN:
            yield from module.take_in(self.names, source)
            return
        file, when = Path(source.name).name, source.path.stat().st_mtime_ns
        line = source.line_not_utf8()
        with closing(iter(module.read(source))) as runs:
            for run in runs:
                run.problems += [] if line is None else [f"Line {line:,} of the file is not UTF-8."]
                written = write_run(self.home, run, file, when, self.names)
                yield replace(written, problems=(*written.problems, *self._other_states(run, written)))

    def _other_states(self, run: ForeignRun, written: Written) -> Iterator[str]:
        """That a new run is here already as its record was when that was another, or was read otherwise."""
        if not written.new:
            return
        if self.states is None:
            self.states = {}
            for path in sorted(self.home.spool.glob("*.jsonl")):
                self.states.setdefault(import_fact(path, sc.IMPORT_STEM), []).append(path.stem)
        here = self.states.setdefault(stem_of(run), [])
        yield from (
            "Another state of this run, of a shorter or longer record or as another version read it, is here "
            f"as {other}: rlmscope delete {other} removes it."
            for other in here
            if other != written.run_id
        )
        if written.run_id not in here:
            here.append(written.run_id)


def _module(format: str) -> Any:
    """The reader of a format, None where there is none."""
    name = IMPORTERS[format]
    return import_module(name) if find_spec(name) is not None else None


def _unreadable(source: Source) -> InputError | None:
    """Why a file that no reader knows cannot be read at all, None where it can."""
    try:
        source.checked_size()
        return _not_utf8(source)
    except InputError as error:
        return error


def _not_utf8(source: Source) -> InputError | None:
    """That a file which looks like JSON is in another encoding."""
    line = source.line_not_utf8()
    return None if line is None else InputError(f"line {line:,} is not UTF-8")


def _imported(written: Written, format: str, file: str) -> Imported:
    return Imported(
        run_id=written.run_id,
        format=format,
        engine=written.engine,
        file=file,
        new=written.new,
        question=None if written.question is None else preview(written.question),
        missing=written.missing,
        problems=written.problems,
    )


def _logged(home: Home, error: BaseException) -> str:
    """Where the traceback of an error is now, in words."""
    folder = home.root / "logs"
    path = folder / f"import-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a", encoding="utf-8",
                  errors="backslashreplace") as out:  # fmt: skip
            out.writelines(traceback.format_exception(error))
    except OSError:
        return "its details could not be written anywhere"
    return f"details are in {path}"
