"""What `rlmscope export` says to people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ui.figures import counted
from ui.visible import line

if TYPE_CHECKING:
    from traces.exporters.files import ExportDone
    from traces.exporters.sft import Exported

_NAMED: Final = 10  # runs that are named with the reason why they are left out


def done_lines(done: ExportDone, out: Path) -> Iterator[str]:
    """A finished export in lines, `out` as it was asked for."""
    yield f"{counted(len(done.run_ids), 'run')} written"
    if done.redacted:
        yield _replaced(done.redacted)
    yield from map(line, done.notes)
    yield line(f"written: {out}")


def sft_lines(done: Exported) -> Iterator[str]:
    """Training data that was written, in lines."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.kinds.items()))
    part = "all" if done.estimated == done.tokens else f"{done.estimated:,}"
    guess = f", {part} of them estimated" if done.estimated else ""
    yield line(f"{counted(done.examples, 'example')} of {counted(len(done.runs), 'run')}: {kinds}")
    yield f"{done.tokens:,} tokens{guess}"
    if done.duplicates:
        yield f"{counted(done.duplicates, 'duplicate')} left out"
    if done.redacted:
        yield _replaced(done.redacted)
    for reason, count in sorted(done.left_out.items()):
        yield line(f"left out: {counted(count, 'example')}: {reason}")
    yield line(f"written: {done.path}")
    yield line(f"card: {done.card}")


def left_out_lines(done: Exported) -> Iterator[str]:
    """A line for each run that training data leaves out; of many with the same reason one line."""
    by_reason: dict[str, list[str]] = {}
    for run_id, reason in done.runs_left_out:
        by_reason.setdefault(reason, []).append(run_id)
    for reason, run_ids in by_reason.items():
        if len(run_ids) > _NAMED:
            yield line(f"{len(run_ids):,} runs are left out: {reason} (--json names them)")
        else:
            yield from (line(f"{run_id} is left out: {reason}") for run_id in run_ids)


def _replaced(places: int) -> str:
    return f"{counted(places, 'string that looks like a key', 'strings that look like keys')} replaced"
