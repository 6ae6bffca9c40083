"""What the head of a run says of the record it was read from, and what can therefore not be done with it."""

from __future__ import annotations

import streamlit as st

from traces.imported import ImportFacts, import_facts, is_timed, not_again
from traces.reading import RunSummary
from traces.summing import spend_of
from ui.figures import counted
from ui.trust_text import marks_of_calls
from ui.visible import line
from ui.web import plain
from ui.web.notices import note, said
from ui.web.run_record import Record

NOT_AGAIN = "Not for this run: another engine made it, and its record cannot be played again."


def import_badge(run: RunSummary) -> None:
    """A badge that names the format of the record; nothing for a run that was recorded here."""
    if run.imported_from is not None:
        st.badge(f"imported: {_plain_word(run.imported_from)}", color="blue")


def import_note(record: Record) -> None:
    """Source, what is missing in it, what cannot be done; nothing for a run that was recorded here."""
    view = record.view
    facts = record.once(import_facts)
    if facts is None:
        return
    said("Imported", "blue", f"Made by {line(facts.engine)}, read from {line(facts.file)}.")
    untold = list(marks_of_calls(record.once(lambda view: spend_of(view.spans), "spend-of-all")))
    if view.spans and not view.live and not is_timed(view):
        untold.insert(0, "no times in this record: order is known, durations are not")
    _lists(facts, untold)
    if (why := not_again(view.summary)) is not None:
        note(f"{why} What needs that is switched off: twins, tests of other replies, resuming, proofs.")


def _lists(facts: ImportFacts, untold: list[str]) -> None:
    """What the record does not say and what of it is unreadable, folded: it may be long."""
    count = len(facts.missing) + len(untold)
    parts = [f"{counted(count, 'thing')} this record does not say"] if count else []
    parts += [f"{counted(len(facts.problems), 'part')} of it unreadable"] if facts.problems else []
    if not parts:
        return
    with st.expander("; ".join(parts), key="run-import"):
        for sentence in (*facts.missing, *untold):
            plain.text(f"· {line(sentence)}")
        for sentence in facts.problems:
            said("Unreadable", "orange", line(sentence))


def _plain_word(text: str) -> str:
    """A word that is no markdown, whatever a record calls its format."""
    return "".join(one for one in text[:40] if one.isalnum() or one in "-_ .")
