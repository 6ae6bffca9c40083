"""The part of a run page that needs no script: question, answer, totals, a table of the iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from rlm_core import __version__
from rlm_core import semconv as sc
from traces.exporters.html_details import tokens_below
from traces.exporters.html_turns import turns_table
from traces.exporters.html_words import Clean, short
from traces.exporters.redaction import Redactor
from traces.figures import UNKNOWN, counted, duration, least
from traces.imported import (
    asked_words,
    import_facts,
    is_foreign,
    iterations_told,
    on_record,
    sub_calls_told,
    unanswered_words,
)
from traces.refused import refused_words
from traces.report_parts import WHOLE_CHARS, left_out, middle_out
from traces.tree import Node
from traces.view import RunView
from traces.visible import block, line

_QUESTION_CHARS: Final = 360  # before it is unfolded
_BEGIN_CHARS: Final = 900  # of the answer
_BEGIN_LINES: Final = 8
_SENTENCE_CHARS: Final = 800
_SENTENCES: Final = 30
_TONES: Final = {"ok": "ok", "running": "live", "cancelled": "warn"}
_STOPPED: Final = {
    "final": "the root's answer",
    "max_iterations": "the limit of iterations",
    "budget": "a limit of calls, tokens or cost",
    "timeout": "the time limit",
    "cancelled": "a person",
    "error": "an error",
    "died": "the end of its process",  # a word of ours: no record has it
}


def summary(view: RunView, tops: Sequence[Node], redactor: Redactor) -> Iterator[str]:
    """The head of the page, as HTML in which every text is escaped."""
    run = view.summary
    top = next((node for node in tops if node.span.kind == "run"), None)
    attributes: dict[str, Any] = {} if top is None else dict(top.span.attributes)
    clean = redactor.text

    yield "<header>"
    yield f'<p class="badges">{"".join(_badges(view))}<code>{escape(line(run.run_id))}</code></p>'
    question = clean(asked_words(run))
    more = len(question) > _QUESTION_CHARS
    yield f"<h1 dir=auto>{escape(line(question[:_QUESTION_CHARS]))}{'…' if more else ''}</h1>"
    if more:
        yield _folded(f"The whole question ({len(question):,} characters)", question)
    yield from _answer(view, top, clean)
    yield '<dl class="facts">' + "".join(_totals(view, top, clean)) + "</dl>"
    yield from _remarks(view, attributes, clean)
    yield "</header>"
    yield from turns_table(view, top, clean)


def closing(view: RunView, redactor: Redactor, texts_cut: int, texts_dropped: int) -> str:
    """The last words of the page: what made it, and what is not in it."""
    said = [f"Run {line(view.run_id)}, written by rlmscope {__version__}.", *notes(texts_cut, texts_dropped)]
    if redactor.replaced:
        said.append(f"What looks like a key was taken out in {counted(redactor.replaced, 'place')}.")
    return f"<footer><p>{escape(' '.join(said))}</p></footer>"


def notes(texts_cut: int, texts_dropped: int) -> list[str]:
    """What of the record is not in the page, in sentences."""
    found = []
    if texts_cut:
        many = counted(texts_cut, "text")
        found.append(f"{many} of more than {WHOLE_CHARS:,} characters: the middle is left out of the page.")
    if texts_dropped:
        found.append(f"{counted(texts_dropped, 'text')} left out: the page would be too large for a browser.")
    return found


def _badges(view: RunView) -> Iterator[str]:
    run = view.summary
    words = [(run.status, _TONES.get(run.status, "bad"))]
    words += [("forced answer", "warn")] if run.forced else []
    words += [("demo model", "")] if run.demo else []
    words += [("replay", "live")] if run.replay_of is not None else []
    words += [("resumed", "live")] if run.resumed_from is not None else []
    words += [(f"imported: {run.imported_from}", "live")] if run.imported_from is not None else []
    for word, tone in words:
        yield f'<span class="badge {tone}">{escape(line(word))}</span>'


def _answer(view: RunView, top: Node | None, clean: Clean) -> Iterator[str]:
    title, answer = "Answer", view.summary.answer
    if answer is None:
        title, answer = "There is no answer; the best partial one", _partial(view, top)
    if answer is None:
        yield f'<p class="soft">{unanswered_words(view.summary)}</p>'
        return
    text = clean(answer)
    lines = text.split("\n")
    begin = "\n".join(lines[:_BEGIN_LINES])[:_BEGIN_CHARS]
    whole = begin == text
    yield f'<section class="answer" aria-label="Answer"><p class="label">{title}</p>'
    yield f"{_pre(begin + ('' if whole else ' …') if text else '(empty)')}"
    if not whole:
        yield _folded(f"The whole answer ({len(text):,} characters)", text)
    yield "</section>"


def _partial(view: RunView, top: Node | None) -> str | None:
    digest = None if top is None else top.span.attributes.get(f"{sc.BEST_PARTIAL}.sha256")
    return view.payload(digest) if isinstance(digest, str) else None


def _folded(title: str, text: str) -> str:
    begin, end, cut = middle_out(text, WHOLE_CHARS)
    shown = f"{begin}\n{left_out(cut)}\n{end}" if cut else begin
    return f"<details><summary>{escape(title)}</summary>{_pre(shown)}</details>"


def _pre(text: str) -> str:
    return f"<pre dir=auto>\n{escape(block(text))}</pre>"  # a parser drops the first line feed


def _totals(view: RunView, top: Node | None, clean: Clean) -> Iterator[str]:
    run = view.summary
    failed = f" ({run.failed_sub_calls:,} failed)" if run.failed_sub_calls else ""
    tokens = UNKNOWN if run.untold_calls else f"{run.tokens['input']:,} in, {run.tokens['output']:,} out"
    if top is not None and top.totals.spend.calls:
        tokens = tokens_below(top)
    children = sum(span.kind == "run" and span.depth > 0 for span in view.spans)
    died = run.status == "interrupted" and not is_foreign(run)
    reason = run.stop_reason or ("died" if died else "cancelled" if run.status == "cancelled" else UNKNOWN)
    began = run.started[:19].replace("T", " ") + " UTC" if run.started else UNKNOWN
    for name, value in (
        ("Root model", clean(run.root_model or UNKNOWN)),
        ("Sub-model", clean(run.sub_model or UNKNOWN)),
        ("Iterations", on_record(iterations_told(run))),
        *([("Child runs", f"{children:,}")] if children else []),
        ("Sub-calls", on_record(sub_calls_told(run)) + failed + refused_words(run.refused_sub_calls)),
        ("Tokens", tokens),
        ("Cost", least(run.cost_usd, run.cost_status, run.known_usd)),
        ("Time", duration(run.seconds)),
        ("Started", began),
        ("Ended by", _STOPPED.get(reason, "") or clean(reason)),
    ):
        yield f"<div><dt>{name}</dt><dd>{escape(short(value))}</dd></div>"


def _remarks(view: RunView, attributes: dict[str, Any], clean: Clean) -> Iterator[str]:
    """What must be said of the run and of its record."""
    run = view.summary
    said = [str(attributes[sc.ANSWER_NOTE])] if attributes.get(sc.ANSWER_NOTE) else []
    if attributes.get(sc.ERROR_MESSAGE):
        said.append(str(attributes[sc.ERROR_MESSAGE]))
    if run.demo:
        said.append("No language model was involved: the demo model answers by fixed rules.")
    if view.live:
        said.append("The run went on when this page was written.")
    elif run.problems:
        said.append(f"The record is incomplete: {counted(run.problems, 'record')} missing or unreadable.")
    for sentence in said:
        yield f'<p class="remark" dir=auto>{_sentence(sentence, clean)}</p>'
    facts = import_facts(view)
    if facts is None:
        return
    source = f"Read from {facts.file}, a record of {facts.engine}."
    yield f'<p class="remark" dir=auto>{_sentence(source, clean)}</p>'
    if lacks := [*facts.problems, *facts.missing]:
        items = "".join(f"<li>{_sentence(sentence, clean)}</li>" for sentence in lacks[:_SENTENCES])
        items += f"<li>and {len(lacks) - _SENTENCES:,} more</li>" if len(lacks) > _SENTENCES else ""
        yield f"<details open><summary>What this record does not say</summary><ul>{items}</ul></details>"


def _sentence(text: str, clean: Clean) -> str:
    shown = line(clean(text))
    return escape(shown if len(shown) <= _SENTENCE_CHARS else shown[:_SENTENCE_CHARS] + "…")
