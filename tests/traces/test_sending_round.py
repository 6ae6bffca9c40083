"""Spans sent to a collector of the same home come in as a run of their own, equal to the recorded one."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.support.spoken_run import KEY, facts_of, talk
from tests.traces.records import RUN, home_in, recording
from traces.collecting import Collector
from traces.otlp.receiver import HOST, Receiver
from traces.reading import list_runs, load_run


def test_a_run_that_is_sent_to_the_collector_of_its_own_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_in(tmp_path)
    collector = Collector(home)
    there = Receiver(0, collector.take)
    thread = threading.Thread(target=there.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{HOST}:{there.port}")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    try:
        with recording(home) as made:
            talk(made)
    finally:
        there.shutdown()
        there.server_close()
        thread.join()
        (received,) = collector.close()
    assert made.unsent is None and received.closed
    assert {run.run_id for run in list_runs(home)} == {RUN, received.run_id}
    ours = json.dumps(facts_of(load_run(home, RUN)), default=str).replace(KEY, "[redacted]")
    assert json.loads(json.dumps(facts_of(load_run(home, received.run_id)), default=str)) == json.loads(ours)
