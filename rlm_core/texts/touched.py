"""Which parts of the corpus code was given: a hint for the engine with every call, a fact of every cell."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

MOST: Final = 1_000  # windows handed over at once
_Window = list[int]  # document, first character, behind the last
_log: Final[deque[_Window]] = deque(maxlen=4 * MOST)
_whole: Final[set[int]] = set()  # documents that were given as one `str`, in this cell
_parts: Final[list[_Window]] = []  # other windows of this cell
_left_out = 0


def note(document: int, start: int, end: int) -> None:
    """Code was given the characters `start` to `end` of a document; a made-up text has a negative number."""
    if document < 0 or start == end:
        return
    _append(_log, document, start, end)
    if document in _whole:
        return
    _append(_parts, document, start, end)
    if len(_parts) > 4 * MOST:
        _shorten()


def note_whole(document: int, chars: int) -> None:
    """Code was given a document of so many characters as one `str`: what it reads of that cannot be seen."""
    if chars:
        _append(_log, document, 0, chars)
        _whole.add(document)


def _append(log: list[_Window] | deque[_Window], document: int, start: int, end: int) -> None:
    if log:
        last = log[-1]
        if last[0] == document and start <= last[2] and last[1] <= end:
            log[-1] = [document, min(start, last[1]), max(end, last[2])]
            return
    log.append([document, start, end])


def take_touched() -> list[_Window]:
    """The windows `[document, start, end]` (code points) noted since the last call of this function, merged.

    A document that is one `str` is noted as a whole, once, when code gets it: what code keeps of it in a
    variable is not noted again. At most 1,000 windows, those noted last.
    """
    merged = _merged([_log.popleft() for _ in range(len(_log))])
    if len(merged) > MOST:
        merged = sorted(sorted(merged, key=lambda window: window[3])[-MOST:])
    return [window[:3] for window in merged]


def take_given() -> dict[str, Any]:
    """What code was given since the last call of this function: the documents given whole, as ranges `[first
    number, last number]`, and parts `[document, start, end]` (code points) of others.

    At most 1,000 of each, the first; `left_out` counts the rest.
    """
    global _left_out
    whole: list[list[int]] = []
    for document in sorted(_whole):
        if whole and whole[-1][1] == document - 1:
            whole[-1][1] = document
        else:
            whole.append([document, document])
    _shorten()
    left_out = _left_out + max(0, len(whole) - MOST) + max(0, len(_parts) - MOST)
    given = {"whole": whole[:MOST], "parts": _parts[:MOST], "left_out": left_out}
    _whole.clear()
    _parts.clear()
    _left_out = 0
    return given


def _shorten() -> None:
    """Merge the windows of this cell; if they are too many even so, the last ones are only counted."""
    global _left_out
    merged = [window[:3] for window in _merged(_parts) if window[0] not in _whole]
    _left_out += max(0, len(merged) - 2 * MOST)
    _parts[:] = merged[: 2 * MOST]


def _merged(taken: list[_Window]) -> list[_Window]:
    """Windows in the order of the corpus, joined where they touch; behind each the time of its last note."""
    merged: list[_Window] = []
    for document, start, end, noted in sorted([*window, at] for at, window in enumerate(taken)):
        last = merged[-1] if merged else None
        if last is not None and last[0] == document and start <= last[2]:
            last[2], last[3] = max(last[2], end), max(last[3], noted)
        else:
            merged.append([document, start, end, noted])
    return merged
