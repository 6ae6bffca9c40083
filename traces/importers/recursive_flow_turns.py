"""The turns of one agent of recursive-flow as spans of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json, sha256_text
from traces.importers.foreign import ForeignSpan, missing
from traces.importers.source import as_text
from traces.importers.told import tokens_of
from traces.importers.values import Once, count, exception_in, in_order, items, some_text, table, text, uses

_UNTOLD: Final = ("llm_query_batched",)  # what asks models and leaves nothing in the record
_PLACE: Final = "recursive_flow."  # of facts for which there is no key of ours
_LARGEST_INPUTS: Final = 16_000_000  # chars of all inputs of an agent: larger ones are kept as hashes
_MOST_SHOWN: Final = 500_000  # messages of all root calls of an agent, counted in each call anew
_LARGE: Final = 1_000  # chars of the newest message that count as one more
_NO_OUTPUT: Final = "(no output)"  # what the engine writes where a cell printed nothing
_CUT: Final = "\n...<truncated>"  # what it writes at the end of output that it cut
_NO_USAGE: Final = "the engine writes 0 where the provider reports nothing"
_SPENT: Final = "[budget exceeded: "
_CODE_ENDS: Final = ("exec_output", "error_output", "done_output", "supervising_output")


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as its record describes it, with its nodes in order."""

    agent_id: str
    parent: str | None
    called_from: str | None  # the node of its parent that was running
    meta: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]

    @classmethod
    def of(
        cls, meta: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], above: str | None
    ) -> Agent | None:
        """The agent that a table describes; `above` is who holds it. None for a table without an id."""
        agent_id = text(meta.get("agent_id"))
        if agent_id is None:
            return None
        facts = {key: value for key, value in meta.items() if key not in ("nodes", "states", "children")}
        parent = text(meta.get("parent_agent_id")) or above
        return cls(agent_id, parent, text(meta.get("parent_node_id")), facts, nodes)

    @property
    def depth(self) -> int:
        """How many agents stand above it, by its own word."""
        return count(self.meta.get("depth")) or 0


