"""Where a root was shown the right answer: what a replay has to do for a root that types its answer.

A root that reads an output and types the answer gives the old answer in every replay of its code. The output
that tells the right one is the measure then, not all that the root was shown: most roots print some replies
as they came as well, and those may differ for nothing.
"""

from __future__ import annotations

import re
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.trial import Target, Trial
from traces.view import RunView

Place = tuple[str, int]  # run path, cell
Answers = tuple[tuple[str, ...], ...]  # each is told by an output that holds all of its texts

_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_BETWEEN: Final = re.compile(r"[,;]| and ")


def right_answers(target: Target | None, good: RunView | None) -> tuple[Answers, ...]:
    """What an output could tell: the answer that is wanted, and what the child runs of the good run answered.
    First these as they stand (in normal form), then their numbers, or the items of a list, in any words.
    """
    texts = [] if target is None or target.how in ("regex", "judge") else [target.text]
    if good is not None:
        digests = [span.attributes.get(f"{sc.ANSWER}.sha256") for span in good.spans if span.is_child_run]
        texts += good.payloads({one for one in digests if isinstance(one, str)}).values()
    whole = tuple(dict.fromkeys(wanted for text in texts if (wanted := normalise(text))))
    return tuple((wanted,) for wanted in whole), tuple(parts for text in whole if (parts := _parts(text)))


def _parts(wanted: str) -> tuple[str, ...]:
    items = [item for part in _BETWEEN.split(wanted) if (item := part.strip())]
    return tuple(_NUMBER.findall(wanted)) or (tuple(items) if len(items) > 1 else ())


def telling(trial: Trial, answers: Answers) -> frozenset[Place]:
    """The places whose output tells one of some answers in a replay, and did not before."""
    return frozenset(
        (one.path, one.cell)
        for one in trial.differences
        if one.what == "shown" and one.cell is not None
        and any(_tells(one.new, parts) and not _tells(one.old, parts) for parts in answers)
    )  # fmt: skip


def _tells(output: str | None, parts: tuple[str, ...]) -> bool:
    text = normalise(output or "")
    return all(re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(part)}(?!\w|[.,]\d)", text) for part in parts)
