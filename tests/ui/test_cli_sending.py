"""Spans are sent from whatever makes a run; a wish to stop ends the wait for a receiver, not the answer."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.support.command import ROOT, start
from tests.support.otlp_receiver import receiver
from traces.home import Home

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