class Turns:
    """The run of one agent: reads its nodes once and ends with `span`."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.model: str | None = None
        self.finished = False
        self.missing: list[str] = []
        self.problems: list[str] = []
        self.span = ForeignSpan("run", status="lost", attributes={_PLACE + "agent_id": agent.agent_id})
        self._messages: list[tuple[str, str]] = []
        self._newest: list[str] = []  # parts of the last message, which may still grow
        self.lacks_calls = False  # its code asks models in a way that leaves nothing in the record
        self._shown = self._turns = self._cells = self._unknown = self._cut = 0
        self._iteration: ForeignSpan | None = None
        self._cell: ForeignSpan | None = None
        self._cells_of: dict[str, ForeignSpan] = {}  # by the nodes that ran their code
        self._awaited: list[tuple[ForeignSpan, list[str]]] = []
        self._describe()
        once, named = Once(), f"Nodes of the agent {agent.agent_id[:80]}"
        nodes = [node for node in agent.nodes if once.is_first(text(node.get("id")), node)]
        self.problems += once.problems(named)
        for node in in_order(nodes, named, self.problems):
            self._take(node)
        self.span.model = self.model or text(agent.meta.get("model"))
        self._tell()

    def launch(self, children: Mapping[str, Turns]) -> None:
        """Put the runs of agents that this one launched into its cells, those awaited at once as a batch."""
        left = dict(children)
        for cell, names in self._awaited:
            spans = [left.pop(name).span for name in names if name in left]
            if len(spans) > 1:
                batch = ForeignSpan("batch", children=spans, attributes={sc.BATCH_SIZE: len(names)})
                batch.status = "lost" if any(span.status == "lost" for span in spans) else "ok"
                failed = sum(span.status == "error" for span in spans)
                batch.attributes |= {sc.BATCH_FAILED: failed} if failed else {}
                spans = [batch]
            cell.children += spans
        for child in left.values():
            here = (
                self._cells_of.get(child.agent.called_from or "")
                or self._cell
                or self._iteration
                or self.span
            )
            here.children.append(child.span)

    def _describe(self) -> None:
        meta, span = self.agent.meta, self.span
        if question := text(meta.get("query")):
            span.texts[sc.QUESTION] = question
        self._say("system", text(meta.get("system_prompt")))
        inputs = {str(name): as_text(value) for name, value in table(meta.get("inputs")).items()}
        if inputs:
            span.attributes[_PLACE + "inputs"] = as_json(
                [{"name": n, "chars": len(t), "sha256": sha256_text(t)} for n, t in inputs.items()]
            )
            if sum(map(len, inputs.values())) <= _LARGEST_INPUTS:
                span.texts[sc.CHILD_CONTEXT] = as_json([[value] for value in inputs.values()])
            else:
                self.missing.append("Of inputs of more than 16,000,000 characters only the hashes are kept.")
        for name in ("model", "max_iters", "output_schema"):
            if meta.get(name) is not None:
                span.attributes[_PLACE + name] = as_text(meta[name])

    def _take(self, node: Mapping[str, Any]) -> None:
        kind, content = node.get("type"), text(node.get("content"))
        if kind == "user_query":
            self._say("user", content)
        elif kind == "llm_action":
            self._ask(node)
        elif kind == "llm_output":
            self._reply(node)
        elif kind in ("exec_action", "resume_action"):
            self._execute(node)
        elif kind in _CODE_ENDS:
            self._observe(node, str(kind))
            if kind != "done_output":
                self._say("user", content)
        else:
            self._unknown += 1

    def _say(self, role: str, content: str | None) -> None:
        """Add to the conversation as the engine does: turns of one role in a row become one message."""
        if content is None:
            return
        if self._messages and self._messages[-1][0] == role:
            self._newest.append(content)
            return
        self._settle()
        self._messages.append((role, content))
        self._newest = [content]

    def _settle(self) -> None:
        """Put the parts of the last message together."""
        if len(self._newest) > 1:
            self._newest = ["\n\n".join(self._newest)]
            self._messages[-1] = (self._messages[-1][0], self._newest[0])

    def _ask(self, node: Mapping[str, Any]) -> ForeignSpan:
        """Begin a turn."""
        call = ForeignSpan("root_call", status="lost", tokens=missing())
        self._shown += len(self._messages) + sum(map(len, self._newest)) // _LARGE
        if self._shown <= _MOST_SHOWN:
            self._settle()
            call.messages = tuple(self._messages)
        turn = ForeignSpan("iteration", status="lost", children=[call], attributes=_where(node))
        most = count(self.agent.meta.get("max_iters"))
        if most is not None and self._turns >= most:
            turn.attributes[sc.FORCED] = True
        if lane := text(node.get("model")):
            turn.attributes[_PLACE + "lane"] = lane
        self.span.children.append(turn)
        self.span.status, self.finished = "lost", False
        self._turns += 1
        self._iteration, self._cell = turn, None
        return turn

    def _reply(self, node: Mapping[str, Any]) -> None:
        turn = self._iteration
        if turn is None or turn.children[0].status != "lost":
            turn = self._ask({})
        call = turn.children[0]
        call.status, call.model = "ok", text(node.get("model"))
        call.texts[sc.RESPONSE] = reply = some_text(node.get("reply")) or ""
        self.model = self.model or call.model
        call.tokens = tokens_of(node, "input_tokens", "output_tokens", _NO_USAGE)
        self._say("assistant", reply)

    def _execute(self, node: Mapping[str, Any]) -> None:
        iteration = self._iteration
        if node.get("type") == "exec_action" and iteration is not None and text(node.get("code")):
            self._cell = ForeignSpan("cell", status="lost", texts={sc.CODE: str(node["code"])})
            self._cell.attributes = _where(node)
            iteration.children.append(self._cell)
            self.lacks_calls |= uses(str(node["code"]), _UNTOLD)
            self._cells += 1
        if self._cell is not None:
            self._cells_of[str(node.get("id"))] = self._cell

    def _observe(self, node: Mapping[str, Any], kind: str) -> None:
        cell, iteration = self._cell, self._iteration
        output, content = text(node.get("output")), text(node.get("content"))
        self._cut += output is not None and output.endswith(_CUT)
        if kind == "done_output":
            self._finish(node, output)
        elif kind == "error_output":
            self._fail(node, output, content)
        elif kind == "supervising_output" and cell is not None:
            self._awaited.append((cell, list(map(str, items(node.get("waiting_on"))))))
        elif cell is not None and iteration is not None:
            cell.status = iteration.status = "ok"
        if cell is not None:
            if kind != "error_output" and output is not None and output != _NO_OUTPUT:
                _add(cell, sc.STDOUT, output, "\n")
            if kind != "done_output" and content is not None:
                _add(cell, sc.STDOUT_SHOWN, content, "\n\n")

    def _fail(self, node: Mapping[str, Any], output: str | None, content: str | None) -> None:
        """What went wrong, at what it went wrong with: the call of the model, its reply, or its code."""
        turn, cell, kind = self._iteration, self._cell, text(node.get("error")) or "error"
        if turn is None:
            return
        span = cell or (turn.children[0] if kind == "llm_exception" else turn)
        span.status, span.error = "error", (kind, content or output or "")
        turn.status = "ok" if span is cell else "error"
        if span is not cell or output is None:
            return
        printed, raised, message = exception_in(output) or (output, kind, output.rpartition("\n")[2])
        if kind == "exec_exception":
            span.error = (raised, message)
            span.attributes[sc.EXCEPTION_TYPE] = raised
            span.texts[sc.EXCEPTION] = f"{raised}: {message}"
        if printed:
            _add(span, sc.STDOUT, printed, "\n")

    def _finish(self, node: Mapping[str, Any], output: str | None) -> None:
        """`done(...)`, or the end that the engine makes when the tokens are spent."""
        self.finished = True
        result, cell, turn = some_text(node.get("result")) or "", self._cell, self._iteration
        if output is None and result.startswith(_SPENT):
            self.span.status, self.span.error = "error", ("budget", result)
            self.span.attributes[sc.STOP_REASON] = "budget"
            for span in filter(None, (cell, turn)):
                span.status = "cancelled" if span.status == "lost" else span.status
            return
        forced = turn is not None and turn.attributes.get(sc.FORCED) is True
        for span in filter(None, (self.span, turn, cell)):
            span.status = "ok"
        self.span.texts[sc.ANSWER] = result
        self.span.attributes |= {
            sc.ANSWER_VIA: "done",
            sc.STOP_REASON: "max_iterations" if forced else "final",
            **({sc.FORCED: True} if forced else {}),
        }
        if cell is not None:
            cell.attributes[sc.PHASE] = "Terminate"
            self.span.attributes[sc.ANSWER_CELL] = self._cells - 1

    def _tell(self) -> None:
        if self._cut:
            self.missing.append("Output that the engine cut at its own limit is in the record only as cut.")
        if self._shown > _MOST_SHOWN:
            self.missing.append("Of very long conversations the messages of later root calls are left out.")
        if self._unknown:
            named = self.agent.agent_id[:80]
            self.problems.append(f"Agent {named}: {self._unknown:,} nodes are of no known type and left out.")
        if not self.agent.nodes:
            self.problems.append(f"Agent {self.agent.agent_id[:80]} has no nodes: what it did is lost.")


def _where(node: Mapping[str, Any]) -> dict[str, Any]:
    """Which node it was, and in which step of the whole run."""
    step, named = count(node.get("global_step")), text(node.get("id"))
    return {
        key: value
        for key, value in ((_PLACE + "node_id", named), (_PLACE + "global_step", step))
        if value is not None
    }


def _add(span: ForeignSpan, prefix: str, more: str, between: str) -> None:
    known = span.texts.get(prefix)
    span.texts[prefix] = more if known is None else known + between + more
