"""Records that are cut, damaged or hostile: imports end in words, and the home stays readable."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.command import ROOT
from tests.traces.records import RUN, record_run
from traces.exporters.own import export
from traces.home import Home
from traces.importers import IMPORTERS
from traces.importers.importing import Imported, import_paths
from traces.reading import build_tree, list_runs, load_run, span_detail
from ui.cli import cli

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"
SAMPLES = sorted(path for path in LOGS.rglob("*.json*") if path.stat().st_size < 200_000)
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**30, 1e308, -0.0, "", "\ud800", "x" * 5000, [], {}, [[[]]], {"a": {"b": []}},
    "1e400", "NaN", float("inf"), "../../etc/passwd", "9999-12-31T23:59:59", "1970-01-01T00:00:00Z",
)  # fmt: skip
Change = Callable[[bytes, random.Random], bytes]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def beheaded(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randrange(len(data)) :]


def flipped(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 20)):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def shuffled(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def doubled(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    return b"\n".join(line for line in lines for _ in range(rng.randint(0, 2)))


def nested(data: bytes, rng: random.Random) -> bytes:
    """A value replaced by one far deeper than recursion goes."""
    deep = b"[" * 100_000 if rng.random() < 0.5 else b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    at = data.find(b": ", rng.randrange(len(data)))
    return data[: at + 2] + deep + data[at + 2 :]


def hostile(data: bytes, rng: random.Random) -> bytes:
    """Values replaced by ones of another type, or without any sense, and names taken away."""
    return b"\n".join(map(lambda line: _hostile_line(line, rng), data.split(b"\n")))


def _hostile_line(line: bytes, rng: random.Random) -> bytes:
    try:
        value = json.loads(line)
    except ValueError:
        return line
    for _ in range(rng.randint(0, 3)):
        holder = rng.choice(list(_holders(value)) or [value])
        if not isinstance(holder, dict | list) or not holder:
            continue
        key: Any = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        if rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = deepcopy(rng.choice(HOSTILE))
    return json.dumps(value).encode()


def _holders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _holders(item)


CHANGES: tuple[Change, ...] = (cut, beheaded, flipped, shuffled, doubled, nested, hostile)


def whole(path: Path) -> bytes:
    """A sample, as one line where it is one document, so that it can be changed in the same way."""
    data = path.read_bytes()
    return data if path.suffix == ".jsonl" else json.dumps(json.loads(data)).encode()


def check(folder: Path) -> None:
    """Import a folder into a new home, where every run must then be readable, and nothing be half."""
    with tempfile.TemporaryDirectory() as made:
        home = Home.resolve(made)
        done = import_paths(home, [folder])
        crashes = [log.read_text("utf-8") for log in home.root.glob("logs/*")]
        assert not crashes, crashes[0]
        runs = {one.run_id for one in done if isinstance(one, Imported)}
        notices: list[str] = []
        assert {run.run_id for run in list_runs(home, replays=True, warn=notices.append)} == runs
        assert not notices
        assert {path.name for path in home.spool.iterdir()} == {f"{run_id}.jsonl" for run_id in runs}
        for run_id in runs:
            view = load_run(home, run_id)
            build_tree(view.spans)
            assert view.summary.imported_from in IMPORTERS
            for span in view.spans[:50]:
                json.dumps(span_detail(view, span), default=str)
        if runs:
            shown = CliRunner().invoke(cli, ["show", min(runs), "--home", made])
            assert shown.exit_code == 0, shown.output


def damage(samples: Sequence[Path], change: Change, seed: int) -> None:
    """Damage samples in one way, each by chance, and import them together."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        for number, sample in enumerate(samples):
            Path(made, f"{number}{sample.suffix}").write_bytes(change(whole(sample), rng))
        check(Path(made))


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_damaged_sample_of_each_format(own: Path, number: int) -> None:
    damage([own, *(path for path in SAMPLES if path.parent.name == "samples")], CHANGES[number], 1)


@pytest.mark.full
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_damaged_records_of_every_kind(own: Path, change: Change, seed: int) -> None:
    damage([own, own, *SAMPLES], change, seed)


@pytest.mark.full
@given(seed=st.integers(0, 2**32), change=st.sampled_from(CHANGES))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_damaged_folders_of_recursive_flow(seed: int, change: Change) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "run")
        shutil.copytree(LOGS / "samples" / "recursive_flow_run_v0_4_2", folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in rng.sample(files, rng.randint(1, 3)):
            if rng.random() < 0.2:
                path.unlink()
            else:
                path.write_bytes(change(whole(path) or b"{}", rng))
        check(Path(made))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of our own."""
    home = Home.resolve(tmp_path_factory.mktemp("own") / "home")
    record_run(home, calls=4)
    return export(home, [RUN], home.root / "own.jsonl").path


@pytest.mark.full
@pytest.mark.needs("posix")
def test_a_killed_import_leaves_no_half_run(tmp_path: Path) -> None:
    other = Home.resolve(tmp_path / "other")
    ids = [record_run(other, f"20260102T030405-{number:08x}", calls=200) for number in range(12)]
    file = export(other, ids, tmp_path / "runs.jsonl").path
    words = [sys.executable, "-m", "ui", "import", str(file), "--home", str(tmp_path / "home")]
    home, begun = Home.resolve(tmp_path / "home"), time.monotonic()
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    usual = time.monotonic() - begun
    whole_runs = {run.run_id: run for run in list_runs(home)}
    assert sorted(whole_runs) == ids
    partly = 0
    for number in range(6):
        shutil.rmtree(home.root)
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(usual * (0.35 + 0.1 * number))
        process.send_signal(signal.SIGKILL)
        process.wait()
        home.create()
        found = {run.run_id: run for run in list_runs(home)}
        assert found == {run_id: whole_runs[run_id] for run_id in found}
        partly += 0 < len(found) < len(ids)
        again = [one for one in import_paths(home, [file]) if isinstance(one, Imported)]
        assert [one.run_id for one in again if one.new] == sorted(whole_runs.keys() - found.keys())
        assert {run.run_id: run for run in list_runs(home)} == whole_runs
    assert partly
