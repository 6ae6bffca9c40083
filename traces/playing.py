"""One replay: answers the engine out of a recorded program, some patches and what is known besides.

A request is looked up, in this order, among the patches, at its own place in the record, elsewhere in the
record, in other records that were given, and among what was asked live before. What none of them holds is a
miss; the mode says what then happens (`traces.trial.MODES`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from rlm_core.call_identity import hash_of_request
from rlm_core.errors import LimitReached
from rlm_core.lm_handler import Completion, Request
from rlm_core.playback import Place, PlaybackStopped, Played, Summed
from rlm_core.telemetry import sha256_text
from rlm_core.wire import CellReport
from traces.program import Key, Program, RecordedCall, RecordedCell, Reply, codes_of, reply_with
from traces.trial import Difference, Mode

Path = str
_TOP: Final = "0"  # the run itself
Models = Callable[[Path], tuple[str, str]]


class Deck:
    """A program with its calls laid out for every way of looking one up; shared by all replays of it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.by_request: dict[str, list[RecordedCall]] = defaultdict(list)
        self.by_cell: dict[tuple[Path, int], list[RecordedCall]] = defaultdict(list)
        self.in_cell: dict[tuple[Path, int, str], list[RecordedCall]] = defaultdict(list)
        for call in program.calls.values():
            self.by_request[call.key[2]].append(call)
            self.by_cell[call.key[:2]].append(call)
            self.in_cell[call.key[:3]].append(call)
        for calls in self.in_cell.values():
            calls.sort(key=lambda call: call.key[3])
        self.paths = {path for path, _ in program.turns} | {path for path, _ in program.cells}
        self.forced = {path: turn for (path, _), turn in program.turns.items() if turn.forced}

    def request_hash(self, request: Request, prompt_hash: str, path: Path, models: Models) -> str:
        """What the request hash of a call on a path would be with the models of this record; `models` gives
        root and sub model of the replay.
        """
        (root, sub), (now_root, now_sub) = self.program.models_at(path), models(path)
        model = root if request.model == now_root != now_sub else sub
        return hash_of_request(
            prompt_hash, model, request.max_tokens, request.schema, request.tools, request.corpus_id
        )

    def elsewhere(self, path: Path, request_hash: str, occurrence: int) -> Reply | None:
        """A reply to an equal request anywhere: of the same path and occurrence first."""
        calls = [call for call in self.by_request.get(request_hash, ()) if call.reply is not None]
        near = [call for call in calls if call.key[0] == path]
        same = [call for call in near if call.key[3] == occurrence]
        best = (same or near or calls)[:1]
        return best[0].reply if best else None


@dataclass(frozen=True, slots=True)
class Patches:
    """Patches by what they replace: replies by the key of their call, codes by run path and cell."""

    calls: Mapping[Key, Reply] = field(default_factory=dict)
    cells: Mapping[tuple[Path, int], str] = field(default_factory=dict)

    def inside(self, path: Path | None) -> bool:
        """Whether one of them lies in a child run or below it; None is no child run."""
        if path is None:
            return False
        paths = [key[0] for key in self.calls] + [path for path, _ in self.cells]
        return any(one == path or one.startswith(f"{path}.") for one in paths)


