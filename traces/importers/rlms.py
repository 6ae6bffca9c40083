"""Logs of the official engine `rlms`: JSON lines of all its versions, and completions saved as JSON.

A log has a line of settings and one for each iteration; versions before 0.1.0 have no settings, 0.1.0 counts
iterations on where a second run begins. What it says and what not: see the guide to importing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.importers.foreign import NO_CALLS, ForeignRun, ForeignSpan
from traces.importers.rlms_calls import LACKS_CALLS, WRITTEN_HERE, Reading
from traces.importers.rlms_spans import RunBuilder, go_down, starts_anew
from traces.importers.rlms_values import LOCAL_TIME, asks
from traces.importers.source import Source, as_text
from traces.importers.told import unusable
from traces.importers.values import items, table, text

FORMAT: Final = "rlms"
NO_ROOT_USAGE: Final = "rlms logs no usage of its root calls: tokens and cost are those of sub-calls."
ALWAYS_MISSING: Final = (
    "Sub-calls that failed are mostly not in the log: rlms gives their error to the code as a text.",
    "Start times of sub-calls, retries, finish reasons and parameters of calls are not in the log.",
    "Variables are kept by type, size, hash and their first 200 characters; of what was given to read only "
    "length and hash.",
)
NO_QUESTION: Final = "The log holds no question: none was given beside what was to be read."
SUMMED_UP: Final = "Its conversation was summed up on the way; the calls that did so are not in the log."
NO_SETTINGS: Final = "The log has no line of settings: the root model is unknown."
NO_END: Final = "The log ends without an answer: the run was stopped, met a limit, or goes on."
SHARED_USAGE: Final = (
    "rlms gives all calls of a batch the usage of one of them and their mean time: both are known to be "
    "wrong, and not counted."
)
_LOOKED_AT: Final = 20  # entries of a list, to recognise it
_LARGE_FIRST_LINE: Final = re.compile(rb'\s*\{"(type": "iteration", "iteration|iteration)": \d+, "')
#: How the question stands in the messages: from 0.1.2 in the second, before in each prompt of the user.
_QUESTIONS: Final = (
    re.compile(r"Answer the following: (.*)\n\nYour context is a \w+ of \d+ total characters", re.DOTALL),
    re.compile(r'to answer the original prompt: "(.*)"\.\n\nContinue using the REPL', re.DOTALL),
)


def recognises(source: Source) -> bool:
    """Whether a file holds lines or documents as rlms writes them."""
    if source.is_folder:
        return False
    first = source.first_lines(1)
    if first:
        return _part(first[0]) is not None
    return bool(_LARGE_FIRST_LINE.match(source.head())) or any(map(_part, _whole(source)[:_LOOKED_AT]))


def read(source: Source) -> Iterator[ForeignRun]:
    """The runs of a log, one after the other. Raises InputError when it cannot be read or holds no run."""
    log, some = _Log(), False
    lines = source.lines()
    for run in log.runs((line.number, line.value) for line in lines):
        some = True
        yield run
    if not some:
        for run in _Log().runs(list(enumerate(_whole(source), 1))):
            some = True
            yield run
    if not some:
        raise InputError(f"{source.name} holds no iteration: rlms writes one at the end of each turn.")


def _whole(source: Source) -> list[Any]:
    """The entries of a file that is one JSON document on several lines: one entry, or a list of them."""
    document = source.document() if source.head().lstrip()[:1] in (b"{", b"[") else None
    return document if isinstance(document, list) else [] if document is None else [document]


def _part(value: Any) -> str | None:
    """What an entry of a log is; None for what is no entry."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("prompt"), list | str) and isinstance(value.get("code_blocks"), list):
        return "iteration"
    if "root_model" in value and ("environment_type" in value or "max_iterations" in value):
        return "metadata"
    if isinstance(value.get("iterations"), list) and "run_metadata" in value:
        return "trajectory"
    inside = table(value.get("metadata"))
    if "usage_summary" in value and isinstance(inside.get("iterations"), list):
        return "completion"
    return None


