"""The REPL itself: one namespace, cell after cell."""

from __future__ import annotations

import _ast
import builtins
import linecache
import signal
import sys
import traceback
import types
from typing import Any, Final

from rlm_core import frames, values
from rlm_core.texts import build_context
from rlm_core.worker import api
from rlm_core.worker.channel import Channel
from rlm_core.worker.output import CappedOutput
from rlm_core.worker.variables import VariableTable

_ONLY_AST: Final = 0x400  # compile() flag of the ast module, which is not worth importing for one number
_BUILTINS: Final = dict(builtins.__dict__)
_DEFAULT_ANSWER: Final = {"content": None, "ready": False}
_MAX_TRACEBACK: Final = 20_000


def _no_input(prompt: object = "") -> str:
    raise RuntimeError("input() has nobody to answer it here; write the value into the cell")


class Session:
    """Runs cells as the engine sends them. Nothing a cell does to names or builtins outlives that cell."""

    def __init__(self, channel: Channel, start: dict[str, Any]) -> None:
        self._channel = channel
        self._output = CappedOutput(int(start["output_chars"]))
        self._variables = VariableTable()
        self._final = api.Ending()
        self._main = types.ModuleType("__main__")
        self._namespace = self._main.__dict__
        sys.modules["__main__"] = self._main
        context, documents = build_context(start["documents"])
        self._fixed = {
            "context": context,
            "context_data": context,
            **api.build(channel, self._namespace, self._final),
        }
        self._namespace.update(self._fixed)
        self._namespace["documents"] = documents
        self._answer = dict(_DEFAULT_ANSWER)
        self._namespace["answer"] = self._answer
        self._reserved = frozenset(self._fixed) | {"answer", "__builtins__"}
        self._variables.changes(self._namespace, self._reserved)
        _BUILTINS["input"] = _no_input
        builtins.__dict__["input"] = _no_input

    def serve(self) -> None:
        """Announce the worker, then run cells until the engine closes the pipe."""
        sys.stdout = sys.stderr = self._output
        self._channel.send({"t": "ready", "python": sys.version.split()[0], "known": sorted(self._namespace)})
        while True:
            frame = self._channel.read()
            if frame["t"] == "cell":
                self._channel.send(self._run(int(frame["n"]), frame["code"]))

    def _run(self, number: int, code: str) -> dict[str, Any]:
        self._output.start()
        self._final.set(None)
        self._answer["ready"] = False
        sys.stdout = sys.stderr = self._output
        signal.signal(signal.SIGINT, self._on_interrupt)
        self._channel.interrupt_pending = False
        error: BaseException | None = None
        try:
            try:
                self._execute(f"{api.CELL_FILE}{number}>", code)
            except BaseException as caught:  # SystemExit and Ctrl-C included: a cell never ends the worker
                error = caught
            return self._done(number, error)
        except KeyboardInterrupt as late:  # arrived after the cell's last line
            return self._done(number, late)

    def _execute(self, name: str, code: str) -> None:
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = compile(code, name, "exec", _ONLY_AST, dont_inherit=True)
        last = tree.body[-1] if tree.body else None  # type: ignore[attr-defined]  # an ast.Module
        if isinstance(last, _ast.Expr):
            tree.body.pop()  # type: ignore[attr-defined]
        exec(compile(tree, name, "exec", dont_inherit=True), self._namespace)
        if isinstance(last, _ast.Expr):
            expression = _ast.Expression(last.value)
            value = eval(compile(expression, name, "eval", dont_inherit=True), self._namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value), file=self._output)

    def _done(self, number: int, error: BaseException | None) -> dict[str, Any]:
        """The report on a cell. Interrupts are over from here on; builtins come first, since a cell may have broken them."""
        dict.update(builtins.__dict__, _BUILTINS)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        report: dict[str, Any] = {"t": "done", "n": number, "exc": None}
        if error is not None:
            report["exc"] = {"type": type(error).__name__, "text": _traceback(error)}
            if isinstance(error, KeyboardInterrupt):
                report["interrupted"] = True
        report["answer"] = self._read_answer()
        report["restored"] = self._restore()
        report["vars"] = self._variables.changes(self._namespace, self._reserved)
        report["stdout"], report["chars"] = self._output.text(), self._output.true_chars
        return _fitting(report)

    def _read_answer(self) -> dict[str, Any] | None:
        """The answer as it stands at the end of the cell, or None where nothing was set."""
        final = self._final
        if final.via is not None:
            if final.name is None:
                return _answer_form(final.via, final.value, None, True, {})
            if final.name in self._namespace:
                value = self._namespace[final.name]
                return _answer_form(final.via, value, final.name, True, self._answer)
            return {"via": final.via, "expression": final.name, "missing": True, "ready": True}
        given = self._namespace.get("answer")
        if type(given) is not dict or given.get("content") is None and not given.get("ready"):
            return None
        return _answer_form("answer", given.get("content"), None, bool(given.get("ready")), given)

    def _restore(self) -> list[str]:
        """Put reserved names back; a value the cell gave them, or a builtin's name, is kept under `name_`."""
        moved = []
        for name, value in self._fixed.items():
            if self._namespace.get(name, value) is not value:
                self._namespace[name + "_"] = self._namespace[name]
                moved.append(name)
            self._namespace[name] = value
        for name in [n for n in self._namespace if n in _BUILTINS and not n.startswith("__")]:
            self._namespace[name + "_"] = self._namespace.pop(name)
            moved.append(name)
        given = self._namespace.get("answer")
        if given is not self._answer:
            if type(given) is dict and "content" in given:
                self._answer.update(given)
            elif "answer" in self._namespace:
                self._namespace["answer_"] = given
                moved.append("answer")
            self._namespace["answer"] = self._answer
        return moved

    def _on_interrupt(self, *_: object) -> None:
        if self._channel.interruptible:
            raise KeyboardInterrupt
        self._channel.interrupt_pending = True


