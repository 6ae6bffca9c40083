"""A seeded series of kills: processes of all kinds at work on one home, ended at random moments.

The seed decides what is started, what is killed and at which moment of its work; how the processes then meet
is left to the machine.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos.nursery import Child, Nursery
from tests.chaos.witness import REQUESTS, Witness, question, tag_of
from tests.support.processes import lives
from traces import user_log
from traces.home import Home, new_run_id

MODELS: Final = ("--root", "openai/root-model", "--sub", "openai/sub-model")
#: What is started, and how often of a hundred.
TARGETS: Final = {"ask": 45, "run process": 13, "ingest": 15, "rebuild": 10, "app": 12, "delete": 5}
_JOB_SECONDS: Final = 120.0  # a process that takes longer hangs
_DEATH_SECONDS: Final = 5.0  # how long a process of a killed run may live on


@dataclass
class Run:
    """One run that was started: how its process ended (None: killed before it could end)."""

    number: int
    target: str
    side: Path
    code: int | None = None

    @property
    def tag(self) -> str:
        """The name of the run in all its texts."""
        return tag_of(question(self.number))


@dataclass
class Campaign:
    """`kills` counts by target and how ("process" or "group"); `early` those who had ended before."""

    home: Home
    folder: Path
    server: Witness
    nursery: Nursery
    seed: int
    wanted: int
    until: float  # of time.monotonic
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    early: Counter[str] = field(default_factory=Counter)
    runs: list[Run] = field(default_factory=list)
    deletions: dict[str, bool] = field(default_factory=dict)  # run id -> was said to be done
    tags: dict[str, str] = field(default_factory=dict)  # of the runs that were to be deleted, by run id
    broken: list[str] = field(default_factory=list)  # what a process did that none may do
    corpus_id: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = 0

    def fire(self, lanes: int) -> None:
        """Start and kill on several lanes at once until enough were killed or the time is over."""
        self._first_run()
        with ThreadPoolExecutor(lanes) as pool:
            for lane in [pool.submit(self._lane) for _ in range(lanes)]:
                lane.result()

    def _first_run(self) -> None:
        """An undisturbed run adds the corpus, and shows that one ends well."""
        (self.folder / "note.txt").write_text("A short note.\n")
        run, child = self._ask(0)
        child.ended.wait(_JOB_SECONDS)
        run.code = child.code
        if child.code != 0:
            raise RuntimeError((self.folder / "00000.err").read_text()[-2000:])
        self.corpus_id = json.loads((self.folder / "00000.out").read_text())["corpus_id"]

    def _lane(self) -> None:
        while True:
            with self._lock:
                if self.kills.total() >= self.wanted or time.monotonic() > self.until:
                    return
                self._next += 1
                number = self._next
            self._shoot(number, random.Random(f"{self.seed} {number}"))

    def _shoot(self, number: int, rng: random.Random) -> None:
        target = rng.choices(list(TARGETS), list(TARGETS.values()))[0]
        how = rng.choice(("process", "group"))
        child, run, moment = self._start(target, number, rng)
        if child is None:
            return
        while not child.ended.wait(0.002) and not moment():
            pass
        family = _family(child.pid or 0)
        child.kill(group=how == "group")
        if not child.ended.wait(_JOB_SECONDS):
            self.broken.append(f"{number}: the {target} did not die")
        if run is not None:
            run.code = child.code
        with self._lock:
            if child.code == -9:
                self.kills[target, how] += 1
            else:
                self.early[target] += 1
        self._look_at(number, target, child, family)

    def _look_at(self, number: int, target: str, child: Child, family: set[int]) -> None:
        """What is left of a process, and what it said."""
        deadline = time.monotonic() + _DEATH_SECONDS
        while (left := {pid for pid in family if lives(pid)}) and time.monotonic() < deadline:
            time.sleep(0.02)
        if left:
            self.broken.append(f"{number}: {len(left)} processes of the {target} live on after it")
        err = self.folder / f"{number:05}.err"
        said = err.read_text(errors="replace") if err.exists() else ""  # killed before it made the file
        if "Traceback" in said:
            self.broken.append(f"{number}: the {target} showed a traceback: {said.strip()[-300:]}")
        # a deletion may come too late: another one was first, or the run is going on; of two rebuilds at the
        # same time one is refused
        refused = target == "rebuild" and "Another process is rebuilding" in said
        if child.code not in (-9, 0) and target != "delete" and not refused:
            self.broken.append(f"{number}: the {target} ended with {child.code}: {said.strip()[-300:]}")

    # -- what is started, and when it is killed

    def _start(
        self, target: str, number: int, rng: random.Random
    ) -> tuple[Child | None, Run | None, Callable[[], bool]]:
        if target == "ask":
            run, child = self._ask(number)
            return child, run, self._moment_of_a_run(run, rng)
        if target == "run process":
            run, child = self._run_process(number)
            return child, run, self._moment_of_a_run(run, rng)
        if target == "delete":
            run_id = self._some_closed_run(rng)
            if run_id is None:
                return None, None, lambda: True
            child = self._job(number, "delete", [str(self.home.root), run_id], side=run_id)
            noted = lambda: run_id in user_log.deleted_runs(self.home)  # noqa: E731
            early = rng.random() < 0.3
            return child, None, self._after(rng.uniform(0, 0.2)) if early else self._once(noted, rng, 0.1)
        if target == "app":
            return self._job(number, "app", []), None, self._after(rng.uniform(0, 3))
        words = ["ingest", "--rebuild"] if target == "rebuild" else ["ingest"]
        child = self._job(number, "command", [*words, "--home", str(self.home.root)])
        if target == "rebuild" and rng.random() < 0.5:  # in the middle of its work
            return child, None, self._once((self.home.root / "traces.rebuild.duckdb").exists, rng, 0.3)
        return child, None, self._after(rng.uniform(0, 0.25))

    def _ask(self, number: int) -> tuple[Run, Child]:
        run = self._new_run(number, "ask")
        words = ["ask", question(number), str(self.folder / "note.txt"), *MODELS, "--json"]
        words += ["--home", str(self.home.root)]
        return run, self._job(number, "command", words, side=str(run.side))

    def _run_process(self, number: int) -> tuple[Run, Child]:
        from ui.web.order import Order, StartFiles

        run, ticket = self._new_run(number, "run process"), new_run_id()
        files = StartFiles(self.home, ticket)
        files.request.parent.mkdir(mode=0o700, exist_ok=True)
        files.write_order(Order(question(number), self.corpus_id, MODELS[1], MODELS[3]))
        words = [str(self.home.root), ticket]
        return run, self._job(number, "run_process", words, side=str(run.side))

    def _new_run(self, number: int, target: str) -> Run:
        run = Run(number, target, self.folder / f"{number:05}.side")
        with self._lock:
            self.runs.append(run)
        return run

    def _job(self, number: int, kind: str, words: list[str], side: str = "") -> Child:
        if kind == "delete":
            with self._lock:
                self.deletions.setdefault(side, False)
            side = str(self.folder / f"{number:05}.side")
        env = {
            "RLMSCOPE_HOME": str(self.home.root),
            "OPENAI_BASE_URL": self.server.base_url,
            "OPENAI_API_KEY": "sk-none",
        }
        out = str(self.folder / f"{number:05}")
        return self.nursery.start({"kind": kind, "words": words, "env": env, "out": out, "side": side})

    def _moment_of_a_run(self, run: Run, rng: random.Random) -> Callable[[], bool]:
        """Before the first request, among the requests, or at the end, when the run is taken in."""
        part = rng.random()
        if part < 0.15:
            return self._after(rng.uniform(0, 0.4))
        requests = REQUESTS if part > 0.75 else rng.randint(1, REQUESTS)
        seen = lambda: self.server.count(run.tag) >= requests  # noqa: E731
        return self._once(seen, rng, 0.4 if requests == REQUESTS else 0.05)

    def _after(self, seconds: float) -> Callable[[], bool]:
        moment = time.monotonic() + seconds
        return lambda: time.monotonic() >= moment

    def _once(self, condition: Callable[[], bool], rng: random.Random, most: float) -> Callable[[], bool]:
        """A random time after a condition was first met."""
        wait, met = rng.uniform(0, most), [0.0]

        def reached() -> bool:
            if not met[0] and condition():
                met[0] = time.monotonic()
            return bool(met[0]) and time.monotonic() >= met[0] + wait

        return reached

    def _some_closed_run(self, rng: random.Random) -> str | None:
        from traces.ingest import is_open

        names = sorted(path.stem for path in self.home.spool.glob("*.jsonl"))
        rng.shuffle(names)
        for name in names:
            with suppress(FileNotFoundError), self.home.spool_file(name).open() as spool:
                tag = tag_of(spool.readline())
                if tag and name not in self.deletions and not is_open(self.home, name):
                    self.tags[name] = tag
                    return name
        return None

    def note_deletions(self) -> None:
        """After all: which deletions were said to be done."""
        for path in self.folder.glob("*.side"):
            run_id = path.read_text()
            if run_id in self.deletions:
                self.deletions[run_id] = True


def _family(pid: int) -> set[int]:
    """The processes below one, itself not included (Linux; elsewhere nothing is seen)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def surroundings() -> dict[str, Any]:
    """What a report says about where it was made."""
    return {"processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
