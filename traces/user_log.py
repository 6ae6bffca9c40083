"""What people said about runs: an append-only file of JSON lines, part of the truth beside the spools.

It holds deletions, prices, verdicts and tags (`traces.opinions`). A record is `{"v": 1, "time": ISO 8601 UTC,
"kind": ..., ...}`; unknown kinds are kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rlm_core.errors import RecordError
from traces.home import Home
from traces.spool import APPEND

VERSION = 1
DELETED = "tombstone"
PRICE = "price"  # see `traces.prices`


def append(home: Home, kind: str, facts: Mapping[str, Any]) -> None:
    """Add one record and see it to the disk. Raises RecordError when that fails."""
    record = {"v": VERSION, "time": datetime.now(UTC).isoformat(), "kind": kind, **facts}
    # the leading newline ends a record that a power cut may have torn; readers skip empty lines
    data = b"\n" + json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
    try:
        fd = os.open(home.user_log, APPEND, 0o600)
        try:
            if os.write(fd, data) != len(data):
                raise OSError("the disk is full")
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise RecordError(f"{home.user_log} cannot be written: {error.strerror or error}.") from error


def records(home: Home) -> Iterator[dict[str, Any]]:
    """All readable records in order. Raises RecordError when the file exists but cannot be read."""
    try:
        lines = home.user_log.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(f"{home.user_log} cannot be read: {error.strerror or error}.") from error
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def deleted_runs(home: Home) -> frozenset[str]:
    """Ids of runs that a person deleted; they never come back."""
    return frozenset(
        record["run_id"]
        for record in records(home)
        if record.get("kind") == DELETED and isinstance(record.get("run_id"), str)
    )
