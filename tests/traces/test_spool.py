"""Writing and reading spools."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import RecordError
from tests.traces.records import body, end, fin, header, lines, start
from traces.spool import (
    Line,
    SpoolReader,
    SpoolWriter,
    decode,
    encode,
    has_final_record,
    payload_text,
    read_record,
)


def read(path: Path, *, final: bool = False) -> list[Line]:
    return list(SpoolReader(path).read(final=final))


def kinds(found: list[Line]) -> list[str | None]:
    return [None if line.record is None else line.record["kind"] for line in found]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "a.jsonl")
    assert writer.write(header()) and writer.write(body("text")) and writer.write(start("1"))
    writer.finish(5, "ok")
    writer.finish(6, "error")
    found = read(tmp_path / "a.jsonl")
    assert kinds(found) == ["run", "b", "s", "fin"]
    assert [line.record["seq"] for line in found if line.record] == [0, 1, 2, 3]
    assert found[-1].record is not None
    assert found[-1].record["counts"] == {"run": 1, "b": 1, "s": 1}
    assert found[-1].record["status"] == "ok"
    assert has_final_record(tmp_path / "a.jsonl")
    assert not writer.write(start("2")) and writer.problems == 1


@pytest.mark.skipif(os.name == "nt", reason="another system: POSIX modes")
def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    SpoolWriter(tmp_path / "a.jsonl")
    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == 0o600


def test_an_existing_file_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("mine")
    with pytest.raises(FileExistsError):
        SpoolWriter(tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "é \u2028 \x00 \x7f \N{PILE OF POO}",
        "lone \ud800 surrogate",
        "low \udfff\udfff",
        "two that look like one: \ud83d\ude00",
        "both: \N{PILE OF POO} \ud83d\ude00",
        'line\nend\r\nand "quotes"\\',
    ],
)
def test_every_text_survives_exactly(tmp_path: Path, text: str) -> None:
    writer = SpoolWriter(tmp_path / "a.jsonl")
    assert writer.write(body(text)) and writer.write(start("1", name=text)) and writer.problems == 0
    (tmp_path / "a.jsonl").read_bytes().decode("utf-8")  # other programs can read the file
    first, second = read(tmp_path / "a.jsonl")
    assert first.record is not None and payload_text(first.record) == text
    assert second.record is not None and second.record["name"].encode(
        "utf-16", "surrogatepass"
    ) == text.encode("utf-16", "surrogatepass")


def test_numbers_that_are_not_finite_become_words(tmp_path: Path) -> None:
    record = start("1", a={"nan": float("nan"), "list": [float("inf")], "fine": 1.5})
    assert json.loads(encode(record))["a"] == {"nan": "nan", "list": ["inf"], "fine": 1.5}


class Disk:
    """An `os.write` that fails or stops early when told to."""

    def __init__(self) -> None:
        self.next: list[int | OSError] = []
        self._write = os.write

    def __call__(self, fd: int, data: bytes) -> int:
        if not self.next:
            return self._write(fd, data)
        what = self.next.pop(0)
        if isinstance(what, OSError):
            raise what
        return self._write(fd, data[:what])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr("traces.spool.os.write", made)
    return made


def test_failures_are_counted_and_the_next_record_starts_on_a_line_of_its_own(
    tmp_path: Path, disk: Disk
) -> None:
    writer = SpoolWriter(tmp_path / "a.jsonl")
    assert writer.write(header())
    disk.next = [10, OSError(errno.ENOSPC, "full"), 0]
    assert not writer.write(start("1"))
    assert not writer.write(start("2"))
    assert not writer.write(start("3"))
    assert writer.problems == 3
    assert writer.write(start("4"))
    writer.finish(9, "ok")
    found = read(tmp_path / "a.jsonl")
    assert kinds(found) == ["run", None, "s", "fin"]
    assert found[2].record is not None and found[2].record["seq"] == 4
    assert found[3].record is not None and found[3].record["problems"] == 3


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"])
def test_odd_values_are_written_as_their_text(tmp_path: Path, value: Any) -> None:
    writer = SpoolWriter(tmp_path / "a.jsonl")
    assert writer.write(start("1", a={"x": value}))
    (line,) = read(tmp_path / "a.jsonl")
    assert line.record is not None and line.record["a"] == {"x": str(value)}


def test_what_json_cannot_hold_is_counted(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(200_000):
        deep = [deep]
    writer = SpoolWriter(tmp_path / "a.jsonl")
    assert not writer.write(start("1", a={"x": deep}))
    assert writer.write(start("2")) and writer.problems == 1
    while deep:
        deep = deep.pop()


def test_a_record_above_the_limit_is_refused_by_writer_and_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.spool.MAX_RECORD_BYTES", 1000)
    writer = SpoolWriter(tmp_path / "a.jsonl")
    assert not writer.write(body("x" * 2000)) and writer.problems == 1
    (tmp_path / "b.jsonl").write_bytes(lines([header()]) + b"x" * 5000 + b"\n" + lines([start("1")]))
    assert kinds(read(tmp_path / "b.jsonl")) == ["run", None, "s"]


def test_reading_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = lines([header(), start("1"), body("x" * 3_000_000), end("1"), fin()])
    path.write_bytes(b"")
    reader, seen = SpoolReader(path), list[str | None]()
    cuts = [0, 5, 200, 210, 900_000, 2_500_000, len(whole) - 3, len(whole)]
    for begin, stop in zip(cuts, cuts[1:], strict=False):
        with path.open("ab") as file:
            file.write(whole[begin:stop])
        seen += kinds(list(reader.read()))
    assert seen == ["run", "s", "b", "e", "fin"]
    assert reader.offset == len(whole)


def test_a_torn_last_line_counts_only_when_the_writer_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([header(), start("1")])[:-5])
    assert kinds(read(path)) == ["run"]
    assert kinds(read(path, final=True)) == ["run", None]


def test_places_lead_back_to_records(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([header(), body("é" * 10), body("b")]))
    for line in read(path):
        assert read_record(path, line.offset, line.length) == line.record
    assert read_record(path, 10**9, 10) is None
    assert read_record(tmp_path / "none", 0, 10) is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b'"x"',
        b"null",
        b"\xff\xfe",
        b'{"kind":"s"}',
        b'{"seq":1}',
        b'{"seq":-1,"kind":"s"}',
        b'{"seq":1.0,"kind":"s"}',
        b'{"seq":true,"kind":"s"}',
        b'{"seq":1,"kind":7}',
        b'{"seq":99999999999999999999,"kind":"s"}',
        b'{"seq":1,"kind":"s","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"seq":1,"kind":"s","a":' + b"9" * 10_000 + b"}",
    ],
)
def test_a_line_that_is_no_record_is_none(line: bytes) -> None:
    assert decode(line) is None


def test_a_newer_format_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([header(v=2), start("1")]))
    with pytest.raises(RecordError, match=r"a\.jsonl was written by a newer version \(format 2"):
        read(path)


@pytest.mark.parametrize("version", [None, "1", 0, -3, 1.0, True])
def test_an_odd_version_is_read_as_todays(tmp_path: Path, version: Any) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([header(v=version), start("1")]))
    assert kinds(read(tmp_path / "a.jsonl")) == ["run", "s"]


def test_earlier_formats_are_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain itself, with versions that do not exist yet."""
    monkeypatch.setattr("traces.spool.RECORD_VERSION", 3)
    monkeypatch.setattr(
        "traces.spool.UPCASTERS",
        {1: lambda r: {**r, "one": True}, 2: lambda r: {**r, "kind": r["kind"].upper()}},
    )
    (tmp_path / "a.jsonl").write_bytes(lines([header(v=1), start("1")]))
    (tmp_path / "b.jsonl").write_bytes(lines([header(v=3), start("1")]))
    (first, second), (_, plain) = read(tmp_path / "a.jsonl"), read(tmp_path / "b.jsonl")
    assert first.record is not None and first.record["one"]
    assert second.record is not None and second.record["kind"] == "S" and second.record["one"]
    assert plain.record is not None and plain.record["kind"] == "s" and "one" not in plain.record


def test_the_end_of_a_file_tells_whether_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert not has_final_record(path)
    for content, closed in [
        (b"", False),
        (b"\n", False),
        (lines([header()]), False),
        (lines([header(), fin()]), True),
        (lines([header(), fin()])[:-1], False),
        (lines([header(), body("x" * 9000), fin()]), True),
    ]:
        path.write_bytes(content)
        assert has_final_record(path) is closed
