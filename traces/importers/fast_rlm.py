"""Logs of fast-rlm: lines of JSON, one for the start, each step, the result and the end of every agent.

A step is a call of the model with the code of its reply and what that printed; an agent that code asks is a
child run. The line of a step is written when the step is over, so that the agents that it asked stand before
it. Step 0 is a look at the context by the engine itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from rlm_core.errors import InputError
from traces.importers.fast_rlm_agents import Agent
from traces.importers.foreign import ForeignRun
from traces.importers.source import Source
from traces.importers.told import unusable
from traces.importers.values import CIRCLE, Once, count, digest, heads_of_circles, moment, text

_EVENTS: Final = ("agent_start", "code_generated", "execution_result", "final_result", "agent_end")
_STEPS: Final = _EVENTS[1:3]
_NAMED: Final = 5  # lines whose numbers are told
_MISSING: Final = (
    "The record holds no model and not the question: neither what the run was asked nor what it was given.",
    "Of the replies of the root only code and reasoning are in the record; what it was sent is not.",
    "Calls by which an agent confirms what it was given are not in the record, nor are their tokens.",
)


def recognises(source: Source) -> bool:
    """Whether its first lines are those of fast-rlm."""
    if source.is_folder or b'"event_type"' not in source.head():
        return False
    return any(_is_event(line) for line in source.first_lines())


def _is_event(line: Mapping[str, Any]) -> bool:
    return line.get("event_type") in _EVENTS and text(line.get("run_id")) is not None and "depth" in line


def read(source: Source) -> Iterator[ForeignRun]:
    """A run for each agent that no other one of the file has asked.

    Raises InputError when there is none.
    """
    agents: dict[str, Agent] = {}
    asked_in: dict[str, list[Agent]] = defaultdict(list)  # by their caller, since its last step
    lost: list[int] = []
    once, found = Once(), list[Mapping[str, Any]]()
    for number, line in source.lines():
        if not isinstance(line, dict) or not _is_event(line):
            lost.append(number)
        elif once.is_first(_place(line), line):
            found.append(line)
    problems = [*_about(lost), *once.problems("Lines")]
    for line in _in_order(found, problems):
        name, caller = line["run_id"], text(line.get("parent_run_id"))
        agent = agents.get(name)
        if agent is None:
            agent = agents[name] = Agent(name, caller)
            if caller is not None:
                asked_in[caller].append(agent)
        agent.take(line, asked_in.pop(name, ()) if "step" in line else ())
    for caller, left in asked_in.items():
        if caller in agents:
            agents[caller].left_open(left)
    for name in heads_of_circles({name: agent.caller for name, agent in agents.items()}):
        problems.append(CIRCLE.format(name[:80], "it is taken for a run of its own"))
        agents[str(agents[name].caller)].disown(agents[name])
    tops = [agent for agent in agents.values() if agent.caller not in agents]
    if not tops:
        raise InputError(f"{source.name} holds no agent of fast-rlm that can be read.")
    for agent in tops:
        yield _run(agent, problems)


def _place(line: Mapping[str, Any]) -> tuple[str, str, int | None] | None:
    """What no two lines of a log have in common; None for a step without a number."""
    step = count(line.get("step"))
    numbered = "step" in line or line["event_type"] in _STEPS
    return None if numbered and step is None else (line["run_id"], line["event_type"], step)


def _in_order(lines: list[Mapping[str, Any]], problems: list[str]) -> list[Mapping[str, Any]]:
    """Lines by their times, where the steps of an agent do not follow one another as they stand."""
    newest: dict[str, int] = {}
    for line in lines:
        if (step := count(line.get("step"))) is not None:
            if step < newest.get(line["run_id"], 0):
                break
            newest[line["run_id"]] = step
    else:
        return lines
    said = "Lines do not stand in the order of their steps"
    times = [when for line in lines if (when := moment(line.get("time"))) is not None]
    if len(times) < len(lines):
        problems.append(f"{said}, and not all have a time: they were left as they stand.")
        return lines
    problems.append(f"{said}: they were put in the order of their times.")
    return [line for _, line in sorted(zip(times, lines, strict=True), key=itemgetter(0))]


def _run(agent: Agent, problems: Sequence[str]) -> ForeignRun:
    agents = list(agent.with_those_below())
    for one in reversed(agents):  # from the innermost, whose times make those of their callers
        one.finish()
    missing = list(_MISSING)
    for told in (one.missing for one in agents):
        missing += [sentence for sentence in told if sentence not in missing]
    orphan = [] if agent.caller is None else ["The agent that asked this one is not in the record."]
    return ForeignRun(
        format="fast-rlm",
        engine="fast-rlm",
        key=digest([one.lines for one in agents]),
        stem=digest(agent.lines[:1]),
        top=agent.span,
        missing=missing,
        problems=[*problems, *orphan, *unusable(agent.span)],
        closed=agent.ended,
    )


def _about(lost: list[int]) -> Iterable[str]:
    if lost:
        more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
        named = ", ".join(map(str, lost[:_NAMED]))
        yield f"Lines that are none of fast-rlm, or end in the middle: {named}{more}."
