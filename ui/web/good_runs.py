"""Runs that a bad one can be compared with: those that ask the same, best those that ran the same cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rlm_core import semconv as sc
from rlm_core.errors import RLMScopeError
from traces.diff import Diff, diff
from traces.home import Home
from traces.opinions import Opinions, opinions
from traces.questions import asked
from traces.reading import RunSummary, RunView, list_runs, load_run
from traces.replay_facts import Replay, replay_facts
from traces.same_answer import same_answer
from ui.visible import fit, line
from ui.web.run_record import Record

_MOST: Final = 40  # runs of one question that are looked into, the newest; a page must not read thousands,
_MOST_SPANS: Final = 40_000  # nor longer than a second or two
_ANSWER_COLUMNS: Final = 60
_COMPARED_SPANS: Final = 12_000  # of both runs together; the Compare page takes the time for more
_TEXTS: Final = {"sub_call": sc.RESPONSE, "run": sc.ANSWER, "cell": sc.CODE}  # payload of each kind of span


@dataclass(frozen=True, slots=True)
class Good:
    """A run that asks the same. `same_cells`: it ran the same code, so that calls can be compared one by one.
    `right`: a person said so, or its answer is the expected one; None when nobody can tell. `typed`: it is a
    twin of this very run whose root had typed the answer, so that other replies could not change it.
    """

    run: RunSummary
    same_cells: bool
    same_answer: bool
    right: bool | None
    typed: bool = False

    @property
    def twin(self) -> bool:
        """Whether it plays another run again."""
        return self.run.replay_of is not None

    @property
    def usable(self) -> bool:
        """Whether it can be the good run of a diagnosis without a second thought."""
        told = not self.same_answer and self.right is not False
        return self.same_cells and (told or self.typed)


@dataclass(frozen=True, slots=True)
class Offer:
    """The runs that can be compared with, the most useful first, and how many more were not looked into."""

    goods: tuple[Good, ...]
    left_out: int


def good_runs(home: Home, record: Record, expected: str | None, how: str, asked_for: str | None) -> Offer:
    """The runs that ask what a run asks. `asked_for` is looked into in any case. Raises RLMScopeError."""
    said = opinions(home)
    fitting = [run for run in list_runs(home, replays=True) if _fits(run, record.view.summary)]
    listed = _few(fitting, asked_for)
    # what is read of a run that has ended does not change: only another list or another word does
    words = tuple((said.of(run.run_id) or None) for run in listed)
    ids = tuple(run.run_id for run in listed)

    def make(view: RunView) -> tuple[Good, ...]:
        return _weighed(home, view, listed, said, expected, how)

    goods = record.once(make, "good-runs", (ids, words, expected, how))
    return Offer(goods, len(fitting) - len(listed))


def _few(runs: Sequence[RunSummary], asked_for: str | None) -> list[RunSummary]:
    few: list[RunSummary] = []
    spans = 0
    for run in sorted(runs, key=lambda run: run.run_id != asked_for):
        spans += run.spans
        if few and (len(few) == _MOST or spans > _MOST_SPANS):
            break
        few.append(run)
    return few


def _fits(run: RunSummary, bad: RunSummary) -> bool:
    """Whether a run asks the same and has ended with an answer. A replay that was patched is no model's."""
    return (
        run.run_id != bad.run_id
        and run.status != "running"
        and run.answer is not None
        and asked(run) == asked(bad)
    )


def _weighed(
    home: Home, view: RunView, runs: Iterable[RunSummary], said: Opinions, expected: str | None, how: str
) -> tuple[Good, ...]:
    own = codes(view)
    found = []
    for run in runs:
        try:
            other = load_run(home, run.run_id)
        except RLMScopeError:
            continue
        replay = replay_facts(other)
        if replay is not None and replay.patches:
            continue  # its answer is made, not found
        same = same_answer(run.answer, view.summary.answer) is True
        typed = same and _typed_twin(replay, view.run_id)
        found.append(Good(run, codes(other) == own, same, _right(run, said, expected, how), typed))
    return tuple(sorted(found, key=_order))


def _order(good: Good) -> tuple[bool, bool, bool, int]:
    """Usable ones first, of these what is right, then the fewest calls without a reply; equal ones as they
    come.
    """
    missing = good.run.failed_sub_calls + good.run.refused_sub_calls
    return not good.usable, good.right is not True, good.same_answer, missing


def _typed_twin(replay: Replay | None, run_id: str) -> bool:
    """Whether a replay is a twin of a run whose root would have been shown other replies."""
    return replay is not None and (replay.of, replay.mode, replay.outcome) == (run_id, "live", "reached_root")


def _right(run: RunSummary, said: Opinions, expected: str | None, how: str) -> bool | None:
    word = said.of(run.run_id)
    if word is not None and word.verdict in ("right", "wrong"):
        return word.verdict == "right"
    return None if expected is None else same_answer(run.answer, expected, how)


@dataclass(frozen=True, slots=True)
class Against:
    """A run beside the good run that was chosen. `difference` is None where the runs are too long to be
    compared here; `replies` are the texts of the good run by the span of the bad one that they belong to.
    """

    good: Good
    difference: Diff | None
    replies: Mapping[str, str]


def against(record: Record, good: Good) -> Against:
    """A run beside a good run, worked out once. Raises RLMScopeError when the good run cannot be read."""

    def make(view: RunView) -> Against:
        if len(view.spans) + good.run.spans > _COMPARED_SPANS:
            return Against(good, None, {})
        other = load_run(record.home, good.run.run_id)
        found = diff(view, other)
        return Against(good, found, _replies(other, found))

    return record.once(make, "against", good)


def _replies(good: RunView, found: Diff) -> dict[str, str]:
    """What the good run has in the place of each span where the runs begin to differ."""
    digests = {}
    for row in found.frontier:
        if row.a is not None and row.b in good.by_id:
            sha256 = good.by_id[row.b].attributes.get(f"{_TEXTS.get(row.kind)}.sha256")
            if isinstance(sha256, str):
                digests[row.a] = sha256
    texts = good.payloads(set(digests.values()))
    return {span_id: texts[sha256] for span_id, sha256 in digests.items() if sha256 in texts}


def codes(view: RunView) -> tuple[tuple[object, object], ...]:
    """What a run's own cells ran, in order: (iteration, sha256 of the code). Those of child runs follow from
    what they are asked."""
    return tuple(
        (span.iteration, span.attributes.get(sc.CODE + ".sha256"))
        for span in view.spans
        if span.kind == "cell" and not span.depth
    )


def good_title(good: Good) -> str:
    """A run in one line of a select box."""
    answer = fit(line(good.run.answer or ""), _ANSWER_COLUMNS)
    kind = "twin" if good.twin else "run"
    cells = "same cells" if good.same_cells else "other code"
    return line(f"{answer} · {_word(good)} · {kind}, {cells} · {good.run.run_id}")


def _word(good: Good) -> str:
    if good.typed:
        return "same answer, other replies"
    if good.right is not None:
        return "right" if good.right else "wrong"
    return "same answer" if good.same_answer else "other answer"
