"""The parts of a report about proof, cost, repetition and settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from traces.diagnosis_words import put_in
from traces.imported import calls_words
from traces.report_facts import Facts, dollars, figure, rows
from traces.report_parts import Heading, Items, Part, Table, Text, Words
from traces.rows import money_json
from traces.side_by_side import side
from traces.trial import MODES, OUTCOMES
from traces.visible import line

_MOST_TRIALS: Final = 40
_NAMED: Final = 3  # patched spans that a row of the table names
_SHORT: Final = 80  # characters of a text in the table
#: Settings that stand open, beside those in which two runs differ.
_TOLD: Final = (
    "root model",
    "sub-model",
    "corpus",
    "sandbox",
    "version: rlmscope",
    "version: python",
    "version: litellm",
)
_ON_A_LINE: Final = 200  # characters of a text that a command may hold


def proof_parts(facts: Facts) -> Iterator[Part]:
    """Whether the record can be played again, and every trial."""
    yield Heading("How it was found")
    mode = facts.text("mode") or "strict"
    known: Mapping[str, str] = dict(MODES.items())
    yield Words(
        "Each trial plays the recorded run again: its cells run as they stand in the record, in a sandbox "
        "and over the same documents, with the replies of the record except those that are replaced. Mode "
        f"{mode}: the replay {known.get(mode, 'is of a kind unknown to this version')}."
    )
    yield from _replayability(facts.row("replayability"))
    trials = facts.rows("trials")
    if not trials:
        yield Words("No trial was needed.")
        return
    outcome = facts.text("outcome")
    if facts.culprits and outcome in OUTCOMES:
        yield Words(f"With what is above in its place: {OUTCOMES[outcome]}")
    half = _MOST_TRIALS // 2
    shown = trials if len(trials) <= _MOST_TRIALS else [*trials[:half], *trials[-half:]]
    head = (
        "trial",
        "replaced",
        "by",
        "outcome",
        "answer",
        "from the record",
        "not in it",
        "live calls",
        "cost",
    )
    numbered = {id(trial): number for number, trial in enumerate(trials, 1)}
    yield Table(head, [_trial(facts, numbered[id(one)], one) for one in shown], right=(0, 5, 6, 7, 8))
    if len(shown) < len(trials):
        yield Words(f"{len(trials) - len(shown):,} trials in the middle are not listed.")
    seen = [name for name in OUTCOMES if any(trial.get("outcome") == name for trial in trials)]
    yield Items([f"{name}: {OUTCOMES[name]}" for name in seen])


def _replayability(facts: Mapping[str, Any]) -> Iterator[Part]:
    words = facts.get("words")
    if isinstance(words, str):
        yield Words(words)
    warnings = facts.get("warnings")
    if isinstance(warnings, list) and warnings:
        yield Items([str(warning) for warning in warnings])


def _trial(facts: Facts, number: int, trial: Mapping[str, Any]) -> tuple[str, ...]:
    patched = [facts.name(patch.get("span_id")) for patch in rows(trial.get("patches"))]
    more = f" and {len(patched) - _NAMED:,} more" if len(patched) > _NAMED else ""
    stopped = trial.get("stopped")
    outcome = f"{trial.get('outcome')}" + (f" ({stopped})" if isinstance(stopped, str) else "")
    texts = [
        put_in(facts.view, str(patch.get("span_id")), text)
        if isinstance(text := patch.get("text"), str)
        else None
        for patch in rows(trial.get("patches"))
    ]
    return (
        str(number),
        ", ".join(patched[:_NAMED]) + more if patched else "nothing",
        _short(texts[0], "?") if len(texts) == 1 else "",
        outcome,
        _short(trial.get("answer"), "none"),
        figure(trial.get("hits")),
        figure(trial.get("misses")),
        figure(trial.get("live_calls")),
        dollars(trial.get("cost_usd")),
    )


def _short(text: object, absent: str) -> str:
    shown = line(text) if isinstance(text, str) else absent
    return shown if len(shown) <= _SHORT else shown[: _SHORT - 1] + "…"


def cost_parts(facts: Facts) -> Iterator[Part]:
    """What finding out took, beside what was allowed, and what the run itself took."""
    budget = facts.row("budget")
    allowed = budget.get("usd")
    yield Heading("What finding out cost")
    found = facts.diagnosis
    yield Table(
        ("", "spent", "allowed"),
        [
            ("replays", figure(found.get("replays")), figure(budget.get("replays"))),
            ("live calls to a model", figure(found.get("live_calls")), figure(budget.get("live_calls"))),
            ("dollars", dollars(found.get("cost_usd")), "no limit" if allowed is None else dollars(allowed)),
        ],
        right=(1, 2),
    )
    if (stopped := facts.text("stopped")) is not None:
        yield Words(f"It ended early: {stopped}")
    summary = facts.view.summary
    cost = "a demo model, no dollars" if summary.demo else dollars(money_json(summary.cost_usd))
    yield Words(
        f"The run itself: {calls_words(summary)} in {summary.iterations:,} iterations, {cost}, "
        f"{'a time that is not on record' if summary.seconds is None else f'{summary.seconds:,.1f} s'}."
    )


def repeat_parts(facts: Facts) -> Iterator[Part]:
    """Commands that do the same once more, for whoever has the record."""
    yield Heading("How to repeat it")
    commands, patches = [_diagnose(facts)], [_patch(row) for row in facts.culprits]
    if patches:
        options = " ".join(option for option, _ in patches)
        commands.append(f"rlmscope replay {facts.run_id} {options}{_target(facts)}")
    if facts.good_id:
        commands.append(f"rlmscope diff {shlex.quote(facts.run_id)} {shlex.quote(facts.good_id)}")
    commands += [f"rlmscope span {facts.run_id} {shlex.quote(row['span_id'])}" for row in facts.culprits[:3]]
    yield Text("With the home folder that holds the record", "\n".join(commands), "sh")
    if any(by_file for _, by_file in patches):
        yield Words(
            "SPAN=@FILE takes a text from a file: write what the span should have said into it first."
        )


def _diagnose(facts: Facts) -> str:
    good = facts.good_id
    how = f" --good {shlex.quote(good)}" if good else _target(facts)
    return f"rlmscope diagnose {facts.run_id}{how}"


def _target(facts: Facts) -> str:
    expected = facts.text("expected")
    if expected is None:
        return ""
    said = shlex.quote(expected) if _fits(expected) else "TEXT"
    how = facts.text("match") or "normalised"
    return f" --expected={said}" + ("" if how == "normalised" else f" --match={shlex.quote(how)}")


def _patch(row: Mapping[str, Any]) -> tuple[str, bool]:
    """The option that replaces one culprit, and whether it names a file."""
    text, span_id = row.get("text"), row["span_id"]
    if isinstance(text, str) and _fits(text) and not text.startswith("@"):
        return f"--patch {shlex.quote(f'{span_id}={text}')}", False
    return f"--patch {shlex.quote(f'{span_id}=@{span_id}.txt')}", True


def _fits(text: str) -> bool:
    """Whether a text can stand in a command as it is: short, one line, nothing that is shown otherwise."""
    return len(text) <= _ON_A_LINE and line(text) == text


def settings_parts(facts: Facts) -> Iterator[Part]:
    """Models and versions of the run, then all settings, with those of the good run beside them."""
    yield Heading("Models, settings and versions")
    mine = side(facts.view).settings
    other = mine if facts.good is None else side(facts.good).settings
    names = dict.fromkeys([*mine, *other])
    table = [(name, mine.get(name, "not recorded"), other.get(name, "not recorded")) for name in names]
    first = [row for row in table if row[0] in _TOLD or row[1] != row[2]]
    rest = [row for row in table if row not in first]
    columns = slice(2 if facts.good is None else 3)
    head = ("setting", "this run", "good run")[columns]
    yield Table(head, [row[columns] for row in first])
    if rest:
        yield Table(
            head,
            [row[columns] for row in rest],
            folded=f"{len(rest):,} more settings" + (", the same in both runs" if facts.good else ""),
        )
