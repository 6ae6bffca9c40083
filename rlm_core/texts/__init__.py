"""The corpus as code in a cell sees it. Runs in the worker: standard library only, nothing heavy at import.

A document is a real `str` that also knows its place (`Text`), and so does every slice of it; that is how a
sub-call can say which part of the corpus it saw without sending the text. Texts are read when they are first
used. All are kept while the corpus has at most 64 MB; above that, the most recently used ones up to the same
size, and a large document is a `MappedText`: its file is mapped and read where it is used, never as a whole.
"""

from rlm_core.texts.documents import Documents, build_context
from rlm_core.texts.files import KEPT_BYTES, MOST_CHARS, open_text
from rlm_core.texts.mapped import MappedText
from rlm_core.texts.parts import ImagePart, Part, image_parts_of, parts_of
from rlm_core.texts.pictures import Picture
from rlm_core.texts.text import Match, Passage, Text
from rlm_core.texts.touched import take_given, take_touched

__all__ = [
    "KEPT_BYTES",
    "MOST_CHARS",
    "Documents",
    "ImagePart",
    "MappedText",
    "Match",
    "Part",
    "Passage",
    "Picture",
    "Text",
    "build_context",
    "image_parts_of",
    "open_text",
    "parts_of",
    "take_given",
    "take_touched",
]
