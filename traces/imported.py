"""What is known of where a run was read from, and what follows from it for what can be done with the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlm_core import semconv as sc
from traces.figures import counted
from traces.importers.foreign import NO_TIMES
from traces.rows import RunSummary, SpanRow
from traces.view import RunView


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """Where a run was read from: format, program, file; sentences on what that does not say (`missing`) and
    on what of it is unreadable (`problems`). All but the format is text of the file.
    """

    format: str
    engine: str
    file: str
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {name: getattr(self, name) for name in ImportFacts.__slots__}


def import_facts(view: RunView) -> ImportFacts | None:
    """Where a run was read from; None for one that was recorded in its home."""
    format_ = view.summary.imported_from
    if format_ is None:
        return None
    top = next((span for span in view.spans if span.kind == "run"), None)
    # the span of the run stands above the header: what is missing may be known only at its end
    facts = {**view.facts, **(top.attributes if top is not None else {})}
    return ImportFacts(
        format=format_,
        engine=str(facts.get(sc.IMPORT_ENGINE) or "unknown"),
        file=str(facts.get(sc.IMPORT_FILE) or "unknown"),
        missing=tuple(sentences_of(facts.get(sc.IMPORT_MISSING))),
        problems=tuple(sentences_of(facts.get(sc.IMPORT_PROBLEMS))),
    )


def is_foreign(run: RunSummary) -> bool:
    """Whether another engine made the run: it cannot be played again, and says nothing of what ours takes."""
    return run.imported_from not in (None, sc.IMPORT_OWN)


def sub_calls_told(run: RunSummary) -> int | None:
    """How many sub-calls are on record; None where the record of another engine holds none, which does not
    say that there were none.
    """
    return None if run.untold_sub_calls else run.sub_calls


def calls_words(run: RunSummary) -> str:
    """How many sub-calls are on record, in words."""
    calls = sub_calls_told(run)
    return "no sub-calls on record" if calls is None else counted(calls, "sub-call")


def failed_sub_calls_told(run: RunSummary) -> int | None:
    """How many of the sub-calls on record failed; None where `sub_calls_told` is."""
    return None if run.untold_sub_calls else run.failed_sub_calls


def iterations_told(run: RunSummary) -> int | None:
    """How many iterations are on record; None where the record of another engine holds none."""
    return None if is_foreign(run) and not run.iterations else run.iterations


def tokens_told(run: RunSummary) -> dict[str, int | None]:
    """What the calls on record took, `input` and `output`: the least of it where some do not say (the run has
    `untold_calls`), None where none does.
    """
    silent = run.untold_calls > 0 or run.cost_status == "unknown"
    untold = silent and not any(run.tokens.values())
    return {side: None if untold else run.tokens[side] for side in ("input", "output")}


def on_record(number: int | None) -> str:
    """A number in words; None, of which nothing is on record."""
    return "none on record" if number is None else f"{number:,}"


def asked_words(run: RunSummary) -> str:
    """The question of a run; where its record holds none, words for it: the file and the engine that a run
    of another engine was read from, which is text of the file.
    """
    if run.question:
        return run.question
    if not is_foreign(run) or run.imported_file is None:
        return "(the question is not recorded)"
    return unasked_words(run.imported_file, run.engine_version or run.imported_from or "unknown")


def unanswered_words(run: RunSummary) -> str:
    """Why nothing stands where the answer of a run would: there is none, or the record of another engine,
    which says that the run went well, does not hold it.
    """
    kept_out = is_foreign(run) and run.status == "ok"
    return "The answer is not in the record." if kept_out else "There is no answer."


def unasked_words(file: str, engine: str) -> str:
    """Words for a run of another engine that has no question: where it was read from. Text of its file.

    >>> unasked_words("log.json", "dspy.RLM")
    '(log.json of dspy.RLM: no question on record)'
    """
    return f"({file} of {engine}: no question on record)"


def not_again(run: RunSummary) -> str | None:
    """Why the cells of a run cannot be run again, as a sentence; None where nothing is known against it."""
    if not is_foreign(run):
        return None
    if run.imported_from == sc.IMPORT_INSTRUMENT:
        return (
            "This run is on record as its own program told it, without the seeds and the corpus as that gave "
            "it to code: it cannot be played again."
        )
    return (
        f"This run was read from a record of {run.imported_from}, which holds neither the seeds "
        "nor the corpus as that engine gave it to code: it cannot be played again."
    )


def is_timed(view: RunView) -> bool:
    """Whether the record says of any span how long it took."""
    return not is_foreign(view.summary) or any(span.seconds is not None for span in view.spans)


def not_said(view: RunView, facts: ImportFacts) -> tuple[str, ...]:
    """What the record of a run does not say, its times among it, a sentence each."""
    untimed = bool(view.spans) and not view.live and not is_timed(view)
    return (*facts.missing, *([NO_TIMES] if untimed and NO_TIMES not in facts.missing else []))


def trust_reasons(span: SpanRow) -> dict[str, str]:
    """What is said about numbers of a span, by what they are (`rlm_core.semconv.TRUST_WHY`)."""
    if span.trust is None:
        return {}
    said = _decoded(span.attributes.get(sc.TRUST_WHY))
    return {str(name): str(why) for name, why in said.items()} if isinstance(said, dict) else {}


def sentences_of(raw: object) -> Iterator[str]:
    """The sentences of a fact that holds a JSON list of them (`sc.IMPORT_MISSING`), or that is one."""
    listed = _decoded(raw)
    if isinstance(listed, list):
        yield from (str(each) for each in listed if each)
    elif isinstance(raw, str) and raw:
        yield raw


def _decoded(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
