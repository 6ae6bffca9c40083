"""`make bench-diagnosis`: how often the seeded culprits of wrong answers are found exactly, and at what cost.

Every trial records a good and a bad run of a tree of about 200 calls (`tests.support.trees`) with one to
three faults and diagnoses the bad one against the good one. A trial is exact when the culprits are the
planted spans and no others, the verdict says what they are (sub-calls, cells or both), and their joint patch
makes the answer right; where the root typed the answer, when it reaches the root, and the root, asked again,
then gives the right one. Exit code 1 when a condition stays below the target or a budget was not kept.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.bench.rows import cpu
from tests.support.tree_models import Kind
from tests.support.trees import CONDITIONS, Condition, Pair, plan, record_pair
from traces.diagnose import diagnose
from traces.diagnosis import Diagnosis
from traces.diff import diff
from traces.home import Home
from traces.replay import Replayer
from traces.trial import Budget
from traces.view import SpoolRun

TARGET: Final = 0.95
KINDS: Final[tuple[Kind, ...]] = ("digit", "empty", "truncated", "refused", "format", "present")
#: Live calls: roots that typed an answer are asked again, those of child runs as well; where summaries are
#: made of replies as they came, the sub-model is asked for those of changed notes.
BUDGETS: Final[dict[Condition, Budget]] = {
    "format": Budget(replays=200, live_calls=2),
    "paraphrase": Budget(replays=200, live_calls=2),
    "layers": Budget(replays=200, live_calls=200),
    "children": Budget(replays=200, live_calls=8),
}


@dataclass(frozen=True, slots=True)
class Job:
    """One trial to be made; `size` as in `trees.plan`."""

    condition: Condition
    culprits: int
    seed: int
    kind: Kind = "digit"
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a trial; `cpu` are seconds of the diagnosis alone."""

    job: Job
    typed: bool
    cell: bool
    exact: bool
    proven: bool
    verdict: str
    outcome: str
    asked_again: tuple[str, ...]
    found: int
    missed: int
    wrong: int
    frontier: int
    frontier_cpu: float
    replays: int
    live_calls: int
    kept: bool
    cpu: float
    words: str


