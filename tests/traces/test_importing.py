"""Files, folders and archives taken in: found by content, bounded, and never half."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from tests.traces.records import OTHER, RUN, record_run
from traces.exporters.own import export
from traces.home import Home
from traces.importers import IMPORTERS, importing, names, unpacking
from traces.importers.foreign import ForeignRun, ForeignSpan, reported
from traces.importers.importing import Imported, Refused, import_paths, import_upload
from traces.importers.source import Source
from traces.importers.writing import write_run
from traces.reading import list_runs, load_run
from traces.upkeep import delete_runs

SAMPLES = Path(__file__).parent.parent / "fixtures" / "logs" / "samples"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """An export of two runs, made in another home."""
    other = Home.resolve(tmp_path / "other")
    record_run(other)
    record_run(other, OTHER)
    return export(other, [RUN, OTHER], tmp_path / "runs.jsonl").path


def new(done: list[Imported | Refused]) -> list[str]:
    """The ids of what came in now."""
    return [one.run_id for one in done if isinstance(one, Imported) and one.new]


def why(done: list[Imported | Refused]) -> list[tuple[str, str]]:
    """What was refused, and why."""
    return [(one.file, one.why) for one in done if isinstance(one, Refused)]


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        for name, content in members.items():
            out.writestr(name, content)
    return path


def test_a_file_is_read_whatever_it_is_called(home: Home, exported: Path) -> None:
    exported.rename(exported.with_name("notes.txt"))
    assert new(import_paths(home, [exported.with_name("notes.txt")])) == [RUN, OTHER]


def test_a_folder_is_searched_and_what_is_no_record_is_named(home: Home, exported: Path) -> None:
    folder = exported.parent / "logs"
    (folder / "deep" / "er").mkdir(parents=True)
    exported.rename(folder / "deep" / "er" / "x.jsonl")
    (folder / "README.md").write_text("# no record")
    (folder / "link.jsonl").symlink_to("/etc/hostname")
    done = import_paths(home, [folder])
    assert new(done) == [RUN, OTHER]
    (left,) = (one for one in done if isinstance(one, Refused))
    assert (left.harmless, left.why) == (True, "of no known format: logs/README.md, logs/link.jsonl")


def test_a_folder_of_recursive_flow_is_one_run(home: Home) -> None:
    (run,) = import_paths(home, [SAMPLES / "recursive_flow_run_v0_4_2"])
    assert isinstance(run, Imported)
    assert (run.format, run.question) == ("recursive-flow", "How many days was the pump down?")


def test_archives_give_what_is_in_them(home: Home, exported: Path) -> None:
    packed = gzip.compress(exported.read_bytes())
    once = exported.with_name("runs.jsonl.gz")
    once.write_bytes(packed)
    assert new(import_paths(home, [once])) == [RUN, OTHER]
    archive = zipped(exported.with_name("runs.zip"), {"a/one.gz": packed, "a/read.me": b"no record"})
    done = import_paths(home, [archive])
    assert [(one.file, one.new) for one in done if isinstance(one, Imported)] == [
        ("runs.zip/a/one", False),
        ("runs.zip/a/one", False),
    ]
    assert why(done) == [("runs.zip", "of no known format: runs.zip/a/read.me")]


def test_an_archive_reaches_no_place_outside(home: Home, exported: Path, tmp_path: Path) -> None:
    content = exported.read_bytes()
    names = ["../out.jsonl", "/abs.jsonl", "a/../../up.jsonl", "..\\back.jsonl", "C:/x.jsonl", "ok/run.jsonl"]
    archive = zipped(tmp_path / "bad.zip", dict.fromkeys(names, content))
    with zipfile.ZipFile(archive, "a") as out:
        link = zipfile.ZipInfo("ok/link.jsonl")
        link.external_attr = 0o120777 << 16
        out.writestr(link, "/etc/passwd")
    before = set(tmp_path.rglob("*.jsonl"))
    done = import_paths(home, [archive])
    assert new(done) == [RUN, OTHER]
    refused = dict(why(done))
    assert len(refused) == len(names)
    assert refused["bad.zip/ok/link.jsonl"] == "a link in an archive is not followed"
    assert {
        path for path in set(tmp_path.rglob("*.jsonl")) - before if home.root not in path.parents
    } == set()


def test_archives_are_bounded(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 5)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes(2 << 20)))
    large = zipped(tmp_path / "large.zip", {str(n): bytes(300 << 10) for n in range(4)})
    many = zipped(tmp_path / "many.zip", {str(n): b"" for n in range(6)})
    nested = tmp_path / "nested.gz"
    nested.write_bytes(gzip.compress(gzip.compress(gzip.compress(b"{}"))))
    cut = tmp_path / "cut.zip"
    cut.write_bytes(many.read_bytes()[:-30])
    reasons = [reason for _, reason in why(import_paths(home, [bomb, large, many, nested, cut]))]
    assert all("holds more than" in reason for reason in reasons[:3])
    assert reasons[3] == "archives inside archives inside archives are not opened"
    assert reasons[4] == "it is a zip archive that is damaged or cut off"


def test_archives_inside_an_archive_share_its_bound(
    home: Home, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a small file would unpack to terabytes, each part of it within the bound."""
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1 << 20)
    inner = gzip.compress(bytes(400 << 10))
    members = {f"{n}.gz": inner for n in range(5)} | {"a.jsonl": exported.read_bytes()}
    first, second = (zipped(tmp_path / name, members) for name in ("first.zip", "second.zip"))
    done = import_paths(home, [first, second])
    assert new(done) == [RUN, OTHER], "what is no archive comes in"
    refused = [file for file, reason in why(done) if "holds more than" in reason]
    assert refused == [f"{name}.zip/{n}.gz" for name in ("first", "second") for n in (2, 3, 4)]


