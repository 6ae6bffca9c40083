"""How long a server asks to be left alone, in headers that may hold anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from rlm_core.litellm_errors import parse_retry_after


@given(st.integers(-1000, 10**6), st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)))
def test_a_date_counts_from_the_servers_own_clock(seconds: int, date: datetime) -> None:
    now = date.replace(microsecond=0, tzinfo=UTC)
    until = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
    expected = float(max(0, seconds))
    assert (
        parse_retry_after({"Retry-After": until, "Date": format_datetime(now, usegmt=True)}, 0.0) == expected
    )
    assert parse_retry_after({"retry-after": until}, now.timestamp()) == expected


@given(st.text())
def test_no_header_text_breaks_it(text: str) -> None:
    seconds = parse_retry_after({"Retry-After": text, "retry-after-ms": text, "Date": text})
    assert seconds is None or 0.0 <= seconds < float("inf")
