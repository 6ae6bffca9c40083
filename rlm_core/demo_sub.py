"""`demo/sub`: answers sub-prompts by rules. Labels by lexicon, values by patterns, sentences by shared words.

It replies short and in fixed forms: a label; `value | "sentence"`; `NONE`; items one per line. What the
wording does not make plain starts with `UNSURE: `. No language model is involved.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rlm_core import demo_values, demo_words
from rlm_core.demo_lookup import answer_in, quote_of, sentences, share_of
from rlm_core.demo_question import Asked, asking_sentence, read_question
from rlm_core.demo_words import OTHER, content_words, stem

NONE: Final = "NONE"
UNSURE: Final = "UNSURE: "


class Reply(NamedTuple):
    """What the sub-model says; `quote` is the sentence it rests on, "" where there is none."""

    text: str
    quote: str = ""


class _Prompt(NamedTuple):
    instruction: str
    marks: dict[str, str]  # "labels" -> "billing, login" for a line "Labels: billing, login"
    text: str


def reply(prompt: str) -> Reply:
    """Answer one sub-prompt. Never fails: a prompt it has no rule for gets the closest sentence."""
    parts = _take_apart(prompt)
    low = parts.instruction.lower()
    if "labels" in parts.marks:
        return Reply(_label(parts.marks["labels"], parts.text))
    if "list" in parts.marks:
        return Reply(_listed(parts.marks["list"], parts.text))
    question = parts.marks.get("question") or asking_sentence(parts.instruction)
    if "document" in parts.marks:
        return _lookup(question, parts.marks, parts.text)
    if re.search(r"\byes or no\b|\bsí o no\b|\bsim ou não\b", low):
        return _yes_or_no(question, parts.text)
    if re.search(r"\bsummar|\bresum|\bsintetiz", low):
        return Reply(_summary(parts.text))
    if re.search(r"\bgroup\b|\bagrup|\bthemes?\b|\btemas?\b", low):
        return Reply(_themes(parts.text))
    return _lookup(question, parts.marks, parts.text)


def labels_of(prompt: str) -> list[str]:
    """The labels that a prompt offers; none if it asks for something else."""
    return [x.strip() for x in _take_apart(prompt).marks.get("labels", "").split(",") if x.strip()]


def _take_apart(prompt: str) -> _Prompt:
    """Instruction, marked lines and text: parted by a line `Text:`, a blank line or a colon."""
    marked = re.search(r"^Text:[ \t]*(?:\n|$)", prompt, re.M)
    if marked:
        head, text = prompt[: marked.start()], prompt[marked.end() :]
    else:
        end = re.search(r"\n\s*\n", prompt) or re.search(r":\s", prompt[:300])
        head, text = (prompt[: end.end()], prompt[end.end() :]) if end else (prompt, prompt)
    marks = {
        m[1].lower(): m[2].strip()
        for m in re.finditer(r"^(Question|Labels|List|Key|Document): *(.*)$", head, re.M)
    }
    return _Prompt(head.strip(), marks, text.strip())


# -- labels


def _label(line: str, text: str) -> str:
    labels = [x.strip() for x in line.split(",") if x.strip()]
    named = [x for x in labels if x != OTHER]
    group = demo_words.group_of(named)
    low = text.lower()
    if group:
        counts = {x: demo_words.hits(group, x, low) for x in named}
    else:
        words = demo_words.tokens(text)
        counts = {x: sum(any(w.startswith(stem(p)) for w in words) for p in x.lower().split()) for x in named}
    best = max(counts.values(), default=0)
    first = [x for x in named if counts[x] == best]  # ties go by the order of the labels
    if best == 0:
        return UNSURE + OTHER if group else OTHER
    return first[0] if len(first) == 1 else UNSURE + first[0]


# -- typed lists


def _listed(wanted: str, text: str) -> str:
    low = wanted.lower()
    kind = next((k for k in demo_values.PATTERNS if k in low.replace("-", "")), None)
    if kind is None:
        return NONE
    found = demo_values.values_in(text, kinds=_up_to(kind))
    return "\n".join(dict.fromkeys(v.text for v in found if v.kind == kind)) or NONE


def _up_to(kind: str) -> list[str]:
    kinds = list(demo_values.PATTERNS)
    return kinds[: kinds.index(kind) + 1]


# -- questions


def _lookup(question: str, marks: dict[str, str], text: str) -> Reply:
    asked = read_question(question)
    if marks.get("key"):
        key = tuple(marks["key"].lower().split())
        words = tuple(w for w in asked.words if w not in key)
        asked = Asked(asked.question, asked.kind, key, words, asked.nouns)
    found = answer_in(text, asked, marks.get("document", ""))
    if found is None:
        return Reply(NONE)
    return Reply(f'{"" if found.sure else UNSURE}{found.value} | "{found.quote}"', found.quote)


def _yes_or_no(question: str, text: str) -> Reply:
    words = tuple(
        dict.fromkeys(
            w for w in content_words(question) if w not in {"answer", "yes", "quote", "clause", "first"}
        )
    )
    lines = sentences(text)
    best = max(lines, key=lambda s: share_of(words, s), default="")
    share = share_of(words, best) if words else 0.0
    if share < 0.5:
        return Reply(f"{UNSURE}no")
    negated = re.search(r"\b(?:not|no|never|neither|without|nunca|sin|não|sem)\b|n't\b", best, re.I)
    return Reply(
        f'{"" if share >= 0.6 else UNSURE}{"no" if negated else "yes"} | "{quote_of(best)}"', quote_of(best)
    )


def _summary(text: str) -> str:
    prose = [s for s in sentences(text) if len(s.split()) >= 3 and s[-1] in ".!?"] or sentences(text)
    return " ".join(prose[:2]) or NONE


def _themes(text: str) -> str:
    """Lines or paragraphs under the content word most of them share: a rough grouping, one theme per line."""
    items = [p for p in re.split(r"\n+", text) if p.strip()]
    spread: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        for word in dict.fromkeys(w for w in content_words(item) if len(w) > 3 and not w.isdigit()):
            spread.setdefault(stem(word), []).append(number)
    left = set(range(len(items)))
    lines = []
    for word, members in sorted(spread.items(), key=lambda kv: (-len(kv[1]), kv[0])):
        here = sorted(left & set(members))
        if len(here) >= 2 and len(here) < max(3, len(items)):
            lines.append(f"{word}: {len(here)} of {len(items)}")
            left -= set(here)
    return "\n".join([*lines[:12], *([f"{OTHER}: {len(left)} of {len(items)}"] if left else [])]) or NONE
