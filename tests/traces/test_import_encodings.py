"""Files in other encodings than UTF-8, with other ends of lines, lists where lines are usual, large ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.outlines import LOGS, SAMPLES, outline, taken
from traces.home import Home
from traces.importers import source
from traces.importers.importing import Imported, Refused, import_paths

RLMS = SAMPLES / "official_rlms_0.1.3.jsonl"
FORMATS = [RLMS, SAMPLES / "fast_rlm_0.5.0.jsonl", SAMPLES / "predict_rlm_0.13.1_run_trace.json"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.resolve(tmp_path / "home")


def read_alike(home: Home, path: Path, whole: Path) -> None:
    """A file gives the run of another one, and that nothing of it is lost."""
    ((_, expected),) = taken(home, whole)
    ((done, view),) = taken(home, path)
    assert outline(view) == outline(expected) and done.problems == () and not done.new


@pytest.mark.parametrize("whole", FORMATS, ids=lambda path: path.name)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_other_encodings_are_read(home: Home, tmp_path: Path, whole: Path, encoding: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(whole.read_text().encode(encoding))
    read_alike(home, tmp_path / "log.jsonl", whole)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_ends_of_lines_are_read(home: Home, tmp_path: Path, end: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(RLMS.read_bytes().replace(b"\n", end.encode()))
    read_alike(home, tmp_path / "log.jsonl", RLMS)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_entries_is_read_as_its_lines_are(home: Home, tmp_path: Path, indent: int | None) -> None:
    entries = [json.loads(line) for line in RLMS.read_text().splitlines()]
    (tmp_path / "log.json").write_text(json.dumps(entries, indent=indent))
    read_alike(home, tmp_path / "log.json", RLMS)


def test_half_a_file_in_another_encoding_gives_its_whole_lines(home: Home, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(RLMS.read_text().encode("utf-16")[:-401])  # ends in half a character
    ((done, view),) = taken(home, tmp_path / "log.jsonl")
    assert view.summary.iterations == 1 and len(done.problems) == 1


@pytest.mark.parametrize("whole", FORMATS, ids=lambda path: path.name)
def test_text_that_is_not_utf8_is_said_to_be(home: Home, tmp_path: Path, whole: Path) -> None:
    text = re.sub(r"^\{", '{"Straße": 1, ', whole.read_text(), flags=re.MULTILINE)
    (tmp_path / "log.jsonl").write_bytes(text.encode("latin-1"))
    (refused,) = import_paths(home, [tmp_path / "log.jsonl"])
    assert isinstance(refused, Refused) and refused.why == "line 1 is not UTF-8"


def test_a_line_that_is_not_utf8_costs_only_itself_and_is_said(home: Home, tmp_path: Path) -> None:
    first, second, third = RLMS.read_bytes().splitlines()
    (tmp_path / "log.jsonl").write_bytes(b"\n".join([first, second, third.replace(b'"6"', b'"\xe4"')]))
    ((done, view),) = taken(home, tmp_path / "log.jsonl")
    assert view.summary.iterations == 1 and "Line 3 of the file is not UTF-8." in done.problems


def test_files_that_are_no_text_are_of_no_known_format(home: Home, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (refused,) = import_paths(home, [tmp_path / "picture.png"])
    assert isinstance(refused, Refused) and "it is no record of a known format" in refused.why


@pytest.mark.parametrize("other", [b"[section]\nname=caf\xe9\n", b"{\\rtf1 caf\xe9}", b"{\xe9\xff\x00\x9c"])
def test_files_beside_records_that_only_begin_like_one_are_of_no_known_format(
    home: Home, tmp_path: Path, other: bytes
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.ini").write_bytes(other)
    (tmp_path / "logs" / "log.jsonl").write_bytes(RLMS.read_bytes())
    run, left = import_paths(home, [tmp_path / "logs"])
    assert isinstance(run, Imported) and isinstance(left, Refused) and left.harmless


@pytest.mark.parametrize(
    "name",
    [
        "dspy/prediction.json", "predict_rlm/trace.json", "otlp/genai.json", "recursive_flow/trace.json",
        "droste/run_printed.json",
    ],
)  # fmt: skip
def test_a_document_that_is_too_large_is_refused_as_that(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = json.loads((LOGS / name).read_text())
    whole = {**whole, "more": "x" * (2 << 20)} if isinstance(whole, dict) else [*whole, "x" * (2 << 20)]
    file = tmp_path / "run.json"
    file.write_text(json.dumps(whole))
    monkeypatch.setattr(source, "LARGEST_DOCUMENT", 1 << 20)
    (refused,) = import_paths(home, [file])
    assert isinstance(refused, Refused) and not refused.harmless
    assert refused.why.startswith("it is larger than 1 MB, too large for one JSON value: save its runs in ")