def measure(job: Job) -> Result:
    """Record, compare, diagnose."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home.resolve(Path(folder) / "home")
        tree = plan(job.seed, job.condition, job.culprits, kind=job.kind, size=job.size)
        pair = record_pair(home, tree)
        good, bad = (SpoolRun(home, run_id).poll() for run_id in (pair.good, pair.bad))
        used = cpu()
        frontier = diff(bad, good).frontier
        compared = cpu() - used
        budget = BUDGETS[job.condition]
        used = cpu()
        replayer = partial(Replayer, handler=pair.tree.handler("live"))
        found = diagnose(home, bad, good=good, budget=budget, replayer=replayer)
        return _result(job, pair, found, len(frontier), compared, cpu() - used, budget)


def _result(
    job: Job, pair: Pair, found: Diagnosis, frontier: int, compared: float, used: float, budget: Budget
) -> Result:
    program = pair.tree.program
    blamed = {culprit.span_id for culprit in found.culprits}
    return Result(
        job=job,
        typed=program.typed,
        cell=program.fault != "none",
        exact=blamed == pair.culprits and _said(found, pair),
        proven=found.proven,
        verdict=found.verdict,
        outcome=found.outcome,
        asked_again=found.asked_again,
        found=len(blamed & pair.culprits),
        missed=len(pair.culprits - blamed),
        wrong=len(blamed - pair.culprits),
        frontier=frontier,
        frontier_cpu=compared,
        replays=found.spent.replays,
        live_calls=found.spent.live_calls,
        kept=found.spent.replays <= budget.replays and found.spent.live_calls <= budget.live_calls,
        cpu=used,
        words=found.words,
    )


def _said(found: Diagnosis, pair: Pair) -> bool:
    """Whether verdict and outcome are those of the planted faults."""
    program = pair.tree.program
    leaves = len(pair.culprits) - (program.fault != "none")
    verdict = "sub_call" if program.fault == "none" else "sub_call_and_cell" if leaves else "cell"
    if not program.typed:
        return (found.verdict, found.outcome) == (verdict, "fixed")
    reached = (found.verdict, found.outcome) == (verdict, "reached_root")
    return reached and found.asked_again[:1] == ("fixed",)


def measured(jobs: Sequence[Job], processes: int) -> Iterable[Result]:
    """The results of all jobs, in their order, as they come."""
    if processes == 1:
        yield from map(measure, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(measure, jobs)


# -- the table -----------------------------------------------------------------------------------------------

HEAD: Final = (
    f"{'condition':<12}{'k':>2}{'trials':>8}{'exact':>8}{'typed':>8}{'flips':>8}{'cells':>8}{'frontier':>10}"
    f"{'replays (median, p95, most)':>29}{'live calls':>16}{'CPU s':>12}"
)


def line(name: str, culprits: str, results: Sequence[Result]) -> str:
    """One row: shares of the trials they are about; three figures are median, 95th percentile and most."""
    typed, cells = [r for r in results if r.typed], [r for r in results if r.cell]
    flips = [r.asked_again[:1] == ("fixed",) for r in typed]
    said = ["cell" in r.verdict for r in cells]
    return (
        f"{name:<12}{culprits:>2}{len(results):>8}{_share([r.exact for r in results]):>8}"
        f"{_share([r.exact for r in typed]):>8}{_share(flips):>8}{_share(said):>8}"
        f"{statistics.median(r.frontier for r in results):>10.0f}{_three([r.replays for r in results]):>29}"
        f"{_three([r.live_calls for r in results]):>16}{statistics.median(r.cpu for r in results):>12.2f}"
    )


def _share(good: Sequence[bool]) -> str:
    return f"{sum(good) / len(good):.1%}" if good else "-"


def _three(values: Sequence[int]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):g}, {ordered[-(-95 * len(ordered) // 100) - 1]}, {ordered[-1]}"


def report(results: Sequence[Result]) -> list[str]:
    """The table, then what went wrong."""
    lines = [HEAD]
    for condition in dict.fromkeys(result.job.condition for result in results):
        mine = [result for result in results if result.job.condition == condition]
        for culprits in sorted({result.job.culprits for result in mine}):
            lines.append(line(condition, str(culprits), [r for r in mine if r.job.culprits == culprits]))
        lines.append(line(condition, "", mine))
        budget, took = BUDGETS[condition], statistics.median(result.frontier_cpu for result in mine)
        kept = "kept" if all(result.kept for result in mine) else "NOT KEPT"
        lines.append(
            f"{'':<12}budget {budget.replays} replays, {budget.live_calls} live calls: {kept}; the frontier "
            f"took {took * 1000:.0f} ms CPU and no model call"
        )
    for result in results:
        if not result.exact:
            lines.append(
                f"not exact: {result.job}: {result.verdict}, {result.outcome}, {result.asked_again}, "
                f"{result.missed} missed, {result.wrong} wrongly blamed. {result.words[:300]}"
            )
    return lines


def so_far(results: Sequence[Result], trials: int) -> str:
    """How far a measurement is, which takes an hour."""
    return f"{len(results):,} of {trials:,} trials, {sum(result.exact for result in results):,} exact"


def fell_short(results: Sequence[Result]) -> list[str]:
    """Conditions below the target, and budgets that were not kept, in words."""
    words = []
    for condition in dict.fromkeys(result.job.condition for result in results):
        mine = [result for result in results if result.job.condition == condition]
        share = sum(result.exact for result in mine) / len(mine)
        if share < TARGET:
            words.append(f"{condition}: {share:.1%} exact, target {TARGET:.0%}")
        if not all(result.kept for result in mine):
            words.append(f"{condition}: a budget was not kept")
    return words


def jobs_of(
    conditions: Iterable[Condition], culprits: Iterable[int], trials: int, seed: int = 0, kind: Kind = "digit"
) -> list[Job]:
    """All trials, seed by seed: a measurement that is interrupted is a smaller one of the same kind."""
    places = [(condition, k) for condition in conditions for k in culprits]
    return [Job(condition, k, seed + n, kind) for n in range(trials) for condition, k in places]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench-diagnosis", description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100, help="of every condition and number of culprits")
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--culprits", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--kind", choices=KINDS, default="digit", help="what is wrong with a faulty reply")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="a file for all results")
    args = parser.parse_args(argv)
    jobs = jobs_of(args.conditions, args.culprits, args.trials, args.seed, args.kind)
    results: list[Result] = []
    for result in measured(jobs, args.processes):
        results.append(result)
        if args.json:  # after every trial: it may take an hour
            rows: list[dict[str, Any]] = [asdict(result) for result in results]
            args.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
        if len(results) % (len(args.conditions) * len(args.culprits)) == 0:  # a seed in every place
            print(so_far(results, len(jobs)), file=sys.stderr, flush=True)
    print(*report(results), sep="\n")
    short = fell_short(results)
    print(*(short or [f"at least {TARGET:.0%} exact in every condition, budgets kept"]), sep="\n")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
