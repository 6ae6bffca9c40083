"""The REPL itself: one namespace, cell after cell."""

from __future__ import annotations

import _ast
import builtins
import io
import linecache
import os
import sys
import types
from typing import Any, Final

from rlm_core import frames, values
from rlm_core.texts import build_context, take_given
from rlm_core.worker import api
from rlm_core.worker.channel import Channel
from rlm_core.worker.interrupts import Interrupts
from rlm_core.worker.output import CappedOutput
from rlm_core.worker.tracebacks import traceback_text
from rlm_core.worker.variables import VariableTable, type_name

_ONLY_AST: Final = 0x400  # compile() flag of the ast module, which is not worth importing for one number
_BUILTINS: Final = dict(builtins.__dict__)
_PROTECTED: Final = {name for name in _BUILTINS if not name.startswith("_")} - {
    "copyright",  # of the interactive prompt; ordinary names in a cell
    "credits",
    "license",
}
_MOST_OUTPUT: Final = frames.MAX_FRAME // 8  # characters that fit a frame however they are escaped
_MAX_NOTE: Final = 2000
_MAX_NAME: Final = 200
_update: Final = dict.update  # bound now: a cell may delete or replace the builtin


def _no_input(prompt: object = "") -> str:
    raise RuntimeError("input() has nobody to answer it here; write the value into the cell")


