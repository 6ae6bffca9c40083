"""Runs of recursive-flow: its run folders, old and new, its snapshots and its traces of snapshots.

An agent is a run with its turns: each action is followed by one observation. A turn (an iteration here) is a
call of the model and the code of its reply; agents that the code launches are child runs of that cell. The
nodes hold tokens and texts, but no times, no costs and nothing of `llm_query_batched`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from traces.importers.foreign import NO_TIMES, ForeignRun, derived
from traces.importers.recursive_flow_turns import Agent, Turns
from traces.importers.source import Source
from traces.importers.told import unusable
from traces.importers.values import (
    CIRCLE,
    digest,
    heads_of_circles,
    items,
    moment,
    table,
    text,
    whole_or_part,
)

_FILES: Final = 200_000  # of a run folder
_LOOKED_AT: Final = 20  # agents of a folder without a manifest, to recognise it
_MISSING: Final = (
    NO_TIMES,
    "The record holds no costs.",
    "Calls of llm_query_batched are not in the record: neither prompts nor replies nor tokens.",
    "What root calls were sent is put together from the nodes, as the engine does it: a nudge that it adds "
    "for one call, and older turns that it leaves out (max_messages), are not in the record.",
    "The limits of the first agent are not in the record, nor whether its answer was forced.",
)


@dataclass(slots=True)
class _Graph:
    """The agents of one run by id, as one state of the run has them."""

    root: str
    agents: dict[str, Agent]
    saved_ns: int | None = None
    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # problems by which calls are lost


def recognises(source: Source) -> bool:
    """Whether it is a run folder of recursive-flow, or a snapshot, a trace or a list of snapshots."""
    if source.is_folder:
        named = (source.path / "graph.json").is_file()
        manifest = source.inside("graph.json").document() if named else None
        if manifest is not None:
            return _is_manifest(manifest)
        first = islice(_agent_files(source), _LOOKED_AT)
        found = (table(source.inside(*place, "agent.json").document()) for place in first)
        return any(text(meta.get("agent_id")) and "system_prompt" in meta for meta in found)
    head = source.head()
    if b'"agent_id"' in head:
        return bool(_snapshots(whole_or_part(source)[0]))
    return b'"root_agent_id"' in head and _is_manifest(source.document())


def read(source: Source) -> Iterator[ForeignRun]:
    """The runs of a folder or file: one, unless a trace holds the states of several.

    Raises InputError when nothing can be had of it.
    """
    if source.is_folder:
        yield _run(_of_folder(source))
        return
    document, whole = whole_or_part(source)
    if _is_manifest(document):
        yield _run(_of_folder(Source(source.path.parent, source.name)))
        return
    states: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for snapshot in _snapshots(document):
        states[_first_node(snapshot)].append(snapshot)
    if not states:
        raise InputError(f"{source.name} holds no agent of recursive-flow that can be read.")
    for snapshots in states.values():
        graph = _of_snapshots(snapshots)
        if not whole:
            graph.problems.append("The file ends in the middle: what stands after that is lost.")
        yield _run(graph)


def _is_manifest(document: Any) -> bool:
    found = table(document)
    return "root_agent_id" in found and "agents" in found and "nodes" not in found and "states" not in found


def _snapshots(document: Any) -> list[Mapping[str, Any]]:
    """The states of runs that a document holds, in order."""
    steps = [document]
    if isinstance(document, list):
        steps = document
    elif "steps" in table(document):
        steps = items(document["steps"])
    return [
        step for step in steps if text(table(step).get("agent_id")) and ("nodes" in step or "states" in step)
    ]


def _first_node(snapshot: Mapping[str, Any]) -> str:
    """What all states of one run have in common."""
    nodes = _nodes(snapshot)
    return str(nodes[0].get("id")) if nodes else ""


def _nodes(snapshot: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = items(snapshot.get("nodes", snapshot.get("states")))
    return [node for node in listed if isinstance(node, dict) and node]


def _of_snapshots(snapshots: list[Mapping[str, Any]]) -> _Graph:
    """The last state of a run, with what earlier ones had and it has no more."""
    kept = [_Graph(str(state["agent_id"]), dict(_agents_of(state))) for state in snapshots[::-1]]
    graph = kept[0]
    last = {str(node.get("id")) for agent in graph.agents.values() for node in agent.nodes}
    gone = {
        str(node.get("id")) for state in kept[1:] for agent in state.agents.values() for node in agent.nodes
    } - last
    if gone:
        graph.missing.append(
            f"Earlier states of this run held {len(gone):,} nodes that its last one no longer has (the run "
            "was edited or wound back): they are not taken in."
        )
    return graph


def _agents_of(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, Agent]]:
    waiting: list[tuple[Mapping[str, Any], str | None]] = [(snapshot, None)]
    while waiting:
        state, above = waiting.pop()
        agent = Agent.of(state, _nodes(state), above)
        if agent is not None:
            yield agent.agent_id, agent
            children = table(state.get("children")).values()
            waiting += [
                (child, agent.agent_id) for child in reversed(list(children)) if isinstance(child, dict)
            ]


def _of_folder(source: Source) -> _Graph:
    manifest = table(source.inside("graph.json").document()) if (source.path / "graph.json").is_file() else {}
    metadata = table(manifest.get("metadata"))
    graph = _Graph(text(manifest.get("root_agent_id")) or "", {}, moment(metadata.get("saved_at")))
    if not manifest:
        graph.problems.append("There is no readable graph.json: agents were found by their own files.")
    for place in _agent_files(source):
        meta = source.inside(*place, "agent.json").document()
        nodes = list(_session(source.inside(*place, "session.jsonl"), graph.lost))
        agent = Agent.of(table(meta), nodes, None)
        if agent is None:
            graph.lost.append(f"{'/'.join((*place, 'agent.json'))} cannot be read: that agent is left out.")
        elif agent.agent_id in graph.agents:
            graph.problems.append(f"There are two agents {agent.agent_id[:80]}: the second is left out.")
        else:
            graph.agents[agent.agent_id] = agent
    lost = [name for name in map(str, items(manifest.get("agents"))) if name not in graph.agents]
    if lost:
        graph.lost.append(
            f"Agents named in graph.json without files: {', '.join(name[:80] for name in lost[:5])}"
            + (f" and {len(lost) - 5:,} more." if len(lost) > 5 else ".")
        )
    if graph.root not in graph.agents:
        graph.root = (
            min(graph.agents.values(), key=lambda agent: agent.depth).agent_id if graph.agents else ""
        )
    if not graph.agents:
        raise InputError(f"{source.name} holds no agent of recursive-flow that can be read.")
    return graph


def _agent_files(source: Source) -> Iterator[tuple[str, ...]]:
    """The folders of agents below a run folder: nested in `agents`, or flat as older versions had them."""
    top = source.path / "agents"
    nested = top.is_dir()
    seen = 0
    for folder, folders, files in os.walk(top if nested else source.path):
        folders.sort()
        seen += len(files)
        place = os.path.relpath(folder, source.path)
        if "agent.json" in files and place != "." and not os.path.islink(os.path.join(folder, "agent.json")):
            yield tuple(place.split(os.sep))
        if not nested and place != "." or seen > _FILES:
            folders.clear()


def _session(source: Source, lost: list[str]) -> Iterator[Mapping[str, Any]]:
    if not source.path.is_file() or source.path.is_symlink():
        lost.append(f"{source.name} is not there: what that agent did is lost.")
        return
    for number, value in source.lines():
        if isinstance(value, dict):
            yield value
        else:
            lost.append(f"{source.name}, line {number}: no node can be read there.")


def _run(graph: _Graph) -> ForeignRun:
    turns = {name: Turns(agent) for name, agent in graph.agents.items()}
    _nest(graph, turns)
    root = turns[graph.root]
    top = root.span
    if graph.saved_ns is not None:
        top.start = derived(graph.saved_ns, "The record holds no times: this is when it was saved.")
    models = [turns[name].model for name in turns if name != graph.root]
    missing = [*_MISSING, *graph.missing]
    for told in (turn.missing for turn in turns.values()):
        missing += [sentence for sentence in told if sentence not in missing]
    if graph.lost or any(turn.lacks_calls for turn in turns.values()):
        top.attributes[sc.IMPORT_LACKS_CALLS] = True
    if not root.finished:
        missing.append("The record ends before the run does: it has no answer.")
    problems = [*graph.problems, *graph.lost, *(said for turn in turns.values() for said in turn.problems)]
    return ForeignRun(
        format="recursive-flow",
        engine="recursive-flow",
        stem=digest(node) if (node := next(iter(root.agent.nodes), None)) else None,
        key=digest([[agent.meta, list(agent.nodes)] for agent in graph.agents.values()]),
        top=top,
        root_model=root.model,
        sub_model=next(filter(None, models), None),
        missing=missing,
        problems=problems + unusable(top),
        closed=root.finished,
    )


def _nest(graph: _Graph, turns: Mapping[str, Turns]) -> None:
    """Put the run of every agent into the cell that launched it."""
    below: dict[str, list[str]] = defaultdict(list)
    for name, agent in graph.agents.items():
        if name != graph.root:
            above = agent.parent if agent.parent in graph.agents and agent.parent != name else graph.root
            if above != agent.parent:
                graph.problems.append(
                    f"Who launched the agent {name[:80]} is not in the record: it stands at the end."
                )
            below[above].append(name)
    placed: set[str] = set()
    _place(graph.root, below, placed, turns)
    callers = {name: agent.parent for name, agent in graph.agents.items() if name != graph.root}
    for name in heads_of_circles(callers):
        graph.problems.append(CIRCLE.format(name[:80], "it stands at the end"))
        turns[graph.root].launch({name: turns[name]})
        _place(name, below, placed, turns)


def _place(top: str, below: Mapping[str, list[str]], placed: set[str], turns: Mapping[str, Turns]) -> None:
    """Put all agents below one into the cells that launched them."""
    placed.add(top)
    waiting = [top]
    while waiting:
        above = waiting.pop()
        inside = [name for name in below[above] if name not in placed]
        turns[above].launch({name: turns[name] for name in inside})
        placed.update(inside)
        waiting += inside
