"""A scripted model server on 127.0.0.1 that speaks the OpenAI chat completions protocol.

In a test: `with Loopback(Script(root=[...], faults=[Fault("429", contains="slot 3")])) as server:
server.base_url`. As a process: `python tests/support/loopback.py --port 0 --log FILE [--script FILE]` prints
`{"port", "base_url"}` as one JSON line and serves until SIGTERM, the end of its parent, or `--max-seconds`.

Every request (once its body has been read) and every response (once it has been written) is one JSON line of
the log, flushed before the next step: after a kill -9 of the client this log is the witness of what was
really sent.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Messages = list[dict[str, Any]]

_ERRORS: Mapping[str, tuple[int, str, str | None]] = {
    "401": (401, "Incorrect API key provided: x", "invalid_api_key"),
    "403": (403, "This key may not use the model", "forbidden"),
    "404": (404, "The model `nobody` does not exist", "model_not_found"),
    "400": (400, "messages must not be empty", "invalid_request"),
    "400_context": (400, "This model's maximum context length is 10 tokens", "context_length_exceeded"),
    "422": (422, "response_format is not supported", "unprocessable"),
    "429": (429, "Rate limit reached", "rate_limit_exceeded"),
    "500": (500, "The server had an error", None),
    "502": (502, "Bad gateway", None),
    "503": (503, "Overloaded", None),
}


@dataclass(frozen=True)
class Reply:
    """One answer. `usage` is plain, cached, written, reasoning, none, or the object itself.

    `model` None = the model named in the request. `tool_calls` are names and arguments (JSON texts).
    """

    text: str | None = "ok"
    finish_reason: str = "stop"
    reasoning: str | None = None
    usage: str | Mapping[str, Any] = "plain"
    model: str | None = None
    tool_calls: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and for which requests.

    `kind` is a key of `_ERRORS`, or reset (TCP reset instead of an answer), reset_midway (after half of the
    body), malformed (200 with broken JSON), html (200 that is no JSON), choiceless (200 without choices),
    slow (no answer until the client goes away). It strikes the request number `ordinal` (from 0), or every
    request whose last user message contains `contains` (the first `times` tries of each such prompt; None =
    always).
    """

    kind: str
    ordinal: int | None = None
    contains: str | None = None
    times: int | None = 1
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    status: int = 200

    def strikes(self, ordinal: int, prompt: str, tries: int) -> bool:
        """Whether this request is struck; `tries` = how often this prompt came before."""
        if self.contains is None:
            return ordinal == self.ordinal
        return self.contains in prompt and (self.times is None or tries < self.times)


def echo(prompt: str) -> str:
    """The rule of the sub model: an answer that can be traced back to its prompt."""
    return "echo " + hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Script:
    """What the server answers.

    A model whose name starts with `root` gets `root`: the n-th text for a conversation with n assistant
    messages (the last one again after that), or whatever the function makes of the messages. Every other
    model gets `sub(prompt)`, or `talk(messages)` where there is one. `latency` and `root_latency` are seconds
    before each answer.
    """

    root: Sequence[str | Reply] | Callable[[Messages], str | Reply] = ('```python\nFINAL("done")\n```',)
    sub: Callable[[str], str | Reply] = echo
    talk: Callable[[Messages], str | Reply] | None = None
    latency: float = 0.0
    root_latency: float = 0.0
    faults: Sequence[Fault] = ()

    @classmethod
    def load(cls, path: Path) -> Script:
        """Read the JSON form: the same names; a reply is a text or an object, `sub` one reply for all."""
        data = json.loads(path.read_text("utf-8"))
        made: dict[str, Any] = {k: data[k] for k in ("latency", "root_latency") if k in data}
        if "root" in data:
            made["root"] = [Reply(**r) if isinstance(r, dict) else str(r) for r in data["root"]]
        if "sub" in data:
            fixed = Reply(**data["sub"]) if isinstance(data["sub"], dict) else str(data["sub"])
            made["sub"] = lambda _prompt: fixed
        return cls(**made, faults=[Fault(**f) for f in data.get("faults", ())])

    def reply(self, model: str, messages: Messages) -> Reply:
        """The answer to a request that no fault strikes."""
        if not model.startswith("root"):
            made = self.sub(last_user(messages)) if self.talk is None else self.talk(messages)
        elif callable(self.root):
            made = self.root(messages)
        else:
            turn = sum(m.get("role") == "assistant" for m in messages)
            made = self.root[min(turn, len(self.root) - 1)]
        return made if isinstance(made, Reply) else Reply(made)


