"""What diagnoses spent on calls to a model in replays that were not kept as runs: no run tells it."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from rlm_core.errors import InputError, RecordError
from traces.diagnosis_log import folder, read_diagnosis
from traces.home import Home
from traces.trial import Spent


def spent_beside(home: Home, run_ids: Collection[str] | None = None) -> Spent:
    """Calls to a model and dollars of the diagnoses of some runs (of all runs), beyond what recorded replays
    hold; `usd` is None when the cost of a call is unknown. Logs that cannot be read are passed over.
    """
    total = Spent()
    for path in sorted(folder(home).glob("*.jsonl")):
        if _asked_nobody(path):
            continue
        with suppress(InputError, RecordError):
            state = read_diagnosis(home, path.stem)
            if run_ids is None or state.run_id in run_ids:
                for trial in state.trials:
                    total = _more(total, trial)
    return total


def _asked_nobody(path: Path) -> bool:
    """Whether a diagnosis may ask no model, by the first line of its log: most are so, and long."""
    try:
        with path.open("rb") as file:
            budget = json.loads(file.readline()).get("budget")
    except (OSError, ValueError, RecursionError, AttributeError):
        return False
    return isinstance(budget, list) and len(budget) > 1 and budget[1] == 0


def _more(total: Spent, trial: dict[str, Any]) -> Spent:
    calls = trial.get("live_calls")
    if trial.get("run_id") is not None or not isinstance(calls, int) or calls <= 0:
        return total
    try:
        usd = Decimal(str(trial.get("cost_usd")))
    except InvalidOperation:
        usd = None
    both = None if usd is None or total.usd is None else total.usd + usd
    return replace(total, replays=total.replays + 1, live_calls=total.live_calls + calls, usd=both)
