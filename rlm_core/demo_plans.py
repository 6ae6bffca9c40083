"""What the forms of `demo/root` are made of: plans, the passage search of a lookup, and the last resort."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlm_core import demo_cells as cells
from rlm_core.demo_cells import Raw, fill
from rlm_core.demo_question import read_question
from rlm_core.demo_words import stem, tokens


@dataclass(frozen=True, slots=True)
class Plan:
    """Cells after the first look, each with a line of prose; without `last` the root types the answer."""

    steps: tuple[tuple[str, str], ...]
    last: str | None = None


def finish(name: str, *, sure: bool = False) -> str:
    """The last cell that hands over a variable; with remarks it marks the answer."""
    return f'FINAL_VAR("{name}")' if sure else fill(cells.FINISH, name=Raw(name), quoted=name)


def lookup(question: str) -> Plan | None:
    """What / who / when / where ...: the closest passages are asked, the root types the value they give."""
    asks = (
        r"\b(?:what(?:'s)?|which|who|whose|whom|when|where|how (?:many|much|long)|qué|cuál(?:es)?|quién"
        r"|cu[aá]ndo|dónde|cu[aá]nt[oa]s?|qual|quais|quem|quando|onde|quant[oa]s?)\b"
    )
    wants = (
        r"(?:find|give|tell|state|name|return|report|identify|provide|look|retrieve|locate|extract|show"
        r"|get|i need|i want|looking for|like to know|dime|indica|encuentra|busca|diga|informe|encontre"
        r"|indique)\b"
    )
    polite = r"^(?:please|por favor|(?:can|could|would|will) you(?: please)?)\b[, ]*"
    opening = re.sub(polite, "", question.lstrip(" ¿¡\"'"), flags=re.I)
    if re.match(r"(?:why|how come|por qu[eé])\b", opening, re.I):
        return None
    noun_phrase = re.match(r"(?:the|el|la|o|a) .+ (?:of|for|de|do|da|del) ", opening, re.I)
    if not re.search(asks, question, re.I) and not re.match(wants, opening, re.I) and not noun_phrase:
        return None
    terms, weight, key = _terms(question)
    if not terms:
        return None
    first = fill(cells.LOOKUP, terms=terms, weight=weight, question=question, key=" ".join(key))
    steps = (
        ("I look for the closest passages and ask about those.", first),
        ("I compare the replies.", cells.LOOKUP_BEST),
    )
    return Plan(steps)


def no_plan(question: str) -> Plan:
    """No form fits: say so, and show the closest passage."""
    terms, weight, _ = _terms(question)
    prose = "I have no plan for this question; I look for the closest passage."
    return Plan(((prose, fill(cells.CLOSEST, terms=terms, weight=weight)),))


def _terms(question: str) -> tuple[dict[str, str], dict[str, int], tuple[str, ...]]:
    """(word -> pattern, weights above 1, key) of a question, for the passage search."""
    asked = read_question(question)
    terms: dict[str, str] = {}
    weight: dict[str, int] = {}
    named = asked.key or asked.words
    for first, second in zip(named, named[1:], strict=False):
        phrase = f"{first} {second}"
        terms[phrase] = rf"{_spelled(first)}[\W_]*{_spelled(second)}"
        weight[phrase] = 3 if asked.key else 1
    parts = [part for word in asked.key for part in tokens(word) if part != word]
    for word in (*asked.key, *asked.words, *parts):
        if len(word) > 3:
            terms.setdefault(word, _spelled(stem(word)))
        elif len(word) > 1:
            terms.setdefault(word, rf"(?<![^\W_]){_spelled(word)}(?![^\W_])")
    weight |= {word: 2 for word in asked.key if word in terms}
    return terms, {term: more for term, more in weight.items() if more > 1}, asked.key


def _spelled(word: str) -> str:
    """A pattern for a word; a compound may be spelled with any separator or none."""
    return r"[\W_]*".join(re.escape(part) for part in tokens(word))
