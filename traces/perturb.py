"""Another reply of the same form: what a reply is replaced with to see what depends on it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rlm_core.normalise import normalise
from traces.replies import form

_LAST_DIGIT: Final = re.compile(r"\d(?!\d)")
_VOWELS: Final = str.maketrans("aeiouAEIOU", "eiouaEIOUA")


def perturbed_text(text: str, siblings: Sequence[str] = ()) -> str:
    """A text of the same form that says something else, always unequal once normalised.

    Where there are digits, the last one of every number becomes another (so that most dates stay dates); else
    the commonest other reply of the same form among the siblings; else words with other vowels, or a mark.

    >>> perturbed_text("EUR 17,509"), perturbed_text("billing", ["login", "login", "bug", "billing"])
    ('EUR 16,508', 'login')
    """
    if _LAST_DIGIT.search(text):
        return _LAST_DIGIT.sub(lambda match: str(int(match[0]) + (-1 if int(match[0]) > 1 else 1)), text)
    own, norm = form(text), normalise(text)
    others = Counter(other for other in siblings if normalise(other) != norm and form(other) == own)
    if others:
        return others.most_common(1)[0][0]
    changed = text.translate(_VOWELS)
    return changed if normalise(changed) != norm else f"{text} x"
