"""The server of the app: Streamlit's application behind our guard, with a configuration of our own.

Settings of Streamlit that a user or a folder has (`.streamlit/config.toml`) do not count here: they could
open the server to the network, send usage statistics, or show error details.
"""

from __future__ import annotations

import http.client
import logging
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rlm_core.errors import InputError, RecordError, RLMScopeError
from traces.home import ENVIRONMENT, Home
from ui.failure import LOGS, unexpected
from ui.web.guard import HOSTS, Guard, security_headers
from ui.web.offline_words import OfflineWords

if TYPE_CHECKING:
    from starlette.types import ASGIApp

ADDRESS: Final = "127.0.0.1"
FIRST_PORT: Final = 8501
UPLOAD_MEGABYTES: Final = 200
_PORTS: Final = 100  # how many are tried from the first
_HEALTH: Final = "/_stcore/health"
_PATIENCE: Final = 30.0  # seconds until the first answer
_LAST_SECONDS: Final = 2  # for open connections when the server ends
_LOG: Final = "app.log"
_ENTRY: Final = Path(__file__).with_name("main.py")


def options(port: int) -> dict[str, Any]:
    """The Streamlit options of the app."""
    from ui.web.theme import OPTIONS

    return {
        "server.address": ADDRESS,
        "server.port": port,
        "server.headless": True,
        "server.allowedHosts": list(HOSTS),
        "server.enableCORS": True,
        "server.enableXsrfProtection": True,
        "server.fileWatcherType": "none",
        "server.maxUploadSize": UPLOAD_MEGABYTES,
        "browser.serverAddress": ADDRESS,
        "browser.serverPort": port,
        "browser.gatherUsageStats": False,
        "client.showErrorDetails": "none",
        "client.showErrorLinks": False,
        "client.toolbarMode": "minimal",
        "client.allowedOrigins": [],
        # how many runs of a script the browser keeps what it was sent: of fewer, fast clicks leave it without
        # elements that the server only refers to, and the page is dead from then on
        "global.maxCachedMessageAge": 50,
        "runner.magicEnabled": False,  # it would show any stray value of a page, as markdown
        "logger.level": "critical",  # errors of pages go to the log folder
        "logger.enableRich": False,
        **OPTIONS,
    }


class ErrorLog:
    """Writes unexpected errors into the log folder; one that comes again from the same place only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said: dict[str, str] = {}

    def sentence(self, error: Exception) -> str:
        """What a person is told about an error: its own words if they are meant to be read."""
        if isinstance(error, RLMScopeError):
            return str(error)
        place = type(error).__name__ + "".join(traceback.format_tb(error.__traceback__))
        if place not in self._said:
            self._said[place] = unexpected(error, self._folder)
        return self._said[place]

    def on_page(self, error: Exception) -> bool:
        """Show the sentence in the place of the page; True: Streamlit shows nothing of its own."""
        from ui.web.notices import problem

        problem(self.sentence(error))
        return True


def make_app(home: Home, port: int) -> ASGIApp:
    """The application for a server on that port. One per process: Streamlit's configuration is global."""
    import streamlit as st
    from streamlit import config, file_util
    from streamlit.logger import set_log_level
    from streamlit.runtime.pages_manager import PagesManager

    from ui.web import message_queue

    # else the first page that a new server shows, unless it is the start page, would be taken for one of the
    # old kind and run without the entry script, because of the folder's name
    PagesManager.uses_pages_directory = False
    message_queue.install()
    os.environ[ENVIRONMENT] = str(home.root)
    vars(config)["get_config_files"] = lambda _name: []
    config.get_config_options(force_reparse=True, options_from_flags=options(port))
    set_log_level("critical")
    log = ErrorLog(home.root / LOGS)
    page = Path(file_util.get_static_dir(), "index.html").read_text("utf-8")
    return Guard(OfflineWords(st.App(_ENTRY, on_script_error=log.on_page)), page, log.sentence)


def bind(port: int | None) -> socket.socket:
    """A listening socket: on the given port, else on the first free one from 8501 on.

    Raises InputError when that cannot be had.
    """
    first = FIRST_PORT if port is None else port
    last = first + _PORTS if port is None else first + 1
    for candidate in range(first, last):
        found = socket.socket(socket.AF_INET)
        try:
            if os.name == "posix":  # on Windows it would let two servers share a port
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((ADDRESS, candidate))
            found.listen()
            return found
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
    if port is not None:
        raise InputError(f"port {port} of {ADDRESS} cannot be used: {reason}; choose another with --port")
    raise InputError(f"no port from {first} to {last - 1} of {ADDRESS} is free; choose one with --port")


def serve(home: Home, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; `ready` is called with the address once the server answers.

    To be called in the main thread. Raises RecordError when the server does not come up.
    """
    port = listener.getsockname()[1]
    server = uvicorn.Server(_settings(make_app(home, port)))
    _log_to(home.root / LOGS)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as with Ctrl-C: in order
    problems: list[str] = []
    asked = threading.Thread(target=_announce, args=(server, port, ready, problems), daemon=True)
    asked.start()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return  # how the server says that a signal ended it
    except SystemExit:
        problems.append(f"the reason is in {home.root / LOGS / _LOG}")
    if problems:
        raise RecordError(f"The app could not be started: {problems[0]}.")


def _settings(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Http,
        ws="websockets-sansio",
        ws_max_size=64 << 20,
        ws_ping_interval=30,
        ws_ping_timeout=60,
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )


class _Http(H11Protocol):
    """Answers to requests that are none (they never reach the guard) carry its headers too."""

    def send_400_response(self, msg: str) -> None:
        headers = "".join(f"{name}: {value}\r\n" for name, value in security_headers(ADDRESS).items())
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n{headers}\r\n"
        self.transport.write(f"{head}{msg}".encode("latin-1"))
        self.transport.close()


def _log_to(folder: Path) -> None:
    """Errors of the server itself go into a file, which is made when there is one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    logger = logging.getLogger("uvicorn.error")
    # Streamlit has put a handler there that writes to the terminal
    logger.handlers = [logging.FileHandler(folder / _LOG, delay=True, encoding="utf-8")]
    logger.setLevel(logging.ERROR)
    logger.propagate = False


def _announce(server: uvicorn.Server, port: int, ready: Callable[[str], None], problems: list[str]) -> None:
    """Say that the server is there once it answers; stop it when it does not."""
    deadline = time.monotonic() + _PATIENCE
    while not _healthy(port):
        if time.monotonic() > deadline:
            problems.append("it does not answer")
            server.should_exit = True
            return
        time.sleep(0.05)
    with suppress(OSError):  # nobody reads what we print
        ready(f"http://{ADDRESS}:{port}")


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=_PATIENCE)
    try:
        connection.request("GET", _HEALTH)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
