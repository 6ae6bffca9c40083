"""What the engine's spans look like in the spool, and what a recording promises."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from rlm_core import semconv as sc
from rlm_core.errors import InputError, RecordError
from tests.traces.records import OTHER, RUN, START_NS, fill_run, home_in, record_run, recording
from traces.locks import is_held
from traces.reading import load_run
from traces.recording import open_recording
from traces.upkeep import delete_run


def spooled(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_record_of_a_small_run(tmp_path: Path) -> None:
    with recording(home_in(tmp_path), facts={sc.CORPUS_ID: "c1"}) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        call = made.recorder.start("sub_call", "chat s", run, {sc.CALL_INDEX: 0})
        call.text(sc.RESPONSE, "yes")
        call.event("notice", {"text": "slow"})
        call.end("ok", {sc.CALL_INDEX: 0, sc.USAGE_INPUT: 3, sc.USAGE_OUTPUT: None})
        run.fail("timeout", "too slow")
    head, *rest = spooled(made.spool_path)
    assert head.pop("pid") == os.getpid()
    assert head.pop("host") and head.pop("engine_version")
    assert head == {
        "format": "rlmscope-spool",
        "v": 1,
        "seq": 0,
        "kind": "run",
        "run_id": RUN,
        "trace_id": f"{0xABC:032x}",
        "started_ns": START_NS,
        "facts": {sc.CORPUS_ID: "c1"},
    }
    sha = "8a798890fe93817163b10b5f7bd2ca4d25d84c52739a645a889c173eee7d9d3d"
    assert rest == [
        {
            "seq": 1,
            "kind": "s",
            "span_id": f"{1:016x}",
            "parent_id": None,
            "span_kind": "run",
            "name": "invoke_agent rlm",
            "t": START_NS + 1000,
            "a": {sc.KIND: "run", sc.OI_KIND: "AGENT", sc.DEPTH: 0},
        },
        {
            "seq": 2,
            "kind": "s",
            "span_id": f"{2:016x}",
            "parent_id": f"{1:016x}",
            "span_kind": "sub_call",
            "name": "chat s",
            "t": START_NS + 2000,
            "a": {sc.KIND: "sub_call", sc.OI_KIND: "LLM", sc.CALL_INDEX: 0},
        },
        {"seq": 3, "kind": "b", "sha256": sha, "text": "yes"},
        {
            "seq": 4,
            "kind": "ev",
            "span_id": f"{2:016x}",
            "name": "notice",
            "t": START_NS + 3000,
            "a": {"text": "slow"},
        },
        {
            "seq": 5,
            "kind": "e",
            "span_id": f"{2:016x}",
            "t": START_NS + 4000,
            "status": "ok",
            "a": {
                sc.RESPONSE + ".sha256": sha,
                sc.RESPONSE + ".chars": 3,
                sc.RESPONSE + ".preview": "yes",
                sc.USAGE_INPUT: 3,
            },
        },
        {
            "seq": 6,
            "kind": "e",
            "span_id": f"{1:016x}",
            "t": START_NS + 5000,
            "status": "error",
            "a": {sc.ERROR_TYPE: "timeout", sc.ERROR_MESSAGE: "too slow"},
        },
        {
            "seq": 7,
            "kind": "fin",
            "t": START_NS + 6000,
            "status": "ok",
            "counts": {"run": 1, "s": 2, "b": 1, "ev": 1, "e": 2},
            "problems": 0,
        },
    ]


def test_a_start_stands_before_the_work_begins(tmp_path: Path) -> None:
    made = recording(home_in(tmp_path))
    made.recorder.start("run", sc.NAME_RUN, None, {})
    assert [record["kind"] for record in spooled(made.spool_path)] == ["run", "s"]
    made.close("ok")


def test_foreign_settings_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "OTEL_SDK_DISABLED": "true",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3",
        "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "2",
        "OTEL_ATTRIBUTE_COUNT_LIMIT": "2",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=other",
    }.items():
        monkeypatch.setenv(name, value)
    with recording(home_in(tmp_path)) as made:
        many = {f"key.{number}": "a long value" for number in range(300)}
        made.recorder.start("run", sc.NAME_RUN, None, many).end()
    attributes = spooled(made.spool_path)[1]["a"]
    assert {key: attributes[key] for key in many} == many


def test_a_span_of_the_surrounding_application_is_no_parent(tmp_path: Path) -> None:
    application = TracerProvider(shutdown_on_exit=False).get_tracer("application")
    with recording(home_in(tmp_path)) as made, trace.use_span(application.start_span("request")):
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        made.recorder.start("cell", sc.NAME_CELL, run, {}).end()
        run.end()
    parents = [record["parent_id"] for record in spooled(made.spool_path) if record["kind"] == "s"]
    assert parents == [None, f"{1:016x}"]


def test_threads_write_whole_lines_with_running_numbers(tmp_path: Path) -> None:
    with open_recording(home_in(tmp_path), RUN, {}) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})

        def work(name: int) -> None:
            for number in range(50):
                span = made.recorder.start("sub_call", "chat s", run, {})
                span.text(sc.PROMPT, f"{name} {number} " + "x" * 5000)
                span.end()

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.end()
    assert [record["seq"] for record in spooled(made.spool_path)] == list(range(2 + 8 * 50 * 3 + 2))


def test_a_full_disk_never_reaches_the_engine_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    made = recording(home)
    run = made.recorder.start("run", sc.NAME_RUN, None, {})
    real = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("traces.spool.os.write", full)
    lost = made.recorder.start("cell", sc.NAME_CELL, run, {})
    lost.text(sc.CODE, "x = 1")
    lost.event("notice", {})
    lost.end()
    monkeypatch.setattr("traces.spool.os.write", real)
    run.end()
    made.close("ok")
    assert made.problems == 4
    view = load_run(home, RUN)
    assert [span.kind for span in view.spans] == ["run"]
    assert (view.summary.status, view.summary.problems, view.summary.complete) == ("ok", 4, False)


def test_a_run_id_is_never_used_twice(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    made = recording(home)
    with pytest.raises(RecordError, match="already in use"):
        recording(home)
    assert is_held(home.liveness_lock(RUN))
    made.close("ok")
    with pytest.raises(RecordError, match="already in use"):
        recording(home)
    record_run(home, OTHER)
    delete_run(home, OTHER)
    with pytest.raises(RecordError, match="already in use"):
        recording(home, OTHER)


def test_an_id_that_could_leave_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run id"):
        recording(home_in(tmp_path), "../elsewhere")


@pytest.mark.usefixtures("no_root_rights")
def test_a_folder_without_write_access_is_said(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    home.spool.chmod(0o500)
    with recording(home) as made:
        assert made.unwritable is not None and "Permission denied" in made.unwritable
        made.recorder.start("run", sc.NAME_RUN, None, {}).end()
    assert made.problems == 3 and made.loss == "trace incomplete: 3 records could not be written"
    home.spool.chmod(0o700)
    assert list(home.spool.iterdir()) == []


def test_the_liveness_lock_is_held_until_the_recording_is_closed(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    made = recording(home)
    assert is_held(home.liveness_lock(RUN))
    made.close("ok")
    made.close("error")
    assert not home.liveness_lock(RUN).exists()
    assert spooled(made.spool_path)[-1]["status"] == "ok"


@pytest.mark.parametrize(
    ("raised", "status"), [(None, "ok"), (ValueError, "error"), (KeyboardInterrupt, "cancelled")]
)
def test_leaving_the_block_closes_the_record(
    tmp_path: Path, raised: type[BaseException] | None, status: str
) -> None:
    made = recording(home_in(tmp_path))
    try:
        with made:
            fill_run(made)
            if raised is not None:
                raise raised
    except (ValueError, KeyboardInterrupt):
        pass
    assert spooled(made.spool_path)[-1]["status"] == status


def test_after_the_close_records_only_count(tmp_path: Path) -> None:
    made = recording(home_in(tmp_path))
    late = made.recorder.start("run", sc.NAME_RUN, None, {})
    made.close("cancelled")
    size = made.spool_path.stat().st_size
    late.end()
    made.recorder.payload("late")
    assert made.problems == 2
    assert made.spool_path.stat().st_size == size


@pytest.mark.skipif(not hasattr(os, "fork"), reason="another system: fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    with recording(home_in(tmp_path)) as made:
        run = made.recorder.start("run", sc.NAME_RUN, None, {})
        child = os.fork()
        if child == 0:
            run.end()
            made.close("error")
            os._exit(0)
        os.waitpid(child, 0)
        run.end()
    assert [record["kind"] for record in spooled(made.spool_path)] == ["run", "s", "e", "fin"]


def test_with_fsync_each_record_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("traces.spool._to_disk", synced.append)
    with open_recording(home_in(tmp_path), RUN, {}, fsync=True) as made:
        made.recorder.start("run", sc.NAME_RUN, None, {}).end()
    assert len(synced) == 4
