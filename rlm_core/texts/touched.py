"""Which parts of the corpus code has looked at: a log that the worker hands to the engine with every call."""

from __future__ import annotations

from collections import deque
from typing import Final

MOST: Final = 1_000  # windows handed over at once
_log: Final[deque[list[int]]] = deque(maxlen=4 * MOST)


def note(document: int, start: int, end: int) -> None:
    """Code was given the characters `start` to `end` of a document; a made-up text has a negative number."""
    if document < 0 or start == end:
        return
    if _log:
        last = _log[-1]
        if last[0] == document and start <= last[2] and last[1] <= end:
            _log[-1] = [document, min(start, last[1]), max(end, last[2])]
            return
    _log.append([document, start, end])


def take_touched() -> list[list[int]]:
    """The windows `[document, start, end]` (code points) noted since the last call of this function, merged.

    A document that is one `str` is noted as a whole, once, when code gets it: what code keeps of it in a
    variable is not noted again. At most 1,000 windows, those noted last.
    """
    taken = [_log.popleft() for _ in range(len(_log))]
    merged: list[list[int]] = []  # with the time of the last note behind it
    for document, start, end, noted in sorted([*window, at] for at, window in enumerate(taken)):
        last = merged[-1] if merged else None
        if last is not None and last[0] == document and start <= last[2]:
            last[2], last[3] = max(last[2], end), max(last[3], noted)
        else:
            merged.append([document, start, end, noted])
    if len(merged) > MOST:
        merged = sorted(sorted(merged, key=lambda window: window[3])[-MOST:])
    return [window[:3] for window in merged]