@dataclass
class Playing:
    """The `rlm_core.playback.Playback` of one replay, and what it has seen.

    `allow` says why no live call may be made, None when one may. `models` gives root and sub model of the
    replay on a run path. `memo` holds what was answered live before, by request hash and by hash and
    occurrence: equal requests that were asked at the same time keep their own replies.
    """

    deck: Deck
    patches: Patches
    mode: Mode
    models: Models
    allow: Callable[[], str | None]
    texts: Callable[[str], str | None]  # payloads of the record
    others: Sequence[Deck] = ()
    memo: dict[str, Reply] = field(default_factory=dict)
    without: Sequence[str] = ()  # tools whose functions the record does not hold
    hits: int = 0
    misses: int = 0
    live: int = 0
    anew: int = 0  # sub-calls that a model answered for this replay, or for one before it
    failed: list[str] = field(default_factory=list)  # why live calls failed
    stopped: str | None = None
    shown: list[tuple[Path, int, str]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    served: set[Key] = field(default_factory=set)
    not_again: list[RecordedCell] = field(default_factory=list)
    replanned: bool = False  # a child run was played by place, over other inputs
    _now: dict[tuple[Path, int], RecordedCell | None] = field(default_factory=dict)
    _first: dict[tuple[Path, int], int] = field(default_factory=dict)
    _diverged: set[Path] = field(default_factory=set)
    _budgets: Counter[tuple[Path, int]] = field(default_factory=Counter)
    _fresh: Counter[Path] = field(default_factory=Counter)
    _skipped: Counter[tuple[Path, str]] = field(default_factory=Counter)  # calls of cells not run again

    # -- the root

    def turn(self, path: Path, iteration: int, forced: bool) -> Completion | None:
        """The recorded reply; in mode reask a live one as soon as the root was shown something else."""
        program = self.deck.program
        if path not in self.deck.paths:
            self._live("the record holds no child run with these inputs", known=self.mode == "live")
            return None
        if self._is_replanned(path):
            self._live("", known=True)
            return None
        turn = self.deck.forced.get(path) if forced else program.turns.get((path, iteration))
        if turn is None or (turn.forced and not forced):
            return self._after_the_record(path, iteration)
        patched = {
            place: self.patches.cells[path, number]
            for place, number in enumerate(turn.cells)
            if (path, number) in self.patches.cells
        }
        if not patched:
            return Completion(turn.text, turn.finish_reason)
        codes = codes_of(turn.text, turn.finish_reason)
        codes = [patched.get(place, code) for place, code in enumerate(codes)]
        text = reply_with(codes)
        if codes_of(text) != codes:
            self._stop("the patched code cannot be taken out of a reply as it stands")
        return Completion(text, "stop")

    def summary(self, path: Path, iteration: int) -> Summed | None:
        """The recorded one, as long as the root's turns are those of the record."""
        return None if self._is_replanned(path) else self.deck.program.summaries.get((path, iteration))

    def root_beside(self) -> None:
        """A summary of turns that the record does not have."""
        self._live("the root has to sum up turns that the record does not hold", known=True)

    def _after_the_record(self, path: Path, iteration: int) -> Completion | None:
        reason = self.deck.program.ends.get(path)
        if self.mode == "reask":
            self._live("", known=True)
            return None
        if reason == "timeout":
            raise TimeoutError
        if reason == "budget":
            raise LimitReached("budget", "the recorded run was stopped here")
        self._stop(f"the record holds no reply of the root for iteration {iteration} of this path")

    # -- cells

    def cell(self, path: Path, iteration: int, number: int) -> str | None:
        """Find the recorded cell that this one is; what the root was shown of one that is not run again."""
        first = self._first.setdefault((path, iteration), number)
        turn = self.deck.program.turns.get((path, iteration))
        position = number - first
        recorded = None
        if turn is not None and position < len(turn.cells) and not self._is_replanned(path):
            recorded = self.deck.program.cells[path, turn.cells[position]]
        self._now[path, number] = recorded
        if recorded is None or recorded.again or (path, recorded.number) in self.patches.cells:
            return None
        if not recorded.ended:
            if self.deck.program.ends.get(path) == "timeout":
                raise TimeoutError
            self._stop("the recorded run ended in the middle of this cell")
        calls = self.deck.by_cell.get((path, recorded.number), ())
        if any(call.key in self.patches.calls or self.patches.inside(call.child_path) for call in calls):
            self._stop(f"cell {number}, in which a reply is replaced, was interrupted and is not run again")
        self.not_again.append(recorded)
        self._skipped.update((path, call.key[2]) for call in calls)
        self.shown.append((path, number, recorded.shown or ""))
        return self.texts(recorded.shown or "") or ""

    def _is_replanned(self, path: Path) -> bool:
        """Whether the root's code on this path is no longer that of the record."""
        return self.mode == "reask" and path in self._diverged

    def ran(self, path: Path, number: int, report: CellReport | None, shown: str) -> None:
        """Compare what came of a cell with its record."""
        recorded = self._now.get((path, number))
        digest = sha256_text(shown)
        self.shown.append((path, number, digest))
        if recorded is None:
            return
        if report is None:
            self._differs("cell", recorded, recorded.exception_type, "WorkerDied")
        else:
            if sha256_text(report.stdout) != recorded.stdout:
                self._differs("stdout", recorded, recorded.stdout, report.stdout)
            if report.exception_type != recorded.exception_type:
                self._differs("exception", recorded, recorded.exception_type, report.exception_type)
        if digest != recorded.shown:
            self._differs("shown", recorded, recorded.shown, shown)
            self._diverged.add(path)

    def _differs(self, what: Any, cell: RecordedCell, old: str | None, new: str | None) -> None:
        """`old` is a hash for outputs: texts are looked up when somebody wants to read them."""
        self.differences.append(
            Difference(what, cell.path, cell.iteration, cell.number, cell.span_id, old, new)
        )

    # -- calls

    def sub_call(self, place: Place, request: Request, prompt_hash: str) -> Played | None:
        """The reply of a sub-call, None to ask the model."""
        digest = self.deck.request_hash(request, prompt_hash, place.path, self.models)
        key = self._key(place, digest, request.occurrence)
        call = self._next_in_cell(key) or self.deck.program.calls.get(key)
        if call is not None and call.key in self.patches.calls:
            return self._serve(call.key, self.patches.calls[call.key], "patch")
        if self.mode == "live":
            self.served.add(key if call is None else call.key)
            self._live_sub_call(request, "", known=True)
            return None
        if call is not None and call.reply is not None:
            return self._serve(call.key, call.reply)
        reply = self.deck.elsewhere(place.path, digest, key[3]) or self._other(request, prompt_hash, place)
        if reply is not None:
            return self._serve(None, reply)
        asked = request.request_hash
        known = self.memo.get(f"{asked} {request.occurrence}") or self.memo.get(asked or "")
        if known is not None:
            self.anew += 1
            return self._serve(None, known)
        if self.mode == "frozen" and (old := self._at_place(place)) is not None:
            self.misses += 1
            return Played(old)
        self._live_sub_call(request, f"the record holds no answer to a prompt of cell {place.cell}")
        return None

    def _other(self, request: Request, prompt_hash: str, place: Place) -> Reply | None:
        replies = (
            other.elsewhere(
                place.path,
                other.request_hash(request, prompt_hash, place.path, self.models),
                request.occurrence,
            )
            for other in self.others
        )
        return next((reply for reply in replies if reply is not None), None)

    def answered(self, request: Request, prompt_hash: str, reply: Reply) -> None:
        """Keep what a model said."""
        if "err" in reply:
            self.failed.append(str(reply.get("msg") or reply["err"]))
        elif self.mode != "live":
            self.anew += 1
            self.memo[f"{request.request_hash} {request.occurrence}"] = reply
            self.memo.setdefault(request.request_hash or "", reply)

    def refused(self, why: str) -> NoReturn:
        """A limit in dollars or calls was met inside the engine: the replay ends here, undecided."""
        self._stop(why)

    def unsent(self) -> None:
        """A live call that was counted when it was allowed was refused or given up before it was sent."""
        self.live -= 1

    def child(self, place: Place, key: tuple[str, int], question_hash: str | None) -> Played | None:
        """The answer of a child run whose inputs are those of the record and that holds no patch."""
        full = self._key(place, *key)
        mine = self.deck.program.calls.get(full) or self._next_in_cell(full)
        if mine is not None and mine.key in self.patches.calls:
            return self._serve(mine.key, self.patches.calls[mine.key], "patch")
        if question_hash is None:
            return None
        if mine is None:  # equal questions over other texts may have been answered
            refused = self.deck.program.turned_away(*full[:2], question_hash, place.ordinal)
            if refused is not None:
                return self._serve(None, refused)
        if self._recorded_path(place, key) is not None:
            return None
        call = self._recorded_child(full, key)
        if call is not None and call.reply is not None and self.mode != "live":
            return self._serve(call.key if call.key[:2] == full[:2] else None, call.reply)
        if (lent := self._lent_child(place, key)) is not None:
            return self._serve(None, lent)
        if self.mode == "frozen" and (old := self._at_place(place)) is not None:
            self.misses += 1
            return Played(old)
        if self.mode in ("strict", "frozen"):
            self.misses += 1
            self._stop(f"the record holds no child run with the inputs it has now in cell {place.cell}")
        return None

    def _lent_child(self, place: Place, key: tuple[str, int]) -> Reply | None:
        """What another record says of a child run with these inputs. They name places in the documents of the
        caller, so only calls of runs over the same corpus are compared, and none of child runs.
        """
        if self.mode == "live" or place.path != _TOP:
            return None
        lenders = (one for one in self.others if one.program.corpus_id == self.deck.program.corpus_id)
        calls = [call for one in lenders for call in one.by_request.get(key[0], ()) if call.key[0] == _TOP]
        calls.sort(key=lambda call: call.key[3] != key[1])
        return next((call.reply for call in calls if call.reply is not None), None)

    def child_path(self, place: Place, key: tuple[str, int]) -> str:
        """The path of the recorded child that is played, else one that the record does not have."""
        full = self._key(place, *key)
        call, recorded = self._recorded_child(full, key), self._recorded_path(place, key)
        if recorded is not None:
            self.served.add(full if call is None else call.key)
            return recorded
        while True:
            self._fresh[place.path] += 1
            path = f"{place.path}.{self._fresh[place.path]}"
            if path not in self.deck.paths:
                return path

    def _recorded_path(self, place: Place, key: tuple[str, int]) -> str | None:
        """The path of a recorded child run that has to be played cell by cell."""
        call = self._recorded_child(self._key(place, *key), key)
        if call is not None:
            opened = call.child_path is not None and (
                self.mode == "live" or self.patches.inside(call.child_path)
            )
            return call.child_path if opened else None
        if self.mode != "live":
            return None
        at_place = self._call_at(place)
        if at_place is not None and at_place.child_path is not None:
            self.replanned = True
            return at_place.child_path
        return None

    def _recorded_child(self, full: Key, key: tuple[str, int]) -> RecordedCall | None:
        same = (one for one in self.deck.by_request.get(key[0], ()) if one.key[0] == full[0])
        return self.deck.program.calls.get(full) or self._next_in_cell(full) or next(same, None)

    def budget(self, path: Path, cell: int) -> dict[str, Any] | None:
        """The next recorded reply of `budget()` in this cell."""
        recorded = self._now.get((path, cell))
        replies = () if recorded is None else self.deck.program.budgets.get((path, recorded.number), ())
        at = self._budgets[path, cell]
        self._budgets[path, cell] += 1
        return replies[at] if at < len(replies) else None

    # -- what it came to

    def uncalled(self) -> list[RecordedCall]:
        """Recorded calls, of cells that ran again, that were not made with the same prompt."""
        ran = {(cell.path, cell.number) for cell in self._now.values() if cell is not None and cell.again}
        return [
            call for call in self.deck.program.calls.values()
            if call.key[:2] in ran and call.key not in self.served and call.reply is not None
        ]  # fmt: skip

    # -- inside

    def _key(self, place: Place, request_hash: str, occurrence: int) -> Key:
        recorded = self._now.get((place.path, place.cell))
        # the engine counts equal requests from those it was made: calls of cells not run again are added
        occurrence += self._skipped[place.path, request_hash]
        return (place.path, -1 if recorded is None else recorded.number, request_hash, occurrence)

    def _next_in_cell(self, key: Key) -> RecordedCall | None:
        """The next equal request of the cell: occurrences count those of other cells too, which a patch can
        make more or fewer, and are counted anew after a death.
        """
        same = self.deck.in_cell.get(key[:3], ())
        return next((call for call in same if call.key not in self.served), None)

    def _serve(self, key: Key | None, reply: Reply, source: str = "record") -> Played:
        self.hits += 1
        if key is not None:
            self.served.add(key)
        return Played(reply, source)

    def _call_at(self, place: Place) -> RecordedCall | None:
        recorded = self._now.get((place.path, place.cell))
        calls = () if recorded is None else self.deck.by_cell.get((place.path, recorded.number), ())
        return next((call for call in calls if call.ordinal == place.ordinal), None)

    def _at_place(self, place: Place) -> Reply | None:
        call = self._call_at(place)
        return None if call is None else call.reply

    def _live(self, missing: str, *, known: bool = False) -> None:
        """Count a live call, or stop. `known`: the mode asks for it, the record does not lack anything."""
        self.misses += not known
        if self.mode in ("strict", "frozen"):
            self._stop(missing)
        if (why := self.allow()) is not None:
            self._stop(f"{missing}; {why}" if missing else why)
        self.live += 1

    def _live_sub_call(self, request: Request, missing: str, *, known: bool = False) -> None:
        """The same for a sub-call, which may need tools that only whoever asked the question has."""
        if self.without and request.tools and self.mode not in ("strict", "frozen"):
            named = ", ".join(self.without)
            self._stop(
                f"sub-calls of this run may use tools whose functions are not in its record ({named}), so "
                "none can be asked again"
            )
        self._live(missing, known=known)

    def _stop(self, why: str) -> NoReturn:
        self.stopped = self.stopped or why
        raise PlaybackStopped(why)
