"""What a run page shows of one span beside its place in the tree: figures, texts, and the rest on record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rlm_core import semconv as sc
from traces.detail import added_messages
from traces.exporters.html_data import HASH, Texts, texts_of
from traces.exporters.html_rows import Placed, Rows
from traces.exporters.html_words import MARKS, label, problem, short, spent
from traces.exporters.redaction import Redactor
from traces.figures import UNKNOWN, counted, duration, money
from traces.imported import trust_reasons
from traces.refused import refused_words
from traces.rows import CALL_KINDS, SpanRow
from traces.span_images import span_images
from traces.tree import OUTCOMES, REFUSED, Node
from traces.view import RunView
from traces.visible import block, line

#: Payload prefix -> its title, in the order in which a person asks.
_TEXTS: Final = {
    sc.QUESTION: "Question",
    sc.ANSWER: "Answer",
    sc.BEST_PARTIAL: "Best partial answer",
    sc.PROMPT: "Prompt",
    sc.TOOL_ARGUMENTS: "Arguments",
    sc.TOOL_RESULT: "Result",
    sc.CODE: "Code",
    sc.STDOUT: "Output",
    sc.STDOUT_SHOWN: "Output as the root was shown it",
    sc.NATIVE_OUTPUT: "Output of C code",
    sc.EXCEPTION: "Exception",
    sc.RESPONSE: "Reply",
    sc.REASONING: "Reasoning",
}
#: What few people ask for: folded away at first.
_FOLDED: Final = {
    sc.ANSWER_VALUE: "Answer as a value",
    sc.VARIABLES: "Variables",
    sc.CHILD_CONTEXT: "Documents given to the child",
    sc.CORPUS: "Corpus",
    sc.REPLAY_PATCHES: "Patches",
    sc.REPLAY_TARGET: "Target of the replay",
}
#: Said in the tree or among the figures.
_SAID: Final = frozenset(
    (sc.KIND, sc.RUN_ID, sc.PREVIEW, sc.MESSAGES_ADDED, sc.MESSAGES_PRIOR, sc.ROLE, sc.DEPTH, sc.ITERATION)
    + (sc.CELL, sc.PHASE, sc.CALL_INDEX, sc.STATUS, sc.IMAGES, sc.TRUST, sc.TRUST_WHY, sc.ERROR_MESSAGE)
    + (
        sc.REQUEST_MODEL,
        sc.USAGE_INPUT,
        sc.USAGE_OUTPUT,
        sc.COST_USD,
        sc.COST_STATUS,
        sc.OI_KIND,
        sc.OI_MODEL,
    )
    + (sc.OI_COST, sc.OI_INPUT, sc.OI_OUTPUT, sc.OI_PROMPT_TOKENS, sc.OI_COMPLETION_TOKENS)
    + (sc.OI_TOTAL_TOKENS, sc.IMPORT_MISSING, sc.IMPORT_PROBLEMS)
)
_SIBLINGS: Final = (".chars", ".preview")
_VALUE_CHARS: Final = 4_000
_EVENTS: Final = 50
Fact = list[str]  # label, value, and where there is one its mark, with a sentence


class Details:
    """Makes the details of spans, in the order of their rows."""

    def __init__(self, view: RunView, rows: Rows, texts: Texts, redactor: Redactor) -> None:
        self._view = view
        self._rows = rows
        self._texts = texts
        self._redactor = redactor
        self._clean = redactor.text
        self._first = min((span.start_ns for span in view.spans), default=0)

    def of(self, placed: Placed) -> dict[str, Any]:
        """Figures, texts (title, number, whether folded), messages (role, number) and tables of a span."""
        span, attempt = placed.node.span, placed.attempt
        tables = [("On record", self._table(span)), ("Events", list(self._events(span)))]
        if attempt is not None:
            tables.append(("Its one attempt", self._table(attempt)))
        hashes = texts_of(span)
        found: dict[str, Any] = {
            "title": label(span, self._clean),
            "kind": span.kind.replace("_", " "),
            "id": span.span_id,
            "problem": problem(span, self._clean),
            "facts": [self._clean_fact(fact) for fact in self._facts(placed.node)],
            "texts": [
                [title, self._texts.number(hashes[prefix]), int(prefix in _FOLDED)]
                for prefix, title in (_TEXTS | _FOLDED | _others(hashes)).items()
                if prefix in hashes
            ],
            "tables": [table for table in tables if table[1]],
        }
        if span.kind == "root_call":
            found |= self._messages(span)
        return found

    def _clean_fact(self, fact: Fact) -> Fact:
        return [fact[0], *(self._clean(line(part)) for part in fact[1:])]

    def _messages(self, span: SpanRow) -> dict[str, Any]:
        """What a root call was sent beyond the one before it, and how much that one was sent already."""
        prior, added = span.attributes.get(sc.MESSAGES_PRIOR, 0), added_messages(span)
        return {
            "prior": prior if type(prior) is int else 0,
            "messages": [
                [self._clean(line(each["role"]))[:40], self._texts.number(each["sha256"])]
                for each in added or ()
            ],
        }

    def _table(self, span: SpanRow) -> list[Fact]:
        """Every attribute that nothing else says."""
        texts = texts_of(span)
        named = {prefix + part for prefix in texts for part in (HASH, *_SIBLINGS)}
        kept = {key: value for key, value in span.attributes.items() if key not in _SAID and key not in named}
        images = (["image", self._clean(_image(each))] for each in span_images(span))
        said = ([self._named(key), _shown(value)] for key, value in self._attributes(kept))
        return [*said, *images]

    def _named(self, key: str) -> str:
        return self._clean(line(key.removeprefix("rlm.")))

    def _attributes(self, attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        return iter(sorted(self._redactor.attributes(attributes).items()))

    def _events(self, span: SpanRow) -> Iterator[Fact]:
        events = self._view.events(span.span_id)
        for event in events[:_EVENTS]:
            values = [
                f"{key.removeprefix('rlm.')}: {value}" for key, value in self._attributes(event["attributes"])
            ]
            yield [line(self._clean(event["name"])), _shown("; ".join(values))]
        if len(events) > _EVENTS:
            yield ["more", f"{len(events) - _EVENTS:,} events are not shown here"]

    # -- figures

    def _facts(self, node: Node) -> Iterator[Fact]:
        span = node.span
        if span.kind in (*CALL_KINDS, "attempt"):
            yield from self._call_facts(span, node.outcome)
        else:
            yield from self._facts_below(node)
        yield _told(
            "Time", duration(node.totals.own_seconds) if span.end_ns else "no end recorded", span, "seconds"
        )
        if span.start_told:
            after = duration(max(0, span.start_ns - self._first) / 1e9)
            yield _told("Began after", after, span, "start")
        if span.phases:
            yield ["Phases" if len(span.phases) > 1 else "Phase", ", ".join(span.phases)]
        asked = span.attributes.get(sc.CALL_LINE)
        if type(asked) is int:
            yield ["Asked in", f"line {asked}" if span.cell is None else f"cell {span.cell}, line {asked}"]
        attempts = span.attributes.get(sc.ATTEMPTS)
        if type(attempts) is int and attempts != 1:
            yield ["Tries", counted(attempts, "attempt")]

    def _call_facts(self, span: SpanRow, ended: str) -> Iterator[Fact]:
        returned = span.model_returned if span.model_returned not in (None, span.model) else None
        says = f" (the server says {returned})" if returned else ""
        yield ["Model", (span.model or UNKNOWN) + says]
        if span.end_ns is None or ended == REFUSED:
            return
        if (used := span.own_tokens) is None:
            yield _told("Tokens", UNKNOWN, span, "tokens")
        else:
            cached = (("cached", span.cached_read), ("written to cache", span.cache_write))
            parts = ", ".join(f"{count:,} {word}" for word, count in cached if count)
            given = f"{used['input']:,}{f' ({parts})' if parts else ''}"
            thought = span.attributes.get(sc.USAGE_REASONING)
            reasoning = f" ({thought:,} reasoning)" if type(thought) is int and thought > 0 else ""
            counts = " (counted here)" if span.attributes.get(sc.USAGE_ESTIMATED) is True else ""
            made = f"{used['output']:,}{reasoning}{counts}"
            yield _told("Tokens in", given, span, "tokens")
            yield _told("Tokens out", made, span, "tokens")
        yield _told("Cost", money(span.cost_usd, span.cost_status), span, "cost")

    def _facts_below(self, node: Node) -> Iterator[Fact]:
        if ends := self._rows.ends[node.span.span_id]:
            made = ends.total() - ends[REFUSED]
            words = ", ".join(f"{ends[word]:,} {word}" for word in OUTCOMES if word != REFUSED and ends[word])
            yield ["Sub-calls below", f"{made:,}{words and f' ({words})'}{refused_words(ends[REFUSED])}"]
        if node.totals.spend.calls:
            yield ["Tokens below", tokens_below(node)]
            yield ["Cost below", spent(node.totals.spend)]


def tokens_below(node: Node) -> str:
    """Tokens of the calls of a subtree; the least of them where some do not say."""
    spend = node.totals.spend
    if spend.untold and not (spend.input or spend.output):
        return UNKNOWN
    said = f"{spend.input:,} in, {spend.output:,} out"
    return f"at least {said}" if spend.untold else said


def _others(hashes: Mapping[str, str]) -> dict[str, str]:
    """Payloads that have no title of ours, under their own names."""
    known = _TEXTS | _FOLDED
    return {prefix: short(prefix.removeprefix("rlm.")) for prefix in sorted(hashes) if prefix not in known}


def _told(name: str, value: str, span: SpanRow, number: str) -> Fact:
    """A figure with how far it can be trusted, where the record is that of another engine."""
    mark = span.trusted.get(number)
    if mark is None:
        return [name, value]
    why = trust_reasons(span).get(number)
    return [name, value, MARKS[mark], *([why] if why else [])]


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _VALUE_CHARS:
        return block(text)
    return f"{block(text[:_VALUE_CHARS])}… ({len(text):,} characters)"


def _image(image: Mapping[str, Any]) -> str:
    """`report.pdf, page 3: image/png, 1,414 x 2,000 pixels`; the picture itself is not in the page."""
    name = line(image.get("name") or "an image")
    if image.get("width") is None:
        return f"{name} (not sent: the reply came from the record)"
    size = f"{image['width']:,} x {image.get('height') or 0:,} pixels"
    return f"{name}: {line(image.get('mime') or '?')}, {size}"
