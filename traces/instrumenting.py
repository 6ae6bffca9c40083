"""The record for a program that is not our engine: it says what it does, and gets runs that every command and
page reads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from rlm_core.telemetry import as_json, sha256_text
from traces.home import Home, new_run_id
from traces.importers.foreign import ForeignSpan, TokenUse, Told, missing, reported
from traces.importers.placing import numbers, phases
from traces.instrument_spans import Facts, Message, Shared, Step, as_messages, dollars, use
from traces.prices import price_table
from traces.recording import open_recording

_MISSING: Final = (
    "The program told its steps itself: seeds, variables and the corpus are not on record, "
    "so it cannot be played again.",
)


@contextmanager
def instrument(
    question: str,
    *,
    engine: str | None = None,
    root_model: str | None = None,
    sub_model: str | None = None,
    home: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
) -> Iterator[Run]:
    """Record one run of an engine of your own; the block gets its `Run`.

    `engine` is its name, with a version (None: unknown). `root_model` and `sub_model` are LiteLLM's ids, the
    default of the calls. `home` is a folder, else `$RLMSCOPE_HOME`, else the user's data folder. The run is
    on disk step by step, and closed when the block is left: as failed where an exception leaves it, which is
    passed on.

    Raises InputError for a home that cannot be used, RecordError for a run id that was used before. A disk
    that is full never stops the program: what is missing of the record, or could not be sent where the
    standard variables of OpenTelemetry say, is logged as a warning.
    """
    where = Home.resolve(home)
    facts = {
        sc.IMPORT_FORMAT: sc.IMPORT_INSTRUMENT,
        sc.IMPORT_ENGINE: engine or "another engine",
        sc.IMPORT_FILE: "the program itself",
        sc.IMPORT_MISSING: as_json(list(_MISSING)),
        sc.ROOT_MODEL: root_model,
        sc.SUB_MODEL: sub_model,
    }
    prices = price_table(where)
    for model in {root_model, sub_model} - {None}:
        prices.rows(str(model))  # the first look at a list price takes a moment, which is no time of a call
    known = {name: value for name, value in facts.items() if value is not None}
    with open_recording(where, run_id or new_run_id(), known, engine_version=engine) as recording:
        shared = Shared(recording.recorder, prices, recording.run_id, root_model, sub_model)
        with Run(shared, ForeignSpan("run", texts={sc.QUESTION: question}), None) as run:
            yield run
    for words in (recording.unwritable or recording.loss, recording.unsent):
        if words is not None:
            logging.getLogger(__name__).warning(words)


class _Calling(Step):
    """A step inside which sub-calls are made."""

    def sub_call(self, prompt: str, *, model: str | None = None) -> Call:
        """A call of the sub-model (or of `model`) with a prompt."""
        asked = model or self._shared.sub_model
        return Call(self._shared, ForeignSpan("sub_call", model=asked, texts={sc.PROMPT: prompt}), self)


class Batch(_Calling):
    """Sub-calls that belong together: they have the slots 0, 1, ... as they begin."""

    _size = _failed = 0

    def _ended_below(self, kind: sc.Kind, failed: bool) -> None:
        self._size, self._failed = self._size + 1, self._failed + failed

    def _finish(self, status: sc.Status) -> None:
        said = f"{self._size:,} calls, {self._failed:,} failed"
        self._ends |= {sc.BATCH_SIZE: self._size, sc.BATCH_FAILED: self._failed, sc.PREVIEW: said}


class _Asking(_Calling):
    """A step inside which batches and further runs are made too."""

    def batch(self) -> Batch:
        """Sub-calls that belong together."""
        return Batch(self._shared, ForeignSpan("batch"), self)

    def run(self, question: str, *, root_model: str | None = None) -> Run:
        """A run inside this run."""
        shared = replace(self._shared, root_model=root_model or self._shared.root_model)
        return Run(shared, ForeignSpan("run", texts={sc.QUESTION: question}), self)


class Call(Step):
    """A call of a model that is under way."""

    _tokens: Told[TokenUse] = missing()
    _cost: Told[Decimal] = missing()

    def reply(
        self,
        text: str,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cost_usd: Decimal | str | float | None = None,
        model_returned: str | None = None,
    ) -> None:
        """What the model said, and what it took. `input_tokens` include those read from and written to a
        cache, `output_tokens` include reasoning. Without `cost_usd` the call is priced by its model and
        tokens; what cannot be known stays unknown.

        Raises InputError for tokens of one side only, for what cannot be a number of tokens or dollars, and
        for a second reply.
        """
        used = use(input_tokens, output_tokens, cached_read_tokens, cache_write_tokens, reasoning_tokens)
        cost = None if cost_usd is None else dollars(cost_usd)
        self._say_once(sc.RESPONSE, text, "reply")
        if cost is not None:
            self._cost = reported(cost)
        if used is not None:
            self._tokens = reported(used)
        self._ends[sc.RESPONSE_MODEL] = model_returned
        self._ends[sc.RESPONSE_NORM_HASH] = sha256_text(normalise(text))

    def _finish(self, status: sc.Status) -> None:
        told = ForeignSpan(
            self._foreign.kind,
            model=self._foreign.model,
            start=reported(self._started),
            seconds=reported(0.0),  # only its mark is used: the span has its own end
            tokens=self._tokens,
            cost=self._cost,
        )
        self._ends |= numbers(told, self._shared.prices, self._started)


class Cell(_Asking):
    """Code that is run, with the sub-calls that it makes."""

    def output(self, text: str, *, shown: str | None = None) -> None:
        """What the code printed, all of it; `shown` is what of it the root model is shown, if that is less.
        Raises InputError for a second output.
        """
        self._say_once(sc.STDOUT, text, "output")
        self._say(sc.STDOUT_SHOWN, text if shown is None else shown)

    def failed(self, error_type: str, message: str, traceback: str | None = None) -> None:
        """Say that the code raised an exception."""
        super().failed(error_type, message)
        if traceback is not None:
            self._say(sc.EXCEPTION, traceback)

    @property
    def phase(self) -> str:
        """What the code is for, as far as it and the calls inside it tell."""
        return str(self._ends.get(sc.PHASE) or self._facts[sc.PHASE])

    def _ended_below(self, kind: sc.Kind, failed: bool) -> None:
        if self.phase in ("Explore", "Aggregate"):  # its code does not look like it, and yet it called
            self._ends[sc.PHASE] = "Decompose"

    def _finish(self, status: sc.Status) -> None:
        if self._failure is not None:
            self._ends[sc.EXCEPTION_TYPE] = self._failure[0]


class Iteration(_Asking):
    """A turn of the root model: its call, and the cells of its reply."""

    _cells: tuple[Cell, ...] = ()

    def root_call(self, messages: Sequence[Message] | None = None, *, model: str | None = None) -> Call:
        """A call of the root model (or of `model`) with all messages that it is sent, as {"role", "content"}
        or (role, text).
        """
        sent, asked = as_messages(messages), model or self._shared.root_model
        return Call(self._shared, ForeignSpan("root_call", model=asked, messages=sent), self)

    def cell(self, code: str) -> Cell:
        """Code of the root's reply that is run now."""
        cell = Cell(self._shared, ForeignSpan("cell", texts={sc.CODE: code}), self)
        self._cells += (cell,)
        return cell

    def _finish(self, status: sc.Status) -> None:
        self._ends |= phases([cell.phase for cell in self._cells])


class Run(_Asking):
    """A run, or one inside another."""

    @property
    def run_id(self) -> str:
        """Names the (outermost) run for every command."""
        return self._shared.run_id

    def iteration(self) -> Iteration:
        """The next turn of the root model."""
        return Iteration(self._shared, ForeignSpan("iteration"), self)

    def answer(self, answer: Any, *, stop_reason: str = "final", forced: bool = False) -> None:
        """The answer of the run, a text or a value that JSON knows; of several the last one counts. `forced`:
        a limit ended the run, and the model was made to answer.
        """
        text = answer if isinstance(answer, str) else as_json(answer)
        self._say(sc.ANSWER, text)
        self._ends |= {sc.STOP_REASON: stop_reason, sc.FORCED: forced}
        self._ends[sc.RESPONSE_NORM_HASH] = sha256_text(normalise(text))

    def _start_facts(self) -> Facts:
        models = {sc.ROOT_MODEL: self._shared.root_model, sc.SUB_MODEL: self._shared.sub_model}
        return {**models, sc.REQUEST_MODEL: self._shared.root_model, sc.RUN_ID: self._shared.run_id}

    def _finish(self, status: sc.Status) -> None:
        if status != "ok":
            self._ends[sc.STOP_REASON] = status
