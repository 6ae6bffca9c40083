"""Where a root was shown the right answer: what a replay has to do for a root that types its answer.

A root that reads an output and types the answer gives the old answer in every replay of its code. The output
that tells the right one is the measure then, not all that the root was shown: most roots print some replies
as they came as well, and those may differ for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.trial import Target, Trial
from traces.view import RunView

Place = tuple[str, int, int]  # run path, cell, which of the answers
#: An output on a run path tells an answer when it holds all of the first texts and none of the others (all in
#: normal form).
Told = tuple[str, frozenset[str], frozenset[str]]
Answers = tuple[Told, ...]

_VALUE: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_a-z]\w*(?:[ -][^\W\d_a-z]\w*)*")
_ITEMS: Final = re.compile(r"[,;:\n]| and ")
_TOP: Final = "0"  # the run path of the run itself
_BETWEEN: Final = re.compile(r"[,;\n]| and ")


def right_answers(
    target: Target | None, wrong: str | None = None, children: Iterable[tuple[str, str, str]] = ()
) -> tuple[Answers, ...]:
    """What an output could tell, best first: the answer that is wanted, without what only the wrong one has;
    the list it ends in ("Found: a, b"), not as a part of a longer one; what sets it apart from the wrong one,
    in any words (numbers, names, items of a list); the answer among other things; then what sets the right
    answers of child runs apart from their wrong ones (`children`: run path, wrong and right answer), each in
    its own outputs.
    """
    found: list[Answers] = []
    if target is not None and target.how not in ("regex", "judge") and (whole := normalise(target.text)):
        apart = _apart([(_TOP, wrong or "", target.text)])
        without = apart[0][2] if apart else frozenset()
        _, named, listed = whole.rpartition(": ")
        found = [((_TOP, frozenset([whole]), without),)]
        if named and _BETWEEN.search(listed):
            found.append(((_TOP, frozenset([listed]), frozenset()),))
        found += [apart, ((_TOP, frozenset([whole]), frozenset()),)]
    return (*found, _apart(children))


def child_answers(bad: RunView, good: RunView | None) -> list[tuple[str, str, str]]:
    """Run path (in the bad run), wrong and right answer of the child runs that were asked the same in two
    runs; their paths are numbered as they come and mean nothing in another run.
    """
    if good is None:
        return []
    before, after = _answers(bad), _answers(good)
    return [(path, text, after[asked][1]) for asked, (path, text) in before.items() if asked in after]


def _answers(view: RunView) -> dict[tuple[object, object], tuple[str, str]]:
    """Run path and answer of child runs, by what they were asked."""
    found = {}
    for span in view.spans:
        facts = span.attributes if span.is_child_run else {}
        digest, path = facts.get(f"{sc.ANSWER}.sha256"), facts.get(sc.RUN_PATH)
        text = view.payload(digest) if isinstance(digest, str) else None
        if text is not None and isinstance(path, str):
            found[facts.get(sc.REQUEST_HASH), facts.get(sc.CALL_OCCURRENCE)] = (path, text)
    return found


def _apart(answers: Iterable[tuple[str, str, str]]) -> Answers:
    found = []
    for path, wrong, right in answers:
        listed = any(_BETWEEN.search(text) for text in (wrong, right))
        before, after = _values(wrong, listed), _values(right, listed)
        if before != after:
            found.append((path, after - before, before - after))
    return tuple(found)


def _values(text: str, listed: bool) -> frozenset[str]:
    """Numbers and names, and the items of a list."""
    found = [*_VALUE.findall(text), *(_ITEMS.split(text) if listed else ())]
    return frozenset(wanted for one in found if (wanted := normalise(one)))


def telling(trial: Trial, answers: Answers) -> frozenset[Place]:
    """The places whose output tells one of some answers in a replay, and did not before."""
    return frozenset(
        (one.path, one.cell, index)
        for one in trial.differences
        if one.what == "shown" and one.cell is not None
        for index, told in enumerate(answers)
        if told[0] == one.path and _tells(one.new, told) and not _tells(one.old, told)
    )


def does_the_same(trial: Trial, joint: Trial, right: Sequence[Answers]) -> Literal["yes", "no", "unknown"]:
    """Whether a trial does what all candidates together do: make the answer right, else tell roots the right
    one in the same places; where none is told, show every root the same and give the same answer.
    """
    if trial.outcome == "fixed":
        return "yes"
    if trial.outcome in ("undecided", "error"):
        return "unknown"
    if joint.outcome == "fixed":
        return "no"
    for answers in right:
        if told := telling(joint, answers):
            paths = {path for path, *_ in told}
            # of a child run that was told nothing, all that it was shown counts; and children that were told
            # theirs are not enough: the run itself is shown what it would be shown
            compared = {path for path, *_ in answers} - paths | ({_TOP} if paths != {_TOP} else set())
            alike = all(_shown(trial, path) == _shown(joint, path) for path in compared)
            return "yes" if alike and telling(trial, answers) >= told else "no"
    return "yes" if (trial.shown, trial.answer) == (joint.shown, joint.answer) else "no"


def _shown(trial: Trial, path: str) -> list[tuple[str, int, str]]:
    return [one for one in trial.shown if one[0] == path]


def _tells(output: str | None, told: Told) -> bool:
    text = normalise(output or "")
    return all(_holds(text, one) for one in told[1]) and not any(_holds(text, one) for one in told[2])


def _holds(text: str, value: str) -> bool:
    """Whether a value stands in a text by itself: not as a part of a word or number, nor of a longer list."""
    before, after = r"(?<!\w)(?<!\d[.,])", r"(?!\w|[.,]\d)"
    if _BETWEEN.search(value):
        before, after = r"(?<!\w)(?<![,;] )(?<! and )", r"(?!\w|[,;]| and )"
    return re.search(before + re.escape(value) + after, text) is not None
