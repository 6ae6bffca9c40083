"""Where a root was shown the right answer: what a replay has to do for a root that types its answer.

A root that reads an output and types the answer gives the old answer in every replay of its code. The output
that tells the right one is the measure then, not all that the root was shown: most roots print some replies
as they came as well, and those may differ for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.trial import Target, Trial
from traces.view import RunView

Place = tuple[str, int]  # run path, cell


def right_answers(target: Target | None, good: RunView | None) -> tuple[str, ...]:
    """The texts, in normal form, that an output could tell: the answer that is wanted, and what the child
    runs of the good run answered.
    """
    texts = [] if target is None or target.how in ("regex", "judge") else [target.text]
    if good is not None:
        digests = [span.attributes.get(f"{sc.ANSWER}.sha256") for span in good.spans if span.is_child_run]
        texts += good.payloads({one for one in digests if isinstance(one, str)}).values()
    return tuple(dict.fromkeys(wanted for text in texts if (wanted := normalise(text))))


def telling(trial: Trial, answers: Sequence[str]) -> frozenset[Place]:
    """The places whose output tells one of some answers (in normal form) in a replay, and did not before."""
    return frozenset(
        (one.path, one.cell)
        for one in trial.differences
        if one.what == "shown" and one.cell is not None
        and any(_tells(one.new, wanted) and not _tells(one.old, wanted) for wanted in answers)
    )  # fmt: skip


def _tells(output: str | None, wanted: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", normalise(output or "")) is not None
