"""What a run used of each of its limits: from its ledger when it has ended, from its spans until then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from traces.facts import LARGEST, usd_amount
from traces.finding import decoded, spans_of
from traces.imported import is_foreign, sub_calls_told
from traces.rows import RunSummary, money_json
from traces.view import RunView

Amount = int | float | Decimal
_NAMES: Final = {
    "calls": "sub-calls",
    "tokens": "tokens",
    "usd": "dollars",
    "seconds": "seconds",
    "depth": "depth",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. `spent` is None when it is not known, and a lower bound when not `known`; `limit` is None
    where there was none. `name` is a word of ours.
    """

    name: str
    spent: Amount | None
    limit: Amount | None
    known: bool = True

    @property
    def share(self) -> float | None:
        """How much of the limit was used, 1 for all of it; None without a limit or when it is not known."""
        if self.spent is None or self.limit is None:
            return None
        if self.limit == 0:
            return 0.0 if self.spent == 0 else 1.0
        return float(self.spent) / float(self.limit)

    @property
    def over(self) -> bool:
        """Whether more was used than allowed."""
        return self.spent is not None and self.limit is not None and self.spent > self.limit

    @property
    def words(self) -> str:
        """`200 of 5,000`, `$0.02, no limit`."""
        spent = (
            "unknown" if self.spent is None else ("" if self.known else "at least ") + self._shown(self.spent)
        )
        return f"{spent}, no limit" if self.limit is None else f"{spent} of {self._shown(self.limit)}"

    def _shown(self, amount: Amount) -> str:
        if self.name == "dollars":
            return f"${money_json(Decimal(amount))}"
        return f"{amount:,}" if isinstance(amount, int) else f"{amount:,.1f}"


def limits(view: RunView) -> list[Limit]:
    """The limits of a run and what it used of each, child runs included."""
    top = next(spans_of(view, "run"), None)
    attributes: Mapping[str, Any] = top.attributes if top is not None else {}
    given = _table(decoded(attributes, sc.LIMITS))
    most = given.get("max_iterations")
    iterations = _told(view.summary, view.summary.iterations)
    found = [Limit("iterations", iterations, most if _is_count(most) else None)]
    ledger = _table(decoded(attributes, sc.LEDGER))
    return found + list(_of_ledger(ledger) if ledger else _of_spans(view, given))


def _told(run: RunSummary, amount: Amount) -> Amount | None:
    """None where the record of another engine holds nothing of it: that does not say that there was none."""
    return None if is_foreign(run) and not amount else amount


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_ledger(ledger: Mapping[str, Any]) -> Iterator[Limit]:
    for key, name in _NAMES.items():
        row = _table(ledger.get(key))
        spent, limit = (_amount(row.get(word), key) for word in ("spent", "limit"))
        if spent is not None or limit is not None:
            yield Limit(name, spent, limit, row.get("known") is not False)


def _of_spans(view: RunView, given: Mapping[str, Any]) -> Iterator[Limit]:
    """What the spans recorded so far add up to."""
    run = view.summary
    foreign, depth = is_foreign(run), max((span.depth for span in view.spans), default=0)
    spent: dict[str, Amount | None] = {
        "calls": sub_calls_told(run),
        "tokens": run.tokens["total"],
        "usd": run.known_usd,
        "seconds": run.seconds,
        "depth": None if foreign and not run.iterations else depth,
    }
    keys = {"usd": "max_cost_usd"}
    for key, name in _NAMES.items():
        limit = _amount(given.get(keys.get(key, f"max_{key}")), key)
        known = {"usd": run.cost_usd is not None, "tokens": not run.untold_calls}.get(key, True)
        untold = foreign and not known and not spent[key]
        yield Limit(name, None if untold else spent[key], limit, known)


def _amount(value: object, key: str) -> Amount | None:
    """A recorded amount that can be one; None for anything else."""
    if key == "usd":
        return usd_amount(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LARGEST:
        return None
    return value


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < LARGEST
