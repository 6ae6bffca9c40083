"""How much a run leaves behind."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from tests.bench.store import iteration_bytes


def test_bytes_per_iteration_depend_neither_on_its_number_nor_on_the_size_of_the_corpus(
    tmp_path: Path,
) -> None:
    few = iteration_bytes(tmp_path / "small", 30, "A small corpus. ")
    early, late = few[1:10], few[-10:-1]
    assert median(late) <= 1.05 * median(early)
    many = iteration_bytes(tmp_path / "large", 8, "A small corpus. " * 250_000)  # 4 MB
    assert median(many[1:-1]) <= 1.05 * median(early)
    # a tiny iteration: its spans, its code and output, and no second copy of anything that was said before
    assert median(early) < 10_000
