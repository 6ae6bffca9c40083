"""Runs and trees as text for a terminal. Every text of a model or corpus passes `ui.visible` first."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from traces.imported import (
    asked_words,
    calls_words,
    import_facts,
    is_foreign,
    iterations_told,
    not_said,
    sub_calls_told,
)
from traces.refused import refused_words
from traces.summing import spend_of
from ui.figures import count, counted, duration, money, spent, with_tokens
from ui.replay_text import replay_of_lines, sub_calls_words
from ui.tree import describe_span, long_ids, tree_lines
from ui.trust_text import import_lines, marks_of_calls
from ui.visible import fit, line

if TYPE_CHECKING:
    from traces.reading import RunSummary, RunView, SpanRow

_COLOURS: Final = {
    "error": "red",
    "lost": "red",
    "interrupted": "red",
    "cancelled": "yellow",
    "running": "cyan",
}


ANSWER_SHOWN: Final = 500  # characters above a tree
FINDINGS_SHOWN: Final = 5  # above a tree
_SEVERE: Final = {"serious": "error", "check": "cancelled"}  # coloured as these statuses are


def terminal_width() -> int:
    """Columns of the terminal (or `$COLUMNS`); 120 where there is none."""
    return max(shutil.get_terminal_size((120, 24)).columns, 40)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    whole: frozenset[int] = frozenset(),
) -> list[str]:
    """Rows under a head, columns aligned; the widest columns are cut so that a row fits the terminal.

    Never cut are the first column (it is what people copy), figures (`right` numbers their columns) and the
    columns of `whole`.
    """
    from rich.cells import cell_len

    cells = [list(head), *([line(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(row[place]) for row in cells) for place in range(len(head))]
    spare = terminal_width() - 2 * (len(head) - 1)
    loose = [place for place in range(1, len(widths)) if place not in right | whole]
    while sum(widths) > spare and max((widths[place] for place in loose), default=0) > 5:
        widest = max(loose, key=widths.__getitem__)
        widths[widest] -= 1
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in cells]


def _padded(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> Iterable[str]:
    from rich.cells import cell_len

    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        shown = fit(cell, width)
        gap = " " * (width - cell_len(shown))
        yield gap + shown if place in right else shown + gap


def runs_table(runs: Sequence[RunSummary], asked: Mapping[str, int]) -> list[str]:
    """One line per run; `asked` says how many sub-calls of a replay a model was asked for."""
    rows = [
        (
            run.run_id,
            _status(run),
            asked_words(run)[:ANSWER_SHOWN],
            _answer(run)[:ANSWER_SHOWN],
            _models(run.root_model, run.sub_model),
            count(sub_calls_told(run)) + (_asked(asked.get(run.run_id, 0)) if run.plays_a_record else ""),
            money(run.known_usd if least else run.cost_usd, "partial" if least else run.cost_status),
        )
        for run in runs
        for least in (run.cost_usd is None and run.known_usd > 0,)
    ]
    head = ("run", "status", "question", "answer", "models", "calls", "cost")
    return table(head, rows, right=frozenset({5, 6}), whole=frozenset({1}))


def _asked(calls: int) -> str:
    return f", {calls:,} asked" if calls else ", none asked"


def _status(run: RunSummary) -> str:
    status = run.status if run.complete or run.status != "ok" else "ok, incomplete"
    told = "replay" if run.replay_of is not None else "resumed" if run.resumed_from is not None else None
    told = told if run.imported_from is None else f"imported: {run.imported_from}"
    return status if told is None else f"{status}, {told}"


def _answer(run: RunSummary) -> str:
    if run.answer is not None:
        return run.answer
    return "" if run.status == "running" else "(no answer)"


def _models(root: str | None, sub: str | None) -> str:
    return f"{root or '?'} / {sub or '?'}"


def run_header(view: RunView, *, calls: str | None = None, continued_by: Sequence[str] = ()) -> list[str]:
    """What a run was, what came out, and what it took; `calls` says more of its sub-calls, `continued_by`
    are the runs that went on from it.
    """
    run, live, rounds = view.summary, view.live, iterations_told(view.summary)
    state = "running; this is what is recorded so far" if live else run.status
    failed = f" ({run.failed_sub_calls:,} failed)" if run.failed_sub_calls else ""
    failed += refused_words(run.refused_sub_calls)
    facts = [
        f"root {run.root_model or 'unknown'}",
        f"sub {run.sub_model or 'unknown'}",
        "no iterations on record" if rounds is None else counted(rounds, "iteration"),
        _sub_calls(run, calls) + failed,
        with_tokens(run.tokens, run.untold_calls),
        f"cost {spent(run.cost_usd, run.cost_status, run.known_usd)}",
        f"time {duration(run.seconds)}" if run.seconds is None else duration(run.seconds),
        f"sandbox {run.sandbox or 'unknown'}",
    ]
    lines = [f"run {run.run_id}: {state}", f"question: {line(asked_words(run))}"]
    if run.resumed_from is not None:
        lines.append(line(f"continues run {run.resumed_from}"))
    lines.extend(f"continued by run {run_id}" for run_id in continued_by)
    if run.answer is not None:
        lines.append("answer" + (" (forced after a limit)" if run.forced else "") + f": {_cut(run.answer)}")
    elif not live:
        lines.append(f"no answer; the run stopped with: {line(run.stop_reason or run.status)}")
    lines.append(line(" · ".join(facts)))
    if (source := import_facts(view)) is not None:
        lines.extend(map(line, import_lines(source, not_said(view, source))))
        spend = spend_of(view.spans)
        lines.extend(f"note: {words}" for words in marks_of_calls(spend))
    if run.demo:
        lines.append("demo model, no language model involved")
    if run.problems:
        lines.append(f"trace incomplete: {counted(run.problems, 'record')} missing or unreadable")
    elif not live and not run.complete:
        ends = "before the run does" if is_foreign(run) else "where the process died"
        lines.append(f"trace incomplete: it ends {ends}")
    return lines


def _sub_calls(run: RunSummary, calls: str | None) -> str:
    return calls if calls and not run.untold_sub_calls else calls_words(run)


def show_run(view: RunView, *, everything: bool, continued_by: Sequence[str] = ()) -> Iterable[str]:
    """Header and recursion tree, one string per line, coloured by status."""
    calls = sub_calls_words(view)
    yield from run_header(view, calls=calls, continued_by=continued_by)
    yield from replay_of_lines(view)
    yield from finding_lines(view, everything=everything)
    yield ""
    width = terminal_width()
    for row in tree_lines(view, everything=everything):
        text = row.text if everything else fit(row.text, max(width - len(row.branch), 20))
        yield row.branch + coloured(text, row.status)


def finding_lines(view: RunView, *, everything: bool) -> Iterable[str]:
    """What in a run a person should know, one line each, the serious first; with `everything` all of it."""
    from traces.findings import findings

    found = findings(view)
    shown = found if everything else found[:FINDINGS_SHOWN]
    for finding in shown:
        text = line(f"{finding.severity}: {finding.words}")
        yield coloured(text if everything else fit(text, terminal_width()), _SEVERE.get(finding.severity, ""))
    if len(shown) < len(found):
        yield f"{counted(len(found) - len(shown), 'more finding')}; --all lists them"


def show_found(view: RunView, found: Sequence[tuple[SpanRow, Sequence[str]]]) -> Iterable[str]:
    """Header, and for each span in which a text was found one line: where in it, and which span it is."""
    yield from run_header(view, calls=sub_calls_words(view))
    yield ""
    longer = long_ids(view.by_id)
    for span, places in found:
        told = coloured(fit(describe_span(span, longer), terminal_width()), span.status)
        yield from (told, f"    in {line(', '.join(places))}")
    yield f"found in {counted(len(found), 'span')} of {len(view.spans):,}"


def _cut(text: str) -> str:
    if len(text) <= ANSWER_SHOWN:
        return line(text)
    return f"{line(text[:ANSWER_SHOWN])}… ({len(text):,} characters; the run's span holds all of them)"


def coloured(text: str, status: str) -> str:
    """The text in the colour of a status; click takes the colour away where there is no terminal."""
    colour = _COLOURS.get(status)
    return click.style(text, fg=colour) if colour else text