def _answer_form(
    via: str, value: Any, name: str | None, ready: bool, extra: dict[str, Any]
) -> dict[str, Any]:
    form: dict[str, Any] = {"via": via, "expression": name, "ready": ready, "type": type(value).__name__}
    try:
        form["form"], form["text"] = values.to_form(value), values.as_text(value)
    except Exception as error:  # a hostile __repr__
        form["form"], form["text"] = None, ""
        form["failed"] = f"{type(error).__name__} while the answer was written as text"
    for key in ("confidence", "note"):
        if isinstance(extra.get(key), str):
            form[key] = extra[key][:2000]
    return form


def _traceback(error: BaseException) -> str:
    """The traceback from the cell's own frames on, head and tail kept."""
    try:
        frame = error.__traceback__
        while frame is not None and not frame.tb_frame.f_code.co_filename.startswith(api.CELL_FILE):
            frame = frame.tb_next
        text = "".join(traceback.format_exception(type(error), error, frame))
    except Exception as failure:  # an exception whose own text raises
        text = f"{type(error).__name__} (its message could not be written: {type(failure).__name__})\n"
    half = _MAX_TRACEBACK // 2
    return text if len(text) <= _MAX_TRACEBACK else f"{text[:half]}\n[...]\n{text[-half:]}"


def _fitting(report: dict[str, Any]) -> dict[str, Any]:
    """The report, made to fit one frame: an answer or variable table too large for it is left out and said so."""
    if len(frames.encode_body(report)) <= frames.MAX_FRAME:
        return report
    report["vars"] = [{k: v for k, v in row.items() if k != "preview"} for row in report["vars"]]
    if len(frames.encode_body(report)) > frames.MAX_FRAME:
        answer = report["answer"]
        report["answer"] = {
            "via": answer["via"], "expression": answer["expression"], "ready": answer["ready"], "form": None, "text": "",
            "failed": f"the answer is larger than {frames.MAX_FRAME // 2:,} bytes; print less or answer with a summary",
        }  # fmt: skip
    return report
