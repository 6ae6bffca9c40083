"""The value a failed sub-call has inside a cell."""

from __future__ import annotations


class SubCallError:
    """A sub-call that gave no answer: falsy and not a `str`, so that it cannot pass for one.

    `kind` is a kind of `rlm_core.errors.ModelError`, or one of budget, depth, cancelled, too_large, record,
    schema (a reply that did not fit; two repairs did not help), tools.
    """

    __slots__ = ("kind", "message")

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"SubCallError(kind={self.kind!r}, message={self.message!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubCallError) and (self.kind, self.message) == (other.kind, other.message)

    def __hash__(self) -> int:
        return hash((self.kind, self.message))
