"""What the app's server answers, and to whom: raw requests to a real one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.app import Response, Server, running_app
from tests.support.command import ROOT
from tests.support.gated import surroundings
from traces.home import Home

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_app(Home.resolve(tmp_path_factory.mktemp("home"))) as found:
        yield found


def policy(response: Response) -> dict[str, list[str]]:
    """The Content-Security-Policy by directive."""
    rules = (rule.split() for rule in response.header("content-security-policy").split(";"))
    return {name: values for name, *values in rules}


def check_headers(response: Response) -> None:
    assert {name: response.header(name) for name in HEADERS} == HEADERS
    rules = policy(response)
    assert rules["default-src"] == ["'self'"] and rules["frame-ancestors"] == ["'none'"]
    assert rules["img-src"] == ["'self'", "data:", "blob:"]


# -- the policy ----------------------------------------------------------------------------------------------


def script(server: Server) -> str:
    """The address of a script of the pages."""
    found = re.search(rb'src="\.(/static/js/[^"]+)"', server.request().body)
    assert found is not None
    return found[1].decode()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("HEAD", "/", 200),
        ("GET", "/run?run=x&span=y", 200),
        ("GET", "/no/such/page", 200),
        ("GET", "/_stcore/health", 200),
        ("GET", "/_stcore/host-config", 200),
        ("GET", "/favicon.png", 200),
        ("GET", "SCRIPT", 200),
        ("GET", "/media/nothing.png", 404),
        ("GET", "/component/nothing/index.html", 404),
        ("GET", "/_stcore/stream", None),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", None),
        ("DELETE", "/", 405),
        ("PUT", "/_stcore/upload_file/a/b", 403),
        ("POST", "/_stcore/agent/interact", 403),
        ("OPTIONS", "/", None),
    ],
)
def test_every_response_carries_the_headers(
    method: str, path: str, status: int | None, server: Server
) -> None:
    response = server.request(method, script(server) if path == "SCRIPT" else path)
    check_headers(response)
    assert status is None or response.status == status
    assert b"root:x:0" not in response.body


def test_a_request_that_is_none(server: Server) -> None:
    response = server.raw(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n")
    assert response.status == 400
    check_headers(response)


def test_the_policy_names_no_place_but_this_server(server: Server) -> None:
    response = server.request(Host=f"localhost:{server.port}")
    rules = policy(response)
    assert rules.pop("connect-src") == ["'self'", f"ws://localhost:{server.port}"]
    digests = {source for source in rules["script-src"] if re.fullmatch(r"'sha256-[\w+/=]{44}'", source)}
    assert digests and set(rules["script-src"]) - digests == {"'self'", "blob:"}
    assert rules.pop("style-src") == ["'self'", "'unsafe-inline'"]
    sources = {source for values in rules.values() for source in values} - digests
    assert sources == {"'none'", "'self'", "blob:", "data:"}


def test_the_pages_take_orders_from_no_other_site(server: Server) -> None:
    assert json.loads(server.request(path="/_stcore/host-config").body)["allowedOrigins"] == []


# -- who may ask ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8501",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1:80@evil.example",
        "0.0.0.0",
        "10.0.0.1",
        "[::1]",
        "localhost:port",
        "localhost:",
        "",
    ],
)
def test_a_foreign_host_is_refused(host: str, server: Server) -> None:
    for response in (
        server.request(Host=host),
        server.request(path="/_stcore/health", Host=host),
        server.upgrade(Host=host),
        server.upgrade(Host=host, Origin=f"http://{host}"),
    ):
        assert response.status == 403 and b"<html" not in response.body
        check_headers(response)


def test_no_host_is_refused(server: Server) -> None:
    assert server.raw(b"GET / HTTP/1.0\r\n\r\n").status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost:1", "127.0.0.1:65535"])
def test_our_own_names_are_served_on_any_forwarded_port(host: str, server: Server) -> None:
    assert server.request(Host=host).status == 200
    assert server.request(Host=host, Origin=f"http://{host}").status == 200
    assert server.upgrade(Host=host, Origin=f"http://{host}").status == 101


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:{port}",
        "http://127.0.0.1:3000",
        "http://127.0.0.1",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "null",
        "",
    ],
)
def test_a_foreign_origin_is_refused(origin: str, server: Server) -> None:
    origin = origin.format(port=server.port)
    for response in (
        server.upgrade(Origin=origin),
        server.request(Origin=origin),
        server.request("PUT", "/_stcore/upload_file/a/b", Origin=origin),
    ):
        assert response.status == 403 and response.body.startswith(b"This address is for the pages")
        check_headers(response)


def test_our_origin_may_open_the_websocket(server: Server) -> None:
    response = server.upgrade(Origin=f"http://127.0.0.1:{server.port}")
    assert response.status == 101
    check_headers(response)


def test_other_websockets_do_not_exist(server: Server) -> None:
    response = server.upgrade("/elsewhere", Origin=f"http://127.0.0.1:{server.port}")
    assert response.status == 403


@pytest.mark.needs("linux")
def test_it_listens_on_one_loopback_address_only(server: Server) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port))


# -- pages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "runs", "run"])
def test_every_page_runs(name: str, server: Server) -> None:
    page = server.page(name)
    assert page.elements and page.broken == []


BREAK = """
import traces.reading
def broken(*_, **__): raise ZeroDivisionError("a detail of [no](http://evil.example) use")
traces.reading.list_runs = broken
"""


def test_an_error_of_a_page_is_one_sentence_and_a_log(tmp_path: Path, home: Home) -> None:
    env = {**surroundings(tmp_path), "TEST_GATE_START": BREAK}
    with running_app(home, env=env) as server:
        pages = [server.page("runs") for _ in range(3)]
        server.process.terminate()
        _, err = server.process.communicate()
    assert (server.process.returncode, err) == (0, "")
    (log,) = (home.root / "logs").glob("error-*.log")  # one, however often it happens
    assert "ZeroDivisionError: a detail" in log.read_text()
    for page in pages:
        assert "ZeroDivisionError, which was not expected; details are in" in page and str(log) in page
        assert "a detail" not in page and "Traceback" not in page and "exception {" not in page


# -- the configuration ---------------------------------------------------------------------------------------

SHOW = """
import json, sys
from pathlib import Path
from traces.home import Home
from ui.web.server import make_app, options
make_app(Home.resolve(sys.argv[1]), 8599)
from streamlit import config, secrets
wanted = options(8599)
print(json.dumps({
    "wrong": [name for name, value in wanted.items() if config.get_option(name) != value],
    "others": [config.get_option(n) for n in ("server.enableStaticServing", "server.baseUrlPath",
               "global.developmentMode", "server.trustedUserHeaders", "server.enableAgentApi")],
    "secrets": secrets.load_if_toml_exists(),
    "heavy": [name for name in ("litellm", "openai") if name in sys.modules],
}))
"""
OPEN = """
[server]
address = "0.0.0.0"
enableCORS = false
enableStaticServing = true
baseUrlPath = "elsewhere"
enableAgentApi = true
trustedUserHeaders = {X-User = "name"}
[browser]
gatherUsageStats = true
[client]
showErrorDetails = "full"
[theme]
primaryColor = "#ff0000"
"""


@pytest.mark.parametrize("settings", [OPEN, "this is [not toml"])
def test_settings_of_the_user_or_the_folder_do_not_count(settings: str, tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "user" / ".streamlit"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(settings)
    (folder / "secrets.toml").write_text("key = 1")
    env = {
        **os.environ,
        "HOME": str(folder.parent),
        "USERPROFILE": str(folder.parent),
        "PYTHONPATH": str(ROOT),
    }
    env |= {"STREAMLIT_SERVER_ADDRESS": "0.0.0.0", "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "true"}
    command = [sys.executable, "-c", SHOW, str(home.root)]
    done = subprocess.run(command, cwd=folder.parent, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        "wrong": [], "others": [False, "", False, {}, False], "secrets": False, "heavy": [],
    }  # fmt: skip
    assert done.stderr == ""


def test_neither_start_nor_pages_import_a_model_client(tmp_path: Path, home: Home) -> None:
    tell = "import atexit, sys; atexit.register(lambda: print('litellm' in sys.modules, file=sys.stderr))"
    with running_app(home, env={**surroundings(tmp_path), "TEST_GATE_START": tell}) as server:
        for name in ("", "runs", "run"):
            server.page(name)
        server.process.terminate()
        assert server.process.communicate()[1] == "False\n"


# -- what a page says when the app is gone -------------------------------------------------------------------


def test_the_script_of_the_pages_says_what_is_true_when_the_app_was_stopped(server: Server) -> None:
    answered = server.request(path=script(server))
    assert b"If it was stopped, start it: rlmscope app" in answered.body
    assert b"rlmscope app " in answered.body and b"streamlit run" not in answered.body
    assert b"connected to the internet" not in answered.body
    assert len(answered.body) == int(answered.header("content-length"))
