"""Corpora larger than memory in real workers and real runs: what a cell sees, and what it costs."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from rlm_core.corpus import Corpus
from rlm_core.environment import Environment
from rlm_core.limits import Limits
from rlm_core.texts.files import KEPT_BYTES
from rlm_core.worker_watch import anonymous_bytes
from tests.support.scripted import play
from tests.support.workers import Host

LINE = "a line of no interest to anybody, except for its length of sixty-four\n"
SAME = 4 << 20  # bytes of memory that count as no difference


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of more than 128 MB with one line that matters."""
    path = tmp_path_factory.mktemp("large") / "large.txt"
    block = LINE * 15_000
    with path.open("w") as file:
        for number in range(130):
            file.write(block if number != 77 else "The needle is here: 4711.\n" + block)
    assert path.stat().st_size > 128 << 20
    return path


def facts(path: Path, **more: Any) -> dict[str, Any]:
    """An ASCII document as a worker is told of it."""
    status = path.stat()
    return {
        "number": 0, "name": path.name, "path": str(path), "bytes": status.st_size, "chars": status.st_size,
        "ascii": True, "sha256": "not looked at", "mtime_ns": status.st_mtime_ns, **more,
    }  # fmt: skip


async def cells(documents: list[dict[str, Any]], *codes: str) -> tuple[list[str], int, Host]:
    """What cells print (or the last line of their error), and the anonymous bytes of the worker then."""
    environment, host = Environment(documents, Limits(memory_bytes=1 << 30), 5), Host()
    await environment.start()
    try:
        said = []
        for number, code in enumerate(codes):
            report = await environment.run_cell(number, code, host)
            said.append((report.exception or report.stdout).strip().rsplit("\n", 1)[-1])
        assert environment.pid is not None
        return said, anonymous_bytes(environment.pid), host
    finally:
        await environment.close()


def test_a_text_of_more_than_128_mb_is_asked_about_by_file(large: Path, tmp_path: Path) -> None:
    """As an argument it would be copied, encoded and decoded on its way; a run works on the file itself."""
    answer, script = play(
        "at = context.find('needle')\nreply = llm_query('What is here?', context[at - 4:at + 21])\n"
        "print(len(context), type(context).__name__)\nprint(context)",
        "import re\nfound = re.findall(r'here: (\\d+)', context)\n"
        "FINAL([reply, found, context[-5:], len(next(context.lines()))])",
        corpus=Corpus.add([large], tmp_path),
        sub=lambda request: request.prompt.upper(),
    )
    assert answer.value == ["WHAT IS HERE?\n\nTHE NEEDLE IS HERE: 4711.", ["4711"], "four\n", len(LINE) - 1]
    size = large.stat().st_size
    assert (
        f"{size} MappedText\n<a text of {size:,} characters from 'large.txt' that begins" in script.outputs[0]
    )


@pytest.mark.needs("linux")
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """Sparse files: what takes no room on disk may take none in memory either."""
    code = "print(len(context), context[len(context) // 2:][:3] == '\\0' * 3, context.endswith('\\0'))"
    held = []
    for size in (KEPT_BYTES + 1, 4 << 30, 50 << 30):
        path = tmp_path / f"{size}.txt"
        path.touch()
        os.truncate(path, size)
        [said], memory, _ = asyncio.run(cells([facts(path)], code))
        assert said == f"{size} True True"
        held.append(memory)
    assert max(held) - min(held) < SAME


@pytest.mark.needs("linux")
def test_going_through_a_large_text_holds_a_few_pieces_at_a_time(large: Path) -> None:
    start = "seen, text = 0, context[:70_000_000]"
    through = (
        "for line in text.lines(): seen += len(line) + 1\n"
        "for chunk in text.chunks(500_000): seen -= len(chunk)\n"
        "lines = text.splitlines()\nimport re\n"
        "print(seen, len(lines) == text.count('\\n'), type(text).__name__, "
        "text.split('\\n')[2:4] == lines[2:4], "
        "sum(1 for _ in re.finditer('no interest', text)), len(text.search('needle')))"
    )
    _, before, _ = asyncio.run(cells([facts(large)], start))
    said, after, _ = asyncio.run(cells([facts(large)], start, through))
    assert said[1] == "0 True MappedText True 1000000 0"
    print(after - before)
    assert after - before < 4 * SAME


def test_a_cell_is_told_what_to_do_instead(large: Path) -> None:
    said, _, _ = asyncio.run(
        cells(
            [facts(large)],
            "context.lower()", "f'{context}'", "import re\nre.compile('a').search(context)",
            "''.join([context])", "print(repr(FINAL(context)))", "SHOW_VARS()", "big = context[10:]",
        )
    )  # fmt: skip
    assert "has no .lower(): use .search(regex)" in said[0]
    assert "does not fit into a formatted string: use .search(regex)" in said[1]
    for one in said[2:4]:
        assert "A text this large is no str: use the functions of `re`" in one
    assert said[4:] == ["None", "re: module", ""]


def test_what_a_cell_looked_at_goes_with_its_calls(large: Path) -> None:
    _, _, host = asyncio.run(
        cells([facts(large)], "a, b = context[10:20], context[500:600]\nllm_query(a + b)\nllm_query('x')")
    )
    assert [call.touched for call in host.calls] == [[[0, 10, 20], [0, 500, 600]], []]


def test_an_unchanged_file_is_never_read_to_check_it(large: Path, tmp_path: Path) -> None:
    """Its hash is wrong here, and nobody notices until the time of the file is another one."""
    path = tmp_path / "same.txt"
    path.hardlink_to(large)
    document = facts(path)
    assert asyncio.run(cells([document], "print(context[:6])"))[0] == ["a line"]
    os.utime(path)
    assert "has changed since it was added" in asyncio.run(cells([document], "print(context[:6])"))[0][0]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert asyncio.run(cells([{**document, "sha256": digest}], "print(context[:6])"))[0] == ["a line"]
