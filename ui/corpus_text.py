"""Corpora as text for a terminal. Names and remarks come from files and pass `ui.visible` first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ui.figures import counted, size
from ui.render import table
from ui.visible import line

if TYPE_CHECKING:
    from rlm_core.corpus import Corpus, CorpusInfo
    from traces.reading import RunSummary

DOCUMENTS_SHOWN: Final = 50  # by default, of a list for people; JSON is never cut
_RUNS_NAMED: Final = 3


def corpora_table(found: Sequence[CorpusInfo]) -> list[str]:
    """One line for each corpus; one whose manifest cannot be used says why."""
    rows = [
        (
            info.corpus_id,
            info.name if info.broken is None else f"(cannot be used: {info.broken})",
            *("?" if info.broken else f"{count:,}" for count in (info.documents, info.chars)),
            "?" if info.broken else size(info.bytes),
            "?" if info.broken else f"{info.problems:,}",
            f"{info.added.astimezone():%Y-%m-%d}",
        )
        for info in found
    ]
    head = ("corpus", "name", "documents", "characters", "size", "left out", "added")
    return table(head, rows, right=frozenset({2, 3, 4, 5}), whole=frozenset({6}))


def added(corpus: Corpus, facts: Mapping[str, Any], look: str) -> Iterator[str]:
    """What came of an add; `look` is the command to go on with."""
    yield line(f"corpus {corpus.corpus_id} ({corpus.name}): {_size(facts)}")
    left_out, remarks = len(corpus.problems), len(facts["problems"]) - len(corpus.problems)
    if left_out:
        are = "are" if left_out > 1 else "is"
        yield f"{counted(left_out, 'file or folder', 'files or folders')} above {are} not in it"
    if remarks:
        yield f"{counted(remarks, 'remark')} above on how documents were read"
    yield f"go on: {look}"


def _size(facts: Mapping[str, Any]) -> str:
    return f"{counted(facts['documents'], 'document')}, {facts['chars']:,} characters, {size(facts['bytes'])}"


def details(
    corpus: Corpus, facts: Mapping[str, Any], runs: Sequence[RunSummary], most: int | None
) -> Iterator[str]:
    """A corpus, its documents (at most so many), and one line for everything that is wrong with it."""
    pages = f", {counted(facts['pages'], 'page')}" if facts["pages"] else ""
    yield line(f"corpus {corpus.corpus_id} ({corpus.name}): {_size(facts)}{pages}")
    yield line("read as " + ", ".join(f"{name} {count:,}" for name, count in facts["readers"].items()))
    yield runs_line(runs)
    yield ""
    listed = facts["document_list"]
    yield from _documents(listed[:most])
    if most is not None and len(listed) > most:
        yield f"{most:,} of {len(listed):,} documents; --limit 0 lists all"
    yield from problem_lines(corpus, facts["changed"])


def _documents(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            str(number),
            document["name"],
            document["kind"],
            document["parts"],
            f"{document['chars']:,}",
            "; ".join(document["remarks"]),
        )
        for number, document in enumerate(listed)
    ]
    return table(
        ("no", "document", "kind", "parts", "characters", "remarks"),
        rows,
        right=frozenset({0, 4}),
        whole=frozenset({2, 3}),
    )


def problem_lines(corpus: Corpus, changed: Sequence[str]) -> Iterator[str]:
    """One line for each file that was left out, and for each that is no longer what was added."""
    if corpus.problems:
        yield ""
        yield "not in it:"
        yield from (line(f"{problem.path}: {problem.message}") for problem in corpus.problems)
    if changed:
        yield ""
        yield f"changed or gone since then ({counted(len(changed), 'file')}), so add the corpus again:"
        yield from (line(name) for name in changed)


def runs_line(runs: Sequence[RunSummary]) -> str:
    """Which runs were asked over a corpus, the newest by name."""
    if not runs:
        return "no recorded run was asked over it"
    named = ", ".join(run.run_id for run in runs[:_RUNS_NAMED])
    more = f" and {len(runs) - _RUNS_NAMED:,} more" if len(runs) > _RUNS_NAMED else ""
    return f"{counted(len(runs), 'recorded run')} asked over it: {named}{more}"
