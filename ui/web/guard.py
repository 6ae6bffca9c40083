"""The outermost layer of the server: who may ask, and the headers on every response.

A page in the same browser can send requests to a loopback address, also under a name of its own (DNS
rebinding), and can open websockets to it. So the Host must be a loopback name, and an Origin, where there is
one, must be ours. The Content-Security-Policy forbids pages to load from or send to any other place.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS: Final = ("127.0.0.1", "localhost")
_HOST: Final = re.compile(rf"(?:{'|'.join(map(re.escape, HOSTS))})(?::\d{{1,5}})?", re.IGNORECASE)
_INLINE_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_REFUSED: Final = b"This address is for the pages of rlmscope on this machine only.\n"
_BROKEN: Final = b"The server could not answer this; the reason is in the log folder of rlmscope.\n"


def content_security_policy(host: str, inline_scripts: Iterable[str] = ()) -> str:
    """The policy for pages served at `host` (a name and a port).

    Scripts come from this server, from modules that the pages themselves make (blob:), or are one of
    `inline_scripts`. Styles may stand in elements: the pages' own style library puts them there.
    """
    digests = (hashlib.sha256(script.encode()).digest() for script in inline_scripts)
    allowed = "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    rules = {
        "default-src": "'self'",
        "script-src": f"'self' blob:{allowed}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "media-src": "'self' blob:",
        "connect-src": f"'self' ws://{host}",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "frame-src": "'none'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def security_headers(host: str, inline_scripts: Iterable[str] = ()) -> dict[str, str]:
    """The headers of every response; see `content_security_policy`."""
    return {
        "content-security-policy": content_security_policy(host, inline_scripts),
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }


def inline_scripts(html: str) -> list[str]:
    """The scripts that stand in a page itself."""
    return _INLINE_SCRIPT.findall(html)


class Guard:
    """An ASGI application around another one. See the module."""

    def __init__(self, app: ASGIApp, page: str, report: Callable[[Exception], object]) -> None:
        """`page` is the HTML that the pages start from, `report` is told of errors that left `app`."""
        self._app = app
        self._scripts = inline_scripts(page)
        self._report = report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = _by_name(scope["headers"])
        allowed = _allowed(headers)
        host = headers["host"][0] if allowed else HOSTS[0]
        guarded = _Response(send, security_headers(host, self._scripts))
        if not allowed:
            return await _refuse(scope, guarded)
        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            self._report(error)
            if not guarded.begun and scope["type"] == "http":
                await _answer(guarded, "http.response", 500, _BROKEN)


class _Response:
    """A `send` that puts headers on whatever begins a response, in the place of any others of that name."""

    def __init__(self, send: Send, headers: dict[str, str]) -> None:
        self._send = send
        self._headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.accept", "websocket.http.response.start"):
            self.begun = True
            ours = {name for name, _ in self._headers}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in ours]
            message = {**message, "headers": [*kept, *self._headers]}
        await self._send(message)


def _by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _allowed(headers: dict[str, list[str]]) -> bool:
    """Whether a request comes from a page of ours, or from no page at all."""
    hosts = headers.get("host", [])
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return False
    return all(origin.lower() == f"http://{hosts[0].lower()}" for origin in headers.get("origin", []))


async def _refuse(scope: MutableMapping[str, Any], send: Send) -> None:
    if scope["type"] == "http":
        await _answer(send, "http.response", 403, _REFUSED)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await _answer(send, "websocket.http.response", 403, _REFUSED)
    else:
        await send({"type": "websocket.close", "code": 1008})


async def _answer(send: Send, kind: str, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
