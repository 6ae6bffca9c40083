"""What people say about runs and their spans: verdicts, expected answers, notes, tags.

Records of the user log (`traces.user_log`), so they outlive every rebuild of the store:
`{"kind": "verdict", "run_id", "span_id"?, "verdict", "expected", "how", "note"}` replaces what was said of
that run or span before; `{"kind": "tags", "run_id", "tags": [...]}` replaces the tags of a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from rlm_core.errors import InputError
from rlm_core.normalise import normalise
from traces import user_log
from traces.home import Home

VERDICT: Final = "verdict"
TAGS: Final = "tags"
VERDICTS: Final = ("right", "wrong", "unsure")
NORMALISED: Final = "normalised"
#: How an answer is compared with the expected one; `number` may carry a tolerance: `number±0.5`.
HOW: Final = (NORMALISED, "exact", "number", "set", "contains", "regex", "judge")
LOOKED_FOR: Final = ("contains", "regex")  # of these, those that look for an expected text in an answer
TEXT_CHARS: Final = 100_000  # the longest expected answer or note
TAG_CHARS: Final = 40
MOST_TAGS: Final = 20
_TOLERANCE: Final = re.compile(r"number±\d{1,12}(\.\d{1,12})?")


@dataclass(frozen=True, slots=True)
class Opinion:
    """What stands about a run or span: one of `VERDICTS` or None, the answer it should have had, how answers
    are compared with it (see `HOW`), a note, and when it was said (ISO 8601, UTC)."""

    verdict: str | None
    expected: str | None
    how: str
    note: str | None
    time: str


@dataclass(frozen=True, slots=True)
class Opinions:
    """Everything people said, the last word about each thing."""

    _said: Mapping[tuple[str, str | None], Opinion] = field(default_factory=dict)
    _tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, run_id: str, span_id: str | None = None) -> Opinion | None:
        """What stands about a run, or about one of its spans; None when nothing does."""
        return self._said.get((run_id, span_id))

    def spans(self, run_id: str) -> dict[str, Opinion]:
        """What stands about spans of a run, by span id."""
        return {span: opinion for (run, span), opinion in self._said.items() if run == run_id and span}

    def tags(self, run_id: str) -> tuple[str, ...]:
        """The tags of a run, in order of the alphabet."""
        return self._tags.get(run_id, ())

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Every tag that some run has, in order of the alphabet."""
        return tuple(sorted({tag for tags in self._tags.values() for tag in tags}))


def opinions(home: Home) -> Opinions:
    """What stands now, read again only when the user log has grown. Raises RecordError if unreadable."""
    try:
        state = home.user_log.stat()
    except OSError:
        return _read(home, 0, 0)
    return _read(home, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=8)
def _read(home: Home, _size: int, _mtime_ns: int) -> Opinions:
    said: dict[tuple[str, str | None], Opinion] = {}
    tags: dict[str, tuple[str, ...]] = {}
    for record in user_log.records(home):
        run_id, span_id = record.get("run_id"), record.get("span_id")
        if not isinstance(run_id, str) or not isinstance(span_id, str | None):
            continue
        if record.get("kind") == VERDICT:
            said.pop((run_id, span_id), None)
            if (opinion := _opinion(record)) is not None:
                said[run_id, span_id] = opinion
        elif record.get("kind") == TAGS:
            tags.pop(run_id, None)
            if found := _tags_of(record.get("tags")):
                tags[run_id] = found
    return Opinions(said, tags)


def judge(
    home: Home,
    run_id: str,
    *,
    span_id: str | None = None,
    verdict: str | None,
    expected: str | None = None,
    how: str = NORMALISED,
    note: str | None = None,
) -> None:
    """Say what stands about a run or span from now on; nothing, without verdict, expected answer and note.

    Ids must be full; whether they exist is the caller's business. Raises InputError for a word that is no
    verdict, a comparison that does not exist or a text that is too long; RecordError when it cannot be
    written.
    """
    if verdict is not None and verdict not in VERDICTS:
        raise InputError(f"a verdict is {', '.join(VERDICTS[:-1])} or {VERDICTS[-1]}, not {verdict[:40]!r}")
    check_how(how, expected or None)
    for name, text in (("expected answer", expected), ("note", note)):
        if text is not None and len(text) > TEXT_CHARS:
            raise InputError(f"the {name} has {len(text):,} characters; at most {TEXT_CHARS:,} can be kept")
    where = {"run_id": run_id} | ({} if span_id is None else {"span_id": span_id})
    what = {"verdict": verdict, "expected": expected or None, "how": how, "note": note or None}
    user_log.append(home, VERDICT, where | what)


def check_how(how: str, expected: str | None) -> None:
    """Raises InputError when answers cannot be compared in this way with this expected answer."""
    if how not in HOW and not _TOLERANCE.fullmatch(how):
        raise InputError(
            f"answers are compared by {', '.join(HOW)} (number±0.5 with a tolerance), not {how[:40]!r}"
        )
    if expected is not None and is_empty(how, expected):
        raise InputError(
            f"{how} needs a text to look for: an expected answer without a letter or digit is in every answer"
        )
    if how == "regex" and expected:
        compiled(expected)


def is_empty(how: str, expected: str) -> bool:
    """Whether an expected answer says nothing that could be looked for in another text."""
    if how == "contains":
        return not normalise(expected)
    return how == "regex" and not expected.strip()


def compiled(pattern: str) -> Any:
    """A pattern of the package `regex`, which reads what Python's `re` reads and can search under a limit of
    time. Raises InputError for what is no pattern.
    """
    regex = import_module("regex")  # it says nothing of its types; only who compares by patterns pays for it
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise InputError(f"the expected answer is no regular expression: {error}") from None


def tag(home: Home, run_id: str, tags: Iterable[str]) -> tuple[str, ...]:
    """Give a run these tags in place of those it had; returns them as they are kept, see `checked_tags`.

    Raises InputError for what cannot be tags, RecordError when it cannot be written.
    """
    kept = checked_tags(tags)
    user_log.append(home, TAGS, {"run_id": run_id, "tags": list(kept)})
    return kept


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are kept: white space is evened out, doubles count once.

    Raises InputError for an empty, long or unprintable tag or too many of them.
    """
    kept = tuple(sorted({" ".join(one.split()) for one in tags}))
    for one in kept:
        if not _is_tag(one):
            shown = one[:TAG_CHARS]
            raise InputError(
                f"a tag has 1 to {TAG_CHARS} printable characters, no comma; {shown!r} does not fit"
            )
    if len(kept) > MOST_TAGS:
        raise InputError(f"a run has at most {MOST_TAGS} tags, not {len(kept)}")
    return kept


def _opinion(record: Mapping[str, Any]) -> Opinion | None:
    """What a record says, as far as it can be used; None when it says nothing (any more)."""
    texts = {name: _text(record.get(name)) for name in ("verdict", "expected", "how", "note", "time")}
    verdict = texts["verdict"] if texts["verdict"] in VERDICTS else None
    if verdict is None and texts["expected"] is None and texts["note"] is None:
        return None
    how = texts["how"] or NORMALISED
    return Opinion(verdict, texts["expected"], how, texts["note"], texts["time"] or "")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _tags_of(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(sorted({one for one in value if isinstance(one, str) and _is_tag(one)}))


def _is_tag(text: str) -> bool:
    return 0 < len(text) <= TAG_CHARS and text.isprintable() and "," not in text
