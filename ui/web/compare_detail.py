"""Both sides of one row of two aligned runs, open beside each other: what differs, then what does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from rlm_core import semconv as sc
from traces.reading import RunView, SpanRow, span_detail
from ui.figures import counted, duration, money
from ui.web import plain
from ui.web.compare_messages import Message, compare_messages, messages_of, paired, same_message
from ui.web.compare_pair import Pair
from ui.web.compare_rows import key_of, signed
from ui.web.compare_words import TONES, matched, meaning, word
from ui.web.diff_view import diff_view
from ui.web.notices import Colour, note, said
from ui.web.places import run_link
from ui.web.span_paths import title

if TYPE_CHECKING:
    from traces.diff import Row

_COLOURS: Final[dict[str, Colour]] = {"ok": "gray", "bad": "red", "warn": "orange", "live": "blue"}
#: Key of a span's detail -> its title, the most telling first.
_TEXTS: Final = {
    "code": "Code", "response": "Response", "answer": "Answer", "exception": "Exception", "stdout": "Output",
    "prompt": "Prompt", "question": "Question", "child_context": "Context given",
}  # fmt: skip
_SENT: Final = "Sent to the root"
_LANGUAGES: Final = {"code": "python"}
Go = Callable[[str], None]
Sides = tuple[SpanRow | None, SpanRow | None]


def compare_detail(pair: Pair, row: Row, ways: tuple[str, str | None, str | None], go: Go) -> None:
    """Show a row. `ways`: where it stands among the differences in words of ours, and the keys of the
    difference before and after it."""
    sides = _spans(pair, row)
    _head(pair, row, ways, go)
    _meaning(row, sides)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        with st.container(width="stretch"):
            plain.text(_figures(pair, sides, row))
        one_text = st.toggle("As one text", key="compare-one-text")
        whole = st.toggle("Equal lines too", key="compare-whole")
    details = pair.once("texts", (row.a, row.b), lambda: _texts(pair, sides))
    if any(details[0].missing + details[1].missing):
        note(f"Not in the record: {', '.join(sorted({*details[0].missing, *details[1].missing}))}.")
    if sides[0] is None or sides[1] is None:
        _one_side(details[0] if sides[1] is None else details[1], key_of(row))
    else:
        _both(details, key_of(row), one_text=one_text, whole=whole)


class Texts:
    """The texts of a span by key, the words for those that its record names and does not hold, and what was
    sent to the root."""

    def __init__(self, detail: Mapping[str, Any], messages: Sequence[Message] = ()) -> None:
        self.missing = [_TEXTS[key].lower() for key in detail.get("missing") or () if key in _TEXTS]
        found = {key: _text(key, detail) for key in _TEXTS}
        self.texts = {key: text for key, text in found.items() if text is not None}
        self.messages = messages


def _text(key: str, detail: Mapping[str, Any]) -> str | None:
    value = detail.get(key)
    return value if value is None or isinstance(value, str) else str(value)


def _texts(pair: Pair, sides: Sides) -> tuple[Texts, Texts]:
    one, other = (
        Texts({}) if span is None else _texts_of(span_detail(view, span), span)
        for view, span in zip((pair.a, pair.b), sides, strict=True)
    )
    return one, other


def _texts_of(detail: Mapping[str, Any], span: SpanRow) -> Texts:
    return Texts(detail, messages_of(detail, span))


def _spans(pair: Pair, row: Row) -> Sides:
    return pair.a.by_id.get(row.a or ""), pair.b.by_id.get(row.b or "")


def _head(pair: Pair, row: Row, ways: tuple[str, str | None, str | None], go: Go) -> None:
    """What the row is, ways to the differences before and after it, and to both spans in their runs."""
    where, before, after = ways
    sides = _spans(pair, row)
    known = sides[0] or sides[1]
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="compare-row-head"):
        with st.container(width="content", key="compare-row-title"):
            st.text("(not in the record)" if known is None else title(known))
        st.badge(word(row), color=_COLOURS[TONES.get(row.status, "ok")])
        for label, target, shortcut in (
            ("Previous difference", before, "p"),
            ("Next difference", after, "n"),
        ):
            st.button(
                label, key=f"compare-way-{shortcut}", shortcut=shortcut, disabled=target is None,
                on_click=go, args=(target,),
            )  # fmt: skip
        with st.container(width="stretch"):
            st.caption(where)
        for name, view, span in zip("AB", (pair.a, pair.b), sides, strict=True):
            if span is not None:
                page, query = run_link(view.run_id, span.span_id)
                st.page_link(page, label=f"Open in {name}", query_params=query)


def _meaning(row: Row, sides: Sides) -> None:
    pairing = f" Paired: {matched(row)}." if matched(row) else ""
    unknown = f" Not in the record, so not compared: {', '.join(row.unknown)}." if row.unknown else ""
    plain.text(meaning(row) + pairing + unknown)
    for name, span in zip("AB", sides, strict=True):
        if span is not None and span.status not in ("ok", "running"):
            words = span.attributes.get(sc.ERROR_MESSAGE) or "no message is recorded"
            said(f"{name} failed", "red", f"{span.error_type or span.status}: {words}")


def _figures(pair: Pair, sides: Sides, row: Row) -> str:
    """Cost, time and tokens of both, and how far B is from A, in one line."""
    words = []
    parts: list[tuple[str, Callable[[RunView, SpanRow], str], str]] = [
        ("cost", lambda _, span: _cost(span), signed(row.usd, lambda usd: money(usd, None))),
        ("time", lambda view, span: duration(view.seconds_of(span)), signed(row.seconds, duration)),
        ("tokens", lambda _, span: _tokens(span), signed(row.tokens, lambda number: f"{number:,}")),
    ]
    views = (pair.a, pair.b)
    for name, of, gap in parts:
        values = [of(view, span) for view, span in zip(views, sides, strict=True) if span is not None]
        if any(values):
            both = " → ".join(dict.fromkeys(value or "none" for value in values))
            words.append(f"{name} {both}" + (f" ({gap})" if gap else ""))
    return " · ".join(words)


def _cost(span: SpanRow) -> str:
    return money(span.cost_usd, span.cost_status) if span.cost_status else ""


def _tokens(span: SpanRow) -> str:
    return f"{span.tokens['total']:,}" if span.tokens else ""


def _both(details: tuple[Texts, Texts], key: str, *, one_text: bool, whole: bool) -> None:
    one, other = (side.texts for side in details)
    names = [name for name in _TEXTS if name in one or name in other]
    for name in names:
        left, right = one.get(name, ""), other.get(name, "")
        if left != right:
            st.markdown(f"###### {_TEXTS[name]}")
            diff_view(
                left, right, key=f"compare-{key}-{name}", names=_names(name, one, other),
                label=f"{_TEXTS[name]} of A and B", one_text=one_text, whole=whole,
            )  # fmt: skip
    pairs = tuple(paired(details[0].messages, details[1].messages))
    if pairs:
        st.markdown(f"###### {_SENT}")
        compare_messages(pairs, f"compare-{key}", one_text=one_text, whole=whole)
    same = [name for name in names if one.get(name) == other.get(name)]
    if names and len(same) == len(names) and all(same_message(*pair) for pair in pairs):
        st.text("All texts of both sides are the same.")
    for name in same:
        size = counted(len(one[name]), "character")
        box = st.expander(
            f"{_TEXTS[name]}, the same in both: {size}", key=f"compare-{key}-{name}-same", on_change="rerun"
        )
        if box.open:
            with box:
                _whole(one[name], name, f"compare-{key}-{name}-text")


def _names(name: str, one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, str]:
    """What stands above the two sides of a text; one that is not there is not taken for an empty one."""
    a, b = (side if name in texts else f"{side} has none" for side, texts in (("A", one), ("B", other)))
    return a, b


def _one_side(side: Texts, key: str) -> None:
    for name, text in side.texts.items():
        st.markdown(f"###### {_TEXTS[name]}")
        _whole(text, name, f"compare-{key}-{name}-text")
    if side.messages:
        st.markdown(f"###### {_SENT}")
        sent = "\n\n".join(f"[{one.role}]\n{one.text or ''}" for one in side.messages)
        _whole(sent, "messages", f"compare-{key}-messages-text")


def _whole(text: str, name: str, key: str) -> None:
    plain.payload(text, key=key, file_name=f"{name}.txt", language=_LANGUAGES.get(name))
