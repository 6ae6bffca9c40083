"""What differs in the root's first message from model to model: a few traits, read from the models' ids.

The text for a model with none of them is `rlm_core.prompts.SYSTEM`. A trait adds a note, or (`small`) puts a
shorter text in its place; the run's span names them. Sources: arXiv:2512.24601, whose authors use one text
for GPT-5, add a warning against too many sub-calls for Qwen3-Coder and shorten it for a window of 32k tokens,
and who saw models that think run out of output; the note for `claude` is our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rlm_core.context_window import context_window
from rlm_core.pricing import DEMO_PREFIX
from rlm_core.prompts import PROMPTS_VERSION, SHORT_SYSTEM, SNIPPET_CHARS, SYSTEM

SMALL_WINDOW: Final = 40_000  # tokens; a window up to this is small
_WIDE_WINDOW: Final = 65_536  # tokens from which on snippets may be as long as the prompt says
_FOR_REPLY: Final = 4_096  # tokens of a small window that are left for the prompt's words and the reply
_LEAST_CHARS: Final = 2_000
#: Billions of parameters in a name, such as 8b, 8x7b, or 30b-a3b (30, of which 3 work at a time).
_PARAMETERS: Final = re.compile(
    r"(?:(\d{1,3})x)?(?<![\d.])(\d{1,4}(?:\.\d{1,3})?)b(?![a-z0-9])", re.IGNORECASE
)
_FEW_PARAMETERS: Final = (
    10  # billions; with fewer a model is mostly served with a window of 32k tokens or less
)
_QWEN: Final = re.compile(r"qwen|qwq", re.IGNORECASE)
_CLAUDE: Final = re.compile(r"claude", re.IGNORECASE)
_THINKS: Final = re.compile(
    r"(?:^|[/.\-_])(?:o[1345](?:[-:]|$)|gpt-5(?!.*chat)|gpt-oss|qwq|magistral|gemini-(?:2\.5|3)|grok-(?:3-mini|4))"
    r"|deepseek-(?:r\d|reasoner)|[-_]r1(?:[-_:]|$)|thinking|reason",
    re.IGNORECASE,
)
_THINKS_NOT: Final = re.compile(r"non-(?:reason|think)", re.IGNORECASE)

_FEW_CALLS: Final = """\
Sub-calls cost time and money: put as much into each as fits (about {most} characters) and make dozens of \
them for the whole question, never one for each line or short record. Many short documents go in groups:
```repl
groups = [documents[i:i + 20] for i in range(0, len(documents), 20)]
replies = llm_batch(["For each text, one line: its name, then yes or no."] * len(groups), groups)
```
"""
_NO_OUTPUT: Final = """\
Write nothing after the block, above all no output: what a cell prints comes from the REPL alone, in the \
next message.
"""
_ROOM_TO_THINK: Final = """\
What you think counts into the {tokens} tokens that a reply may have: think briefly and write the cell soon.
"""
_SUB_THINKS: Final = """\
The sub-model thinks before it answers, within the same limit as its reply: where replies are empty or cut \
off, pass max_tokens=16000 to llm_query or llm_batch.
"""


@dataclass(frozen=True, slots=True)
class Family:
    """How the root of a run is spoken to. `traits` are those of its models, in a fixed order; `snippet_chars`
    is how much text a sub-call is said to take, `reply_tokens` what a reply of the root may have.
    """

    traits: tuple[str, ...]
    snippet_chars: int = SNIPPET_CHARS
    reply_tokens: int = 8_192
    sub_thinks: bool = False

    @property
    def version(self) -> str:
        """For `rlm_core.semconv.PROMPTS_VERSION`, such as 3/gpt or 3/small+qwen."""
        return f"{PROMPTS_VERSION}/{'+'.join(self.traits) or 'gpt'}"

    @property
    def system(self) -> str:
        """The system message."""
        text = SHORT_SYSTEM if "small" in self.traits else SYSTEM
        text = text.replace(f"{SNIPPET_CHARS:,}", f"{self.snippet_chars:,}")
        for trait, note in _NOTES:
            if trait in self.traits:
                text += note(self)
        return text


def _thinking(family: Family) -> str:
    note = _ROOM_TO_THINK.format(tokens=f"{family.reply_tokens:,}")
    return note + _SUB_THINKS if family.sub_thinks else note


_NOTES: Final[tuple[tuple[str, Callable[[Family], str]], ...]] = (
    ("qwen", lambda family: _FEW_CALLS.format(most=f"{family.snippet_chars:,}")),
    ("claude", lambda _: _NO_OUTPUT),
    ("reasoning", _thinking),
)


def family_of(root: str, sub: str, *, root_window: int | None = None, reply_tokens: int = 8_192) -> Family:
    """The family for two model ids. `root_window`: tokens of the root's window, where somebody said so."""
    window = root_window or known_window(root)
    small = window <= SMALL_WINDOW if window else _has_few_parameters(root)
    found = {
        "small": small,
        "qwen": _QWEN.search(root) is not None,
        "claude": _CLAUDE.search(root) is not None,
        "reasoning": thinks(root),
    }
    traits = tuple(trait for trait, has in found.items() if has)
    return Family(traits, _snippet_chars(sub), reply_tokens, thinks(sub))


def thinks(model: str) -> bool:
    """Whether a model, by its id, thinks before it answers and pays for that out of its output."""
    return _THINKS.search(model) is not None and _THINKS_NOT.search(model) is None


def known_window(model: str) -> int | None:
    """Tokens a model takes as input; None when that is not known, and for the demo models, which take any."""
    return None if model.startswith(DEMO_PREFIX) else context_window(model)


def _has_few_parameters(model: str) -> bool:
    """By its name."""
    sizes = [float(size) * int(times or 1) for times, size in _PARAMETERS.findall(model)]
    return bool(sizes) and max(sizes) < _FEW_PARAMETERS


def _snippet_chars(sub: str) -> int:
    """At two characters for a token, which is safe in any script, what a small window holds."""
    window = known_window(sub) or (SMALL_WINDOW - 8_000 if _has_few_parameters(sub) else _WIDE_WINDOW)
    if window >= _WIDE_WINDOW:
        return SNIPPET_CHARS
    return max(_LEAST_CHARS, (window - _FOR_REPLY) * 2 // 1_000 * 1_000)
