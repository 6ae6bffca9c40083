"""Runs as OTLP/JSON: what other programs read of it, and what comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from tests.support.spoken_run import KEY, WORDS, facts_of, talk
from tests.traces.records import (
    OTHER,
    RUN,
    end,
    fill_run,
    fin,
    header,
    home_in,
    record_run,
    recording,
    start,
    write_spool,
)
from traces.exporters.otlp import export
from traces.home import Home
from traces.importers.importing import import_paths
from traces.otlp.spans import OtlpSpan, from_json
from traces.reading import load_run
from traces.recording import open_recording


def exported(home: Home, out: Path, *run_ids: str) -> list[OtlpSpan]:
    """The spans of a new file, as a strict reader of OTLP/JSON has them."""
    export(home, run_ids or (RUN,), out)
    data = out.read_bytes()
    message = json_format.Parse(data, ExportTraceServiceRequest())  # by the mapping of protobuf
    received = from_json(data)
    parsed = [span for group in message.resource_spans for part in group.scope_spans for span in part.spans]
    assert received.refused == [] and [span.name for span in parsed] == [span.name for span in received.spans]
    return received.spans


def test_every_span_is_there_with_ids_times_status_and_events(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        talk(made)
    view = load_run(home, RUN)
    sent = {span.span_id: span for span in exported(home, tmp_path / "out.json")}
    assert sent.keys() == view.by_id.keys()
    for span in view.spans:
        other = sent[span.span_id]
        assert (other.trace_id, other.parent_id) == (view.summary.trace_id, span.parent_id)
        assert (other.start_ns, other.end_ns) == (span.start_ns, span.end_ns)
        assert other.status == ("error" if span.status == "error" else "ok")
        assert other.kind == ("client" if "call" in span.kind else "internal")
        assert other.attributes[sc.KIND] == span.kind and other.attributes[sc.STATUS] == span.status
    (cell,) = [span for span in sent.values() if span.attributes[sc.KIND] == "cell"]
    assert [(event.name, event.attributes["words"][:5]) for event in cell.events] == [("notice", "EVENT")]
    (failed,) = [span for span in sent.values() if span.status == "error"]
    assert failed.message == "PROBLEM"


def test_texts_are_whole_and_hold_no_key(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with recording(home) as made:
        talk(made)
    out = tmp_path / "out.json"
    done = export(home, (RUN,), out)
    written = out.read_text(encoding="utf-8")
    assert all(word in written for word in WORDS) and KEY[:10] not in written and done.redacted > 0
    assert done.run_ids == (RUN,) and done.path == out and done.notes == ()


def test_what_is_read_back_is_the_same_tree_with_texts_tokens_and_cost(tmp_path: Path) -> None:
    home, other = home_in(tmp_path), Home.resolve(tmp_path / "other")
    with open_recording(home, OTHER, {}) as made:  # with a trace id of its own
        fill_run(made, calls=3)
    with recording(home) as made:
        talk(made)
    exported(home, tmp_path / "out.json", RUN, OTHER)
    taken = import_paths(other, [tmp_path / "out.json"])
    views = [load_run(other, one.run_id) for one in taken if not hasattr(one, "why")]
    assert len(views) == 2
    before = {run_id: facts_of(load_run(home, run_id)) for run_id in (RUN, OTHER)}
    after = {len(view.spans): facts_of(view) for view in views}
    assert after[len(before[OTHER])] == before[OTHER]
    clean = json.loads(json.dumps(before[RUN]).replace(KEY, "[redacted]"))
    assert json.loads(json.dumps(after[len(clean)])) == clean


def test_spans_without_an_end_say_so(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    write_spool(home, [header(), start("a" * 16, kind="run"), start("b" * 16, "a" * 16)])
    done = export(home, (RUN,), tmp_path / "out.json")
    assert done.notes == (
        f"{RUN}: 2 spans have no end on record; OTLP has no word for that, so each ends where it began, and "
        "rlm.status says what it is.",
    )
    spans = from_json((tmp_path / "out.json").read_bytes()).spans
    assert [(span.attributes[sc.STATUS], span.status, span.start_ns == span.end_ns) for span in spans] == [
        ("lost", "error", True)
    ] * 2


def test_times_that_no_record_holds_are_said_to_keep_only_the_order(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    untimed = {sc.TRUST: json.dumps({"start": "missing", "seconds": "missing"})}
    derived = {sc.TRUST: json.dumps({"start": "derived", "seconds": "reported"})}
    records = [start("a" * 16, kind="run"), start("b" * 16, "a" * 16, a=untimed), end("b" * 16)]
    records += [start("c" * 16, "a" * 16, a=derived), end("c" * 16), end("a" * 16)]
    write_spool(home, [header(), *records, fin()])
    (note,) = export(home, (RUN,), tmp_path / "out.json").notes
    assert note == (
        f"{RUN}: start or duration of 1 span is not on record; OTLP needs both, so what stands there only "
        "keeps the order, and rlm.trust says which they are."
    )


def test_odd_ids_and_values_of_a_record_become_what_otlp_can_hold(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    odd = {
        "text": "a\u2028b\x00",
        "large": 2**70,
        "list": ["a", 1],
        "none": None,
    }
    records = [
        header(trace_id="../../x"),
        start("top/../..", kind="run", name="</script>", a=odd),
        start("inner", "top/../..", a={"number": 1.5, "flag": True}),
        end("inner"),
        end("top/../.."),
    ]
    write_spool(home, records)
    top, inner = exported(home, tmp_path / "out.json")
    assert inner.parent_id == top.span_id and inner.trace_id == top.trace_id
    assert (inner.attributes["number"], inner.attributes["flag"]) == (1.5, True)
    assert top.attributes["text"] == "a\u2028b\x00" and top.attributes["large"] == str(2**70)
    assert (top.name, top.attributes["list"]) == ("</script>", ["a", 1])
    assert "none" not in top.attributes


def test_a_run_that_is_not_there_and_a_place_that_is_taken_are_refused(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    with pytest.raises(InputError):
        export(home, (RUN,), tmp_path / "out.json")
    assert list(tmp_path.glob("*.json")) == []
    record_run(home)
    (tmp_path / "out.json").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export(home, (RUN,), tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == "mine"
