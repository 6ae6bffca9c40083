"""One span in full as text for a terminal: head, then a section for everything that was recorded about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from traces.refused import REFUSED_WORDS, refused_words
from ui.figures import counted, duration, money, spent, tokens, with_tokens
from ui.passages import Sources, passage_line
from ui.trust_text import marked, reasons
from ui.visible import block, line

# in the order in which a person asks: what went in, what came out, where it came from, what else is known
_SECTIONS: Final = (
    "question",
    "messages",
    "prompt",
    "images",
    "code",
    "arguments",
    "result",
    "response",
    "reasoning",
    "stdout",
    "stdout_shown",
    "output_rule",
    "native_output",
    "exception",
    "answer",
    "value",
    "best_partial",
    "source_ranges",
    "child_context",
    "variables",
    "names_read",
    "values_read",
    "names_written",
    "names_lost",
    "findings",
    "attempts",
    "events",
    "parameters",
    "finish_reasons",
    "usage_raw",
    "classes",
    "price",
    "ledger",
    "limits",
    "retries",
    "seeds",
    "versions",
    "sandbox_layers",
    "corpus",
    "facts",
    "missing",
    "attributes",
)
_RULE: Final = 72
DOCUMENTS_SHOWN: Final = 20  # of a corpus, unless all is asked for


def span_text(
    detail: Mapping[str, Any], *, everything: bool, sources: Sources | None = None
) -> Iterator[str]:
    """The lines of `rlmscope span`, safe to print. Texts are whole; `everything` adds raw attributes.

    `sources`: what the source ranges mean, if they mean anything.
    """
    yield from _head(detail)
    for name in _SECTIONS:
        value = detail.get(name)
        sha256 = (detail.get("hashes") or {}).get(name)
        if name == "stdout_shown" and _same(value, detail.get("stdout")):
            yield f"(the root was shown all of it: sha256 {line(sha256)})"
            continue
        if name == "attributes" and not everything:
            yield from ("", f"{counted(len(value or {}), 'attribute')}; --all shows them")
            continue
        if name == "source_ranges" and sources is not None:
            yield ""
            yield from _sources(sources)
        elif value not in (None, [], {}):
            yield ""
            yield from _section(name, value, sha256, everything=everything)


def _head(detail: Mapping[str, Any]) -> Iterator[str]:
    yield line(f"{detail['kind']} {detail['span_id']} of run {detail.get('run_id', '?')}: {detail['status']}")
    phases = detail.get("phases") or [detail.get("phase")]
    places = {**detail, "phase": ", ".join(filter(None, phases)) or None}
    names = ("role", "depth", "iteration", "cell", "call_index", "phase", "parent_id")
    yield line(" · ".join(f"{name} {places[name]}" for name in names if places.get(name) is not None))
    if detail["kind"] in ("root_call", "sub_call", "attempt"):
        cost = money(detail.get("cost_usd"), detail.get("cost_status"))
        yield line(f"model {detail.get('model') or 'unknown'}{_returned(detail)}")
        trust = detail.get("trust")
        used = "tokens " + marked(tokens(detail.get("tokens")), trust, "tokens")
        used += f" · cost {line(marked(cost, trust, 'cost'))}"
        yield REFUSED_WORDS if detail.get("refused") else used
    if below := detail.get("below"):
        yield line(_below(below))
    end = detail.get("end_ns")
    yield "no end recorded" if end is None else f"time {_time(detail, end)}"
    if trust := detail.get("trust"):
        yield f"start {marked(_moment(detail['start_ns']), trust, 'start')}"
    yield from map(line, reasons(detail))


def _time(detail: Mapping[str, Any], end_ns: int) -> str:
    return marked(duration((end_ns - detail["start_ns"]) / 1e9), detail.get("trust"), "seconds")


def _moment(start_ns: int) -> str:
    return datetime.fromtimestamp(start_ns // 1_000_000_000, UTC).isoformat(" ").replace("+00:00", " UTC")


def _below(below: Mapping[str, Any]) -> str:
    """What the calls below took: `below: 200 calls (198 ok, 2 empty) · tokens ... · cost ...`."""
    words = ", ".join(f"{count:,} {word}" for word, count in below["outcomes"].items())
    calls = counted(below["calls"], "call") + (f" (sub-calls: {words})" if words else "")
    calls += refused_words(below["refused_sub_calls"])
    cost = spent(below["cost_usd"], below["cost_status"], below["known_usd"])
    return f"below: {calls} · {with_tokens(below['tokens'], below['untold_calls'])} · cost {cost}"


def _returned(detail: Mapping[str, Any]) -> str:
    returned = detail.get("model_returned")
    return f" (the server says {returned})" if returned and returned != detail.get("model") else ""


def _section(name: str, value: Any, sha256: object, *, everything: bool) -> Iterator[str]:
    title = name.replace("_", " ")
    if isinstance(value, str):
        yield _rule(f"{title} ({len(value):,} characters)")
        if sha256 is not None:
            yield f"sha256 {line(sha256)}"
        yield from _corpus(value, everything) if name == "corpus" else (block(value),)
        return
    yield _rule(title)
    if name == "messages":
        for message in value:
            yield f"<{line(message.get('role', '?'))}>"
            text = message.get("content")
            yield block(text) if isinstance(text, str) else "(not in the record)"
    elif isinstance(value, Mapping):
        yield from (f"{line(key)}: {_inline(item)}" for key, item in value.items())
    elif name == "images":
        yield from map(_image, value)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        yield line(", ".join(value))
    elif isinstance(value, list):
        yield from (_inline(item) for item in value)
    else:
        yield _inline(value)


def _image(image: Mapping[str, Any]) -> str:
    """`report.pdf, page 3: image/png, 1,414 x 2,000 pixels, 181,044 bytes, sha256 ...`."""
    name = line(image.get("name") or "an image")
    if image.get("sha256") is None:
        return f"{name}: not sent, the reply came from the record (key {line(image.get('key') or '?')})"
    size = [image.get(key) or 0 for key in ("width", "height", "bytes")]
    return (
        f"{name}: {line(image.get('mime') or '?')}, {size[0]:,} x {size[1]:,} pixels, {size[2]:,} bytes, "
        f"sha256 {image['sha256']}"
    )


def _corpus(table: str, everything: bool) -> Iterator[str]:
    """The document table of a run: one line for each document, of many the first ones. A table that is none
    is printed as it is.
    """
    hidden = 0
    try:
        facts = json.loads(table)
        documents = facts.pop("documents")
        shown = documents if everything else documents[:DOCUMENTS_SHOWN]
        lines = [_inline(facts), *(f"{number}: {_inline(each)}" for number, each in enumerate(shown))]
        hidden = len(documents) - len(shown)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        lines = [block(table)]
    yield from lines
    if hidden:
        yield f"… and {counted(hidden, 'more document')}; --all shows them"


def _sources(sources: Sources) -> Iterator[str]:
    yield _rule("source ranges")
    yield from map(line, sources.words)
    for passage in sources.passages:
        yield ""
        yield line(passage_line(passage))
        if passage.text:
            end = "…" if passage.cut else ""
            yield from (f"  | {block(row)}" for row in (passage.text + end).split("\n"))
        elif passage.problem:
            yield f"  ({line(passage.problem)})"


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        # absolute nanoseconds tell a person nothing; JSON has them
        shown = {key: item for key, item in value.items() if item is not None and not key.endswith("_ns")}
        return ", ".join(f"{line(key)}={_inline(item)}" for key, item in shown.items())
    return line(value) if isinstance(value, str) else line(json.dumps(value, ensure_ascii=False, default=str))


def _same(shown: object, printed: object) -> bool:
    return isinstance(shown, str) and isinstance(printed, str) and shown.strip() == printed.strip()


def _rule(title: str) -> str:
    return f"── {title} " + "─" * max(_RULE - len(title), 3)
