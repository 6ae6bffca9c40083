"""The wire format: whatever bytes come, there is a message or a `FrameError`."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import frames

_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


def taken(data: bytes) -> dict[str, Any]:
    """The message of one frame, read as both sides do."""
    size = frames.body_size(data[: frames.HEADER.size])
    body = data[frames.HEADER.size :]
    assert len(body) == size
    return frames.decode(body)


@given(st.dictionaries(_TEXT, _JSON, max_size=4), _TEXT)
def test_messages_come_back(message: dict[str, Any], kind: str) -> None:
    message["t"] = kind
    assert taken(frames.encode(message)) == message


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_frame_error(data: bytes) -> None:
    for read in (frames.decode, frames.body_size):
        with contextlib.suppress(frames.FrameError):
            read(data)


@given(_JSON)
def test_any_json_is_a_message_or_a_frame_error(value: Any) -> None:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and isinstance(value.get("t"), str):
        assert frames.decode(body) == value
    else:
        with pytest.raises(frames.FrameError):
            frames.decode(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"t": 5}',
        b'{"t": "x"',
        b'{"t": "x"} {}',
        b"\xff\xfe",
        b'{"t": "x", "a": ' + b"[" * 100_000,
        b'{"t": "x", "a": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda body: str(body[:12]),
)
def test_bodies_that_are_refused(body: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.decode(body)


def test_a_length_over_the_limit_is_refused_before_the_body_comes() -> None:
    assert frames.body_size(struct.pack("<I", frames.MAX_FRAME)) == frames.MAX_FRAME
    for size in (frames.MAX_FRAME + 1, 2**32 - 1):
        with pytest.raises(frames.FrameError):
            frames.body_size(struct.pack("<I", size))


@pytest.mark.parametrize("header", [b"", b"abc", b"abcde"])
def test_a_header_has_its_size(header: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.body_size(header)


def test_a_message_over_the_limit_is_refused_where_it_is_made() -> None:
    fits = {"t": "x", "a": "b" * (frames.MAX_FRAME - 20)}
    assert len(frames.encode(fits)) <= frames.MAX_FRAME + frames.HEADER.size
    with pytest.raises(frames.FrameError):
        frames.encode({"t": "x", "a": "b" * frames.MAX_FRAME})
    assert len(frames.encode_body({"a": "b" * frames.MAX_FRAME})) > frames.MAX_FRAME


def test_the_weight_of_a_slot_counts_texts_and_parts() -> None:
    empty = frames.slot_weight({})
    assert frames.slot_weight({"p": ["abc"]}) - frames.slot_weight({"p": [""]}) == 3
    assert frames.slot_weight({"p": [[0, 0, 10**9]]}) < 1_000, "a place in the corpus is light"
    assert frames.slot_weight({"p": [], "c": [[]] * 1_000}) > empty + 1_000 * 50
