"""What the size of a corpus costs: the first cell over it, its memory, searching it, adding many files."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.limits import Limits
from rlm_core.worker_watch import anonymous_bytes
from tests.bench.rows import Row, cpu
from tests.bench.sandbox import Echo

REPEATS = 3
FILES = 50_000
BLOCK = 4_000_000
SIZES = (("4 MB", BLOCK), ("400 MB", 100 * BLOCK), ("4 GB", 1000 * BLOCK))
SPARSE = 50 << 30
FIRST_CELL = "middle = len(context) // 2\nprint(len(context), len(context[middle:middle + 2000]))"
# One line a search: name, code. `plain` is one pass over the bytes, the least any search can cost.
SEARCHES = (
    ("a word that is not there", "context.search('unfindable')"),
    ("a word and digits, not there", r"context.search(r'receipt \d+', limit=None)"),
    ("one that is not there, case ignored", "context.search('UNFINDABLE', flags=re.I)"),
    ("a class first", r"context.search(r'\b[A-Z]{5}\b 99', limit=None)"),
)
SEARCH_CELL = """
import mmap, re, time
def seconds(work):
    began = time.process_time()
    work()
    return time.process_time() - began
with open({path!r}, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
    plain = min(seconds(lambda: view.find(b"\\x01\\x02")) for _ in range(3))
print(plain, *[seconds(work) for work in ({works},)])
"""


def corpora_figures() -> list[Row]:
    """First cell, memory and search by size; then fifty thousand small files."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        first: dict[str, list[tuple[float, float]]] = {}
        for label, size in SIZES:
            path = _text(place / "plain.txt", size, "invoice {n:07d} of the needle works\n")
            first[label] = [asyncio.run(_first_cell(_facts(path))) for _ in range(REPEATS)]
            if label == "400 MB":
                rows += _search_rows("ASCII", path)
        path.unlink()
        path = _text(place / "accents.txt", 100 * BLOCK, "invoicé {n:07d} of the needle works\n")
        rows += _search_rows("3 % other characters", path)
        path.unlink()
        sparse = place / "sparse.txt"
        with sparse.open("wb") as file:
            file.truncate(SPARSE)
        first["50 GB, sparse"] = [asyncio.run(_first_cell(_facts(sparse))) for _ in range(REPEATS)]
        sparse.unlink()
        return [*_first_rows(first), *rows, *_many_files(place)]


def _first_rows(first: dict[str, list[tuple[float, float]]]) -> list[Row]:
    """Times and memory beside those of the smallest corpus; the target is flat within 20 %."""
    base_time, base_memory = (statistics.median(values) for values in zip(*first["4 MB"], strict=True))
    rows: list[Row] = []
    for label, measured in first.items():
        times, memory = [t / base_time for t, _ in measured], [m / base_memory for _, m in measured]
        rows += [
            (f"first cell over {label} / over 4 MB ({base_time * 1000:.0f} ms)", "x CPU", times, 1.2),
            (f"  anonymous memory / over 4 MB ({base_memory / 1e6:.0f} MB)", "x", memory, 1.2),
        ]
    return rows


def _text(path: Path, size: int, line: str) -> Path:
    """A text of that many bytes: one block of different lines, again and again."""
    block = "".join(line.format(n=n) for n in range(BLOCK // len(line.format(n=0).encode()) + 1)).encode()
    with path.open("wb") as file:
        for _ in range(size // BLOCK):
            file.write(block)
    return path


def _facts(path: Path) -> list[dict[str, Any]]:
    """A document table as an added ASCII corpus has it: adding is not what is measured here."""
    status = path.stat()
    return [
        {"number": 0, "name": path.name, "path": str(path), "bytes": status.st_size, "chars": status.st_size,
         "ascii": True, "sha256": "0" * 64, "mtime_ns": status.st_mtime_ns}
    ]  # fmt: skip


async def _first_cell(documents: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """CPU seconds of a worker that runs one cell, the engine's share included; its anonymous bytes then."""
    used = cpu()
    environment = Environment(documents, Limits(), 1)
    await environment.start()
    try:
        report = await environment.run_cell(0, FIRST_CELL, Echo())
        assert report.exception is None, report.exception
        memory = anonymous_bytes(environment.pid)
    finally:
        await environment.close()
    return cpu() - used, memory


def _search_rows(label: str, path: Path) -> list[Row]:
    """Searches of one text, in CPU seconds against one pass over its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.add([path], Path(folder))
        repeats = [asyncio.run(_searches(corpus)) for _ in range(REPEATS)]
    return [
        (f"search in 400 MB, {label}: {name} / one pass", "x CPU", [t[i] / t[0] for t in repeats], None)
        for i, (name, _) in enumerate(SEARCHES, 1)
    ]


async def _searches(corpus: Corpus) -> list[float]:
    works = ", ".join(f"lambda: {code}" for _, code in SEARCHES)
    cell = SEARCH_CELL.format(path=corpus.documents[0].path, works=works)
    limits = Limits(cell_seconds=600, cell_cpu_seconds=600)
    environment = Environment(corpus.worker_documents(), limits, 1)
    await environment.start()
    try:
        report = await environment.run_cell(0, cell, Echo())
        assert report.exception is None, report.exception
        return [float(word) for word in report.stdout.split()]
    finally:
        await environment.close()


def _many_files(place: Path) -> list[Row]:
    """Fifty thousand small files: what adding them costs beside reading them; it must tell how far it is."""
    source = place / "many"
    for number in range(FILES):
        folder = source / f"{number // 500:03d}"
        if not number % 500:
            folder.mkdir(parents=True)
        (folder / f"note-{number:05d}.txt").write_text(f"Note {number}: nothing of interest.\n" * 20)
    used = cpu()
    for folder, _, names in os.walk(source):
        for name in names:
            Path(folder, name).read_bytes()
    reading = cpu() - used
    told = []
    used = cpu()
    corpus = Corpus.add([source], place / "corpora", progress=lambda state: told.append(state.done_files))
    adding = cpu() - used
    assert len(corpus.documents) == FILES and told[-1] == FILES and told == sorted(told)
    memory = [asyncio.run(_first_cell_of_many(corpus)) for _ in range(REPEATS)]
    return [
        (f"adding {FILES:,} small files / reading them ({len(told):,} progress reports)", "x CPU",
         [adding / reading], None),
        ("  per file", "ms CPU", [adding / FILES * 1000], None),
        (f"first cell over {FILES:,} documents", "s wall", memory, None),
    ]  # fmt: skip


async def _first_cell_of_many(corpus: Corpus) -> float:
    began = time.perf_counter()
    environment = Environment(corpus.worker_documents(), Limits(), 1)
    await environment.start()
    try:
        report = await environment.run_cell(0, "print(len(documents), len(documents[49_999]))", Echo())
        assert report.exception is None, report.exception
        return time.perf_counter() - began
    finally:
        await environment.close()