def test_a_tar_archive_is_named_as_what_it_is(home: Home, exported: Path, tmp_path: Path) -> None:
    packed = tmp_path / "runs.tgz"
    with tarfile.open(packed, "w:gz") as out:
        out.add(exported, "runs.jsonl")
    done = import_paths(home, [packed])
    assert [reason for _, reason in why(done)] == ["it is a tar archive: unpack it, or give a zip of it"]


def test_a_cut_gz_gives_what_comes_before(home: Home, exported: Path) -> None:
    cut = exported.with_name("cut.gz")
    lines = exported.read_bytes() + os.urandom(200_000)  # what cannot be packed stands behind the runs
    cut.write_bytes(gzip.compress(lines)[:-100_000])
    done = import_paths(home, [cut])
    assert new(done)[0] == RUN
    assert "cut off: what comes after is missing" in why(done)[0][1]


def test_one_bad_file_does_not_keep_the_others_out(home: Home, exported: Path, tmp_path: Path) -> None:
    empty, text = tmp_path / "empty", tmp_path / "text"
    empty.touch()
    text.write_text("hello")
    done = import_paths(home, [tmp_path / "gone", empty, exported, text])
    assert new(done) == [RUN, OTHER]
    assert [file for file, _ in why(done)] == [str(tmp_path / "gone"), "empty", "text"]
    assert "there is no file or folder" in why(done)[0][1]


