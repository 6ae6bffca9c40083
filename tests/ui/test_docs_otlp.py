"""What ui/docs/otlp.md says is run: its commands, its notices, its variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.sdk import environment_variables as known

from rlm_core import semconv as sc
from rlm_core.sandbox import worker_environment
from tests.support.command import ROOT
from tests.support.otlp_receiver import nobody, receiver
from traces.exporters.otlp_content import CAPTURE, Content
from traces.home import Home
from traces.reading import load_run
from traces.sending import target
from ui.cli import cli

PAGE = (ROOT / "ui" / "docs" / "otlp.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:4318"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SESSION = re.findall(r"^\$ ((?:\w+=\S+ )?rlmscope .*)\n((?:(?!```).*\n)*)", PAGE, re.M)
DOCTOR, ASK, GRPC, EXPORT = SESSION
Call = Callable[..., Any]


def words(line: str) -> list[str]:
    """The words after the program, without a filter behind it."""
    return shlex.split(line.partition("rlmscope ")[2].partition(" |")[0])


def test_a_question_is_sent_to_a_receiver_and_doctor_says_so_before(call: Call, home: Home) -> None:
    with receiver() as there:
        env = {ENDPOINT: there.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=secret"}
        shown = call(*words(DOCTOR[0]), env=env).out
        assert DOCTOR[1].replace(ADDRESS, there.url) in shown
        there.bodies.clear()
        done = call(
            "ask", "How many?", str(ROOT / "sample_data" / "tickets" / "ticket_0001.txt"), "--json", env=env
        )
    assert done.code == 0 and not [notice for notice in done.json["notices"] if "sent" in notice]
    view = load_run(home, done.json["run_id"])
    assert there.by_id().keys() == view.by_id.keys()
    assert {headers["x-key"] for _, headers in there.asked} == {"secret"}
    assert b"secret" not in home.spool_file(view.run_id).read_bytes()


def test_a_receiver_that_is_not_there_is_a_notice_beside_the_answer(call: Call, home: Home) -> None:
    file = str(ROOT / "sample_data" / "tickets" / "ticket_0001.txt")
    with nobody() as there:
        done = call("ask", "How many?", file, "--json", env={ENDPOINT: there})
    spans = len(load_run(home, done.json["run_id"]).spans)
    expected = re.sub(r"\d+ of \d+", f"{spans} of {spans}", ASK[1].replace(ADDRESS, there)).strip()
    assert done.code == 0 and done.json["notices"][-1] == expected
    assert done.err.count(expected) == 1 and "Traceback" not in done.err


def test_doctor_says_what_cannot_work(call: Call) -> None:
    setting, _, _ = GRPC[0].partition(" ")
    name, _, value = setting.partition("=")
    done = call(*words(GRPC[0]), env={ENDPOINT: ADDRESS, name: value})
    assert done.code == 1 and GRPC[1] in done.out
    with nobody() as there:
        assert f"{there}/v1/traces takes no spans: no connection" in call("doctor", env={ENDPOINT: there}).out
    off = call("doctor", env={ENDPOINT: ADDRESS, "OTEL_TRACES_EXPORTER": "none"})
    assert off.code == 0 and "no span is sent, because of OTEL_TRACES_EXPORTER=none" in off.out
    assert "spans stay here" in call("doctor").out


def test_a_run_becomes_a_file_that_is_read_back(
    call: Call, home: Home, written: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_id = "20270115T080000-00000001"
    written(run_id)
    done = call(*words(EXPORT[0]))
    assert done.out.replace(str(tmp_path) + "/", "") == EXPORT[1]
    other = str(tmp_path / "other")
    taken = CliRunner().invoke(cli, ["import", "run.json", "--home", other])
    assert taken.exit_code == 0, taken.output
    ours = load_run(home, run_id)
    shown = CliRunner().invoke(cli, ["runs", "--json", "--home", other])
    assert ours.summary.question in shown.output and str(ours.summary.answer) in shown.output


def test_every_variable_of_the_page_is_one_that_counts() -> None:
    named = set(re.findall(r"\bOTEL_[A-Z_]+", PAGE))
    ours = {CAPTURE, "OTEL_TRACES_EXPORTER"}  # the last is read by a distribution, not by the SDK
    assert named - ours <= {value for value in vars(known).values() if isinstance(value, str)}
    rows = PAGE.partition("| value | texts |")[2].partition("Whole texts")[0]
    levels = {value: Content.asked({CAPTURE: value}).level for value in re.findall(r"`(\w+)`", rows)}
    assert levels == {"NO_CONTENT": "none", "SPAN_ONLY": "whole", "SPAN_AND_EVENT": "whole", "true": "whole"}
    for name in re.findall(r"OPENINFERENCE_\w+", PAGE):
        hidden = Content.asked({name: "true"})
        assert hidden.inputs != hidden.outputs
    found = target({ENDPOINT: ADDRESS})
    assert found is not None and found.patience == 5 and "5,000 by default" in PAGE


def test_generated_code_gets_none_of_the_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in re.findall(r"\bOTEL_[A-Z_]+", PAGE):
        monkeypatch.setenv(name, "secret")
    given = worker_environment(str(tmp_path), 0)
    assert "secret" not in given.values() and not [name for name in given if name.startswith("OTEL")]


def test_the_names_of_spans_and_facts_are_those_of_the_record() -> None:
    for name in (
        sc.NAME_RUN,
        sc.NAME_CELL,
        sc.NAME_BATCH,
        sc.NAME_ATTEMPT,
        sc.OI_KIND,
        sc.PROMPT,
        sc.RESPONSE,
    ):
        assert f"`{name}`" in PAGE
