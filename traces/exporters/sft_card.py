"""The card of a file of training data: what is in it, where it is from, what was left out, what to mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from rlm_core import __version__
from traces.exporters.secrets import REDACTED
from traces.exporters.sft_runs import KINDS, Choice
from traces.finding import number_of
from traces.report_markdown import to_markdown
from traces.report_parts import Heading, Items, Part, Table, Words

if TYPE_CHECKING:
    from traces.exporters.sft import Exported

_FILTERS = (
    "Left out are runs that play others again, that still go on, whose record has gaps, that have no answer, "
    "whose answer was forced by a limit or was accepted though it was marked.",
    "Left out are turns with a failed cell or without a cell, and conversations with such a turn; calls that "
    "failed, were cut off, came back empty, declined, or were called wrong by a person (a call, or what is "
    "above it).",
    "Examples that differ only in letter case, white space and a final full stop stand there once.",
    f"What looks like a key or password was replaced by {REDACTED}; other private data was not looked for.",
)
_LICENCE = (
    "The licence of these texts is unknown. They quote the documents of their runs, and they were written by "
    "the models above: the terms of a provider may forbid to train other models on its output. Check both "
    "before the file is used or passed on."
)


def card(done: Exported, choice: Choice, now: datetime) -> str:
    """The card as Markdown."""
    assert done.path is not None
    return to_markdown(f"Training data: {done.path.name}", _parts(done, choice, now))


def _parts(done: Exported, choice: Choice, now: datetime) -> Iterator[Part]:
    part = "all" if done.estimated == done.tokens else f"{done.estimated:,}"
    how = f"{part} of them estimated" if done.estimated else "as providers reported them"
    size = f"{number_of(done.examples, 'example')} of {number_of(len(done.runs), 'run')}"
    yield Words(
        f"{size}, {done.tokens:,} tokens ({how}), written by rlmscope {__version__} on "
        f"{now:%Y-%m-%d %H:%M} UTC. SHA-256 of the file: {done.sha256}."
    )
    if done.estimated:
        yield Words("Estimates count one token for four characters.")
    yield from _table("Examples", ("what", "examples"), done.kinds)
    yield Items([f"{kind}: {words}" for kind, words in KINDS.items() if done.kinds[kind]])
    yield from _table("Models", ("model", "examples"), done.models)
    yield Heading("How they were chosen")
    yield Items([*_verdict(choice), *_FILTERS])
    yield Words(
        f"{done.duplicates:,} duplicates were left out; {done.redacted:,} strings that look like keys were "
        "replaced."
    )
    yield from _table("Left out of these runs", ("reason", "examples"), done.left_out)
    yield from _table("Runs left out", ("run", "reason"), dict(done.runs_left_out))
    yield Heading("Licence")
    yield Words(_LICENCE)
    yield Heading("Runs")
    yield Items(done.runs)


def _verdict(choice: Choice) -> Iterator[str]:
    if choice.any_verdict:
        yield "Nobody needs to have called a run right: wrong answers may be among them."
    else:
        yield (
            "Runs a person called right, or whose answer is the one a person expected of them or of the run "
            "that a check asked anew in them."
        )
    if choice.include_demo:
        yield "Demo models are included: their texts follow fixed rules, no language model wrote them."
    else:
        yield "Runs in which a demo model answered are left out."


def _table(title: str, head: tuple[str, str], rows: Mapping[str, object]) -> Iterator[Part]:
    if rows:
        yield Heading(title)
        yield Table(head, [(name, str(value)) for name, value in sorted(rows.items())])
