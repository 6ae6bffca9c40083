"""How a run went about its question, and what came of that: strategy, models by depth, tools, cache, schema.

Only what is not the usual is said. All of it comes out of the record, which is untrusted.
"""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from rlm_core import semconv as sc
from rlm_core.options import STRATEGIES
from traces.detail import decoded
from traces.reading import RunView, continued_by
from traces.replay_facts import top_facts
from ui.ask_outcome import mark_words
from ui.figures import counted
from ui.web.notices import note, said
from ui.web.run_record import Record
from ui.web.run_words import Remarks
from ui.web.ways import way

_MOST_DEPTHS: Final = 8
_MOST_LATER: Final = 5


def strategy_badge(strategy: str | None) -> None:
    """The strategy of a run, where it is not the usual one."""
    if strategy in STRATEGIES and strategy != "rlm":
        st.badge(f"strategy {strategy}", color="violet")


def way_facts(view: RunView) -> list[tuple[str, str]]:
    """Labels of ours and values: models by depth, how often tools, cache and summaries took part."""
    options = decoded(top_facts(view).text(sc.OPTIONS))
    options = options if isinstance(options, dict) else {}
    found = list(_models(options.get("models")))
    tools = [span for span in view.spans if span.kind == "tool"]
    if tools or options.get("tools"):
        failed = sum(span.status not in ("ok", "running") for span in tools)
        found.append(("Tool calls", f"{len(tools):,}" + (f" ({failed:,} failed)" if failed else "")))
    if options.get("cache") is True:
        calls = (span for span in view.spans if span.kind == "sub_call")
        hits = sum(span.attributes.get(sc.SERVED_FROM) == "cache" for span in calls)
        found.append(("From the cache", counted(hits, "sub-call")))
    roots = (span for span in view.spans if span.kind == "root_call")
    if summaries := sum(span.attributes.get(sc.COMPACTED) is True for span in roots):
        found.append(("Summaries of turns", f"{summaries:,}"))
    return found


def _models(named: Any) -> list[tuple[str, str]]:
    if not isinstance(named, dict):
        return []
    found = []
    for depth, models in list(named.items())[:_MOST_DEPTHS]:
        listed = models if isinstance(models, dict) else {}
        words = [f"{role} {listed[role]}" for role in ("root", "sub") if listed.get(role)]
        number = depth if depth.isascii() and depth.isdigit() else "?"
        found.append((f"Models from depth {number}", ", ".join(words) or "unknown"))
    return found


def mark_note(remarked: Remarks) -> None:
    """That the answer was accepted although something speaks against it."""
    if remarked.mark:
        said("Check", "orange", f"The answer is marked “{remarked.mark}”: {mark_words(remarked.mark)}.")


def resumed_note(record: Record) -> None:
    """Of which dead run this one is the continuation, and how many calls that one's record answered."""
    of = record.view.summary.resumed_from
    if of is None:
        return
    with st.container(key="run-resumed", gap="small"):
        said("Resumed", "blue", f"This run continues the run {of}: what that one had is not paid again.")
        with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
            way(":blue[The run that it continues]", "run-resumed-of", _go, of)
            pair = {"a": of, "b": record.view.run_id}
            st.page_link("pages/compare.py", label=":blue[Compare the two]", query_params=pair)
    if top_facts(record.view).flag(sc.RESUME_ANYWAY):
        note("Its cells came out otherwise than recorded, and it went on all the same.")


def continued_note(record: Record) -> None:
    """The runs that went on from this one."""
    if record.view.live or record.view.summary.stop_reason == "final":
        return
    later = record.once(lambda view: continued_by(record.home, view.run_id), "continued-by")
    if not later:
        return
    with st.container(key="run-continued", gap="small"):
        said("Continued", "blue", f"{counted(len(later), 'run')} went on from where this one ended.")
        with st.container(horizontal=True, gap="medium"):
            for run_id in later[:_MOST_LATER]:
                way(f":blue[{run_id}]", f"run-continued-by-{run_id}", _go, run_id)


def _go(run_id: str) -> None:
    st.query_params.from_dict({"run": run_id})
