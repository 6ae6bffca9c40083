"""The list of runs as rows of a table: filtered, in an order, or grouped by question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from traces.imported import asked_words, failed_sub_calls_told, sub_calls_told
from traces.opinions import VERDICTS, Opinions
from traces.questions import Question, asked
from traces.reading import RunSummary
from traces.strategies import RLM, strategy_of
from ui.figures import count, counted, duration, money
from ui.web import verdict_view
from ui.web.listing import moment
from ui.web.places import href, run_link
from ui.web.rows_view import Cell, Column, Item
from ui.web.run_words import COLOURS, cost_words, status_word
from ui.web.samples import example_note

UNJUDGED: Final = "none"  # the verdict of a run that has none, in filters
KINDS: Final = {
    "example": "examples that came with the program",
    "demo": "answered by the demo model",
    "model": "answered by a language model",
    "resumed": "continued from a dead run",
    "imported": "imported",
}
_TEXT_SHOWN: Final = 300  # characters of a question or answer in a cell
_ANSWERS_SHOWN: Final = 3  # different answers named in the line of a question

COLUMNS: Final = (
    Column("Question", None, sortable=True),
    Column("Answer", None, sortable=True),
    Column("Status", 90, sortable=True),
    Column("Verdict", 76, sortable=True),
    Column("Tags", 104),
    Column("Models", 118, sortable=True),
    Column("Sub-calls", 76, right=True, sortable=True),
    Column("Failed", 58, right=True, sortable=True),
    Column("Cost", 92, right=True, sortable=True),
    Column("Time", 78, right=True, sortable=True),
    Column("Started", 122, right=True, sortable=True),
)
QUESTION_COLUMNS: Final = (
    Column("Question", None),
    Column("Answers", None),
    Column("Runs", 60, right=True),
    Column("Corpus", 150),
    Column("Verdicts", 150),
    Column("Cost", 160, right=True),
    Column("Time", 130, right=True),
    Column("Newest", 124, right=True),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are wanted; "" asks for nothing in particular. `same` is the id of a run, and asks for those
    that ask the same."""

    text: str = ""
    status: str = ""
    verdict: str = ""
    tag: str = ""
    model: str = ""
    corpus: str = ""
    kind: str = ""
    strategy: str = ""
    same: str = ""


def matching(runs: Sequence[RunSummary], wanted: Wanted, said: Opinions) -> list[RunSummary]:
    """The runs that are wanted, in their order. `said` is what people say about them.

    Every word of `text` is looked for in question, answer, models, run id, tags, note and expected answer,
    whatever its case.
    """
    words = wanted.text.casefold().split()
    question = next((asked(run) for run in runs if run.run_id == wanted.same), None)
    return [
        run
        for run in runs
        if wanted.status in ("", status_word(run))
        and wanted.verdict in ("", _verdict(run, said) or UNJUDGED)
        and (not wanted.tag or wanted.tag in said.tags(run.run_id))
        and wanted.model in ("", run.root_model, run.sub_model)
        and wanted.corpus in ("", run.corpus_id)
        and (not wanted.kind or wanted.kind in _kinds(run))
        and wanted.strategy in ("", strategy_of(run))
        and (not wanted.same or asked(run) == question)
        and (not words or _has(_searched(run, said), words))
    ]


def _searched(run: RunSummary, said: Opinions) -> str:
    opinion = said.of(run.run_id)
    own = (opinion.note, opinion.expected) if opinion is not None else ()
    fields = (
        run.question, run.answer, run.root_model, run.sub_model, run.run_id, run.imported_from,
        run.imported_file, *own,
    )  # fmt: skip
    return "\n".join([*(field for field in fields if field), *said.tags(run.run_id)]).casefold()


def _has(text: str, words: Iterable[str]) -> bool:
    return all(word in text for word in words)


def _kinds(run: RunSummary) -> tuple[str, ...]:
    example = example_note(run.run_id) is not None
    found = {"resumed": run.resumed_from is not None, "example": example}
    found["imported"] = run.imported_from is not None
    return ("demo" if run.demo else "model", *(kind for kind, fits in found.items() if fits))


def _verdict(run: RunSummary, said: Opinions) -> str | None:
    opinion = said.of(run.run_id)
    return None if opinion is None else opinion.verdict


# -- order

_ORDERS: Final[dict[str, Callable[[RunSummary, Opinions], Any]]] = {
    "Question": lambda run, _: run.question and run.question.casefold(),
    "Answer": lambda run, _: run.answer and run.answer.casefold(),
    "Status": lambda run, _: list(COLOURS).index(status_word(run)),
    "Verdict": lambda run, said: (word := _verdict(run, said)) and f"{VERDICTS.index(word)}",
    "Models": lambda run, _: _models(run),
    "Sub-calls": lambda run, _: sub_calls_told(run),
    "Failed": lambda run, _: failed_sub_calls_told(run),
    "Cost": lambda run, _: run.cost_usd if run.cost_usd is not None else run.known_usd or None,
    "Time": lambda run, _: run.seconds,
    "Started": lambda run, _: run.started_ns or None,
}


