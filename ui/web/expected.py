"""What a run will probably take, said before its start: what earlier ones took, and what reading costs."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from rlm_core.lm_handler import Usage
from rlm_core.models import is_demo
from rlm_core.options import WITH_SUB_CALLS
from traces.estimate import Plan, estimate
from traces.home import Home
from traces.prices import price_table
from ui.ask_outcome import estimate_words
from ui.figures import counted, money
from ui.web import plain
from ui.web.notices import note

CHARS_PER_TOKEN: Final = 4  # of English prose, roughly; other languages and code take more tokens
_KEPT_SECONDS: Final = 20.0


def expected(home: Home, plan: Plan) -> None:
    """Two sentences for a run over a corpus of so many characters: from the past, and from the sub-model's
    price; where no sub-model is asked, from the root's.

    The corpus id of the plan is "" for a corpus that was not added yet: then only runs over one of similar
    size tell.
    """
    with st.container(border=True, key="ask-expected", gap="xsmall"):
        try:
            plain.text(_past(str(home.root), plan))
            reads = plan.sub_model if plan.strategy in WITH_SUB_CALLS else plan.root_model
            plain.text(reading_words(home, plan.corpus_chars, reads))
        except RLMScopeError as error:
            note(f"what the run will take is not known now: {error}")


@st.cache_data(max_entries=50, ttl=_KEPT_SECONDS, show_spinner=False)
def _past(home: str, plan: Plan) -> str:
    """What earlier runs took, which is asked of the store no more often than people read."""
    found = estimate(Home.resolve(home), plan)
    if found is None:
        of = "of these models" if plan.strategy == "rlm" else "of these models by this strategy"
        return f"No finished run {of} over this corpus, or one of its size, tells what this takes."
    words = estimate_words(found, demo=plan.demo)
    return f"{words[0].upper()}{words[1:]}."


def reading_words(home: Home, chars: int, sub: str) -> str:
    """What it takes to send everything to the sub-model once: an upper guess of one full reading, without
    prompts around it and without answers. Raises RecordError when the prices cannot be read."""
    count = -(-chars // CHARS_PER_TOKEN)
    about = int(_rounded(Decimal(count)))
    much = f"all of it once is about {counted(about, 'token')} (at {CHARS_PER_TOKEN} characters each)"
    if is_demo(sub):
        return f"Read in full, {much}; the demo model costs nothing."
    price = price_table(home).price(sub, Usage(input=count, output=0))
    if price.status == "unknown" or price.usd is None:
        return f"Read in full, {much}. The price of {sub} is unknown; Settings can set it."
    return (
        f"Read in full by {sub}, {much}: {money(_rounded(price.usd), price.status)} for the input, "
        "prompts and answers not counted. A run may read less, or the same text several times."
    )


def _rounded(usd: Decimal) -> Decimal:
    """Two digits: more would promise what a guess cannot."""
    return usd if not usd else usd.quantize(Decimal(1).scaleb(usd.adjusted() - 1))
