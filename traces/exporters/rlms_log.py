"""A run as the entries of a log of `rlms`: its settings, its iterations, their cells and calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from rlm_core import semconv as sc
from traces.detail import added_messages, decoded
from traces.exporters.redaction import Redactor
from traces.exporters.rlms_values import apply, iso, seconds, summary, usage
from traces.importers.rlms_calls import LACKS_CALLS, METADATA, STDERR, WRITTEN_HERE
from traces.rows import SpanRow
from traces.step_variables import Delta, read_deltas
from traces.view import RunView

_CALLS: Final = ("sub_call", "run")
_SUMMED_UP: Final = "Calls that summed up the conversation are left out: the form has one root call a turn."
_UNTIMED: Final = "Times of sub-calls that nobody took stand in it as 0.0, as rlms itself writes them."
_COST_ALONE: Final = (
    "What calls cost is left out where their tokens are not known: the form has both or none."
)
_LACKING: Final = "Not all calls of {} are on record: what its log sums up to is the least of it."
_ENDED: Final = "The form does not say that {} ended as {!r}: its log reads as a run that {}."


class Log:
    """The entries of one run. Texts are fetched for one iteration of the run at a time.

    `notes` are sentences on what the form cannot say of it, once each, known when all entries were made.
    """

    def __init__(self, view: RunView, redactor: Redactor) -> None:
        self._view, self._redactor = view, redactor
        self.notes: dict[str, None] = {}
        self._below: dict[str | None, list[SpanRow]] = defaultdict(list)
        for span in view.spans:
            self._below[span.parent_id].append(span)
        self._sent: dict[object, list[dict[str, Any]]] = defaultdict(list)  # by run path
        self._texts: dict[str, str] = {}
        self._messages: dict[str, str] = {}  # every line repeats them: they are cleaned once

    def entries(self) -> Iterator[dict[str, Any]]:
        """The line of settings and those of the iterations."""
        top = next((span for span in self._view.spans if span.kind == "run" and span.parent_id is None), None)
        known = top is not None and top.trusted.get("start") != "missing"
        question = self._view.summary.question
        settings = self._settings(top)
        if question is not None:
            settings["root_prompt"] = self._redactor.text(question)
        if self._lacks_calls(top):
            settings[LACKS_CALLS] = True
            self._note(_LACKING.format(self._view.run_id))
        yield {"type": "metadata", "timestamp": iso(top.start_ns) if top and known else None, **settings}
        answered = False
        if top is not None:
            for entry in self._iterations(top, fetch=True):
                answered |= entry["final_answer"] is not None
                yield entry
        status, reads = self._view.summary.status, "ok" if answered else "interrupted"
        if status not in ("running", reads):
            how = "ended well" if answered else "was interrupted"
            self._note(_ENDED.format(self._view.run_id, status, how))

    def _note(self, sentence: str) -> None:
        self.notes[sentence] = None

    def _lacks_calls(self, top: SpanRow | None) -> bool:
        """Whether there were calls that are in no span, as far as is known."""
        lost = self._view.summary.problems > 0 and not self._view.summary.demo
        return lost or (top is not None and top.attributes.get(sc.IMPORT_LACKS_CALLS) is True)

    def _settings(self, run: SpanRow | None) -> dict[str, Any]:
        facts = {} if run is None else run.attributes
        known = decoded(facts.get(METADATA))
        if isinstance(known, dict):  # of a run that rlms made
            return dict(self._clean(known))
        model = facts.get(sc.ROOT_MODEL) or self._view.summary.root_model or "unknown"
        limits = decoded(facts.get(sc.LIMITS))
        limits = limits if isinstance(limits, dict) else {}
        model = self._redactor.text(str(model))
        return {
            "root_model": model,
            "max_depth": (limits.get("max_depth") or 0) + 1,  # there 1 says that there are no child runs
            "max_iterations": limits.get("max_iterations") or 30,
            "backend": WRITTEN_HERE,
            "backend_kwargs": {"model_name": model},
            "environment_type": "local",
            "environment_kwargs": {},
            "other_backends": None if self._view.summary.sub_model in (None, model) else [WRITTEN_HERE],
        }

    def _iterations(self, run: SpanRow, *, fetch: bool = False) -> Iterator[dict[str, Any]]:
        iterations = [span for span in self._below[run.span_id] if span.kind == "iteration"]
        cells = [cell for span in iterations for cell in self._below[span.span_id] if cell.kind == "cell"]
        deltas: dict[str, Delta] = {}
        read_deltas(self._view, cells, deltas)
        names: dict[str, str] = {}
        answered = run.attributes.get(sc.ANSWER_CELL)
        in_cell = any(cell.cell == answered for cell in cells)
        for number, iteration in enumerate(iterations, 1):
            if fetch:
                self._fetch(iteration)
            answer, final = self._text(run, sc.ANSWER), None
            blocks: list[dict[str, Any]] = []
            for cell in (one for one in self._below[iteration.span_id] if one.kind == "cell"):
                given = answer if in_cell and cell.cell == answered else None
                final = given if final is None else final
                apply(names, deltas.get(cell.span_id), self._redactor.text)
                result = self._result(cell, names, given)
                blocks.append({"code": self._text(cell, sc.CODE) or "", "result": result})
            if number == len(iterations) and not in_cell:
                final = answer
            forced = bool(run.attributes.get(sc.FORCED)) and final is not None and not blocks
            yield self._iteration(iteration, number, blocks, final, forced=forced)

    def _iteration(
        self,
        iteration: SpanRow,
        number: int,
        blocks: list[dict[str, Any]],
        final: str | None,
        *,
        forced: bool,
    ) -> dict[str, Any]:
        prompt, response, used = self._root_call(iteration)
        unknown = iteration.seconds is None or not iteration.start_told
        entry = {
            "type": "iteration",
            "iteration": number,
            "timestamp": None if unknown else iso(iteration.end_ns or 0),
            "prompt": prompt,
            "response": response,
            "code_blocks": blocks,
            "final_answer": final,
            "iteration_time": None if forced else iteration.seconds,
        }
        if final is not None and entry["iteration_time"] is None:
            entry["forced"] = forced
        return entry | used

    def _root_call(self, iteration: SpanRow) -> tuple[list[dict[str, str]], str, dict[str, Any]]:
        """What the root was sent, what it said, and its usage where that is known, by keys."""
        chosen, sent = None, list[dict[str, Any]]()
        for call in self._below[iteration.span_id]:
            if call.kind != "root_call":
                continue
            path, prior = call.attributes.get(sc.RUN_PATH), call.attributes.get(sc.MESSAGES_PRIOR)
            kept = self._sent[path][: prior if type(prior) is int else 0]
            self._sent[path] = kept + (added_messages(call) or [])
            if call.attributes.get(sc.COMPACTED):
                self._note(_SUMMED_UP)
            else:
                chosen, sent = call, self._sent[path]
        prompt = [
            {"role": self._redactor.text(one["role"]), "content": self._message(one["sha256"])}
            for one in sent
        ]
        if chosen is None:
            return prompt, "", {}
        used = self._used(chosen)
        told = chosen.tokens is not None and chosen.trusted.get("tokens") != "known_wrong"
        return prompt, self._text(chosen, sc.RESPONSE) or "", used if told else {}

    def _used(self, call: SpanRow) -> dict[str, Any]:
        """The usage of a call, and which of it nobody reported."""
        if call.tokens is None and call.cost_usd:
            self._note(_COST_ALONE)
        made = [name for name in ("tokens", "cost") if call.trusted.get(name) == "derived"]
        return {"usage_summary": self._clean(usage(call))} | ({"derived": made} if made else {})

    def _result(self, cell: SpanRow, names: dict[str, str], final: str | None) -> dict[str, Any]:
        printed, raised = self._text(cell, STDERR) or "", self._text(cell, sc.EXCEPTION)
        return {
            "stdout": (self._text(cell, sc.STDOUT) or "").removesuffix(printed),
            "stderr": printed if raised is None else f"{printed}\n{raised}",
            "locals": dict(names),
            "execution_time": cell.seconds,
            "rlm_calls": self._calls(cell),
            "final_answer": final,
        }

    def _calls(self, cell: SpanRow) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        batches = 0
        for span in self._below[cell.span_id]:
            if span.kind in _CALLS:
                found.append({**self._call(span), "batch": None})
            elif span.kind == "batch":
                slots = [slot for slot in self._below[span.span_id] if slot.kind in _CALLS]
                # calls with the usage of another one are told by that, as where they come from
                as_told = any(slot.trusted.get("tokens") == "known_wrong" for slot in slots)
                found += [self._call(slot) | ({} if as_told else {"batch": batches}) for slot in slots]
                batches += 1
        return found

    def _call(self, span: SpanRow) -> dict[str, Any]:
        child = span.kind == "run"
        failed = span.status != "ok"
        model = span.model or span.attributes.get(sc.ROOT_MODEL) or "unknown"
        entry: dict[str, Any] = {
            "root_model": self._redactor.text(str(model)),
            "prompt": self._text(span, sc.QUESTION if child else sc.PROMPT) or "",
            "response": self._text(span, sc.ANSWER if child else sc.RESPONSE) or "",
            **({"usage_summary": self._clean(self._usage_below(span))} if child else self._used(span)),
            "execution_time": seconds(span) or 0.0,
        }
        if seconds(span) is None:
            self._note(_UNTIMED)
        if span.tokens is not None and not child:  # its viewer still reads what rlms no longer writes
            entry |= {"prompt_tokens": span.tokens["input"], "completion_tokens": span.tokens["output"]}
        if child and any(one.kind == "iteration" for one in self._below[span.span_id]):
            entry["metadata"] = {
                "run_metadata": self._settings(span),
                "iterations": list(self._iterations(span)),
            }
        if failed:
            message = span.attributes.get(sc.ERROR_MESSAGE) or span.error_type or span.status
            entry["error"] = self._redactor.text(str(message))
        return entry

    def _usage_below(self, run: SpanRow) -> dict[str, Any]:
        """The usage of a child run without that of its own child runs, as rlms counts it."""
        known = decoded(run.attributes.get(sc.USAGE_RAW))
        if isinstance(known, dict) and "model_usage_summaries" in known:
            return known
        models: dict[str, dict[str, Any]] = {}
        waiting = list(self._below[run.span_id])
        while waiting:
            span = waiting.pop()
            if span.kind in ("root_call", "sub_call"):
                for model, one in usage(span)["model_usage_summaries"].items():
                    summed = models.setdefault(model, dict.fromkeys(one, 0))
                    models[model] = {key: summed.get(key, 0) + value for key, value in one.items()}
            elif span.kind != "run":
                waiting += self._below[span.span_id]
        return summary(models)

    def _fetch(self, iteration: SpanRow) -> None:
        """Read the texts of an iteration with all below it at once."""
        spans, waiting = [], [iteration]
        while waiting:
            span = waiting.pop()
            spans.append(span)
            waiting += self._below[span.span_id]
        facts = [item for span in spans for item in span.attributes.items()]
        wanted = {value for key, value in facts if key.endswith(".sha256") and isinstance(value, str)}
        self._texts = self._view.payloads(wanted)

    def _text(self, span: SpanRow, prefix: str) -> str | None:
        sha256 = span.attributes.get(prefix + ".sha256")
        if not isinstance(sha256, str):
            return None
        found = self._texts[sha256] if sha256 in self._texts else self._view.payload(sha256)
        return None if found is None else self._redactor.text(found)

    def _clean(self, value: Any) -> Any:
        """A JSON value without what looks like a key."""
        if isinstance(value, str):
            return self._redactor.text(value)
        if isinstance(value, dict):
            return {self._redactor.text(key): self._clean(one) for key, one in value.items()}
        return [self._clean(one) for one in value] if isinstance(value, list) else value

    def _message(self, sha256: str) -> str:
        if sha256 not in self._messages:
            self._messages[sha256] = self._redactor.text(self._view.payload(sha256) or "")
        return self._messages[sha256]
