"""What a diagnosis says in sentences: verdicts, how far they are proven, what they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Final

from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from traces.candidates import Candidate
from traces.culprits import Found
from traces.diagnosis import Origin
from traces.finding import number_of, some_of
from traces.refused import refused
from traces.reply_facts import short
from traces.rows import SpanRow
from traces.same_answer import same_answer
from traces.trial import Outcome, Target, Trial
from traces.view import RunView

_QUOTED: Final = 120  # characters of an answer
_NAMED: Final = 3  # spans in a sentence
#: Origin of a patch -> the text in one place, and those in several, as the end of "with ..."; {} is what is
#: replaced.
_TEXTS: Final[dict[Origin, tuple[str, str]]] = {
    "good run": ("the good run's {}", "the good run's {}"),
    "sibling": ("a {} that its siblings gave", "{} that their siblings gave"),
    "source": ("a value that stands in its prompt", "values that stand in their prompts"),
    "expected": ("the value of the expected answer", "the value of the expected answer"),
    "user": ("the given {}", "the given {}"),
    "re-ask": ("the {} of another try", "the {} of another try"),
}
_REPLACED: Final = {
    "sub_call": ("reply", "replies"),
    "run": ("answer", "answers"),
    "cell": ("code", "code"),
}


def quoted(text: str | None) -> str:
    """A text in quotes on one line, cut; "no answer" for None."""
    return "no answer" if text is None else f"“{short(text, _QUOTED)}”"


def name_of(span: SpanRow) -> str:
    """A span as people call it: `sub-call 17 of cell 2`."""
    number = "" if span.call_index is None else f" {span.call_index}"
    inside = _inside(span)
    cell = "" if span.cell is None else f"cell {span.cell}"
    if span.kind == "cell":
        return f"{cell or 'a cell'}{inside}"
    word = "child run" if span.kind == "run" else "sub-call"
    return f"{word}{number}{f' of {cell}' if cell else ''}{inside}"


def _inside(span: SpanRow) -> str:
    """The child run that a span stands in. A run of its own has mostly its own path, which is one longer."""
    level = span.depth - int(span.kind == "run")
    path = span.attributes.get(sc.RUN_PATH)
    parts = path.split(".")[: level + 1] if isinstance(path, str) else []
    if level <= 0:
        return ""
    return f" in child run {'.'.join(parts)}" if len(parts) == level + 1 else " in a child run"


def _shared_words(view: RunView, members: Sequence[Candidate]) -> str:
    """That several members are one reply of a model; "" where none came from the cache."""
    spans = [view.by_id[one.span_id] for one in members]
    shared = sum(span.attributes.get(sc.SERVED_FROM) == "cache" for span in spans)
    if not shared:
        return ""
    return f"The cache gave {shared:,} of them the reply that an equal call had got."


def put_in(view: RunView, span_id: str, text: str) -> str:
    """What a patch put in the place of a reply; of the code of a cell only the lines that it changed, `-` as
    they were and `+` as they became. Raises RecordError when the code cannot be read.
    """
    span = view.by_id.get(span_id)
    digest = None if span is None or span.kind != "cell" else span.attributes.get(sc.CODE + ".sha256")
    code = view.payload(digest) if isinstance(digest, str) else None
    if code is None or code == text:
        return text
    changed = unified_diff(code.splitlines(), text.splitlines(), lineterm="", n=0)
    lines = [f"{one[0]} {one[1:].strip()}" for one in islice(changed, 2, None) if one[0] in "+-"]
    return " ".join(lines) or text  # only ends of lines differ


def names_of(view: RunView, span_ids: Iterable[str]) -> str:
    """Spans as people call them, the first few: `sub-call 1 of cell 0 and cell 2`."""
    listed = [name_of(view.by_id[one]) for one in span_ids if one in view.by_id]
    if len(listed) <= _NAMED and len(listed) > 1:
        return f"{', '.join(listed[:-1])} and {listed[-1]}"
    return some_of(listed, _NAMED)


def found_words(view: RunView, found: Found[Candidate], trial: Trial, target: Target | None) -> str:
    """The verdict on a set of culprits, from the trial of their joint patch."""
    members = found.members
    names = names_of(view, (one.span_id for one in members))
    names = names[:1].upper() + names[1:]
    texts = " and ".join(sorted(_texts_of(members)))
    place = "in its place" if len(members) == 1 else "in their places"
    broke = "may have broken" if guessed_words(members) else "broke"
    if trial.outcome == "fixed":
        together = "" if len(members) == 1 else " together"
        words = (
            f"{names} {broke} the answer{together}: with {texts} {place}{_code_kept(members, trial)} it is "
            f"{quoted(trial.answer)}{_instead(trial)}."
        )
    else:
        words = f"{names} changed what the root was shown: with {texts} {place} {_shown(trial, target)}."
    told = (words, _minimal_words(found), _refused_words(view, members), _shared_words(view, members))
    return " ".join(one for one in told if one)


def _refused_words(view: RunView, members: Sequence[Candidate]) -> str:
    """That a limit, not a model, is behind calls that were never made; "" for none."""
    found = {one.span_id for one in members} & refused(view.spans)
    if not found:
        return ""
    if len(found) < len(members):
        return f"A limit of the run had refused {len(found):,} of them: there no model was asked."
    which = "that call" if len(found) == 1 else "these calls"
    return f"A limit of the run had refused {which}: no model was asked."


def _code_kept(members: Sequence[Candidate], trial: Trial) -> str:
    """Where the root would have been shown something else before another turn: what it wrote then is kept."""
    if trial.reached is None:
        return ""
    other = "other " if any(one.culprit.kind == "cell" for one in members) else ""
    return f", and the root's {other}code kept as recorded,"


def guessed_words(members: Sequence[Candidate]) -> tuple[str, ...]:
    """That nothing is proven by texts that are neither a good run's nor a person's; () where all are."""
    origins = {one.culprit.origin for one in members} - {"good run", "user"}
    if not origins:
        return ()
    whose = "a model gave on another try" if origins == {"re-ask"} else "a rule proposed"
    text = "the text in its place is one" if len(members) == 1 else "there are texts in their places"
    return (f"That is no proof: {text} that {whose}, and may be untrue.",)


def lost_words(view: RunView, span_ids: Sequence[str]) -> tuple[str, ...]:
    """That at some places where two runs differ the good one has nothing to put there; () for no places."""
    if not span_ids:
        return ()
    many = len(span_ids) > 1
    return (
        f"In the {'places' if many else 'place'} of {names_of(view, span_ids)} the good run has no text (its "
        "own call may have failed), so nothing could be tried there.",
    )


def out_of_reach_words(view: RunView, span_ids: Sequence[str]) -> tuple[str, ...]:
    """That some candidates could not be tried, standing in cells that are not run again; () for none."""
    if not span_ids:
        return ()
    which = "cells that were" if len(span_ids) > 1 else "a cell that was"
    return (
        f"Nothing could be tried in the place of {names_of(view, span_ids)}: in {which} killed or "
        "interrupted, which is not run again.",
    )


def asked_again_words(
    outcomes: Sequence[Outcome], answers: Sequence[str | None], target: Target | None
) -> str:
    """What came of asking the root again with the changed output."""
    if not outcomes:
        return (
            "The answer stands in the root's own code: only asking the root again can tell whether it would "
            "have come out right."
        )
    fixed = sum(outcome == "fixed" for outcome in outcomes)
    if set(outcomes) == {"undecided"}:
        return "The root could not be asked again within the budget."
    if target is None:
        said = " and ".join(quoted(one) for one in dict.fromkeys(answers))
        return f"Asked again with that output {number_of(len(outcomes), 'time')}, the root answered {said}."
    count = f"{fixed} of {number_of(len(outcomes), 'time')}"
    return f"Asked again with that output, the root gave the right answer {count}: {quoted(answers[0])}."


def not_fixed_words(trials: Sequence[tuple[int, Trial]], good: bool, target: Target | None) -> str:
    """Why the candidates, all together, did not make the answer right: pairs of their number and trial."""
    count, trial = trials[0]
    texts = "the good run's texts" if good else "the given texts"
    places = "in its place" if count == 1 else f"in the places of all {count:,} candidates"
    if trial.outcome == "undecided":
        why = trial.stopped or "the record does not hold what would be asked then"
        return f"With {texts} {places} the replay could not go on: {why}."
    if trial.outcome == "error":
        why = trial.stopped or "the program ended in an error"
        return f"With {texts} {places} the replay failed: {why}."
    if trial.answer is None:
        return f"With {texts} {places} there is still no answer."
    kept = "stays" if trial.outcome == "unchanged" else "becomes"
    right = None if target is None else same_answer(trial.answer, target.text, target.how)
    verdict = "is not right" if right is False else "nobody has called right or wrong"
    return f"With {texts} {places} the answer {kept} {quoted(trial.answer)}, which {verdict}."


def suspects_words(
    view: RunView,
    suspected: Collection[str],
    tried: Sequence[tuple[Candidate, Trial]],
    target: Target | None,
) -> str:
    """What is known of suspects (span ids) when no trial made the answer right."""
    count, turned_away = len(suspected), len(refused(view.spans).intersection(suspected))
    words = (
        f"{count:,} sub-calls look wrong by themselves" if count > 1 else "One sub-call looks wrong by itself"
    )
    if turned_away:
        words += f", {turned_away:,} of them because a limit of the run refused the call"
    said = [f"{words}; nothing is proven."]
    if tried and target is not None:
        one = "The one text that was proposed does not make"
        none = f"None of {number_of(len(tried), 'proposed text')} for them makes"
        said.append(f"{one if len(tried) == 1 else none} the answer right.")
    groups = (
        ("Another answer comes of another text for", ("fixed", "moved")),
        ("The root is shown other output with another text for", ("reached_root",)),
        ("Nothing changes with another text for", ("unchanged",)),
    )
    told: set[str] = set()
    for words, outcomes in groups:
        spans = dict.fromkeys(one.span_id for one, trial in tried if trial.outcome in outcomes)
        if new := [one for one in spans if one not in told]:
            said.append(f"{words} {names_of(view, new)}.")
            told.update(new)
    return " ".join(said)


def one_of_words(view: RunView, span_ids: Collection[str]) -> str:
    """Several suspects each of which would do alone."""
    return (
        f"Which call broke the answer cannot be told from this run alone: another text for any one of "
        f"{number_of(len(span_ids), 'sub-call')} makes it right ({names_of(view, span_ids)}), and nobody "
        "knows which of these texts is true. A good run or a twin tells."
    )


def assumed_words(
    trial: Trial, found: Found[Candidate], view: RunView, background: int = 0
) -> tuple[str, ...]:
    """What the verdict on a set of culprits rests on, beyond the replays themselves."""
    said = list(trial.assumed)
    if background:
        said.append(
            f"{number_of(background, 'other reply', 'other replies')} that differ in form only (white space, "
            "letter case) were taken from the good run as well, so that no prompt is new; that they do not "
            "matter is assumed."
        )
    if not found.monotone:
        said.append("Some texts undo what others do, so other minimal sets are possible.")
    guessed = [one.span_id for one in found.members if one.culprit.origin not in ("good run", "user")]
    if guessed:
        said.append(
            f"Nobody knows what {names_of(view, guessed)} should have said: the text for its place was "
            "proposed by a rule."
        )
    return tuple(dict.fromkeys(said))


def _texts_of(members: Iterable[Candidate]) -> list[str]:
    counts = Counter((one.culprit.origin, one.culprit.kind) for one in members)
    many = {key: int(count > 1) for key, count in counts.items()}
    return [_TEXTS[key[0]][many[key]].format(_REPLACED[key[1]][many[key]]) for key in counts]


def _instead(trial: Trial) -> str:
    return f", not {quoted(trial.original_answer)}" if trial.original_answer is not None else ""


def _shown(trial: Trial, target: Target | None) -> str:
    where = trial.reached
    if where is None or where.cell is None:
        return "it sees other output"
    inside = "" if where.path == "0" else f" of child run {where.path}"
    if target is not None and normalise(target.text) in normalise(where.new or ""):
        return f"the output of cell {where.cell}{inside} says {quoted(target.text)}"
    return f"it sees other output of cell {where.cell}{inside}"


def _minimal_words(found: Found[Candidate]) -> str:
    many = len(found.members) > 1
    if found.ended == "minimal":
        return "With any one of them left as it was it does not." if many else ""
    if found.ended == "unknown":
        return "Whether fewer of them would do could not be told."
    return "The budget was used up before fewer of them could be ruled out."
