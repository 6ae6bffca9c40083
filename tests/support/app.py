"""The app as a user starts it, and the least that a browser does: requests, and pages over the websocket."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.command import start
from traces.home import Home

PATIENCE = 60.0  # seconds; only a hung test waits so long


@dataclass(frozen=True)
class Server:
    """A running app."""

    port: int
    process: subprocess.Popen[str]

    def request(self, method: str = "GET", path: str = "/", **headers: str) -> Response:
        """One request; underscores in the names of headers stand for dashes, `Host` is ours by default."""
        given = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        return self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    def upgrade(self, path: str = "/_stcore/stream", **headers: str) -> Response:
        """The request that begins a websocket."""
        asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
        return self.request(path=path, **asked, Sec_WebSocket_Key="x3JJHMbDL1EzLkh9GBhXDw==", **headers)

    def raw(self, data: bytes) -> Response:
        """Send bytes, read the answer: to the end, or only its head when the connection goes on."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            found = b""
            while (part := connection.recv(65536)) and not (found := found + part).startswith(
                b"HTTP/1.1 101"
            ):
                pass
        head, _, body = found.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        return Response(int(status.split()[1]), pairs, body)

    def page(self, name: str = "", query: str = "") -> Page:
        """Run a page (by its address, "" is the first) as a browser that has just opened it."""
        from streamlit.proto.BackMsg_pb2 import BackMsg
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
        from websockets.sync.client import connect

        asked = BackMsg()
        asked.rerun_script.page_name = name
        asked.rerun_script.query_string = query
        place = f"127.0.0.1:{self.port}"
        early = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN
        texts: list[str] = []
        rows: list[dict[str, Any]] = []
        options: dict[str, Any] = {"subprotocols": ["streamlit"], "max_size": None, "proxy": None}
        with connect(f"ws://{place}/_stcore/stream", origin=f"http://{place}", **options) as browser:
            browser.send(asked.SerializeToString())
            while True:
                message = ForwardMsg()
                data = browser.recv(PATIENCE)
                assert isinstance(data, bytes)
                message.ParseFromString(data)
                kind = message.WhichOneof("type")
                if kind == "delta":
                    texts.append(str(message.delta))
                    component = message.delta.new_element.bidi_component
                    if component.component_name == "rlmscope.rows":
                        rows += named_rows(json.loads(component.json))
                if kind == "new_session":
                    texts, rows = [], []
                if kind == "script_finished" and message.script_finished != early:
                    return Page(texts, rows)


@dataclass(frozen=True)
class Response:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """The one header of that name."""
        (value,) = [value for key, value in self.headers if key == name]
        return value


def named_rows(data: dict[str, Any]) -> list[dict[str, str]]:
    """The rows that a table of ours is given to draw, by the names of its columns, badges by their words."""
    names = [column["name"] for column in data["columns"]]
    words = ([cell if isinstance(cell, str) else cell[0] for cell in row["cells"]] for row in data["rows"])
    return [dict(zip(names, cells, strict=True)) for cells in words]


@dataclass(frozen=True)
class Page:
    """The elements of a page as text, and the rows of its tables."""

    elements: list[str]
    rows: list[dict[str, Any]]

    def __contains__(self, text: str) -> bool:
        return any(text in element for element in self.elements)

    @property
    def broken(self) -> list[str]:
        """Elements that show an error nobody foresaw."""
        return [e for e in self.elements if "exception {" in e or "was not expected" in e]


@contextmanager
def running_app(home: Home, *words: str, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """`rlmscope app --json` on a free port, ended when the block is left."""
    port = () if "--port" in words else ("--port", "0")
    process = start("app", "--json", "--home", home.root, *port, *words, env=env)
    try:
        yield Server(announced(process)["port"], process)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.communicate(timeout=PATIENCE)


def announced(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The document that the app prints when it listens."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    document = json.loads(line)
    assert isinstance(document, dict)
    return document


def files(folder: Path) -> set[str]:
    """The files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