@pytest.mark.parametrize("where", ["recognises", "read", "later", "import"])
def test_a_reader_with_a_defect_costs_its_own_file_only(
    home: Home, exported: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def broken(_: Any) -> Iterator[ForeignRun]:
        if where == "later":
            yield one_run("first")
        raise ZeroDivisionError("secret details")

    reader = SimpleNamespace(recognises=lambda source: source.name == "odd.jsonl", read=broken)
    if where == "recognises":
        reader.recognises = broken_at_once
    usual = importing._module

    def module(name: str) -> Any:
        if name == "droste" and where == "import":
            raise SyntaxError
        return reader if name == "droste" else usual(name)

    monkeypatch.setattr(importing, "_module", module)
    odd = exported.with_name("odd.jsonl")
    odd.write_text("{}\n")
    done = import_paths(home, [odd, exported])
    assert new(done)[-2:] == [RUN, OTHER]
    assert len(new(done)) == 2 + (where == "later")
    ((file, reason),) = why(done)
    assert file == "odd.jsonl"
    assert "secret details" not in reason
    assert any(
        "secret details" in log.read_text() or where == "import" for log in (home.root / "logs").iterdir()
    )


def broken_at_once(source: Any) -> bool:
    raise ZeroDivisionError("secret details")


def one_run(question: str, **more: Any) -> ForeignRun:
    """A run without times."""
    return ForeignRun("droste", "droste 1", "0", ForeignSpan("run", texts={sc.QUESTION: question}, **more))


def test_the_same_thing_is_taken_in_once_whenever_its_file_was_written(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [one_run("a"), one_run("b")]
    reader = SimpleNamespace(recognises=lambda source: True, read=lambda source: iter(runs))
    monkeypatch.setattr(importing, "_module", lambda name: reader if name == "droste" else None)
    file = tmp_path / "x"
    file.write_text("x")
    first = new(import_paths(home, [file]))
    assert len(first) == 2
    os.utime(file, (1_500_000_000, 1_500_000_000))
    runs.append(one_run("c"))  # the file has grown meanwhile
    again = import_paths(home, [file])
    assert [one.run_id for one in again if isinstance(one, Imported)][:2] == first
    assert len(new(again)) == 1
    delete_runs(home, first[:1])
    third = new(import_paths(home, [file]))
    assert len(third) == 1
    assert third[0] not in first
    assert new(import_paths(home, [file])) == []


def test_many_runs_of_one_file_cost_no_listing_of_the_folder_each(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [one_run(f"question {number}") for number in range(20)]
    file, listings, scandir = read_as(monkeypatch, tmp_path, lambda: iter(runs)), [], os.scandir

    def counted(path: Any = ".") -> Any:
        listings.append(path) if path == home.spool else None
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    assert len(new(import_paths(home, [file]))) == 20
    assert len(listings) == 2  # for the names, and for other states of these runs
    assert new(import_paths(home, [file])) == []


@pytest.mark.parametrize("later", [0, 1])
def test_what_another_import_brings_at_the_same_moment_comes_in_once(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """Also under the name of another second, which a run without times has by the time of its file."""
    runs, others = [one_run(f"question {number}") for number in range(4)], list[str]()

    def meanwhile() -> Iterator[ForeignRun]:
        yield runs[0]
        for run in runs[1:]:
            others.append(write_run(home, run, "elsewhere", WRITTEN_NS + later * 10**9).run_id)
            yield run

    file = read_as(monkeypatch, tmp_path, meanwhile)
    done = [one for one in import_paths(home, [file]) if isinstance(one, Imported)]
    assert [one.new for one in done] == [True, False, False, False]
    assert [one.run_id for one in done[1:]] == others
    assert len(list(home.spool.iterdir())) == 4


def test_imports_at_once_of_one_log_written_at_other_times_bring_each_run_once(
    home: Home, tmp_path: Path
) -> None:
    steps = [{"reasoning": "Look.", "code": "SUBMIT(answer=1)", "output": "FINAL: {'answer': 1}"}]
    lines = [json.dumps({"trajectory": steps, "answer": number}) for number in range(8)]
    logs, done, ready = [tmp_path / f"{number}.jsonl" for number in range(3)], list[Any](), Barrier(3)
    for number, log in enumerate(logs):
        log.write_text("\n".join(lines))
        os.utime(log, ns=(WRITTEN_NS + number * 10**9,) * 2)

    def work(log: Path) -> None:
        ready.wait()
        done.extend(import_paths(home, [log]))

    threads = [Thread(target=work, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 24 and len(new(done)) == 8
    assert {path.stem for path in home.spool.iterdir()} == set(new(done))


def test_an_import_waits_for_others_no_longer_than_is_bearable(
    home: Home, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "_PATIENCE", 0)
    with names.Names(home).alone():
        assert why(import_paths(home, [exported])) == [
            ("runs.jsonl", "Other imports keep this home busy: try again later.")
        ]
    assert new(import_paths(home, [exported])) == [RUN, OTHER]


@pytest.mark.parametrize(
    ("record", "spans"),
    [
        (SAMPLES / "dspy_rlm_prediction_3.4.1.json", "traces.importers.dspy"),
        (SAMPLES / "predict_rlm_0.13.1_run_trace.json", "traces.importers.predict_rlm"),
        (SAMPLES / "official_rlms_0.1.3.jsonl", "traces.importers.rlms"),
        (SAMPLES / "fast_rlm_0.5.0.jsonl", "traces.importers.fast_rlm"),
        (SAMPLES / "recursive_flow_run_v0_4_2", "traces.importers.recursive_flow"),
        (SAMPLES / "droste_0.26.0_trace_abi10.jsonl", "traces.importers.droste"),
        (SAMPLES.parent / "otlp" / "genai.json", "traces.importers.otlp"),
    ],
    ids=lambda value: str(value).rpartition(".")[2] if isinstance(value, str) else "",
)
def test_a_run_that_another_version_read_otherwise_is_named_whatever_its_format(
    home: Home, monkeypatch: pytest.MonkeyPatch, record: Path, spans: str
) -> None:
    (first,) = new(import_paths(home, [record]))
    module = import_module(spans)

    def otherwise(source: Source) -> Iterator[ForeignRun]:
        for run in module.read(source):
            run.top.attributes["found.later"] = "more"
            yield run

    reader = SimpleNamespace(recognises=module.recognises, read=otherwise)
    monkeypatch.setattr(importing, "_module", lambda name: reader if IMPORTERS[name] == spans else None)
    (again,) = import_paths(home, [record])
    assert isinstance(again, Imported) and again.new and again.run_id != first
    assert again.problems[-1].endswith(f"is here as {first}: rlmscope delete {first} removes it.")
    (third,) = import_paths(home, [record])
    assert isinstance(third, Imported) and not third.new and third.run_id == again.run_id


def test_a_trace_that_went_on_is_named_and_equal_beginnings_of_others_are_not(
    home: Home, tmp_path: Path
) -> None:
    trace = json.loads((SAMPLES.parent / "predict_rlm" / "trace.json").read_text())
    half = tmp_path / "half.json"
    half.write_text(json.dumps({**trace, "status": "in_progress", "steps": trace["steps"][:1]}))
    (first,) = new(import_paths(home, [half]))
    (whole,) = import_paths(home, [SAMPLES.parent / "predict_rlm" / "trace.json"])
    assert isinstance(whole, Imported)
    assert any(f"is here as {first}:" in said for said in whole.problems)
    spans = json.loads((SAMPLES.parent / "otlp" / "genai.json").read_text())
    part = spans["resourceSpans"][0]["scopeSpans"][0]["spans"]
    part[1:], rest = [], part[1:]
    half.write_text(json.dumps(spans))
    (first,) = new(import_paths(home, [half]))
    part += rest
    half.write_text(json.dumps(spans))
    (whole,) = import_paths(home, [half])
    assert isinstance(whole, Imported)
    assert any(f"is here as {first}:" in said for said in whole.problems)
    step = {"reasoning": "Look.", "code": "print(1)", "output": "1"}
    half.write_text("\n".join(json.dumps({"trajectory": [step], "answer": n}) for n in range(2)))
    assert [one.problems for one in import_paths(home, [half]) if isinstance(one, Imported)] == [(), ()]


WRITTEN_NS = 1_500_000_000 * 10**9


def read_as(monkeypatch: pytest.MonkeyPatch, folder: Path, runs: Callable[[], Iterator[ForeignRun]]) -> Path:
    """A file, written at a known time, that holds these runs."""
    reader = SimpleNamespace(recognises=lambda source: True, read=lambda source: runs())
    monkeypatch.setattr(importing, "_module", lambda name: reader if name == "droste" else None)
    file = folder / "x"
    file.write_text("x")
    os.utime(file, ns=(WRITTEN_NS, WRITTEN_NS))
    return file


def test_a_format_can_be_forced(home: Home, exported: Path) -> None:
    done = import_paths(home, [exported], "rlms")
    assert not new(done)
    assert len(done) == 1
    with pytest.raises(InputError, match="there is no format 'rlm'; there are rlmscope, otlp"):
        import_paths(home, [exported], "rlm")


def test_uploads_come_in_as_files_and_as_folders(home: Home, exported: Path) -> None:
    folder = SAMPLES / "recursive_flow_run_v0_4_2"
    files = [(exported.name, io.BytesIO(exported.read_bytes())), ("../../x", io.BytesIO(b"y"))]
    files += [
        (f"flow/{path.relative_to(folder)}", io.BytesIO(path.read_bytes()))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    done = import_upload(home, files)
    assert [one.format for one in done if isinstance(one, Imported)] == ["rlmscope"] * 2 + ["recursive-flow"]
    assert why(done) == [("../../x", "'../../x' is no name of a file inside a folder")]
    assert len(list_runs(home)) == 3


def test_numbers_that_cannot_be_are_kept_out_of_the_sums(home: Home, tmp_path: Path) -> None:
    far = 253_402_300_799 * 10**9  # the year 9999
    child = ForeignSpan("iteration", start=reported(1), seconds=reported(-3.0))  # before its run
    late = ForeignSpan("iteration", start=reported(far), seconds=reported(float("inf")))
    run = one_run("q", start=reported(1_700_000_000 * 10**9), seconds=reported(1.0), children=[child, late])
    view = load_run(home, write_run(home, run, "x", 0).run_id)
    assert view.summary.problems == 0
    marks = [(row.trusted["start"], row.trusted["seconds"]) for row in view.spans]
    assert marks == [("reported", "reported"), ("reported", "known_wrong"), ("known_wrong", "known_wrong")]
    assert [row.seconds for row in view.spans] == [1.0, None, None]
    assert all(row.end_ns is not None and row.end_ns >= row.start_ns for row in view.spans)


def test_cells_of_other_engines_get_the_phases_ours_have(home: Home) -> None:
    code = "import re\nx = llm_query('a')"
    cells = [
        ForeignSpan("cell", texts={sc.CODE: code}, children=[ForeignSpan("sub_call")]),
        ForeignSpan("cell", texts={sc.CODE: "print(x)"}),
    ]
    run = one_run("q", children=[ForeignSpan("iteration", children=cells)])
    rows = load_run(home, write_run(home, run, "x", 0).run_id).spans
    assert [(row.kind, row.phase, row.preview) for row in rows if row.kind in ("iteration", "cell")] == [
        ("iteration", '["Aggregate","Decompose"]', "Decompose, Aggregate"),
        ("cell", "Decompose", "x = llm_query('a')"),
        ("cell", "Aggregate", "print(x)"),
    ]


def test_what_killed_imports_left_is_removed_later(home: Home, exported: Path) -> None:
    old, fresh = home.spool / "x.1-a.part", home.spool / "y.2-b.part"
    for part in (old, fresh):
        part.write_text("half")
    os.utime(old, (1, 1))
    import_paths(home, [exported])
    assert sorted(path.name for path in home.spool.glob("*.part")) == [fresh.name]


def test_a_result_is_json(home: Home, exported: Path) -> None:
    first = import_paths(home, [exported])[0]
    assert isinstance(first, Imported)
    assert json.loads(json.dumps(first.to_json())) == {
        "run_id": RUN, "format": "rlmscope", "engine": first.engine, "file": "runs.jsonl", "new": True,
        "question": "How many?", "missing": [], "problems": [],
    }  # fmt: skip


def test_runs_inside_runs_and_code_without_end_stay_small(home: Home) -> None:
    top = inner = ForeignSpan("run")
    for _ in range(2000):
        inner.children.append(ForeignSpan("run"))
        inner = inner.children[0]
    inner.children.append(ForeignSpan("cell", texts={sc.CODE: "(" * 50_000}))
    inner.children.append(ForeignSpan("cell", texts={sc.CODE: "x = 1\n" * 200_000}))
    written = write_run(home, ForeignRun("droste", "droste 1", "0", top), "x", 0)
    assert home.spool_file(written.run_id).stat().st_size < 10 << 20
    view = load_run(home, written.run_id)
    assert view.summary.problems == 0
    assert [row.phase for row in view.spans if row.kind == "cell"] == ["Explore", "Explore"]
    paths = [row.attributes[sc.RUN_PATH] for row in view.spans if row.kind == "run"]
    assert len(set(paths)) == len(paths) == 2001
