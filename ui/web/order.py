"""What the app asks a run process to do: the order, checked before anything starts, and the files of a start.

In `home/requests`: `<run id>.json` (0600) holds the order, later instead of it the sentence about a failure;
the lock of `<run id>.lock` is held from before the order is written until the process has ended. A process
may carry out several runs in turn; then these files bear the id of the first.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import InputError
from ui.common import say
from ui.figures import MOST_DOLLARS

if TYPE_CHECKING:
    from rlm_core.limits import Limits
    from traces.home import Home
    from ui import ask_run

LEAST_COUNTS: Final = {
    "max_iterations": 1,
    "max_depth": 0,
    "max_calls": 1,
    "max_tokens": 1,
    "concurrency": 1,
    "max_tool_calls": 1,
    "max_tool_rounds": 1,
}
LimitValue = int | float | str | None


@dataclass(frozen=True)
class Order:
    """One question over a corpus that was added before.

    `limits` may hold `max_iterations`, `max_depth`, `max_calls`, `max_tokens`, `concurrency`,
    `max_tool_calls`, `max_tool_rounds` (whole numbers), `max_seconds` (a number) and `max_cost_usd` (dollars
    as text); what is absent or None is the default of `rlm_core.limits.Limits`. `sandbox` is the lowest level
    to accept, None: the default.

    `way` holds fields of `ui.ways.Way`, `further` the ways of runs that come after this one in the same
    process. With `resume_of` the order continues that run: then only its limits and the `root_window` of
    its way count, each instead of the recorded one.
    """

    question: str
    corpus_id: str
    root: str
    sub: str
    limits: Mapping[str, LimitValue] = field(default_factory=dict)
    seed: int = 0
    sandbox: str | None = None
    fault_rate: float = 0.0
    fault_seed: int = 0
    way: Mapping[str, Any] = field(default_factory=dict)
    further: Sequence[Mapping[str, Any]] = ()
    resume_of: str | None = None


def series_ids(ticket: str, count: int) -> tuple[str, ...]:
    """The ids of the runs of one process: the ticket, which is that of the first, and the numbers after it.

    >>> series_ids("20270115T080000-0000000f", 2)
    ('20270115T080000-0000000f', '20270115T080000-00000010')
    """
    begin, _, digits = ticket.rpartition("-")
    numbers = (int(digits, 16) + place for place in range(1, count))
    return (ticket, *(f"{begin}-{number % (1 << 32):08x}" for number in numbers))


def orders(home: Home, order: Order, ticket: str) -> list[ask_run.Order]:
    """What a process carries out in turn, the first under the id `ticket`.

    Raises InputError or RecordError, in one sentence, for what cannot work.
    """
    if order.resume_of is not None:
        return [_resumed(home, order, order.resume_of, ticket)]
    ways = (order.way, *order.further)
    ids = series_ids(ticket, len(ways))
    return [checked(replace(order, way=way), run_id) for run_id, way in zip(ids, ways, strict=True)]


def _resumed(home: Home, order: Order, of: str, ticket: str) -> ask_run.Order:
    from traces.reading import load_run
    from ui.resume_command import resumed_order

    limits = {name: _limit(name, value) for name, value in order.limits.items() if value is not None}
    window = order.way.get("root_window")
    if window is not None and (type(window) is not int or window < 1):
        raise InputError(f"the root's window must be a whole number of at least 1 token, not {window!r}")
    return resumed_order(home, load_run(home, of), limits, root_window=window, run_id=ticket)


def checked(order: Order, run_id: str) -> ask_run.Order:
    """The order as the function that runs it takes it. Raises InputError for what has not its form."""
    from rlm_core.models import check_usable
    from ui import ask_run
    from ui.ways import Way

    check_usable(order.root, "the root model")
    check_usable(order.sub, "the sub-model")
    try:
        options = Way(**order.way).checked()
    except TypeError as error:  # of a file that another version wrote
        raise InputError(f"the order says how to answer in a way that is not known here: {error}") from None
    return ask_run.Order(
        question=ask_run.check_question(order.question),
        sources=(),
        root=order.root,
        sub=order.sub,
        limits=checked_limits(order.limits),
        seed=order.seed,
        sandbox=order.sandbox,
        fault_rate=order.fault_rate,
        fault_seed=order.fault_seed,
        corpus_id=order.corpus_id,
        run_id=run_id,
        options=options,
    )


def checked_limits(given: Mapping[str, LimitValue]) -> Limits:
    """The limits of an order. Raises InputError, in one sentence, for a value that cannot be one."""
    from rlm_core.limits import Limits

    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            values[name] = _limit(name, value)
    return replace(Limits(), **values)


def _limit(name: str, value: int | float | str) -> int | float | Decimal:
    words = name.replace("_", " ").replace("max ", "limit of ")
    if name in LEAST_COUNTS:
        least = LEAST_COUNTS[name]
        if type(value) is not int or value < least:
            raise InputError(f"the {words} must be a whole number of at least {least}, not {value!r}")
        return value
    if name == "max_seconds":
        if type(value) not in (int, float) or not 0 < float(value) < math.inf:
            raise InputError(f"the {words} must be a number above 0, not {value!r}")
        return float(value)
    if name != "max_cost_usd":
        raise InputError(f"there is no limit {name!r}")
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        raise InputError(f"the cost limit must be an amount in dollars like 0.50, not {value!r}") from None
    if not amount.is_finite() or amount <= 0:
        raise InputError(f"the cost limit must be above 0, not {value!r}")
    if amount > MOST_DOLLARS:
        raise InputError(f"the cost limit must be at most {MOST_DOLLARS:,} dollars")
    return amount


class StartFiles:
    """The files of one start. Creating the object touches nothing on disk."""

    def __init__(self, home: Home, run_id: str) -> None:
        """Raises InputError for what is no run id."""
        name = home.spool_file(run_id).stem
        self.request = home.root / "requests" / f"{name}.json"
        self.lock = self.request.with_suffix(".lock")
        self.log = home.root / "logs" / f"run-{name}.log"

    def write_order(self, order: Order) -> bool:
        """Write the order, or return False when it was written before. Raises OSError."""
        try:
            descriptor = os.open(self.request, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        with open(descriptor, "w", encoding="utf-8") as out:
            json.dump({"order": {**asdict(order), "limits": dict(order.limits)}}, out)
        return True

    def read_order(self) -> Order:
        """The order. Raises InputError when there is none to be read."""
        try:
            return Order(**json.loads(self.request.read_text("utf-8"))["order"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InputError(f"{self.request} holds no order: {error}") from error

    def leave_error(self, sentence: str) -> None:
        """Put a failure in the place of the order. Raises OSError."""
        handle, name = tempfile.mkstemp(dir=self.request.parent)
        with open(handle, "w", encoding="utf-8") as out:
            json.dump({"error": sentence}, out)
        os.replace(name, self.request)

    def finish(self, failure: str | None) -> None:
        """Leave only what somebody may still need: nothing, or the sentence about a failure."""
        if failure is None:
            self.remove()
            return
        try:
            self.leave_error(failure)
        except OSError as error:
            say(f"rlmscope: {failure} (and this could not be left for the app: {error.strerror or error})")

    def read_error(self) -> str | None:
        """The sentence that the process left, or None."""
        try:
            found = json.loads(self.request.read_text("utf-8")).get("error")
        except (OSError, ValueError, AttributeError):
            return None
        return found if isinstance(found, str) else None

    def remove(self) -> None:
        """Remove all of them; one that cannot be removed does no harm."""
        for path in (self.request, self.lock, self.log):
            with suppress(OSError):
                path.unlink(missing_ok=True)
