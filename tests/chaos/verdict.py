"""What the record must hold after all kills, against what the witnesses say."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from rlm_core import semconv as sc
from tests.chaos.campaign import Campaign
from tests.chaos.witness import ROOT, tag_of
from tests.traces.records import dump
from traces import store, user_log
from traces.home import Home
from traces.ingest import ingest
from traces.spool import has_final_record
from traces.upkeep import rebuild

_KEYS = {
    "run": "run_id",
    "span": "run_id, span_id",
    "payload": "run_id, sha256",
    "span_event": "run_id, seq",
    "spool_file": "run_id",
}


@dataclass
class Verdict:
    """Counts of what was seen, and of what must not be; `why` has a sentence for each of those."""

    seen: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)

    def count(self, what: str, sentences: list[str]) -> None:
        """Add a count of faults, which may be 0."""
        self.wrong[what] = len(sentences)
        self.why += [f"{what}: {sentence}" for sentence in sentences]


@dataclass
class _Stored:
    """A run as the store has it."""

    run_id: str
    status: str
    problems: int
    spans: dict[str, tuple[str, str | None, str, dict[str, Any]]]  # id -> kind, parent, status, attributes
    texts: dict[str, str]


def judge(campaign: Campaign) -> Verdict:
    """Take everything in and compare; nothing else may be at work on the home."""
    home, verdict = campaign.home, Verdict()
    campaign.note_deletions()
    notices = list(ingest(home).notices)
    runs = _runs(home)
    verdict.count("starts missing", _missing_starts(campaign, runs, verdict))
    verdict.count("acknowledged ends missing", _missing_ends(campaign, runs, verdict))
    verdict.count("duplicates", _duplicates(home, runs))
    verdict.count("untrue statuses", _untrue(campaign, runs, verdict))
    before = dump(home)
    notices += rebuild(home).notices
    after = dump(home)
    differing = [table for table in before if before[table] != after.get(table)]
    verdict.count("tables changed by a rebuild", differing)
    verdict.count("deleted runs that came back", _come_back(campaign, verdict))
    verdict.count("spools that could not be used", notices)
    verdict.count("processes that misbehaved", campaign.broken)
    return verdict


def _runs(home: Home) -> dict[str, list[_Stored]]:
    """Stored runs by tag."""
    found: dict[str, list[_Stored]] = defaultdict(list)
    with store.reader(home, store.deadline_in()) as con:
        assert con is not None
        rows = store.rows_of(con, "SELECT run_id, coalesce(question, ''), status, problems FROM run")
        for run_id, question, status, problems in rows:
            sql = "SELECT span_id, kind, parent_id, status, attrs FROM span WHERE run_id = ?"
            spans = store.rows_of(con, sql, [run_id])
            texts = store.rows_of(con, "SELECT sha256, text FROM payload WHERE run_id = ?", [run_id])
            made = {span[0]: (*span[1:4], json.loads(span[4])) for span in spans}
            found[tag_of(question)].append(_Stored(run_id, status, problems, made, dict(texts)))
    return found


def _missing_starts(campaign: Campaign, runs: dict[str, list[_Stored]], verdict: Verdict) -> list[str]:
    """Each request the server received has an attempt, below a call with that prompt."""
    missing: list[str] = []
    total = 0
    for tag, asked in campaign.server.asked.items():
        total += asked.total()
        if tag in _deleted_tags(campaign):
            continue
        attempts = _attempts(runs[tag][0]) if runs.get(tag) else Counter()
        missing += [f"{tag}: {prompt}" for prompt in (asked - attempts).elements()]
    verdict.seen["requests the server received"] = total
    return missing


def _attempts(run: _Stored) -> Counter[str]:
    made: Counter[str] = Counter()
    for kind, parent, _status, _attributes in run.spans.values():
        if kind == "attempt" and parent is not None:
            call = run.spans[parent]
            prompt = run.texts.get(str(call[3].get(sc.PROMPT + ".sha256")), "")
            made[ROOT if call[0] == "root_call" else prompt] += 1
    return made


def _missing_ends(campaign: Campaign, runs: dict[str, list[_Stored]], verdict: Verdict) -> list[str]:
    """Each sub-call whose end was acknowledged has that end, and its response whole."""
    missing: list[str] = []
    total = 0
    for run in campaign.runs:
        said = run.side.read_bytes().split(b"\n")[:-1] if run.side.exists() else []
        total += len(said)
        if run.tag in _deleted_tags(campaign):
            continue
        for line in map(json.loads, said):
            stored = runs[run.tag][0] if runs.get(run.tag) else None
            span = stored.spans.get(line["span_id"]) if stored is not None else None
            digest = line["response"]
            whole = stored is not None and (digest is None or digest in stored.texts)
            if span is None or not whole or span[2] not in ("ok", "error", "cancelled"):
                missing.append(f"{run.tag}: {line['span_id']}")
            elif span[3].get(sc.RESPONSE + ".sha256") != digest:
                missing.append(f"{run.tag}: {line['span_id']} has another response")
    verdict.seen["acknowledged ends"] = total
    return missing


def _duplicates(home: Home, runs: dict[str, list[_Stored]]) -> list[str]:
    found = [f"{tag}: {len(same)} runs" for tag, same in runs.items() if tag and len(same) > 1]
    with store.reader(home, store.deadline_in()) as con:
        assert con is not None
        for table, key in _KEYS.items():
            sql = f"SELECT {key}, count(*) FROM {table} GROUP BY ALL HAVING count(*) > 1"
            found += [f"{table}: {row}" for row in store.rows_of(con, sql)]
    for tag, same in runs.items():
        calls = Counter(
            (attributes.get(sc.CELL), attributes.get(sc.CALL_INDEX))
            for kind, _, _, attributes in same[0].spans.values()
            if kind == "sub_call"
        )
        found += [f"{tag}: call {place}" for place, number in calls.items() if number > 1]
    return found


def _untrue(campaign: Campaign, runs: dict[str, list[_Stored]], verdict: Verdict) -> list[str]:
    """A run whose process was killed is interrupted, unless its record was closed; all others are ok."""
    wrong: list[str] = []
    for run in campaign.runs:
        for stored in runs.get(run.tag, ()):
            closed = has_final_record(campaign.home.spool_file(stored.run_id))
            expected = "ok" if closed else "interrupted"
            if stored.status != expected or (run.code == 0 and not closed):
                wrong.append(f"{run.tag}: {stored.status}, its process ended with {run.code}")
            # a kill can tear one record, the last; a run that went on to its end has them all
            if stored.problems > (0 if closed else 1):
                wrong.append(f"{run.tag}: {stored.problems} records are missing")
            open_ones = {"lost"} & {status for _, _, status, _ in stored.spans.values()}
            running = [s for s in stored.spans.values() if s[2] not in ("ok", "error", "cancelled", "lost")]
            if running or (closed and open_ones):
                wrong.append(f"{run.tag}: spans are open although the run is over")
    # killed before they could say what they were about
    wrong += [
        f"{stored.run_id}: {stored.status}" for stored in runs.get("", ()) if stored.status != "interrupted"
    ]
    every = [stored for same in runs.values() for stored in same]
    verdict.seen["runs in the store"] = len(every)
    verdict.seen["of these interrupted"] = sum(stored.status == "interrupted" for stored in every)
    verdict.seen["spans in the store"] = sum(len(stored.spans) for stored in every)
    return wrong


def _come_back(campaign: Campaign, verdict: Verdict) -> list[str]:
    """A deletion that was noted or said to be done is final; one that was not has changed nothing."""
    home = campaign.home
    deleted = user_log.deleted_runs(home)
    here = {stored.run_id for same in _runs(home).values() for stored in same}
    wrong: list[str] = []
    for run_id, said in campaign.deletions.items():
        gone = run_id not in here and not home.spool_file(run_id).exists()
        if (said and run_id not in deleted) or gone != (run_id in deleted):
            wrong.append(run_id)
    verdict.seen["deleted runs"] = len(deleted)
    return wrong


def _deleted_tags(campaign: Campaign) -> set[str]:
    return {campaign.tags[run_id] for run_id in user_log.deleted_runs(campaign.home)}
