"""What a record says of all calls of a run together, beside what it says of each: nothing of it gets lost.

What one call without numbers leaves open follows from the total. What stands only in a total belongs to calls
that are not on record: then the sums over those that are there are only the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from rlm_core.pricing import decimal_text
from traces.importers.foreign import ForeignSpan, TokenUse, derived

_REST: Final = "what the other calls leave of the total"
_ROUNDED: Final = Decimal("1e-6")  # engines add up binary fractions: less than this part is no difference


@dataclass(frozen=True, slots=True)
class Total:
    """What the calls of one kind took together; None where the record does not say."""

    named: str  # "root calls", "sub-calls"
    input: int | None = None
    output: int | None = None
    usd: Decimal | None = None


@dataclass(slots=True)
class Balance:
    """What came of comparing totals with calls: sentences for a run, and whether calls lack in its record."""

    missing: list[str]
    problems: list[str]
    lacks_calls: bool = False

    def compare(self, total: Total, calls: Sequence[ForeignSpan], *, whole: bool = True) -> None:
        """Take what a total says more than its calls. A single call without numbers gets the rest, unless
        the calls are not the `whole` of what it is the total of.
        """
        self._tokens(total, calls, whole)
        self._dollars(total, calls, whole)

    def _tokens(self, total: Total, calls: Sequence[ForeignSpan], whole: bool) -> None:
        if total.input is None or total.output is None:
            return
        known = [use for call in calls if (use := call.tokens.value) is not None]
        sums = sum(use.input for use in known), sum(use.output for use in known)
        left = total.input - sums[0], total.output - sums[1]
        unknown = [call for call in calls if call.tokens.value is None]
        if min(left) < 0:
            self.problems.append(
                f"The total of {total.named} ({total.input:,} in, {total.output:,} out) is less than what "
                f"they took one by one ({sums[0]:,} in, {sums[1]:,} out)."
            )
        elif any(left) and len(unknown) == 1 and whole:
            unknown[0].tokens = derived(TokenUse(*left), _REST)
        elif any(left):
            self.missing.append(
                f"Tokens of {total.named} that are only in their total: {left[0]:,} in, {left[1]:,} out."
            )
            self.lacks_calls |= not unknown

    def _dollars(self, total: Total, calls: Sequence[ForeignSpan], whole: bool) -> None:
        if total.usd is None:
            return
        known = [usd for call in calls if (usd := call.cost.value) is not None]
        left = total.usd - sum(known, Decimal(0))
        unknown = [call for call in calls if call.cost.value is None]
        if abs(left) <= total.usd * _ROUNDED:
            return
        if left < 0:
            self.problems.append(
                f"The total of {total.named} (${decimal_text(total.usd)}) is less than what they cost one by "
                f"one (${decimal_text(total.usd - left)})."
            )
        elif len(unknown) == 1 and whole:
            unknown[0].cost = derived(left, _REST)
        else:
            self.missing.append(
                f"Dollars of {total.named} that are only in their total: {decimal_text(left)}."
            )
            self.lacks_calls |= not unknown