def in_order(runs: Iterable[RunSummary], column: str, descending: bool, said: Opinions) -> list[RunSummary]:
    """The runs by a column; those of which it is not known stand last either way, equals keep their order."""
    of = _ORDERS[column]
    keyed = [(of(run, said), run) for run in runs]
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [run for _, run in known] + [run for key, run in keyed if key is None]


# -- rows


def item(run: RunSummary, zone: str | None, said: Opinions) -> Item:
    """One run as a row under `COLUMNS`."""
    cells: dict[str, Cell] = row(run, zone)
    word = _verdict(run, said)
    cells["Verdict"] = None if word is None else (word, verdict_view.COLOURS[word])
    note = example_note(run.run_id) or _replay(run) or _resumed(run)
    cells["Tags"] = ", ".join([*_own_tags(run), *said.tags(run.run_id)])
    listed = [cells[column.name] for column in COLUMNS]
    return Item(run.run_id, listed, href=href(run_link(run.run_id)), note=note or "")


def _own_tags(run: RunSummary) -> list[str]:
    """What stands before the tags that people gave."""
    example = example_note(run.run_id)
    tags = [] if run.strategy in (None, RLM) else [str(run.strategy)]
    tags += [] if run.imported_from is None else [f"imported: {run.imported_from}"]
    tags += ["replay"] if run.replay_of is not None else [] if example is None else [_example(example)]
    return tags + (["resumed"] if run.resumed_from is not None else [])


def _resumed(run: RunSummary) -> str | None:
    return None if run.resumed_from is None else f"Continues the run {run.resumed_from}."


def _replay(run: RunSummary) -> str | None:
    return None if run.replay_of is None else f"Plays the run {run.replay_of} again."


def _example(note: str) -> str:
    """The note of an example in a few words."""
    return note.removeprefix("A recorded ").split(":")[0].removesuffix(".")


def row(run: RunSummary, zone: str | None) -> dict[str, Cell]:
    """What a run is, by column; `zone` names the time zone in which its start is told (None: UTC)."""
    return {
        "Status": (status_word(run), COLOURS[status_word(run)]),
        "Question": _short(asked_words(run)),
        "Answer": _answer(run),
        "Models": _models(run),
        "Sub-calls": count(sub_calls_told(run)),
        "Failed": count(failed_sub_calls_told(run)),
        "Cost": cost_words(run),
        "Time": duration(run.seconds),
        "Started": started(run, zone),
    }


def question_item(question: Question, zone: str | None, said: Opinions, corpora: dict[str, str]) -> Item:
    """Runs of one question as a row under `QUESTION_COLUMNS`; `corpora` are names of corpora by id."""
    newest = max(question.runs, key=lambda run: run.started_ns)
    verdicts = [_verdict(run, said) for run in question.runs]
    counts = [f"{verdicts.count(word)} {word}" for word in VERDICTS if word in verdicts]
    times = [run.seconds for run in question.runs if run.seconds is not None]
    cells: list[Cell] = [
        _short(asked_words(newest)),
        _answers(question),
        f"{len(question.runs):,}",
        corpora.get(newest.corpus_id or "", newest.corpus_id or "unknown"),
        ", ".join(counts) or "none",
        _costs(question),
        _span(duration(min(times)), duration(max(times))) if times else "unknown",
        started(newest, zone),
    ]
    return Item(newest.run_id, cells, href=f"runs?same={newest.run_id}")


def _answers(question: Question) -> str:
    """The different answers with how many runs gave each; the rest is counted."""
    if len(question.answers) == 1 and len(question.runs) == 1:
        return _answer(question.runs[0])
    named = [
        f"{count} × {'(no answer)' if answer is None else f'“{_short(answer)[:80]}”'}"
        for answer, count in question.answers[:_ANSWERS_SHOWN]
    ]
    left = len(question.answers) - _ANSWERS_SHOWN
    return "; ".join([*named, *([counted(left, "more answer")] if left > 0 else [])])


def _costs(question: Question) -> str:
    if len(question.runs) == 1:
        return cost_words(question.runs[0])
    costs = question.known_usd
    if costs is None:
        return "unknown"
    unknown = f", {question.unknown_costs} unknown" if question.unknown_costs else ""
    status = "demo" if all(run.demo for run in question.runs) else None
    return _span(*(money(cost, status) for cost in costs)) + unknown


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _models(run: RunSummary) -> str:
    return f"{run.root_model or '?'} / {run.sub_model or '?'}"


def _answer(run: RunSummary) -> str:
    if run.answer is not None:
        remarks = ("forced, " if run.forced else "") + ("record incomplete, " if not run.complete else "")
        return (f"({remarks[:-2]}) " if remarks else "") + _short(run.answer)
    return "" if run.status == "running" else "(no answer)"


def _short(text: str) -> str:
    return " ".join(text[: _TEXT_SHOWN * 2].split())[:_TEXT_SHOWN]


def started(run: RunSummary, zone: str | None) -> str:
    """When a run started, `2027-01-15 09:00` in the given time zone; unknown when it is not recorded."""
    if not run.started or not run.started_ns:
        return "unknown"
    return moment(datetime.fromtimestamp(run.started_ns // 10**9, UTC), zone)
