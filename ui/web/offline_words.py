"""What a page says when the app no longer answers.

That sentence is part of Streamlit's script and cannot be set; it asks whether there is an internet
connection, which an app on this machine does not need. So it is replaced as the script is served, by one of
equal length: sizes and headers stay as they are. A Streamlit that says something else is served unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SCRIPT: Final = re.compile(r"/static/js/index\.[\w-]+\.js")
_SENTENCES: Final = {
    b"Streamlit server is not responding. Are you connected to the internet?": (
        b"The app does not answer. If it was stopped, start it: rlmscope app"
    ),
    b"Is Streamlit still running? If you accidentally stopped Streamlit, just restart it in your terminal:": (
        b"The app does not answer. If it was stopped, start it again in a terminal:"
    ),
    b"streamlit run yourscript.py": b"rlmscope app",
}


class OfflineWords:
    """An ASGI application around another one. See the module."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and _SCRIPT.search(scope["path"]):
            send = _Replaced(send)
        await self._app(scope, receive, send)


class _Replaced:
    """A `send` that holds a body back until it is whole (a few megabytes, once for each browser)."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            if message.get("more_body", False):
                return
            body = b"".join(self._parts)
            for theirs, ours in _SENTENCES.items():
                body = body.replace(theirs, ours.ljust(len(theirs)))
            message = {**message, "body": body}
        await self._send(message)