class _Log:
    """Splits the entries of a log into its runs."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._metadata: Mapping[str, Any] = {}
        self._builder: RunBuilder | None = None
        self._key = sha256()
        self._stem: str | None = None  # of the run: its first iteration
        self._counted: int | None = None
        self._problems: list[str] = []

    def runs(self, entries: Iterator[tuple[int, Any]] | list[tuple[int, Any]]) -> Iterator[ForeignRun]:
        """The runs of numbered entries."""
        for number, entry in entries:
            part = _part(entry)
            if part == "iteration":
                if self._is_new(entry):
                    yield from self._ended()
                self._add(entry)
            elif part == "metadata":
                yield from self._ended()
                self._metadata = {key: entry[key] for key in entry if key not in ("type", "timestamp")}
            elif part is not None:
                yield from self._ended()
                yield from self._kept_in_memory(entry)
            else:
                self._problems.append(f"Line {number} is no entry of a log, or is cut off; it was left out.")
        yield from self._ended()

    def _is_new(self, entry: Mapping[str, Any]) -> bool:
        counter, before = entry.get("iteration"), self._counted
        self._counted = counter if type(counter) is int else None
        if self._builder is None or self._builder.answered or starts_anew(entry):
            return True
        return before is not None and self._counted is not None and self._counted <= before

    def _add(self, entry: Mapping[str, Any]) -> None:
        if self._builder is None:
            self._builder = RunBuilder(ForeignSpan("run"), self._reading, self._metadata)
        self._note(entry)
        self._builder.add(entry)
        go_down(self._reading)

    def _note(self, entry: Mapping[str, Any]) -> None:
        """Put what makes an iteration this one into the key of its run."""
        blocks = [table(block) for block in items(entry.get("code_blocks"))]
        cells = [[block.get("code"), table(block.get("result")).get("stdout")] for block in blocks]
        said = [entry.get(key) for key in ("timestamp", "iteration", "response", "final_answer")]
        self._key.update(as_text([*said, cells]).encode("utf-8", "surrogatepass"))
        self._stem = self._stem or self._key.hexdigest()

    def _kept_in_memory(self, entry: Mapping[str, Any]) -> Iterator[ForeignRun]:
        """A completion, or its trajectory, as the engine returns it."""
        call = entry if "metadata" in entry else {"metadata": entry}
        trajectory = table(call["metadata"])
        self._builder = RunBuilder(
            ForeignSpan("run"), self._reading, table(trajectory.get("run_metadata")), shared=True
        )
        for iteration in items(trajectory.get("iterations")):
            self._note(table(iteration))
            self._builder.add(iteration)
        go_down(self._reading)
        if call is entry and call.get("response") is not None:
            self._builder.top.texts.setdefault(sc.ANSWER, as_text(call["response"]))
            self._builder.answered = True
        yield from self._ended()

    def _ended(self) -> Iterator[ForeignRun]:
        builder, key, stem = self._builder, self._key.hexdigest(), self._stem
        self._builder, self._key, self._stem = None, sha256(), None
        if builder is None or not builder.top.children:
            return
        builder.finish()
        problems, self._problems = self._problems, []
        if left_out := self._reading.left_out:
            problems.append(f"{left_out} parts of its iterations are unusable and were left out.")
            self._reading.left_out = 0
        problems += unusable(builder.top)
        yield replace(_run(builder, key, problems), stem=stem)


def _run(builder: RunBuilder, key: str, problems: list[str]) -> ForeignRun:
    top = builder.top
    question = text(builder.metadata.get("root_prompt")) or _question(top)  # the first where we wrote it
    if question is not None:
        top.texts = {sc.QUESTION: question, **top.texts}
    if builder.metadata.get(LACKS_CALLS) is True:
        top.attributes[sc.IMPORT_LACKS_CALLS] = True
    calls = [span for span in top.walk() if span.kind == "sub_call"]
    roots = [span for span in top.walk() if span.kind == "root_call"]
    lacking = {
        NO_ROOT_USAGE: any(call.tokens.value is None for call in roots),
        NO_SETTINGS: builder.model is None,
        NO_QUESTION: question is None,
        SUMMED_UP: any(_is_summary(sent) for call in roots for sent in call.messages or ()),
        NO_END: not builder.answered,
        LOCAL_TIME: builder.reading.clock.local,
        NO_CALLS: _asks_in_vain(top),
        SHARED_USAGE: any(call.tokens.mark == "known_wrong" for call in calls),
    }
    said = [*ALWAYS_MISSING, *(sentence for sentence, applies in lacking.items() if applies)]
    sub_model = next((call.model for call in calls if call.model is not None), None)
    engine = WRITTEN_HERE if builder.metadata.get("backend") == WRITTEN_HERE else "rlms"
    return ForeignRun(
        FORMAT, engine, key, top, builder.model, sub_model, said, problems, closed=builder.answered
    )


def _is_summary(message: tuple[str, str]) -> bool:
    return message[1].startswith("Your conversation has been compacted ")


def _asks_in_vain(top: ForeignSpan) -> bool:
    """Whether code of the run asks models and no call of it is in the log."""
    cells = [span for span in top.walk() if span.kind == "cell"]
    return any(asks(cell.texts.get(sc.CODE, "")) for cell in cells) and not any(c.children for c in cells)


def _question(top: ForeignSpan) -> str | None:
    """What the run was asked, out of the messages of its first root call."""
    first = next((span for span in top.walk() if span.kind == "root_call"), None)
    for _, said in (first.messages or ()) if first is not None else ():
        for form in _QUESTIONS:
            if (found := form.search(said)) is not None:
                return found[1]
    return None
