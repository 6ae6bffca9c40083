"""Runs of this engine out of another home: exports (`traces.exporters.own`) and spools as they are.

Records go into a spool of this home as they are, whatever is known of them: readers count what they cannot
use. They come from strangers: a run that was brought along always says so in its first record, and nothing in
it makes this program read, load or send anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.corpora import corpus_folder
from rlm_core.errors import CorpusError, InputError, RecordError
from rlm_core.telemetry import as_json
from traces import user_log
from traces.exporters.own import (
    BROUGHT,
    KEYED_HERE,
    RUNS,
    VERSION,
    digest,
    header,
    is_header,
    marked,
    spool_records,
)
from traces.folding import Fold
from traces.home import Home, is_run_id
from traces.importers import IMPORTERS
from traces.importers.names import Names, key_of
from traces.importers.source import Source
from traces.importers.writing import Written, put
from traces.opinions import NORMALISED, TAGS, TEXT_CHARS, VERDICT, VERDICTS, check_how, checked_tags
from traces.rows import SpanRow
from traces.spool import FORMAT, Line, Record, is_record

_KINDS: Final = ("s", "e", "ev", "b")
_LOOKED_AT: Final = 20  # lines
_MOST_OPINIONS: Final = 10_000


def recognises(source: Source) -> bool:
    """Whether a file holds an export of runs, a spool, or what is left of one."""
    return any(map(_is_ours, source.first_lines(_LOOKED_AT)))


def take_in(names: Names, source: Source) -> Iterator[Written]:
    """Put the runs of a source into the spools of the home of `names`, each under its own if that is free.

    Raises InputError for what holds no run, has its lines in another order, or was written in a newer format;
    RecordError.
    """
    empty = None
    for (_, looked), (number, lines) in zip(_runs(source), _runs(source), strict=False):  # it may grow
        found = _Found.out_of(looked)
        if found.mixed and found.first:
            lines = iter(whole := sorted(lines, key=_place))  # of such a run all is held at once
            found = replace(_Found.out_of(whole), mixed=True)
        if found.records and not found.first and not found.rows:
            raise InputError(
                "it holds lines of a run without its first one and without any span that can be "
                "read: lines are missing, or stand in another order than they were written in"
            )
        if found.records:
            yield found.put(names, source.name, (value for _, value in lines))
        elif number or empty is None:
            empty = number
    if empty is not None:
        raise InputError("it holds lines that belong to no run")


def _runs(source: Source) -> Iterator[tuple[int, Iterator[tuple[int, Any]]]]:
    """The lines of each run, numbered by runs."""
    return groupby(_numbered(source), key=lambda line: line[0])


def _numbered(source: Source) -> Iterator[tuple[int, Any]]:
    number, fresh = 0, False  # fresh: the line before the records of a run was there, those were not
    for line in source.lines():
        value = line.value
        if _is_envelope(value):
            number, fresh = number + 1, True
        elif is_record(value):
            number += is_header(value) and not fresh
            fresh = False
        yield number, value


def _place(line: tuple[int, Any]) -> float:
    """Where a line of a run belongs among the others."""
    value = line[1]
    return value["seq"] if is_record(value) else -1 if _is_envelope(value) else inf


def _is_ours(value: object) -> bool:
    if not is_record(value):
        return _is_envelope(value)
    cites = "span_id" in value or "sha256" in value
    return value.get("format") == FORMAT or (value["kind"] in _KINDS and cites)


def _is_envelope(value: object) -> bool:
    return isinstance(value, dict) and value.get("format") == RUNS


@dataclass(slots=True)
class _Found:
    """One run of a source, looked through before it is written."""

    opinions: object = None
    first: Record = field(default_factory=dict)  # its header, empty when that is lost
    records: int = 0
    mixed: bool = False  # whether its lines stand in another order than that of their numbers
    digest: str = ""
    rows: tuple[SpanRow, ...] = ()
    unusable: int = 0
    last_ns: int = 0

    @classmethod
    def out_of(cls, lines: Iterable[tuple[int, Any]]) -> _Found:
        """Look through the lines of one run. Raises InputError for a newer format."""
        found = cls()
        said = digest(found._watched(_records(value for _, value in lines if found._kept(value))))
        found.digest = said
        return found

    def _kept(self, value: Any) -> bool:
        """Take the line before the records for itself."""
        if not _is_envelope(value):
            return True
        if type(value.get("v")) is not int or value["v"] > VERSION:
            raise _newer(value.get("v"))
        self.opinions = value.get("opinions")
        return False

    def _watched(self, records: Iterable[Record | None]) -> Iterator[Record | None]:
        fold: Fold | None = None
        newest = 0
        for record in records:
            if record is not None and is_header(record) and not self.first:
                self.first = header(record)
                if self.first["v"] > sc.RECORD_VERSION:
                    raise _newer(self.first["v"])
            if fold is None:
                fold = Fold(str(self.first.get("run_id")))
            fold.feed(Line(0, 0, self.first if record is not None and is_header(record) else record, True))
            if record is not None:
                self.records += 1
                self.mixed |= record["seq"] < newest
                newest = record["seq"]
            yield record
        if fold is not None:
            self.rows, self.unusable = fold.span_rows(alive=False)
            self.last_ns = fold.last_ns or 0

    @property
    def facts(self) -> dict[str, Any]:
        """What its first record says."""
        facts: dict[str, Any] = self.first.get("facts", {})
        return facts

    @property
    def foreign(self) -> bool:
        """Whether another engine made it: it was read from a record of that before, or told its steps."""
        return self.facts.get(sc.IMPORT_FORMAT) in (*IMPORTERS, sc.IMPORT_INSTRUMENT)

    @property
    def key(self) -> str:
        """What it is recognised by when it comes again."""
        given = self.facts.get(sc.IMPORT_KEY)
        if not self.foreign:
            return self.digest
        return given if isinstance(given, str) and given else KEYED_HERE + self.digest

    @property
    def top(self) -> SpanRow | None:
        """The span of the run."""
        return next((row for row in self.rows if row.kind == "run" and row.parent_id is None), None)

    @property
    def engine(self) -> str:
        """The program that made it."""
        if self.foreign:
            return str(self.facts.get(sc.IMPORT_ENGINE))
        return f"rlmscope {self.first.get('engine_version') or ''}".strip()

    def put(self, names: Names, file: str, lines: Iterable[Any]) -> Written:
        """Write it down."""
        home = names.home
        problems = self._problems()
        records = iter([_records(value for value in lines if not _is_envelope(value))])

        def written(run_id: str) -> Iterator[Record]:
            source = next(records, None)
            if source is None:
                raise RecordError("Another program imports a run of the same name: try again.")
            problems.extend(self._say(home, run_id))
            return self._renamed(source, run_id, file, problems)

        run_id, new = put(names, lambda: self._claim(names), written, None)
        question = self.top.attributes.get(sc.QUESTION + ".preview") if self.top is not None else None
        asked = question if isinstance(question, str) else None
        return Written(run_id, new, tuple(self._missing(home)), tuple(problems), self.engine, asked)

    def _claim(self, names: Names) -> tuple[str, bool]:
        """Its own name if that is free or has it already, else one that is made of what it holds."""
        home = names.home
        wanted = self.first.get("run_id")
        if isinstance(wanted, str) and is_run_id(wanted) and wanted not in names.deleted:
            path = home.spool_file(wanted)
            if not path.exists():
                return wanted, False
            if key_of(path) == self.key or digest(spool_records(home, wanted)) == self.digest:
                return wanted, True
        started = self.first.get("started_ns") or min((row.start_ns for row in self.rows), default=0)
        return names.free(started, self.key)

    def _problems(self) -> list[str]:
        found = []
        if not self.first:
            found.append("The first record of the run is missing.")
        if self.mixed and self.first:
            found.append(
                "Its lines do not stand in the order of their numbers (seq): they were put in order."
            )
        if self.unusable:
            one = self.unusable == 1
            records = "1 record is" if one else f"{self.unusable:,} records are"
            found.append(f"{records} missing, unreadable or {'does' if one else 'do'} not fit.")
        return found

    def _missing(self, home: Home) -> Iterator[str]:
        """What this home lacks of it."""
        top = self.top
        corpus = (top.attributes if top is not None else {}).get(sc.CORPUS_ID, self.facts.get(sc.CORPUS_ID))
        if self.foreign or not isinstance(corpus, str):
            return
        try:
            corpus_folder(home.corpora, corpus)
        except CorpusError:
            yield f"Its corpus {corpus[:100]} is not in this home: it can be looked at, but not played again."

    def _renamed(
        self, source: Iterable[Record | None], run_id: str, file: str, problems: list[str]
    ) -> Iterator[Record]:
        """The records as they are written: the first one says where the run comes from."""
        yield self._header(run_id, file, problems)
        if not self.first:
            yield {"seq": 0, "kind": "unreadable"}
        began = False
        for record in marked(source):
            if is_header(record) and not began:
                began = True
            elif record["kind"] in ("s", "e") and isinstance(record.get("a"), dict):
                yield {**record, "a": self._own(record["a"], run_id)}
            else:
                yield record

    def _header(self, run_id: str, file: str, problems: list[str]) -> Record:
        first = self.first or header({"started_ns": min((row.start_ns for row in self.rows), default=0)})
        facts = dict(self.facts)
        if self.foreign:
            facts[sc.IMPORT_KEY] = self.key
        else:
            facts = {name: value for name, value in facts.items() if name not in BROUGHT}
            facts |= {
                sc.IMPORT_FORMAT: sc.IMPORT_OWN,
                sc.IMPORT_ENGINE: self.engine,
                sc.IMPORT_FILE: file.rpartition("/")[2],
                sc.IMPORT_KEY: self.key,
                sc.IMPORT_MISSING: as_json([]),
                sc.IMPORT_PROBLEMS: as_json(problems),
            }
        return {**first, "run_id": run_id, "facts": facts}

    def _own(self, attributes: dict[str, Any], run_id: str) -> dict[str, Any]:
        """Facts of a span under the new name. Where a run comes from is said by its first record alone."""
        kept = {name: value for name, value in attributes.items() if name != sc.IMPORT_FORMAT}
        if sc.RUN_ID in kept and kept[sc.RUN_ID] == self.first.get("run_id"):
            kept[sc.RUN_ID] = run_id
        return kept

    def _say(self, home: Home, run_id: str) -> Iterator[str]:
        """Take over what people said about the run; sentences about what cannot be."""
        if not self.opinions:
            return
        listed = self.opinions if isinstance(self.opinions, list) else [self.opinions]
        refused = len(listed[_MOST_OPINIONS:])
        for said in listed[:_MOST_OPINIONS]:
            try:
                kind, facts = _opinion(said)
            except InputError:
                refused += 1
            else:
                user_log.append(home, kind, {"run_id": run_id, **facts})
        if refused:
            yield f"{refused:,} of the verdicts and tags that came with it cannot be used."


def _records(values: Iterable[Any]) -> Iterator[Record | None]:
    return (value if is_record(value) else None for value in values)


def _newer(version: object) -> InputError:
    return InputError(
        f"it was written by a newer version (format {str(version)[:20]}): update the program to read it"
    )


def _opinion(said: Any) -> tuple[str, dict[str, Any]]:
    """Kind and facts of an opinion that came along. Raises InputError for what is none."""
    if isinstance(said, dict) and said.get("kind") == TAGS and isinstance(said.get("tags"), list):
        return TAGS, {"tags": list(checked_tags(map(str, said["tags"])))}
    if not isinstance(said, dict) or said.get("kind") != VERDICT:
        raise InputError("no opinion")
    facts = {name: said.get(name) for name in ("span_id", "verdict", "expected", "how", "note", "time")}
    if not all(
        value is None or (isinstance(value, str) and len(value) <= TEXT_CHARS) for value in facts.values()
    ):
        raise InputError("no opinion")
    if facts["verdict"] not in (None, *VERDICTS):
        raise InputError("no verdict")
    check_how(facts["how"] or NORMALISED, facts["expected"])
    always = ("verdict", "expected", "note")
    return VERDICT, {name: value for name, value in facts.items() if value is not None or name in always}
