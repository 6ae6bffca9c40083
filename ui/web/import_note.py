"""What the head of a run says of the record it was read from, and what can therefore not be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from traces.imported import import_facts, is_foreign, not_again, not_said
from traces.reading import RunSummary
from traces.summing import spend_of
from ui.figures import counted
from ui.trust_text import marks_of_calls
from ui.visible import line
from ui.web import plain, stored
from ui.web.run_record import Record

NOT_AGAIN: Final = "not for a run of another engine, which cannot be played again."

_OFF: Final = (
    "Switched off: twins, tests of other replies or code, proofs, resuming. Comparing, searching, findings, "
    "verdicts, tags, spend and export work as for any run."
)


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
    marks = marks_of_calls(record.once(lambda view: spend_of(view.spans), "spend-of-all"))
    missing, why = [*not_said(view, facts), *marks], not_again(view.summary)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="run-import"):
        st.badge("Imported", color="blue")
        again = "" if why is None else " It cannot be played again."
        again = _absent_corpus(record) or again
        with st.container(width="content"):
            plain.text(f"Made by {line(facts.engine)}, read from {line(facts.file)}.{again}")
        if facts.problems:
            st.badge(f"{counted(len(facts.problems), 'part')} unreadable", color="orange")
        if missing or why or facts.problems:
            with st.popover("What that means", key="run-import-more"):
                _meaning(missing, facts.problems, why)


def _absent_corpus(record: Record) -> str:
    """That the corpus of a run of ours, which could be played again, is not here."""
    run = record.view.summary
    if is_foreign(run) or run.corpus_id is None or stored.is_known(record.home, run.corpus_id):
        return ""
    corpus = line(run.corpus_id)
    return f" Its corpus {corpus} is not in this home: until it is added, the run cannot be played again."


def _meaning(missing: Sequence[str], problems: Sequence[str], why: str | None) -> None:
    if missing:
        st.markdown("**What this record does not say**")
    for words in missing:
        plain.text(f"· {line(words)}")
    if problems:
        st.markdown("**What of it is unreadable**")
    for words in problems:
        plain.text(f"· {line(words)}")
    if why is not None:
        st.markdown("**What cannot be done**")
        plain.text(f"{why} {_OFF}")


def _plain_word(text: str) -> str:
    """A word that is no markdown, whatever a record calls its format."""
    return "".join(one for one in text[:40] if one.isalnum() or one in "-_ .")
