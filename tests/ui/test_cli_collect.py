"""The command `collect`: refusals, its end, and what a kill leaves."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.command import finish, start
from tests.support.otlp import BEGIN, TRACE, identity
from traces.home import Home

Call = Callable[..., Any]


def test_a_port_that_is_taken_is_said(call: Call) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        called = call("collect", "--port", str(other.getsockname()[1]))
    assert called.code == 2 and "another program listens there; choose one with --port" in called.error


def document(*spans: tuple[int, int | None, str]) -> bytes:
    """OTLP/JSON of spans (number, parent, kind of OpenInference)."""
    listed = [
        {"traceId": TRACE, "spanId": identity(number), "name": kind.lower(),
         **({} if parent is None else {"parentSpanId": identity(parent)}),
         "startTimeUnixNano": str(BEGIN + number), "endTimeUnixNano": str(BEGIN + 10**9),
         "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": kind}}]}
        for number, parent, kind in spans
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}).encode()


def collect(home: Home) -> tuple[subprocess.Popen[str], int]:
    """A collector on a free port."""
    process = start("collect", "--port", "0", "--home", home.root, "--json")
    assert process.stderr is not None
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+) ", process.stderr.readline())
    return process, int(port)


def send(port: int, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.full
def test_what_was_acknowledged_survives_a_kill_and_the_rest_is_a_further_run(call: Call, home: Home) -> None:
    process, port = collect(home)
    assert send(port, document((1, 9, "LLM"), (3, 2, "LLM"))) == 200
    process.kill()
    process.communicate()
    (killed,) = call("runs", "--json").json
    assert (killed["status"], killed["imported_from"], killed["complete"]) == ("interrupted", "otlp", False)
    shown = call("show", killed["run_id"], "--json")
    assert shown.code == 0 and all(identity(number) in shown.out for number in (1, 3))

    process, port = collect(home)
    assert send(port, document((2, 9, "TOOL"), (9, None, "AGENT"))) == 200
    process.send_signal(signal.SIGTERM)
    told = finish(process)
    assert [(run["spans"], run["closed"]) for run in told["runs"]] == [(2, True)]
    assert (told["spans"], told["rejected"]) == (2, 0)
    runs = {run["run_id"]: run["status"] for run in call("runs", "--json").json}
    assert sorted(runs.values()) == ["interrupted", "ok"] and runs[told["runs"][0]["run_id"]] == "ok"
