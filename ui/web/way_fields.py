"""The fields that say how a run goes about its question: strategy, repeats, cache, tools, schema and more.

They are kept for the session, so that what is not the usual way is also said where the fields are folded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from rlm_core.errors import InputError
from rlm_core.options import STRATEGIES, WITH_SUB_CALLS, Options

if TYPE_CHECKING:
    from ui.web.order_form import Fields

#: What each strategy does, in a few words.
STRATEGY_WORDS: Final[Mapping[str, str]] = {
    "rlm": "code that reads the documents and asks sub-models",
    "rlm-no-subcalls": "code that reads the documents, no sub-model",
    "direct": "the root reads all documents at once",
    "compaction": "the root reads part by part and keeps a summary",
    "codeact": "code in turns with a search engine, no sub-model",
    "retrieve": "the root reads the passages that fit best",
    "retrieve+rlm": "as rlm, and begins with the passages that fit best",
}
STRATEGY: Final = "ask-strategy"  # the key of the field
RETRIEVES: Final = frozenset({"retrieve", "retrieve+rlm"})
_USUAL: Final = Options()
_MOST_TIMES: Final = 20
_ASKED: Final = {
    "ask-tools": "tools",
    "ask-cache": "equal questions once",
    "ask-at": "other models in child runs",
}
_SCHEMA: Final = '{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}'


def strategy_words(name: str) -> str:
    """A strategy and what it does, for lists to choose from."""
    return f"{name} · {STRATEGY_WORDS[name]}" if name in STRATEGY_WORDS else name


def strategy_asked() -> str:
    """The strategy that the field holds, also before it is drawn."""
    return str(st.session_state.get(STRATEGY) or _USUAL.strategy)


def way_fields(fields: Fields) -> None:
    """All of them, and a place for a complaint."""
    values = fields.values
    values["strategy"] = st.selectbox(
        "Strategy", STRATEGIES, key=STRATEGY, format_func=strategy_words, persist_state="session"
    )
    left, right = st.columns(2)
    with left:
        values["repeat"] = st.number_input(
            "Ask how often", 1, _MOST_TIMES, 1, key="ask-repeat", on_change="ignore",
            persist_state="session", help="One run after another; how far their answers agree is said.",
        )  # fmt: skip
    with right:
        values["root_window"] = st.number_input(
            "Tokens the root can take", 1, 10**9, None, key="ask-root-window", placeholder="as known",
            on_change="ignore", persist_state="session",
            help="Before its messages have more, its older turns give way to a summary.",
        )  # fmt: skip
    if values["strategy"] in RETRIEVES:
        values["passages"] = passages_field()
    if values["strategy"] in WITH_SUB_CALLS:
        _sub_model_fields(values)
    values["schema"] = st.text_area(
        "JSON schema of the answer", key="ask-schema", height=96, placeholder=_SCHEMA, on_change="ignore",
        persist_state="session", help="An answer that does not fit is sent back to the root, twice at most.",
    ).strip()  # fmt: skip
    fields.slot("way")


def passages_field() -> int:
    """How many passages the strategies that retrieve give to the root."""
    return st.number_input(
        "Passages to retrieve", 1, 1000, _USUAL.passages, key="ask-passages", on_change="ignore",
        persist_state="session",
    )  # fmt: skip


def _sub_model_fields(values: dict[str, Any]) -> None:
    from rlm_core.builtin_tools import BUILTIN

    values["tools"] = st.multiselect(
        "Tools of the sub-model", list(BUILTIN), key="ask-tools", placeholder="none",
        persist_state="session",
        help="The root never has them. Functions of your own: rlmscope ask --tool FILE.py:NAME.",
    )  # fmt: skip
    values["cache"] = st.checkbox(
        "Ask the sub-model equal questions once", key="ask-cache", persist_state="session"
    )
    values["at"] = st.text_area(
        "Other models in child runs", key="ask-at", height=68, on_change="ignore", persist_state="session",
        placeholder="1:root=openai/NAME,sub=openai/NAME",
        help="A line for each depth from which on they answer: DEPTH:root=MODEL,sub=MODEL, or one of both.",
    )  # fmt: skip


def ways_of(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ways of all runs that the fields ask for: one for each of some strategies, else so many repeats.

    Raises InputError, in one sentence, for what cannot be.
    """
    if "strategies" not in values:
        return [way_of(values)] * int(values.get("repeat") or 1)
    if not values["strategies"]:
        raise InputError("no strategy is chosen")
    return [way_of({**values, "strategy": name}) for name in values["strategies"]]


def way_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields say beyond the usual way, as `ui.ways.Way` takes it.

    Raises InputError, in one sentence, for what cannot be.
    """
    from ui.ways import Way

    way = {name: values.get(name) for name in ("strategy", "cache", "root_window", "passages")}
    way["tools"] = list(values.get("tools") or ())
    way["at"] = [line.strip() for line in str(values.get("at") or "").splitlines() if line.strip()]
    if schema := values.get("schema"):
        if not schema.startswith("{"):  # a path would be one of the app's machine
            raise InputError("the schema must be a JSON object, beginning with {")
        way["schema"] = schema
    usual = {"strategy": _USUAL.strategy, "passages": _USUAL.passages}
    found = {name: value for name, value in way.items() if value and value != usual.get(name)}
    Way(**found).checked()
    return found


def summary() -> str:
    """What the fields hold beyond the usual, in words of ours; "" when it is nothing."""
    held = st.session_state
    strategy = strategy_asked()
    parts = [] if strategy == _USUAL.strategy else [f"strategy {strategy}"]
    if (times := held.get("ask-repeat") or 1) > 1:
        parts.append(f"asked {times} times")
    if held.get("ask-root-window"):
        parts.append(f"a root that takes {held['ask-root-window']:,} tokens")
    if strategy in WITH_SUB_CALLS:
        parts += [words for key, words in _ASKED.items() if held.get(key)]
    if held.get("ask-schema"):
        parts.append("a schema of the answer")
    return ", ".join(parts)
