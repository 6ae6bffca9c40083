"""Trajectories of `dspy.RLM`: predictions saved as JSON, as lines of JSON or printed, and lists of steps.

A step is the reasoning of the root, its code and what that printed. Nothing else is in such a record: no
models, times, tokens or inputs, and none of the calls that code made.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.telemetry import as_json
from traces.importers.foreign import NO_TIMES, ForeignRun, ForeignSpan
from traces.importers.source import Source, as_text
from traces.importers.values import Document, digest, documents, exception_in, items, some_text, table

_OWN: Final = frozenset(("trajectory", "final_reasoning", "inputs", "question", "query", "trace", "evidence"))
_GIVEN: Final = "context"  # the input that signatures of RLM have; saved beside a prediction it is no output
_PRINTED: Final = b"Prediction("
_ERROR: Final = "[Error] "
_MISFIT: Final = "[Type Error] "
_END: Final = "FINAL: "
_STEP: Final = ("reasoning", "code", "output")
_FORCED: Final = "Extract forced final output"  # what the engine gives as its reasoning then
_NOTHING: Final = "(no output - did you forget to print?)"  # what it writes where a cell printed nothing
_LARGEST_PRINTED: Final = 16 * 1024 * 1024  # bytes of a printed prediction
_MISSING: Final = (
    NO_TIMES,
    "The record holds no tokens, no costs and no model.",
    "Calls that code made (llm_query, llm_query_batched, tools, sub-agents) are not in the record.",
    "Of what the root wrote only its reasoning and its code are in the record; what it was sent is not.",
)


def recognises(source: Source) -> bool:
    """Whether it holds a trajectory: a prediction, steps, or predictions in a list or in lines."""
    if source.is_folder:
        return False
    head = source.head()
    if head.lstrip().startswith(_PRINTED) and b"trajectory=" in head:
        return True
    if not (b'"code"' in head and b'"reasoning"' in head):
        return False
    return any(_steps(found.value) for found in documents(source, _is_wanted))


def read(source: Source) -> Iterator[ForeignRun]:
    """A run for each trajectory of the file. Raises InputError when there is none that can be read."""
    printed = source.head().lstrip().startswith(_PRINTED)
    number = 0
    for found in _printed(source) if printed else documents(source, _is_wanted):
        if steps := _steps(found.value):
            number += 1
            yield _run(found, steps, number)
    if not number:
        raise InputError(f"{source.name} holds no trajectory of dspy.RLM that can be read.")


def _is_wanted(value: Any) -> bool:
    return bool(_steps(value))


def _printed(source: Source) -> Iterator[Document]:
    """A prediction as Python prints it."""
    with source.opened() as file:
        data = file.read(_LARGEST_PRINTED).decode("utf-8", "replace").strip()
    try:
        call = ast.parse(data, mode="eval").body
        if not isinstance(call, ast.Call):
            return
        found, left = {}, []
        for given in call.keywords:
            try:
                found[str(given.arg)] = ast.literal_eval(given.value)
            except (ValueError, TypeError):  # an object that only its class can read
                left.append(str(given.arg)[:40])
        problem = f"Printed values that cannot be read back: {', '.join(left)}." if left else None
        yield Document(found, True, problem)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return


def _steps(value: Any) -> Sequence[Mapping[str, Any]]:
    """The steps of a prediction or of a bare list of steps; none for anything else."""
    if "steps" in table(table(value).get("trace")):  # one of predict-rlm
        return ()
    steps = [entry for entry in _entries(value) if _is_step(entry)]
    whole = any("code" in step and ("reasoning" in step or "output" in step) for step in steps)
    return steps if whole else ()


def _entries(value: Any) -> list[Any]:
    return items(value if isinstance(value, list) else table(value).get("trajectory"))


def _is_step(entry: Any) -> bool:
    """Whether it is a step, of which parts may lack; predictions may have fields of the same names."""
    return "trajectory" not in table(entry) and any(part in table(entry) for part in _STEP)


def _run(document: Document, steps: Sequence[Mapping[str, Any]], number: int) -> ForeignRun:
    found = table(document.value)
    top = ForeignSpan("run", children=[turn(step) for step in steps])
    ended = top.children[-1].children[-1].attributes.get(sc.PHASE) == "Terminate"
    outputs, beside = sorted_out(found, steps[-1] if ended else {})
    asked = {
        **{name: value for name, value in found.items() if name not in outputs},
        **table(found.get("inputs")),
    }
    question = some_text(asked.get("question")) or some_text(asked.get("query"))
    if question is not None:
        top.texts[sc.QUESTION] = question
    if beside:
        top.texts[sc.CHILD_CONTEXT] = as_json(beside)
    missing = [*_MISSING, *([] if question else ["The question and the inputs are not in the record."])]
    answer = answer_of(outputs)
    if answer is not None:
        top.texts[sc.ANSWER] = answer
    _how(top, found, ended, missing, bool(outputs))
    return ForeignRun(
        format="dspy",
        engine="dspy.RLM",
        key=digest([number, found or list(steps)]),
        top=top,
        missing=missing,
        problems=list(_problems(document, len(steps))),
        closed=document.whole,
    )


def _problems(document: Document, steps: int) -> Iterator[str]:
    if document.problem is not None:
        yield document.problem
    if lost := len(_entries(document.value)) - steps:
        yield f"Entries of the trajectory that are no steps: {lost:,}."


def _how(
    top: ForeignSpan, found: Mapping[str, Any], ended: bool, missing: list[str], has_fields: bool
) -> None:
    """How the answer came about: submitted by code, or asked for when the turns were used up."""
    answered = sc.ANSWER in top.texts
    if found.get("final_reasoning") == _FORCED:
        top.attributes |= {sc.ANSWER_VIA: "forced", sc.STOP_REASON: "max_iterations", sc.FORCED: True}
        call = ForeignSpan("root_call", attributes={sc.FORCED: True})
        top.children.append(ForeignSpan("iteration", attributes={sc.FORCED: True}, children=[call]))
    elif ended:
        top.attributes |= {sc.ANSWER_VIA: "SUBMIT", sc.STOP_REASON: "final"}
        top.attributes[sc.ANSWER_CELL] = len(top.children) - 1
    elif answered:
        missing.append("How the answer came about is not in the record: no step submits it.")
    if not answered and has_fields:
        missing.append("The answer on record is null.")
    elif not answered:
        missing.append("The record holds no answer: a list of steps has none unless its last one submits it.")


def turn(step: Mapping[str, Any], known: Collection[str] = _STEP) -> ForeignSpan:
    """One step: what the root said, and its code with what came of it. What is not `known` of its fields is
    kept as it is.
    """
    call, cell = ForeignSpan("root_call"), ForeignSpan("cell")
    if reasoning := some_text(step.get("reasoning")):
        call.texts[sc.RESPONSE] = reasoning
    cell.texts[sc.CODE] = some_text(step.get("code")) or ""
    output = some_text(step.get("output"))
    if output is None:
        cell.status = "lost"
    elif output.startswith(_ERROR):
        said = output.removeprefix(_ERROR)
        _, kind, message = exception_in(said) or ("", "error", said)
        cell.status, cell.error = "error", (kind, message)
        cell.attributes[sc.EXCEPTION_TYPE] = kind
        cell.texts[sc.EXCEPTION] = output
    elif output.startswith(_MISFIT):
        cell.status, cell.error = "error", ("misfit", output.removeprefix(_MISFIT))
        cell.texts[sc.EXCEPTION] = output
    elif output.startswith(_END):
        cell.attributes[sc.PHASE] = "Terminate"
        cell.texts[sc.STDOUT_SHOWN] = output
    else:
        cell.texts |= {} if output == _NOTHING else {sc.STDOUT: output}
        cell.texts[sc.STDOUT_SHOWN] = output
    iteration = ForeignSpan("iteration", children=[call, cell])
    if beside := {name: value for name, value in step.items() if name not in known}:
        iteration.keep("dspy.saved_beside", as_text(beside))
    return iteration


def sorted_out(
    found: Mapping[str, Any], last: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The fields of the answer, and those that were saved beside them. `last` is the step that submitted."""
    others = {name: value for name, value in found.items() if name not in _OWN}
    given = {name: found[name] for name in ("inputs",) if name in found}
    submitted: Any = None
    if last:
        try:
            submitted = ast.literal_eval(str(last.get("output")).removeprefix(_END))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            submitted = None if found else str(last.get("output")).removeprefix(_END)
    if isinstance(submitted, dict):
        kept = {str(name): value for name, value in submitted.items()}
        outputs = {name: value if found.get(name) is None else found[name] for name, value in kept.items()}
        given |= {name: value for name, value in others.items() if name not in outputs}
        return outputs, given
    if submitted is not None and not found:
        return {"answer": submitted}, given
    outputs = {name: value for name, value in others.items() if name != _GIVEN} or others
    return outputs, given | {name: value for name, value in others.items() if name not in outputs}


def answer_of(outputs: Mapping[str, Any]) -> str | None:
    """The text of the only field, else all of them as JSON; None where they hold nothing."""
    if all(value is None for value in outputs.values()):
        return None
    return as_text(next(iter(outputs.values()))) if len(outputs) == 1 else as_json(outputs)
