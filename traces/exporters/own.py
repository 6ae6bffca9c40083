"""The whole record of runs as JSON lines, for another home to take in: `traces.importers.own` reads it.

Each run begins with a line {"format", "v", "run_id", "opinions"}; the records of its spool follow, in their
order, with their numbers. The machine's name and the process number are left out, and where the run was
brought along from. What a spool holds of lines that nobody can read stands there as a record of its own kind,
so that they still count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RecordError
from rlm_core.telemetry import sha256_text
from traces.exporters.files import STILL_RUNNING, ExportDone, new_file
from traces.exporters.redaction import Redactor
from traces.facts import LARGEST
from traces.home import Home
from traces.ingest import is_open
from traces.opinions import TAGS, VERDICT, Opinion, Opinions, opinions
from traces.reading import Warn
from traces.spool import FORMAT, Record, SpoolReader, encode, payload_text

RUNS: Final = "rlmscope-runs"
VERSION: Final = 1
#: What says of a run of ours that it was brought along; it is true of one home only.
BROUGHT: Final = (
    sc.IMPORT_FORMAT, sc.IMPORT_ENGINE, sc.IMPORT_FILE, sc.IMPORT_KEY, sc.IMPORT_MISSING, sc.IMPORT_PROBLEMS,
)  # fmt: skip

#: How the key begins that an import gave to a run of another engine whose record has none.
KEYED_HERE: Final = "brought:"


def export(home: Home, run_ids: Sequence[str], out: Path, *, warn: Warn | None = None) -> ExportDone:
    """Write the record of runs and what people said about them into a new file, without what looks like a
    key.

    Raises InputError for a run that is not there and a place that is taken, RecordError for a record that
    cannot be read.
    """
    said, replaced, notes = opinions(home), 0, []
    with new_file(out) as file:
        for run_id in run_ids:
            redactor, open_ = Redactor(), is_open(home, run_id)
            if open_:
                notes.append(STILL_RUNNING.format(run_id))
            first = {
                "format": RUNS,
                "v": VERSION,
                "run_id": run_id,
                "opinions": _said(said, run_id, redactor),
            }
            file.write(encode(first))
            file.writelines(portable(spool_records(home, run_id, final=not open_), redactor))
            replaced += redactor.replaced
    return ExportDone(out.expanduser().absolute(), tuple(run_ids), replaced, tuple(notes))


def spool_records(home: Home, run_id: str, *, final: bool = True) -> Iterator[Record | None]:
    """The records of a run, None for each line that is unreadable; `final` takes in a torn last line.

    Raises InputError for a run that is not there, RecordError for a spool that cannot be read.
    """
    path = home.spool_file(run_id)
    try:
        yield from (line.record for line in SpoolReader(path).read(final=final))
    except FileNotFoundError:
        raise InputError(f"There is no run {run_id[:100]!r}.") from None
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}.") from error


def digest(records: Iterable[Record | None]) -> str:
    """What is equal for a run and all its exports."""
    said = sha256()
    for line in portable(records, Redactor()):
        said.update(line)
    return said.hexdigest()


def portable(records: Iterable[Record | None], redactor: Redactor) -> Iterator[bytes]:
    """The records of a run as lines, without what looks like a key."""
    for record in marked(records):
        try:
            yield encode(_cleaned(record, redactor))
        except (ValueError, RecursionError):  # deeper than anything of ours
            yield encode({"seq": record["seq"], "kind": "unreadable"})


def marked(records: Iterable[Record | None]) -> Iterator[Record]:
    """Records with one that nobody can use for each unreadable line (None) that no gap in the numbers tells
    of: it counts for readers as that line did.
    """
    following = unreadable = 0
    for record in records:
        if record is None:
            unreadable += 1
            continue
        if record["seq"] >= following:
            yield from _marks(unreadable - (record["seq"] - following), following)
            following, unreadable = record["seq"] + 1, 0
        yield record
    yield from _marks(unreadable, following)


def _marks(count: int, following: int) -> Iterator[Record]:
    return iter([{"seq": max(0, following - 1), "kind": "unreadable"}] * max(0, count))


def header(record: Record) -> Record:
    """The first record of a run in the form in which it leaves, or enters, a home: what no reader could use
    is left out of it.
    """
    given, lost = record.get("facts"), record.get("lost")
    facts = {name: value for name, value in given.items() if _flat(value)} if isinstance(given, dict) else {}
    if facts.get(sc.IMPORT_FORMAT) == sc.IMPORT_OWN:
        facts = {name: value for name, value in facts.items() if name not in BROUGHT}
    if str(facts.get(sc.IMPORT_KEY)).startswith(KEYED_HERE):
        del facts[sc.IMPORT_KEY]
    started, version = record.get("started_ns"), record.get("v")
    kept = {
        "seq": 0,
        "format": FORMAT,
        "v": version if type(version) is int and version > 0 else sc.RECORD_VERSION,
        "kind": "run",
        "run_id": record.get("run_id"),
        "trace_id": _text(record.get("trace_id")),
        "started_ns": started if type(started) is int and 0 <= started < LARGEST else 0,
        "pid": None,
        "host": None,
        "engine_version": _text(record.get("engine_version")),
        "facts": facts,
    }
    return kept | ({"lost": lost} if isinstance(lost, dict) else {})


def is_header(record: object) -> bool:
    """Whether a record is the first one of a run."""
    return isinstance(record, dict) and record.get("kind") == "run" and record.get("seq") == 0


def _cleaned(record: Record, redactor: Redactor) -> Record:
    if is_header(record):
        kept = header(record)
        return {name: _clean(value, redactor) for name, value in kept.items()}
    text = payload_text(record) if record["kind"] == "b" else None
    if text is not None:
        name = record.get("sha256")
        if isinstance(name, str) and sha256_text(text) == name:
            name, text = redactor.payload(name, text)
        else:  # it does not fit its name, and must not do so now
            text = redactor.text(text)
        return {"seq": record["seq"], "kind": "b", "sha256": name, "text": text}
    return {name: _clean(value, redactor) for name, value in record.items()}


def _clean(value: Any, redactor: Redactor) -> Any:
    """A value of any form without keys; objects are taken for attributes, which may cite payloads."""
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, list):
        return [_clean(item, redactor) for item in value]
    if isinstance(value, dict):
        return {
            name: item if _flat(item) else _clean(item, redactor)
            for name, item in redactor.attributes(value).items()
        }
    return value


def _flat(value: object) -> bool:
    """Whether a value is a scalar or a list of scalars, as attributes are."""
    if isinstance(value, list):
        return not any(isinstance(item, list | dict) for item in value)
    return not isinstance(value, dict)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _said(said: Opinions, run_id: str, redactor: Redactor) -> list[dict[str, Any]]:
    """What people said about a run, as records of the user log without its name."""
    about: list[tuple[str | None, Opinion | None]] = [(None, said.of(run_id))]
    about += sorted(said.spans(run_id).items())
    told = [_opinion(span_id, one, redactor) for span_id, one in about if one is not None]
    tags = [redactor.text(tag) for tag in said.tags(run_id)]
    return [*told, *([{"kind": TAGS, "tags": tags}] if tags else [])]


def _opinion(span_id: str | None, one: Opinion, redactor: Redactor) -> dict[str, Any]:
    texts = {"expected": one.expected, "note": one.note}
    clean = {name: None if text is None else redactor.text(text) for name, text in texts.items()}
    where = {} if span_id is None else {"span_id": span_id}
    return {"kind": VERDICT, "time": one.time, **where, "verdict": one.verdict, "how": one.how, **clean}
