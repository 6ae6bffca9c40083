"""Continuing a run that died: a new run that takes what the dead one had from its record, at no cost.

What was spent before counts against the limits of the new run, so that a limit means the whole question. A
run that continued another one and died too is continued with the records of both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import CorpusError, InputError, RecordError
from rlm_core.limits import Before, Limits
from rlm_core.lm_handler import Usage, estimate_tokens
from rlm_core.options import Options
from rlm_core.pricing import PriceTable
from rlm_core.telemetry import Attribute, as_json
from rlm_core.tools import Tool
from traces.continuing import Continuing, Where
from traces.detail import decoded, sent_messages
from traces.home import Home
from traces.imported import not_again
from traces.program import Program, Turn, read_program
from traces.recorded_settings import bounded, lacking, lowered, read_limits
from traces.replay_facts import top_facts
from traces.replayability import changed_versions
from traces.rows import SpanRow
from traces.runs import load_run
from traces.summing import CALL_KINDS, spend_of
from traces.view import RunView

_MOST_RUNS: Final = 100  # of a chain in which each continues the one before
_STRIKES: Final = {
    "budget": ("max_calls", "max_tokens", "max_cost_usd"),
    "max_iterations": ("max_iterations",),
}
_OPTION: Final = {"max_cost_usd": "--max-cost"}


@dataclass(frozen=True, slots=True)
class Continuation:
    """Everything a run needs that continues another one. `before` is what that one and those it continued had
    spent; `faults` are rate and seed of the demo model; `warnings` are sentences on what is not as it was.
    """

    of: str
    question: str
    corpus: Corpus
    root: str
    sub: str
    seed: int
    faults: tuple[float, int]
    limits: Limits
    options: Options
    before: Before
    playing: Continuing
    warnings: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Attribute]:
        """What the new run says of itself."""
        spent = {**_as_dict(self.before), "usd": format(self.before.usd, "f")}
        known: dict[str, Attribute] = {sc.RESUME_OF: self.of, sc.RESUME_SPENT: as_json(spent)}
        return known | ({sc.RESUME_ANYWAY: True} if self.playing.anyway else {})


def continuation(
    home: Home,
    view: RunView,
    given: Mapping[str, Any],
    *,
    tools: Mapping[str, Tool] | None = None,
    root_window: int | None = None,
    anyway: bool = False,
    prices: PriceTable | None = None,
) -> Continuation:
    """What continues a run. `given` are limits by name that take the place of the recorded ones, `tools` the
    functions of recorded tools by name, and so is `root_window` one that takes the place of the recorded one.

    Raises InputError for a run that cannot be continued, or not with these limits, RecordError when its
    record or corpus does not allow it; each in one sentence.
    """
    if (why := no_dead_run(view)) is not None:
        raise InputError(why)
    if view.summary.resumed_from is not None and not view.spans:
        of = view.summary.resumed_from
        raise RecordError(f"The run {view.run_id} died before it began: resume run {of}, which it continues.")
    facts = top_facts(view)
    views, left_out = _chain(home, view)
    program, struck = _joined([_cut(read_program(one)) for one in views])
    said = read_limits(facts.text(sc.LIMITS), spending=True)
    was = said if view.summary.imported_from is None else bounded(said, spending=True)
    limits, before = replace(was, **given), spent_before(view, prices or PriceTable())
    _check_limits(view, was, limits, before)
    seeds = decoded(facts.text(sc.SEEDS))
    texts = {sha256: text for one in reversed(views) for sha256, text in _shown(one, program).items()}
    return Continuation(
        of=view.run_id,
        question=program.question,
        corpus=_corpus(home, program.corpus_id),
        root=program.root_model,
        sub=program.sub_model,
        seed=program.seed,
        faults=_faults(seeds if isinstance(seeds, dict) else {}),
        limits=limits,
        options=replace(
            _with_tools(program.options, tools or {}),
            root_window=program.options.root_window if root_window is None else root_window,
        ),
        before=before,
        playing=Continuing(program, texts.get, struck, anyway),
        warnings=(*left_out, *filter(None, [lowered(said, was)]), *changed_versions(program.versions)),
    )


def no_dead_run(view: RunView) -> str | None:
    """Why there is nothing to be continued, in one sentence; None for a run that may be resumed."""
    run = view.summary
    if view.live:
        return f"run {run.run_id} is still going on: there is nothing to resume"
    if (why := not_again(run)) is not None:
        return why
    if run.replay_of is not None:
        return f"run {run.run_id} plays run {run.replay_of} again: only a run that was asked can be resumed"
    if run.stop_reason == "final":
        return f"run {run.run_id} ended with an answer: there is nothing to resume (rlmscope ask asks anew)"
    return None


def _check_limits(view: RunView, was: Limits, now: Limits, before: Before) -> None:
    """Raises InputError where the run would meet at once the limit that stopped it."""
    if now.max_seconds is not None and now.max_seconds <= before.seconds:
        raise InputError(
            f"run {view.run_id} has already taken {before.seconds:.0f} s of {now.max_seconds:g} s: give "
            "--max-seconds more"
        )
    reason = view.summary.stop_reason or ""
    names = [name for name in _STRIKES.get(reason, ()) if getattr(was, name) is not None]
    if _calls_left(view):
        names = [name for name in names if name != "max_calls"]
    if names and not any(_larger(getattr(now, name), getattr(was, name)) for name in names):
        options = ", ".join(_OPTION.get(name, f"--{name.replace('_', '-')}") for name in names)
        which = "limit of turns" if reason == "max_iterations" else "budget"
        raise InputError(f"run {view.run_id} was stopped by its {which}: give a larger one ({options})")


def _calls_left(view: RunView) -> bool:
    """Whether a run says that it had not used up its sub-calls."""
    said = decoded(top_facts(view).text(sc.LEDGER))
    calls = said.get("calls") if isinstance(said, dict) else None
    spent, limit = (calls.get("spent"), calls.get("limit")) if isinstance(calls, dict) else (None, None)
    return type(spent) is int and type(limit) is int and spent < limit


def _larger(now: Any, was: Any) -> bool:
    return was is not None and (now is None or now > was)


# -- what was spent


def spent_before(view: RunView, prices: PriceTable) -> Before:
    """What a run and those it continued have spent. An attempt that was in flight at its death counts with an
    estimate of its input, and makes the sum of dollars unknown: it may well be billed.
    """
    asked = {span.span_id: span for span in view.spans if span.kind in CALL_KINDS}
    tries = [span for span in view.spans if span.kind == "attempt" and span.parent_id in asked]
    tried = {span.parent_id for span in tries}
    spend = spend_of(span for span in asked.values() if span.status != "lost")
    spend.add_gaps(int(view.summary.problems > 0))
    for span in tries:  # a call that was under way has no sum of its own
        if asked[span.parent_id or ""].status == "lost":
            spend.add_call(span)
    tokens, usd = spend.input + spend.output, spend.known_usd
    for span in tries:
        if span.status == "lost" and span.model is not None:
            usage = Usage(input=_sent(view, asked[span.parent_id or ""]), output=0)
            tokens += usage.input or 0
            usd += prices.price(span.model, usage).usd or Decimal(0)
    admitted = sum(_was_admitted(span, tried) for span in view.spans)
    earlier = _recorded_before(top_facts(view).text(sc.RESUME_SPENT))
    return Before(
        calls=earlier.calls + admitted,
        tool_calls=earlier.tool_calls + sum(map(_was_made, view.spans)),
        tokens=earlier.tokens + tokens,
        usd=earlier.usd + usd,
        usd_known=earlier.usd_known and spend.usd is not None,
        seconds=earlier.seconds + (view.summary.seconds or 0),
    )


def _sent(view: RunView, call: SpanRow) -> int:
    """About how many tokens a call was asked with."""
    if call.kind == "root_call":
        listed = sent_messages(view, call)[0]
        texts = view.payloads({message["sha256"] for message in listed})
        return sum(estimate_tokens(texts.get(message["sha256"], "")) for message in listed)
    chars = call.attributes.get(sc.PROMPT + ".chars")
    return (chars + 3) // 4 if type(chars) is int and chars > 0 else 0


def _was_made(span: SpanRow) -> bool:
    """Whether a span is a call of a tool that the ledger counted: its function was called."""
    return span.kind == "tool" and span.error_type not in ("unknown_tool", "arguments", "limit")


def _was_admitted(span: SpanRow, tried: Collection[str | None]) -> bool:
    """Whether a span is a call that the ledger counted: one that was asked, a hit of the cache, a child run
    that came to its end (one that did not is begun again).
    """
    source, facts = span.attributes.get(sc.SERVED_FROM), span.attributes
    if span.is_child_run:
        failed = span.status == "error" and span.error_type != "budget"
        return source is None and (span.status == "ok" or failed)
    asked = source == "cache" or facts.get(sc.ATTEMPTS) is not None or span.span_id in tried
    return span.kind == "sub_call" and asked


def _recorded_before(raw: str | None) -> Before:
    said = decoded(raw)
    if not isinstance(said, dict):
        return Before()
    try:
        before = Before(
            calls=int(said["calls"]),
            tool_calls=int(said["tool_calls"]),
            tokens=int(said["tokens"]),
            usd=Decimal(said["usd"]),
            usd_known=said["usd_known"] is True,
            seconds=float(said["seconds"]),
        )
        counts = (before.calls, before.tool_calls, before.tokens, before.usd, before.seconds)
        if not all(0 <= count < 1 << 62 for count in counts):
            raise ValueError
    except (KeyError, TypeError, ValueError, InvalidOperation, OverflowError):
        raise RecordError("The record does not say what was spent before it: it cannot be resumed.") from None
    return before


def _as_dict(before: Before) -> dict[str, Any]:
    return {name: getattr(before, name) for name in Before.__slots__}


# -- the record


def _chain(home: Home, view: RunView) -> tuple[list[RunView], tuple[str, ...]]:
    """The run and those it continued, newest first, as far as they are on record and all went one way; and in
    words which one is left out.
    """
    views = [view]
    while (earlier := views[-1].summary.resumed_from) is not None and len(views) < _MOST_RUNS:
        last = views[-1]
        why = "went its own way (--anyway)" if top_facts(last).flag(sc.RESUME_ANYWAY) else None
        if why is None:
            try:
                views.append(load_run(home, earlier))
                continue
            except (InputError, RecordError):
                why = "continues it, but it is not on record any more"
        return views, (
            f"nothing is served from run {earlier}: run {last.run_id} {why}; what it had not reached is paid "
            "once more",
        )
    return views, ()


def _joined(parts: list[tuple[Program, frozenset[Where]]]) -> tuple[Program, frozenset[Where]]:
    """The newest record, with what an earlier one holds beyond it: the newer run may have died on its way
    through what the earlier one had. And the cells of it that come out otherwise, see `_cut`.
    """
    (joined, struck), *earlier = parts
    for program, limited in earlier:
        cells = {
            where: cell for where, cell in joined.cells.items() if cell.ended or where not in program.cells
        }
        struck |= {where for where in limited if where not in cells}
        calls = {key: call for key, call in joined.calls.items() if call.reply is not None}
        joined = replace(
            joined,
            turns={**program.turns, **joined.turns},
            summaries={**program.summaries, **joined.summaries},
            cells={**program.cells, **cells},
            calls={**joined.calls, **program.calls, **calls},
            refused={**program.refused, **joined.refused},
            budgets={**program.budgets, **{w: told for w, told in joined.budgets.items() if told}},
        )
    return joined, struck


def _cut(program: Program) -> tuple[Program, frozenset[Where]]:
    """The program of a run without what came after a budget had refused its calls, and the cells in which it
    did: with a larger budget they come out otherwise. So do child runs that met it inside, and the cells that
    asked them.
    """
    if program.ends.get("0") != "budget":
        return program, frozenset()
    first: dict[str, int] = {}
    refused = [call.key[:2] for call in program.calls.values() if _is_refusal(call.reply)]
    refused += [w[:2] for w, told in program.refused.items() if any(map(_is_refusal, told.values()))]
    for path, number in refused:
        first[path] = min(number, first.get(path, number))
    children = {call.child_path: call for call in program.calls.values() if call.child_path}
    limited = {path for path, reason in program.ends.items() if reason == "budget"}
    again = {}
    for path in sorted(children, key=lambda path: -path.count(".")):  # the innermost first
        if path in first or path in limited:
            again[children[path].key] = replace(children[path], reply=None)
            above, number = children[path].key[:2]
            first[above] = min(number, first.get(above, number))
    struck = frozenset(where for where in first.items() if where in program.cells)
    last = {path: program.cells[path, number].iteration for path, number in struck}
    turns: dict[Where, Turn] = {
        where: turn for where, turn in program.turns.items() if where[1] <= last.get(where[0], where[1])
    }
    cells = {w: cell for w, cell in program.cells.items() if w[1] <= first.get(w[0], w[1])}
    return replace(program, turns=turns, cells=cells, calls={**program.calls, **again}), struck


def _is_refusal(reply: Mapping[str, Any] | None) -> bool:
    return reply is not None and reply.get("err") == "budget"


def _shown(view: RunView, program: Program) -> dict[str, str]:
    """What the root was shown of cells that are not run again."""
    return view.payloads({cell.shown for cell in program.cells.values() if cell.shown and not cell.again})


def _with_tools(options: Options, tools: Mapping[str, Tool]) -> Options:
    """The options with the functions of tools that the record only describes."""
    known = tuple(tools.get(tool.spec.name, tool) for tool in options.tools)
    made = replace(options, tools=known)
    if names := lacking(made):
        raise InputError(
            f"the record describes the tool {names[0]} but does not hold its function: give it with --tool "
            "FILE.py:NAME"
        )
    for old, new in zip(options.tools, known, strict=True):
        if old.spec != new.spec:
            raise InputError(f"the tool {old.spec.name} is declared otherwise than in the record")
    return made


def _faults(seeds: Mapping[str, Any]) -> tuple[float, int]:
    """Rate and seed of the demo model's faults."""
    rate, seed = seeds.get("fault_rate"), seeds.get("fault")
    usable = isinstance(rate, int | float) and 0 <= rate <= 1
    return (float(rate) if usable else 0.0, seed if type(seed) is int else 0)  # type: ignore[arg-type]


def _corpus(home: Home, corpus_id: str) -> Corpus:
    """The corpus of the run, unchanged. Raises RecordError when it is gone or another one now."""
    try:
        corpus = Corpus.load(home.corpora, corpus_id)
        corpus.check()
    except CorpusError as error:
        raise RecordError(
            f"The run cannot be resumed, because its corpus is not there as it was: {error}"
        ) from None
    return corpus
