"""Replies of sub-calls as they are kept, and as code gets them: with a schema, the value that a text is."""

from __future__ import annotations

from typing import Any

from rlm_core.errors import ModelError
from rlm_core.schema_check import SchemaError, Shape, shape_of
from rlm_core.values import to_form
from rlm_core.wire import OpenCall

Reply = dict[str, Any]


def error_reply(kind: str, message: str) -> Reply:
    """The reply of a call that failed."""
    return {"err": kind, "msg": message[:2000]}


def shape_of_call(call: OpenCall) -> Shape | None:
    """What the replies of a call have to fit; raises `ModelError` for a schema that is none."""
    try:
        return None if call.schema is None else shape_of(call.schema)
    except SchemaError as error:
        raise ModelError("bad_request", str(error)) from None


async def for_code(reply: Reply, shape: Shape | None) -> Reply:
    """A reply as code gets it: with a schema the value. What is kept, recorded and played is the text."""
    if shape is None or "ok" not in reply:
        return reply
    text: str = reply["ok"]

    def read() -> Reply:
        value, problem = shape.read(text)
        return {"v": to_form(value)} if problem is None else error_reply("schema", problem)

    return await shape.off_loop(len(text), read)
