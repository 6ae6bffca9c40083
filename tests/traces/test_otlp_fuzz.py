"""Broken OTLP: whatever stands in a document, it is read or refused in a sentence; its runs are readable."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlm_core.errors import InputError
from traces.home import Home
from traces.importers.otlp import read, recognises
from traces.importers.source import Source
from traces.importers.writing import write_run
from traces.reading import SpoolRun

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "logs" / "otlp").glob("*.json"))
DOCUMENTS = [json.loads(path.read_text("utf-8")) for path in FIXTURES]
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20),
    st.sampled_from(["LLM", "AGENT", "chat", "rlm.kind", "run", "sub_call", "0" * 32, "[{", "{}", "\ud800"]),
    st.just([]), st.just({}), st.just([{}]), st.just({"stringValue": "x"}), st.just({"intValue": "9" * 30}),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


PLACES = [list(places(document)) for document in DOCUMENTS]


@given(data=st.data(), number=st.integers(0, len(DOCUMENTS) - 1))
def test_documents_with_odd_values_in_them_are_read_or_refused(data: st.DataObject, number: int) -> None:
    document = json.loads(json.dumps(DOCUMENTS[number]))
    for place in data.draw(st.lists(st.sampled_from(PLACES[number]), min_size=1, max_size=6)):
        at = document
        try:
            for step in place[:-1]:
                at = at[step]
            at[place[-1]] = deepcopy(data.draw(ODD))  # later examples must not find it changed
        except (KeyError, IndexError, TypeError):  # what stood there is gone already
            continue
    imported(json.dumps(document).encode("utf-8"))


@given(data=st.data(), number=st.integers(0, len(DOCUMENTS) - 1))
def test_documents_that_are_cut_or_flipped_are_read_or_refused(data: st.DataObject, number: int) -> None:
    whole = bytearray(json.dumps(DOCUMENTS[number]).encode("utf-8"))
    for _ in range(data.draw(st.integers(0, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    imported(bytes(whole[: data.draw(st.integers(0, len(whole)))]))


def imported(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_bytes(content)
        source, home = Source(path, "x.json"), Home.resolve(Path(folder) / "home")
        if not recognises(source):
            return
        try:
            runs = list(read(source))
        except InputError as error:
            assert str(error).endswith(".")
            return
        for run in runs:
            run_id = write_run(home, run, "x.json", 0).run_id
            view = SpoolRun(home, run_id).poll()
            # a fact of one of our own spans that cannot be used counts too
            assert view.summary.problems >= len(run.problems)
            assert len(view.spans) == sum(1 for _ in run.top.walk())