class Session:
    """Runs cells as the engine sends them. Nothing a cell does to names or builtins outlives that cell."""

    def __init__(
        self, channel: Channel, interrupts: Interrupts, start: dict[str, Any], documents: list[dict[str, Any]]
    ) -> None:
        self._channel = channel
        self._interrupts = interrupts
        self._process = os.getpid()
        self._lock = {"layers": start["layers"], "reached": start["reached"]}
        self._recursion_limit = sys.getrecursionlimit()
        self._output = CappedOutput(min(int(start["output_chars"]), _MOST_OUTPUT))
        self._variables = VariableTable()
        self._final = api.Ending()
        self._main = types.ModuleType("__main__")
        self._namespace = self._main.__dict__
        sys.modules["__main__"] = self._main
        context, sequence = build_context(documents)
        if sequence.are_mapped:
            from rlm_core.texts import re_functions

            re_functions.install()
        self._fixed = {
            "__name__": "__main__",
            "__builtins__": builtins,
            "context": context,
            "context_data": context,
            **api.build(channel, self._namespace, self._final),
        }
        for name in start.get("without", ()):
            del self._fixed[name]
        self._namespace.update(self._fixed)
        self._namespace["documents"] = sequence
        self._answer: dict[str, Any] = {"content": None, "ready": False}
        self._namespace["answer"] = self._answer
        self._reserved = frozenset(self._fixed) | {"answer"}
        self._variables.changes(self._namespace, self._reserved)
        _BUILTINS["input"] = _no_input

    def serve(self) -> None:
        """Announce the worker, then run cells until the engine closes the pipe."""
        self._mend()
        known = sorted(name for name in self._namespace if not name.startswith("__"))
        self._channel.send([{"t": "ready", "known": known, **self._lock}])
        while True:
            frame = self._channel.next()
            if frame["t"] == "cell":
                self._channel.send([self._run(int(frame["n"]), frame["code"])])

    def _run(self, number: int, code: str) -> dict[str, Any]:
        """Run one cell; the report on it. What may run code of the cell does so inside `Interrupts.run`."""
        self._output.start()
        self._final.forget()
        self._answer["ready"] = False
        self._interrupts.forget()
        name = f"{api.CELL_FILE}{number}>"
        _, error = self._interrupts.run(lambda: self._execute(name, code))
        self._mend()
        answer, failure = self._interrupts.run(self._read_answer)
        self._mend()
        report: dict[str, Any] = {"t": "done", "n": number, "answer": answer, "exc": None}
        error = failure if error is None else error
        if error is not None:
            report["exc"] = self._describe(error)
            report["interrupted"] = issubclass(type(error), KeyboardInterrupt)
            BaseException.with_traceback(error, None)  # its frames would keep the cell's locals alive
        report["restored"] = self._restore()
        report["vars"] = self._variables.changes(self._namespace, self._reserved)
        report["given"] = take_given()
        report["stdout"], report["chars"] = self._output.report()
        return _fitting(report)

    def _execute(self, name: str, code: str) -> None:
        """The cell's statements; the value of a last expression is printed, as at a prompt."""
        linecache.cache[name] = (len(code), None, [line + "\n" for line in code.split("\n")], name)
        tree: Any = compile(code, name, "exec", _ONLY_AST, dont_inherit=True)
        echo = None
        if tree.body and isinstance(tree.body[-1], _ast.Expr):
            expression = _ast.Expression(tree.body.pop().value)
            echo = compile(expression, name, "eval", dont_inherit=True)
        exec(compile(tree, name, "exec", dont_inherit=True), self._namespace)
        if echo is not None and (value := eval(echo, self._namespace)) is not None:
            self._output.write(values.as_text(value) + "\n")

    def _mend(self) -> None:
        """Undo what a cell did to the interpreter, builtins first: everything else here needs them."""
        _update(builtins.__dict__, _BUILTINS)
        if os.getpid() != self._process:
            os._exit(0)  # a fork that ran out of its cell
        sys.setrecursionlimit(self._recursion_limit)
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), self._output, self._output
        self._interrupts.install()

    def _describe(self, error: BaseException) -> dict[str, str]:
        text, failure = self._interrupts.run(lambda: traceback_text(error))
        self._mend()
        if failure is not None:  # an exception whose own text raises
            text = f"{type_name(error)} (its message could not be written: {type_name(failure)})\n"
        return {"type": type_name(error), "text": text}

    def _read_answer(self) -> dict[str, Any] | None:
        """The answer as it stands at the end of the cell, or None where nothing was set."""
        final, given = self._final, self._namespace.get("answer")
        extra = given if type(given) is dict else {}
        if final.via is None:
            ready = bool(extra.get("ready"))
            if extra.get("content") is None and not ready:
                return None
            return _answer_form("answer", extra.get("content"), None, ready, extra)
        if final.name is None:
            return _answer_form(final.via, final.value, None, True, extra)
        name = final.name[:_MAX_NAME]
        if final.name not in self._namespace:
            return {"via": final.via, "expression": name, "missing": True, "ready": True}
        return _answer_form(final.via, self._namespace[final.name], name, True, extra)

    def _restore(self) -> list[str]:
        """Put reserved names back; a value the cell gave them, or a builtin's name, is kept under `name_`."""
        space, moved = self._namespace, []
        for name, value in self._fixed.items():
            if space.get(name, value) is not value and not name.startswith("__"):
                space[name + "_"] = space[name]
                moved.append(name)
            space[name] = value
        for name in list(space):
            if type(name) is str and name in _PROTECTED:
                space[name + "_"] = space.pop(name)
                moved.append(name)
        given = space.get("answer", self._answer)
        if given is not self._answer:
            if type(given) is dict and "content" in given:
                self._answer.update(given)
            else:
                space["answer_"] = given
                moved.append("answer")
        space["answer"] = self._answer
        return moved


def _answer_form(
    via: str, value: Any, name: str | None, ready: bool, extra: dict[str, Any]
) -> dict[str, Any]:
    form: dict[str, Any] = {"via": via, "expression": name, "ready": ready, "type": type_name(value)}
    try:
        form["form"], form["text"] = values.to_form(value), values.as_text(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a hostile __repr__, or a value too large
        form["form"], form["text"] = None, ""
        too_large = isinstance(error, values.TooLarge)
        form["failed"] = (
            f"it is {error}; answer with a summary"
            if too_large
            else f"{type_name(error)} while it was written as text"
        )
    for key in ("confidence", "note"):
        if isinstance(extra.get(key), str):
            form[key] = str.__getitem__(extra[key], slice(0, _MAX_NOTE))
    return form


def _fitting(report: dict[str, Any]) -> dict[str, Any]:
    """The report, made to fit one frame: an answer too large for it is left out, and said so."""
    answer = report["answer"]
    if answer is not None and len(frames.encode_body(report)) > frames.MAX_FRAME:
        failed = f"it is larger than {frames.MAX_FRAME // 2:,} bytes; answer with a summary"
        report["answer"] = {**answer, "form": None, "text": "", "failed": failed}
    return report
