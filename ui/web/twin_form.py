"""The offer of a twin: the same cells with every sub-call asked again, at a price that is said before."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from rlm_core.lm_handler import Usage
from rlm_core.models import is_demo
from traces.prices import price_table
from traces.reading import RunView
from traces.summing import spend_of
from ui.figures import counted, money
from ui.models_config import choose_models
from ui.web import plain
from ui.web.diagnose_jobs import Job
from ui.web.run_record import Record
from ui.web.settings import load_settings

KEY: Final = "twin-sub"
_WORDS: Final = (
    "A twin runs the same code and asks every sub-call again, of a model that you choose: what it answers "
    "differently is a place to look at."
)


def twin_form(record: Record) -> Job | None:
    """Draw the fields of a twin; returns the job when its button was pressed."""
    st.caption(_WORDS)
    sub = st.text_input("Sub-model of the twin", _default(record), key=KEY).strip()
    try:
        plain.text(price_words(record, sub))
    except RLMScopeError as error:
        plain.text(f"What it will cost is not known: {error}")
    if not st.button("Make a twin", key="twin-start"):
        return None
    return Job("twin", record.view.run_id, mode="live", sub=sub or None, live_calls=_most(record.view))


def _default(record: Record) -> str:
    """The sub-model of the present settings; where there are none, that of the run."""
    recorded = record.view.summary.sub_model or ""
    try:
        present = choose_models(None, None, load_settings(record.home).over(os.environ)).sub
    except RLMScopeError:
        return recorded
    # the demo model stands in where nothing is set: its rules are no judge of what a language model was asked
    return recorded if is_demo(present) and recorded else present


def _most(view: RunView) -> int:
    """Calls that a twin may make: other replies can lead to other calls, but not without an end."""
    return 2 * (view.summary.sub_calls + view.summary.refused_sub_calls) + 10


def price_words(record: Record, sub: str) -> str:
    """What the sub-calls of a run would cost with a model, as a sentence: as many tokens at present prices.

    Raises RecordError when the prices cannot be read.
    """
    calls = [span for span in record.view.spans if span.kind == "sub_call"]
    about = counted(len(calls), "call")
    if is_demo(sub):
        return f"{about} by the demo model, which costs nothing and answers by fixed rules."
    spent = record.once(lambda _: spend_of(calls), "twin-spend")
    price = price_table(record.home).price(sub, Usage(input=spent.input, output=spent.output))
    if price.usd is None or not spent.input:
        return f"{about}; what they will cost is not known."
    usd: Decimal = price.usd if price.usd == 0 else round(price.usd, 2 - price.usd.adjusted() - 1)
    return f"{about}, about {money(usd, price.status)} if {sub} reads and writes as much as the record says."
