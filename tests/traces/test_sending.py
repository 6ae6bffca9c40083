"""Spans are sent beside the record, as the standard variables say; nothing about that touches the record."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from rlm_core import semconv as sc
from tests.support.otlp_receiver import Receiver, nobody, receiver, refusing
from tests.support.spoken_run import KEY, WORDS, talk
from tests.traces.records import ROOT, RUN, fill_run, home_in, recording
from traces.reading import load_run
from traces.recording import Recording, open_recording
from traces.sending import target

SPANS = 6  # of `fill_run`


@pytest.fixture(autouse=True)
def _forgets_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.sending_spans._silent", set())


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    """What a test gave up, a later one neither hears nor counts."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith(("rlmscope", "Otel")):
            thread.join(30)


@pytest.fixture
def send_to(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the endpoint, and other variables by their names without OTEL_."""

    def setting(endpoint: str, **others: str) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        for name, value in others.items():
            monkeypatch.setenv(f"OTEL_{name}", value)

    return setting


def record(folder: Path) -> Recording:
    """A small closed run."""
    with recording(home_in(folder)) as made:
        fill_run(made)
    return made


def spool_without_process(made: Recording) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in made.spool_path.read_bytes().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("pid", "host")} for line in lines]


def test_the_recorded_spans_arrive_as_they_are_on_record(
    tmp_path: Path, send_to: Callable[..., None]
) -> None:
    with receiver() as there:
        send_to(there.url)
        made = record(tmp_path)
    sent = there.by_id()
    view = load_run(home_in(tmp_path), RUN)
    assert made.unsent is None and sent.keys() == view.by_id.keys() and len(sent) == SPANS
    for span_id, span in view.by_id.items():
        other = sent[span_id]
        assert (other.name, other.parent_id, other.start_ns, other.end_ns) == (
            span.name, span.parent_id, span.start_ns, span.end_ns,
        )  # fmt: skip
        assert other.attributes == {**span.attributes, sc.STATUS: span.status}
        assert other.status == "ok" and other.kind == ("client" if "call" in span.kind else "internal")
        assert other.trace_id == view.summary.trace_id
        assert (other.scope.name, other.scope.resource["service.name"]) == ("rlmscope", "rlmscope")
    ((path, headers),) = there.asked
    assert path == "/v1/traces" and headers["content-type"] == "application/x-protobuf"


def test_headers_compression_and_resource_come_from_the_variables(
    tmp_path: Path, send_to: Callable[..., None]
) -> None:
    with receiver() as there:
        send_to(
            there.url + "/base/", EXPORTER_OTLP_HEADERS=f"authorization=Bearer%20{KEY}",
            EXPORTER_OTLP_COMPRESSION="gzip", SERVICE_NAME="mine", RESOURCE_ATTRIBUTES="team=red,site=a",
        )  # fmt: skip
        made = record(tmp_path)
    ((path, headers),) = there.asked
    assert path == "/base/v1/traces" and headers["content-encoding"] == "gzip"
    assert headers["authorization"] == f"Bearer {KEY}"
    resource = there.spans[0].scope.resource
    assert (resource["service.name"], resource["team"], resource["site"]) == ("mine", "red", "a")
    assert made.unsent is None and KEY.encode() not in made.spool_path.read_bytes()


def test_an_address_for_traces_alone_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", there.url + "/in?token=secret")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        made = record(tmp_path)
        there.status = 401
        again = open_recording(home_in(tmp_path), RUN[:-1] + "e", {})
        again.recorder.start("run", sc.NAME_RUN, None, {}).end()
        again.close("ok")
    assert [path for path, _ in there.asked] == ["/in?token=secret"] * 2 and made.unsent is None
    assert again.unsent == (
        f"1 of 1 span was not sent to {there.url}/in (HTTP 401 Unauthorized); the record here does not "
        "depend on that."
    )


_CAPTURE = "INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def sent_talk(folder: Path, there: Receiver) -> dict[str, list[Any]]:
    """What a receiver gets of `talk`, spans by their kind."""
    with recording(home_in(folder)) as made:
        talk(made)
    assert made.unsent is None
    kinds: dict[str, list[Any]] = {}
    for span in there.spans:
        kinds.setdefault(span.attributes[sc.KIND], []).append(span)
    return kinds


def test_whole_texts_are_put_back_when_that_is_asked_for(
    tmp_path: Path, send_to: Callable[..., None]
) -> None:
    with receiver() as there:
        send_to(there.url, **{_CAPTURE: "span_only"})
        kinds = sent_talk(tmp_path, there)
    (run,), (cell,), (sub,) = kinds["run"], kinds["cell"], kinds["sub_call"]
    assert run.attributes[sc.QUESTION] == run.attributes[sc.OI_INPUT] == "QUESTION " + "q" * 300
    assert run.attributes[sc.ANSWER] == run.attributes[sc.OI_OUTPUT] == "ANSWER"
    assert (cell.attributes[sc.OI_INPUT], cell.attributes[sc.OI_OUTPUT]) == ("CODE", "STDOUT")
    first, second = kinds["root_call"]
    messages = json.loads(second.attributes["gen_ai.input.messages"])
    assert [(message["role"], message["parts"]) for message in messages] == [
        (role, [{"type": "text", "content": text}])
        for role, text in (
            ("system", "SYSTEM"),
            ("user", "FIRST"),
            ("assistant", "REPLY0"),
            ("user", "SECOND"),
        )
    ]
    assert len(json.loads(first.attributes["gen_ai.input.messages"])) == 2
    (reply,) = json.loads(first.attributes["gen_ai.output.messages"])
    assert reply["finish_reason"] == "stop"
    assert [part["content"] for part in reply["parts"]] == ["THOUGHT", "REPLY0"]
    assert second.attributes[sc.OI_INPUT] == "SECOND"
    asked = f"PROMPT {'p' * 160} key=[redacted] end"
    (message,) = json.loads(sub.attributes["gen_ai.input.messages"])
    assert sub.attributes[sc.PROMPT] == message["parts"][0]["content"] == asked
    assert (sub.status, sub.message) == ("error", "PROBLEM")
    assert cell.events[0].attributes["words"] == "EVENT " + "e" * 300
    assert not any(KEY[:10].encode() in body for body in there.bodies)


def test_by_default_only_beginnings_of_texts_leave_and_no_part_of_a_key(
    tmp_path: Path, send_to: Callable[..., None]
) -> None:
    with receiver() as there:
        send_to(there.url)
        kinds = sent_talk(tmp_path, there)
    (sub,), (cell,) = kinds["sub_call"], kinds["cell"]
    assert sc.PROMPT not in sub.attributes and "gen_ai.input.messages" not in sub.attributes
    assert len(sub.attributes[f"{sc.PROMPT}.preview"]) <= 200
    assert len(cell.events[0].attributes["words"]) == 200
    assert not any(KEY[:10].encode() in body for body in there.bodies)


@pytest.mark.parametrize("value", ["NO_CONTENT", "false", "EVENT_ONLY"])
def test_no_word_of_a_text_leaves_when_that_is_asked_for(
    tmp_path: Path, send_to: Callable[..., None], value: str
) -> None:
    with receiver() as there:
        send_to(there.url, **{_CAPTURE: value})
        kinds = sent_talk(tmp_path, there)
    assert not [word for word in WORDS for body in there.bodies if word.encode() in body]
    assert kinds["sub_call"][0].message == "timeout"
    assert f"{sc.PROMPT}.sha256" in kinds["sub_call"][0].attributes


@pytest.mark.parametrize("level", ["", "SPAN_ONLY"])
@pytest.mark.parametrize(
    ("variable", "hidden"),
    [
        ("OPENINFERENCE_HIDE_INPUTS", {"QUESTION", "SYSTEM", "FIRST", "SECOND", "CODE", "EVENT", "PROMPT"}),
        ("OPENINFERENCE_HIDE_OUTPUTS", {"REPLY1", "THOUGHT", "STDOUT", "EVENT", "PROBLEM", "ANSWER"}),
    ],
)
def test_inputs_and_outputs_are_hidden_as_openinference_says(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch, variable: str,
    hidden: set[str], level: str,
) -> None:  # fmt: skip
    monkeypatch.setenv(variable, "true")
    with receiver() as there:
        send_to(there.url, **{_CAPTURE: level})
        sent_talk(tmp_path, there)
    seen = {word for word in WORDS for body in there.bodies if word.encode() in body}
    assert not hidden & seen and seen


def test_a_refused_connection_is_one_notice_and_the_record_is_the_same(
    tmp_path: Path, send_to: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    plain = record(tmp_path / "plain")
    with nobody() as there:
        send_to(there)
        made = record(tmp_path / "sending")
    assert made.unsent == (
        f"6 of 6 spans were not sent to {there}/v1/traces (no connection); the record here does not depend "
        "on that."
    )
    assert spool_without_process(made) == spool_without_process(plain) and made.problems == 0
    assert caplog.records == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 500}, "HTTP 500 Internal Server Error"),
        ({"status": 401}, "HTTP 401 Unauthorized"),
        ({"status": 404, "body": b"<html>"}, "HTTP 404 Not Found"),
        ({"status": 302, "headers": {"Location": "/login"}}, "HTTP 302 Found"),
        ({"content_type": "text/html", "body": b"<html>"}, "a web page answered: this is no OTLP receiver"),
        ({"headers": {"Content-Encoding": "gzip"}, "body": b"garbage"}, "no valid answer"),
    ],
)
def test_whatever_a_receiver_answers_is_one_notice_and_the_record_is_the_same(
    tmp_path: Path, send_to: Callable[..., None], caplog: pytest.LogCaptureFixture, answer: dict[str, Any],
    why: str,
) -> None:  # fmt: skip
    plain = record(tmp_path / "plain")
    with receiver(**answer) as there:
        send_to(there.url)
        made = record(tmp_path / "sending")
    assert made.unsent is not None and f"6 of 6 spans were not sent to {there.url}" in made.unsent
    assert f"({why})" in made.unsent
    assert spool_without_process(made) == spool_without_process(plain)
    assert caplog.records == []


@pytest.mark.parametrize("body", [b"garbage", b"\x0a\xff", b"x" * 200_000])
def test_an_odd_answer_of_a_receiver_that_took_them_is_no_problem(
    tmp_path: Path, send_to: Callable[..., None], body: bytes
) -> None:
    with receiver(body=body) as there:
        send_to(there.url)
        assert record(tmp_path).unsent is None


def test_a_receiver_says_how_many_it_did_not_take(tmp_path: Path, send_to: Callable[..., None]) -> None:
    with receiver(body=refusing(2)) as there:
        send_to(there.url)
        made = record(tmp_path)
    assert made.unsent is not None and made.unsent.startswith("2 of 6 spans were not sent")
    assert "(the receiver refused them)" in made.unsent


def test_a_name_that_nobody_knows_is_one_notice(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    send_to("http://nowhere.invalid:4318")
    made = record(tmp_path)
    assert made.unsent is not None and "http://nowhere.invalid:4318/v1/traces (no connection)" in made.unsent


def test_the_end_of_a_run_does_not_wait_for_a_receiver_that_hangs(
    tmp_path: Path, send_to: Callable[..., None]
) -> None:
    with receiver(hangs=True) as there:
        send_to(there.url, BSP_EXPORT_TIMEOUT="100")
        made = record(tmp_path)
        assert not there.open.is_set()
    assert made.unsent is not None and "(no answer within 0.1 s)" in made.unsent
    assert load_run(home_in(tmp_path), RUN).summary.complete


def test_spans_for_which_the_time_was_too_short_are_said_with_a_remedy(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.sending_export._PART_CHARS", 100)  # a request for each span or two
    monkeypatch.setattr("traces.sending_spans._HURRIED", 0.05)
    with receiver(hangs=True, most=1) as there:
        send_to(there.url, BSP_EXPORT_TIMEOUT="3600000")
        made = open_recording(home_in(tmp_path), RUN, {})
        fill_run(made)
        made.close("ok", hurried=lambda: len(there.bodies) > 1)  # then the first was answered
    assert made.unsent is not None and re.match("[1-5] of 6 spans were not sent", made.unsent)
    assert re.search(
        r"\([\d.]+ s at the end were not enough; OTEL_BSP_EXPORT_TIMEOUT allows more\)", made.unsent
    )


def test_after_one_run_a_receiver_that_hangs_is_hardly_waited_for(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.sending_spans._HURRIED", 0.05)
    with receiver(hangs=True) as there:
        send_to(there.url, BSP_EXPORT_TIMEOUT="300")
        first = record(tmp_path / "1")
        second = record(tmp_path / "2")
    assert first.unsent is not None and "within 0.3 s" in first.unsent
    assert second.unsent is not None and "within 0.05 s" in second.unsent


def test_who_wants_the_end_does_not_wait_for_a_receiver_that_hangs(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when that is wished while the end of a run waits."""
    monkeypatch.setattr("traces.sending_spans._HURRIED", 0.05)
    asked: list[bool] = []

    def hurried() -> bool:
        asked.append(len(asked) > 1)
        return asked[-1]

    with receiver(hangs=True) as there:
        send_to(there.url, BSP_EXPORT_TIMEOUT="3600000")
        made = open_recording(home_in(tmp_path), RUN, {})
        fill_run(made)
        made.close("ok", hurried=hurried)
        assert not there.open.is_set()
    assert asked == [False, False, True] and made.unsent is not None
    assert load_run(home_in(tmp_path), RUN).summary.status == "ok"


def test_a_full_queue_loses_spans_of_the_copy_and_counts_them(
    tmp_path: Path, send_to: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    with receiver(hangs=True) as there:
        send_to(there.url, BSP_MAX_QUEUE_SIZE="10", BSP_MAX_EXPORT_BATCH_SIZE="10", BSP_EXPORT_TIMEOUT="50")
        with recording(home_in(tmp_path)) as made:
            fill_run(made, calls=100)
    assert made.unsent is not None and made.unsent.startswith("104 of 104 spans were not sent")
    assert len(load_run(home_in(tmp_path), RUN).spans) == 104 and caplog.records == []


def test_a_span_that_is_too_large_by_itself_is_said(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.sending_export._PART_CHARS", 100)
    monkeypatch.setattr(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter._DEFAULT_MAX_REQUEST_SIZE", 1000
    )
    with receiver() as there:
        send_to(there.url, **{_CAPTURE: "true"})
        with recording(home_in(tmp_path)) as made:
            run = made.recorder.start("run", sc.NAME_RUN, None, {})
            run.text(sc.QUESTION, "x" * 2000)
            made.recorder.start("cell", sc.NAME_CELL, run, {}).end()
            run.end()
    assert [span.name for span in there.spans] == [sc.NAME_CELL]
    assert made.unsent is not None and "1 of 2 spans were not sent" in made.unsent
    assert "(too large for one request)" in made.unsent


def test_texts_too_large_for_one_request_go_in_several(
    tmp_path: Path, send_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.sending_export._PART_CHARS", 1000)
    with receiver() as there:
        send_to(there.url, **{_CAPTURE: "true"})
        made = record(tmp_path)
    assert made.unsent is None and len(there.bodies) > 1 and len(there.by_id()) == SPANS


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', but this program speaks",
        ),
        ({"EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "but this program speaks http/protobuf alone"),
        ({"EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "is no address that begins with http:// or https://"),
        ({"EXPORTER_OTLP_ENDPOINT": "http://[::1"}, "is no address that begins with http:// or https://"),
        ({_CAPTURE: "everything"}, "it takes NO_CONTENT, SPAN_ONLY or SPAN_AND_EVENT"),
        ({"BSP_EXPORT_TIMEOUT": "soon"}, "it takes a number of milliseconds"),
        ({"EXPORTER_OTLP_HEADERS": f"Bearer {KEY}"}, "OTEL_EXPORTER_OTLP_HEADERS is no list of name=value"),
        ({"EXPORTER_OTLP_COMPRESSION": "zip"}, "OTEL_EXPORTER_OTLP_COMPRESSION takes none, gzip or deflate"),
        ({"EXPORTER_OTLP_TIMEOUT": "soon"}, "OTEL_EXPORTER_OTLP_TIMEOUT a number of seconds"),
        ({"RESOURCE_ATTRIBUTES": "team red"}, "OTEL_RESOURCE_ATTRIBUTES is no list of name=value"),
        ({"BSP_SCHEDULE_DELAY": "often"}, "a setting of the queue (OTEL_BSP_...) is no whole number"),
        ({"BSP_MAX_QUEUE_SIZE": "1"}, "OpenTelemetry's exporter cannot be set up (ValueError)"),
    ],
)
def test_a_setting_that_cannot_work_is_one_sentence_and_stops_no_run(
    tmp_path: Path, send_to: Callable[..., None], caplog: pytest.LogCaptureFixture, settings: dict[str, str],
    words: str,
) -> None:  # fmt: skip
    before = set(threading.enumerate())  # maybe of the test before, about to end
    send_to("http://127.0.0.1:9", **settings)
    made = record(tmp_path)
    assert made.unsent is not None and made.unsent.startswith("No span is sent: ") and words in made.unsent
    assert made.problems == 0 and made.unsent.count("\n") == 0 and KEY not in made.unsent
    assert set(threading.enumerate()) <= before
    assert [said for said in caplog.records if said.thread == threading.get_ident()] == []


@pytest.mark.parametrize(
    "settings", [{"SDK_DISABLED": "true"}, {"TRACES_EXPORTER": "none"}, {"TRACES_EXPORTER": "console"}]
)
def test_sending_can_be_switched_off_and_the_record_stays(
    tmp_path: Path, send_to: Callable[..., None], settings: dict[str, str]
) -> None:
    with receiver() as there:
        send_to(there.url, **settings)
        made = record(tmp_path)
    assert there.asked == [] and made.unsent is None
    assert len(load_run(home_in(tmp_path), RUN).spans) == SPANS


def test_an_exporter_among_others_is_used() -> None:
    found = target(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://u:p@x.example/", "OTEL_TRACES_EXPORTER": "otlp,console"}
    )
    assert found is not None
    assert (found.endpoint, found.shown) == ("https://u:p@x.example/v1/traces", "https://x.example/v1/traces")


def test_a_run_inside_a_traced_application_hangs_below_its_span(
    tmp_path: Path, send_to: Callable[..., None]
) -> None:
    application = TracerProvider(shutdown_on_exit=False).get_tracer("application").start_span("request")
    with receiver() as there:
        send_to(there.url)
        with trace.use_span(application):
            record(tmp_path)
    context = application.get_span_context()
    (top,) = [span for span in there.spans if span.attributes[sc.KIND] == "run"]
    assert (top.trace_id, top.parent_id) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="another system: fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_sends_nothing(tmp_path: Path, send_to: Callable[..., None]) -> None:
    with receiver() as there:
        send_to(there.url)
        with recording(home_in(tmp_path)) as made:
            run = made.recorder.start("run", sc.NAME_RUN, None, {})
            child = os.fork()
            if child == 0:
                run.end()
                made.close("error")
                os._exit(0)
            os.waitpid(child, 0)
            run.end()
        assert made.unsent is None and len(there.by_id()) == 1


def test_logs_of_the_application_itself_are_not_touched(
    tmp_path: Path, send_to: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    send_to("http://127.0.0.1:9")
    record(tmp_path)
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").error("of somebody else")
    assert [entry.message for entry in caplog.records] == ["of somebody else"]


def test_without_an_address_nothing_is_imported_and_no_thread_runs(tmp_path: Path) -> None:
    code = """
import sys, threading
from pathlib import Path
from traces.home import Home
from traces.recording import open_recording
with open_recording(Home.resolve(Path(sys.argv[1])), "20260102T030405-0000abcd", {}) as made:
    made.recorder.start("run", "r", None, {}).end()
print(threading.active_count(), sorted(n for n in sys.modules if n.startswith(("requests", "google.protobuf",
    "opentelemetry.exporter", "opentelemetry.proto", "traces.sending_", "traces.exporters"))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 []\n"
