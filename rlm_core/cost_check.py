"""The cross-check of a call's cost: LiteLLM's own figure beside ours.

LiteLLM prices by the model name in the answer, which is why its figure is not the one that counts; where both
are known and differ, a person should look. It needs no network: LiteLLM brings a copy of its price list.
"""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation
from typing import Final

from rlm_core.pricing import Price
from rlm_core.telemetry import Attribute, as_json

RULE: Final = "cost_check"
TOLERANCE: Final = Decimal("0.01")  # of our figure
_ROUNDED: Final = Context(prec=28)  # whatever the caller's own decimal context is


def difference(ours: Decimal, theirs: Decimal) -> Decimal:
    """How far LiteLLM's figure is off, as a part of ours; of nothing, everything is 1."""
    if ours == theirs:
        return Decimal(0)
    return _ROUNDED.divide(_ROUNDED.subtract(theirs, ours), ours) if ours else Decimal(1)


def cost_findings(price: Price, litellm_usd: Attribute | None) -> str | None:
    """The finding for one attempt, as the JSON of `semconv.FINDINGS`; None when there is nothing to say.

    `litellm_usd` is a decimal string, None where LiteLLM reports no figure.
    """
    if price.usd is None or not isinstance(litellm_usd, str):
        return None
    try:
        theirs = Decimal(litellm_usd)
    except InvalidOperation:
        return None
    if not theirs.is_finite() or (off := difference(price.usd, theirs)).copy_abs() <= TOLERANCE:
        return None
    message = f"LiteLLM says this call cost ${litellm_usd}, our price makes it ${price.usd:f} ({off:+.1%})"
    return as_json([{"rule": RULE, "line": None, "message": message}])
