"""From files to canonical texts.

`text` reads what is text, in this process; every other format and every archive is read by a module of
`formats` or `archives` in a limited child process of its own.
"""

from rlm_core.readers.output import Output, Unreadable

__all__ = ["Output", "Unreadable"]
