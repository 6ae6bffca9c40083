"""What one finding is, and what the rules that make findings share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from traces.rows import SpanRow
from traces.view import RunView

Severity = Literal["serious", "check", "note"]
#: What a severity means: the answer lacks something or stands on something broken; it may; good to know.
SEVERITIES: Final[tuple[Severity, ...]] = ("serious", "check", "note")
_LISTED: Final = 20  # spans in the JSON form


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a run that a person should know. `words` is a sentence or two and may quote the record's
    texts; `spans` are the ids of the spans it stands on, in order, all of them; `count` how many things were
    found (spans, mostly). `signal` is the kind of signal of `traces.suspects` that it counts, if it does.
    """

    kind: str
    severity: Severity
    words: str
    count: int = 1
    spans: tuple[str, ...] = ()
    signal: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The keys of `rlmscope show --json`; of many spans the first ones and how many there are."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "words": self.words,
            "count": self.count,
            "spans": list(self.spans[:_LISTED]),
            "spans_left_out": max(0, len(self.spans) - _LISTED),
        }


def number_of(count: int, one: str, many: str | None = None) -> str:
    """`1 cell`, `2,000 cells`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def some_of(names: Iterable[str], most: int = 3) -> str:
    """`a, b, c and 12 more`; long names are cut."""
    listed = list(names)
    shown = ", ".join(name if len(name) <= 60 else name[:59] + "…" for name in listed[:most])
    return f"{shown} and {len(listed) - most:,} more" if len(listed) > most else shown


def decoded(attributes: Mapping[str, Any], key: str) -> Any:
    """The structure of a JSON attribute; None when it is absent or not JSON."""
    raw = attributes.get(key)
    try:
        return json.loads(raw) if isinstance(raw, str) else None
    except (ValueError, RecursionError):
        return None


def names_of(span: SpanRow, key: str) -> frozenset[str]:
    """The texts of a JSON list on a span."""
    listed = decoded(span.attributes, key)
    return frozenset(name for name in (listed if isinstance(listed, list) else ()) if isinstance(name, str))


def spans_of(view: RunView, kind: str) -> Iterator[SpanRow]:
    """The spans of a kind, in order."""
    return (span for span in view.spans if span.kind == kind)


def ids(spans: Iterable[SpanRow]) -> tuple[str, ...]:
    """Their ids."""
    return tuple(span.span_id for span in spans)