def last_user(messages: Messages) -> str:
    """The text of the last user message."""
    return next((str(m.get("content") or "") for m in reversed(messages) if m.get("role") == "user"), "")


def usage_of(kind: str | Mapping[str, Any], messages: Messages, text: str | None) -> Mapping[str, Any] | None:
    """The usage object the server reports, by one token for four characters."""
    if not isinstance(kind, str):
        return kind
    sent = sum(len(str(m.get("content") or "")) for m in messages) // 4 + 8
    made = len(text or "") // 4 + 1
    usage: dict[str, Any] = {"prompt_tokens": sent, "completion_tokens": made}
    if kind == "cached":
        usage["prompt_tokens_details"] = {"cached_tokens": sent // 2}
    elif kind == "written":
        usage["prompt_tokens_details"] = {"cached_tokens": sent // 4, "cache_write_tokens": sent // 4}
    elif kind == "reasoning":
        usage["completion_tokens"] = made + 7
        usage["completion_tokens_details"] = {"reasoning_tokens": 7}
    elif kind == "none":
        return None
    return usage | {"total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]}


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def __init__(self, port: int, owner: Loopback) -> None:
        self.owner = owner
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        self.owner.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the game; the log already says how far they came."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        owner = self.server.owner
        try:
            data = json.loads(body)
        except ValueError:
            data = {"messages": []}
        ordinal, fault = owner.received(self.path, data, {k.lower(): v for k, v in self.headers.items()})
        if fault is not None:
            self._fail(ordinal, fault)
        elif not self.path.endswith("/chat/completions"):
            self._send(ordinal, 404, {"error": {"message": "no such path", "type": "loopback"}})
        else:
            self._answer(ordinal, data)

    def _answer(self, ordinal: int, data: dict[str, Any]) -> None:
        script, messages = self.server.owner.script, data.get("messages", [])
        model = str(data.get("model", ""))
        self.server.owner.stopping.wait(script.root_latency if model.startswith("root") else script.latency)
        reply = script.reply(model, messages)
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.reasoning is not None:
            message["reasoning_content"] = reply.reasoning
        if reply.tool_calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{ordinal}_{n}",
                    "type": "function",
                    "function": {"name": name, "arguments": given},
                }
                for n, (name, given) in enumerate(reply.tool_calls)
            ]
        made: dict[str, Any] = {"id": f"chatcmpl-{ordinal}", "object": "chat.completion", "created": 1}
        made["model"] = reply.model or model
        made["choices"] = [{"index": 0, "message": message, "finish_reason": reply.finish_reason}]
        usage = usage_of(reply.usage, messages, reply.text)
        if usage is not None:
            made["usage"] = usage
        self._send(ordinal, 200, made)

    def _fail(self, ordinal: int, fault: Fault) -> None:
        if fault.kind in _ERRORS:
            status, message, code = _ERRORS[fault.kind]
            error = {"error": {"message": message, "type": "loopback", "param": None, "code": code}}
            self._send(ordinal, status, error, fault.headers)
        elif fault.kind == "malformed":
            self._send(ordinal, 200, b'{"id": "x", "choices": [{"mess')
        elif fault.kind == "html":
            self._send(ordinal, 200, b"<html>It works!</html>", {"Content-Type": "text/html"})
        elif fault.kind == "choiceless":
            self._send(ordinal, 200, {"id": "x", "object": "chat.completion", "model": "m", "choices": []})
        elif fault.kind == "body":
            self._send(ordinal, fault.status, fault.body, fault.headers)
        elif fault.kind == "slow":
            self._stall(ordinal)
        else:
            self._reset(ordinal, fault.kind)

    def _send(self, ordinal: int, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for key, value in ({"Content-Type": "application/json"} | dict(headers or {})).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()
        shown = raw.decode("utf-8", "replace") if isinstance(body, bytes) else body
        self.server.owner.note({"event": "response", "ordinal": ordinal, "status": status, "body": shown})

    def _stall(self, ordinal: int) -> None:
        """Say nothing until the client hangs up or the server stops."""
        self.connection.settimeout(0.05)
        while not self.server.owner.stopping.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.server.owner.note({"event": "gone", "ordinal": ordinal})
        self.close_connection = True

    def _reset(self, ordinal: int, kind: str) -> None:
        self.server.owner.note({"event": "reset", "ordinal": ordinal})
        if kind == "reset_midway":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{")
            self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr; the log file has it all."""


class Loopback:
    """The server as a context manager.

    `requests` and `responses` hold what the log holds, in order; `peak` is the most requests open at
    once, `connections` the number of connections accepted.
    """

    def __init__(self, script: Script | None = None, *, port: int = 0, log: Path | None = None) -> None:
        self.script = script or Script()
        self.stopping = threading.Event()
        self.requests: list[dict[str, Any]] = []
        self.responses: list[dict[str, Any]] = []
        self.peak = self.connections = 0
        self._lock = threading.Lock()
        self._tries: Counter[str] = Counter()
        self._log = log.open("a", encoding="utf-8", errors="surrogatepass") if log else None
        self._server = _Server(port, self)
        self.port = int(self._server.server_address[1])
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving, cut every open connection, close the log."""
        self.stopping.set()
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()
        for connection in list(self._server.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + 2
        while self._server.open and time.monotonic() < until:
            time.sleep(0.005)
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._log = None

    def use(self, script: Script) -> None:
        """Start over with another script: ordinals from 0, nothing remembered (the log file goes on)."""
        with self._lock:
            self.script = script
            self.requests, self.responses, self.peak, self.connections = [], [], 0, 0
            self._tries.clear()

    def received(self, path: str, data: dict[str, Any], headers: dict[str, str]) -> tuple[int, Fault | None]:
        """Number and log a request; returns its number and the fault that strikes it."""
        prompt = last_user(data.get("messages", []))
        with self._lock:
            ordinal, tries = len(self.requests), self._tries[prompt]
            self._tries[prompt] += 1
            fault = next((f for f in self.script.faults if f.strikes(ordinal, prompt, tries)), None)
            entry = {"event": "request", "ordinal": ordinal, "t": time.time(), "path": path, "try": tries}
            entry |= {"fault": fault.kind if fault else None, "body": data, "headers": headers}
            self.requests.append(entry)
            self.peak = max(self.peak, len(self.requests) - len(self.responses))
            self._write(entry)
        return ordinal, fault

    def answered(self, count: int) -> list[dict[str, Any]]:
        """The responses, once there are so many: whoever got one may be faster than its entry."""
        until = time.monotonic() + 60
        while len(self.responses) < count and time.monotonic() < until:
            time.sleep(0.005)
        return self.responses

    def note(self, entry: dict[str, Any]) -> None:
        """Log what became of a request."""
        entry["t"] = time.time()
        with self._lock:
            self.responses.append(entry)
            self._write(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.write(json.dumps(entry, ensure_ascii=False) + "\n")
            self._log.flush()


def main() -> None:
    """Run as a process; see the module's first lines."""
    parser = argparse.ArgumentParser(description="scripted model server on 127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--max-seconds", type=float, default=300.0)
    args = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    parent, until = os.getppid(), time.monotonic() + args.max_seconds
    script = Script.load(args.script) if args.script else Script()
    with Loopback(script, port=args.port, log=args.log) as server:
        print(json.dumps({"port": server.port, "base_url": server.base_url}), flush=True)
        while not stop.wait(0.1) and os.getppid() == parent and time.monotonic() < until:
            pass


if __name__ == "__main__":
    main()
