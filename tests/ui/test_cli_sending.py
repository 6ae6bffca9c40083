"""Spans are sent from whatever makes a run; a wish to stop ends the wait for a receiver, not the answer."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.command import ROOT, start
from tests.support.otlp_receiver import receiver
from traces.home import Home
from traces.locks import is_held
from traces.reading import load_run
from ui.sources import open_corpus
from ui.web.launch import Order, new_ticket, start_run
from ui.web.order import StartFiles

TICKET = ROOT / "sample_data" / "tickets" / "ticket_0001.txt"


@pytest.mark.full
@pytest.mark.timeout(120)
def test_ctrl_c_while_the_end_of_a_run_waits_for_a_receiver_leaves_the_answer(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_EXPORT_TIMEOUT", "3600000")
    with receiver(hangs=True) as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        process = start("ask", "How many?", TICKET, "--home", home.root, "--json")
        while not any(b'"kind":"fin"' in path.read_bytes() for path in home.spool.glob("*.jsonl")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 0 and json.loads(out)["answer"] is not None
    assert "spans were not sent" in err and "did not end in time" not in err


@pytest.mark.full
@pytest.mark.timeout(120)
def test_a_run_that_the_app_started_is_sent_and_no_header_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20header-of-mine")
    corpus = open_corpus(home, [str(TICKET)]).corpus_id
    with receiver() as there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        run_id = start_run(home, Order("How many?", corpus, "demo/root", "demo/sub"), new_ticket())
        while is_held(StartFiles(home, run_id).lock):
            time.sleep(0.05)
    view = load_run(home, run_id)
    assert view.summary.status == "ok" and there.by_id().keys() == view.by_id.keys()
    assert {headers["authorization"] for _, headers in there.asked} == {"Bearer header-of-mine"}
    files = [Path(folder, name) for folder, _, names in os.walk(home.root) for name in names]
    assert files and not [path for path in files if b"header-of-mine" in path.read_bytes()]
