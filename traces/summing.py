"""Totals: from span rows to one `RunSummary`, and from many costs to one amount with a status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from traces.facts import Facts, token_counts
from traces.folding import Fold
from traces.importers.foreign import ALL_CALLS, NOT_ALL_CALLS
from traces.refused import refused
from traces.rows import CALL_KINDS, RunSummary, SpanRow

__all__ = ["CALL_KINDS", "Spend", "spend_of", "summarise"]

_EXACT: Final = Context(prec=60)


@dataclass(slots=True)
class Spend:
    """Tokens and dollars of a set of calls. A cost that is not known makes the sum unknown, never smaller."""

    calls: int = 0
    input: int = 0
    output: int = 0
    known_usd: Decimal = Decimal(0)
    unknown: int = 0  # calls whose cost is not known, and runs with gaps
    priced: int = 0
    demo: int = 0
    untold: int = 0  # calls whose tokens the record of another engine does not say
    derived: int = 0  # calls whose tokens or cost do not stand in such a record, but follow from it

    def add_call(self, span: SpanRow) -> None:
        """Count one root call or sub-call."""
        self.calls += 1
        if span.tokens is not None:
            self.input += span.tokens["input"]
            self.output += span.tokens["output"]
        if span.cost_usd is None:
            self.unknown += 1
        known = span.so_far_usd if span.cost_usd is None else span.cost_usd
        if known is not None:
            self.known_usd = _EXACT.add(self.known_usd, known)
        self.priced += span.cost_status == "priced"
        self.demo += span.cost_status == "demo"
        if span.trust is not None:
            self.untold += span.tokens_untold
            self.derived += "derived" in (span.trusted.get("tokens"), span.trusted.get("cost"))

    def add(self, other: Spend) -> None:
        """Add another sum, exactly."""
        self.known_usd = _EXACT.add(self.known_usd, other.known_usd)
        self.calls += other.calls
        self.input += other.input
        self.output += other.output
        self.unknown += other.unknown
        self.priced += other.priced
        self.demo += other.demo
        self.untold += other.untold
        self.derived += other.derived

    def add_gaps(self, runs: int) -> None:
        """Count runs that lack records: what those cost is not known, so the sum is a lower bound."""
        self.unknown += runs

    @property
    def usd(self) -> Decimal | None:
        """The amount, or None when any part of it is unknown."""
        return None if self.unknown else self.known_usd

    @property
    def status(self) -> str:
        """`priced`, `demo`, `free` (a number each), `partial` (a lower bound is known) or `unknown`."""
        if self.unknown:
            return "partial" if self.known_usd else "unknown"
        if self.priced:
            return "priced"
        return "demo" if self.demo else "free"

    @property
    def tokens(self) -> dict[str, int]:
        """{input, output, total}."""
        return token_counts(self.input, self.output)


def spend_of(spans: Iterable[SpanRow]) -> Spend:
    """The spend of all root calls and sub-calls among the spans; attempts are in their call's figures,
    of a call without an end those that ended."""
    total = Spend()
    for span in spans:
        if span.kind in CALL_KINDS:
            total.add_call(span)
    return total


def summarise(
    fold: Fold, rows: tuple[SpanRow, ...], problems: int, *, alive: bool, text: Callable[[str], str | None]
) -> RunSummary:
    """The summary of a run; `text` gives the text of a payload by its sha256."""
    top = next((row for row in rows if row.kind == "run"), None)
    attributes = {**fold.header.facts, **(top.attributes if top is not None else {})}
    facts = Facts(attributes)
    turned_away = refused(rows)
    asked = [row for row in rows if row.kind == "sub_call"]
    calls = [row for row in asked if row.span_id not in turned_away]
    spend = spend_of(rows)
    started = _started(fold, top, rows)
    ended = top.end_ns if top is not None and top.end_ns is not None else fold.last_ns
    demo = facts.flag(sc.DEMO) or (spend.calls > 0 and spend.demo == spend.calls)
    foreign = facts.text(sc.IMPORT_FORMAT) not in (None, sc.IMPORT_OWN)
    # a record without any call does not say that no model was asked
    lacking = foreign and (not spend.calls or facts.flag(sc.IMPORT_LACKS_CALLS))
    problems += _unreadable(facts.text(sc.IMPORT_PROBLEMS)) if foreign else 0
    spend.add_gaps(int((problems > 0 and not demo) or lacking))
    return RunSummary(
        run_id=fold.run_id,
        question=_text(attributes, sc.QUESTION, text),
        status=fold.status or ("running" if alive else "interrupted"),
        answer=_text(attributes, sc.ANSWER, text),
        stop_reason=facts.text(sc.STOP_REASON),
        forced=facts.flag(sc.FORCED),
        root_model=facts.text(sc.ROOT_MODEL),
        sub_model=facts.text(sc.SUB_MODEL),
        sub_calls=len(calls),
        failed_sub_calls=sum(row.status not in ("ok", "running") for row in calls),
        iterations=sum(map(_is_turn, rows)),
        cost_usd=spend.usd,
        cost_status="demo" if demo and not spend.calls else spend.status,
        known_usd=spend.known_usd,
        tokens=spend.tokens,
        started=_told_start(started, top),
        started_ns=started,
        seconds=None if _untimed(top, rows) else max(0, (ended or started) - started) / 1e9,
        sandbox=facts.text(sc.SANDBOX),
        corpus_id=facts.text(sc.CORPUS_ID),
        demo=demo,
        complete=fold.final_status is not None and problems == 0,
        problems=problems,
        spans=len(rows),
        trace_id=fold.header.trace_id,
        engine_version=fold.header.engine_version,
        replay_of=facts.text(sc.REPLAY_OF),
        resumed_from=facts.text(sc.RESUME_OF),
        strategy=facts.text(sc.STRATEGY),
        imported_from=facts.text(sc.IMPORT_FORMAT),
        untold_calls=spend.untold + int(lacking),
        imported_file=facts.text(sc.IMPORT_FILE),
        untold_sub_calls=foreign and not calls and not _tells_all_calls(facts),
        refused_sub_calls=len(asked) - len(calls),
    )


def _tells_all_calls(facts: Facts) -> bool:
    """Whether a run of another engine made no sub-call where its record holds none."""
    missing = facts.text(sc.IMPORT_MISSING) or ""
    told = not any(sentence in missing for sentence in NOT_ALL_CALLS)
    return told and facts.text(sc.IMPORT_FORMAT) in ALL_CALLS


def _is_turn(row: SpanRow) -> bool:
    """An iteration of the top run; the one extra root call for a forced answer is none."""
    return row.kind == "iteration" and row.depth == 0 and row.attributes.get(sc.FORCED) is not True


def _started(fold: Fold, top: SpanRow | None, rows: tuple[SpanRow, ...]) -> int:
    """When a run began. Of one that came span by span its first record only knows the spans that came first,
    and clocks of those inside may differ from that of the run.
    """
    if fold.header.started_ns is not None and fold.header.facts.get(sc.IMPORT_ORDER) != "arrival":
        return fold.header.started_ns
    if top is not None and top.start_told:
        return top.start_ns
    return min((row.start_ns for row in rows), default=0)


def _told_start(started_ns: int, top: SpanRow | None) -> str:
    if not started_ns or (top is not None and not top.start_told):
        return ""
    return datetime.fromtimestamp(started_ns // 1_000_000_000, UTC).isoformat()


def _unreadable(raw: str | None) -> int:
    """How many parts of the record of another engine could not be read."""
    try:
        listed = json.loads(raw or "[]")
    except (ValueError, RecursionError):
        return 1
    return len(listed) if isinstance(listed, list) else 1


def _untimed(top: SpanRow | None, rows: tuple[SpanRow, ...]) -> bool:
    """Whether a record does not say how long its run took: where the end of the run is not in it, whether it
    says that of nothing in the run.
    """
    if top is None:
        return False
    if top.end_ns is None and top.trust is not None:
        return all(row.seconds is None for row in rows)
    return top.end_ns is not None and top.seconds is None


def _text(attributes: Mapping[str, Any], prefix: str, text: Callable[[str], str | None]) -> str | None:
    """The whole text of a payload, else the preview that stands on the span."""
    facts = Facts(attributes)
    sha256 = facts.text(prefix + ".sha256")
    whole = text(sha256) if sha256 is not None else None
    return whole if whole is not None else facts.text(prefix + ".preview")
