"""`rlmscope app` as a process: its address, its end, its neighbours, and the installed wheel."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core.corpus import Corpus
from tests.support.app import Server, announced, running_app
from tests.support.command import ROOT, finish, start
from tests.support.gated import ANSWER, open_gate, surroundings
from traces.home import Home
from traces.ingest import is_open
from traces.reading import list_runs, load_run
from ui.models_config import choose_models
from ui.web.launch import Launch, new_ticket
from ui.web.server import FIRST_PORT

PATIENCE = 60.0  # seconds; only a hung test waits so long
DEMO_NOTICE = choose_models(None, None, {}).notices[0]
EXAMPLE = "20260105T090000-0000e001"


def wait_for(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


# -- start and end -------------------------------------------------------------------------------------------


def test_it_says_where_it_is_once_it_answers(home: Home) -> None:
    process = start("app", "--json", "--port", "0", "--home", home.root)
    try:
        said = announced(process)
        assert said == {"url": f"http://127.0.0.1:{said['port']}", "port": said["port"], "pid": process.pid}
        connection = http.client.HTTPConnection("127.0.0.1", said["port"], timeout=PATIENCE)
        connection.request("GET", "/_stcore/health")
        assert connection.getresponse().read() == b"ok"
        connection.close()
    finally:
        process.terminate()
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")


def test_for_people_it_is_one_line(home: Home) -> None:
    process = start("app", "--port", "0", "--home", home.root)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
    finally:
        process.terminate()
        out, err = process.communicate()
    assert said.startswith("rlmscope is at http://127.0.0.1:") and "stop with Ctrl-C" in said
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.needs("posix")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_it_ends_in_order_with_pages_open(number: int, home: Home) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with running_app(home) as server:
        place = f"127.0.0.1:{server.port}"
        with connect(f"ws://{place}/_stcore/stream", origin=f"http://{place}", proxy=None) as page:
            server.process.send_signal(number)
            _, err = server.process.communicate(timeout=PATIENCE)
            with pytest.raises(ConnectionClosed):
                page.recv(PATIENCE)
    assert (server.process.returncode, err) == (0, "")
    assert list((home.root / "logs").iterdir()) == []


BROKEN_START = """
import streamlit.runtime.runtime as runtime
async def start(self): raise ZeroDivisionError("inside")
runtime.Runtime.start = start
"""


def test_a_server_that_does_not_come_up(home: Home, tmp_path: Path) -> None:
    env = {**surroundings(tmp_path), "TEST_GATE_START": BROKEN_START}
    process = start("app", "--json", "--port", "0", "--home", home.root, env=env)
    out, err = process.communicate(timeout=PATIENCE)
    log = home.root / "logs" / "app.log"
    assert (process.returncode, out) == (1, "")
    assert err == f"rlmscope: The app could not be started: the reason is in {log}.\n"
    assert "ZeroDivisionError: inside" in log.read_text()


# -- ports ---------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = start("app", "--port", str(port), "--home", home.root)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"rlmscope: port {port} of 127.0.0.1 cannot be used: ") and "--port" in err


def test_without_a_port_the_next_free_one(home: Home) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", FIRST_PORT))
            other.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        process = start("app", "--json", "--home", home.root)
        try:
            assert FIRST_PORT < announced(process)["port"] <= FIRST_PORT + 99
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_what_is_no_port(port: str, home: Home) -> None:
    process = start("app", "--port", port, "--home", home.root)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2 and err.count("\n") == 1


def test_a_home_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = start("app", "--home", tmp_path / "file")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2 and err.count("\n") == 1 and "home folder" in err


# -- neighbours on one home ----------------------------------------------------------------------------------


def test_two_servers_on_one_home(home: Home) -> None:
    with running_app(home) as one, running_app(home) as other:
        assert one.port != other.port
        for server in (one, other, one):
            page = server.page("runs")
            assert len(page.rows) == 2 and page.broken == []
    assert len(list_runs(home)) == 2


@pytest.mark.parametrize("count", [2, pytest.param(6, marks=pytest.mark.full)])
def test_the_app_while_several_runs_are_recorded(count: int, home: Home) -> None:
    """Nothing is refused, counted twice or missing."""
    documents = ROOT / "sample_data" / "es_contratos"
    words = ("ask", "Which contract has the highest annual fee?", documents, "--json", "--home", home.root)
    with running_app(home) as server:
        asking = [start(*words) for _ in range(count)]
        while any(process.poll() is None for process in asking):
            for page in (server.page("runs"), server.page("run", f"run={EXAMPLE}"), server.page()):
                assert page.elements and page.broken == []
        answers = {}
        for process in asking:
            document = finish(process)
            assert document["notices"] == [DEMO_NOTICE] and document["record"]["complete"]
            answers[document["run_id"]] = document
        last = server.page("runs")
        assert [row["Status"] for row in last.rows] == ["ok"] * (count + 2) and last.broken == []
    runs = {run.run_id: run for run in list_runs(home)}
    assert len(runs) == len(list_runs(home)) == count + 2 and len(answers) == count
    for run_id, document in answers.items():
        run = runs[run_id]
        figures = (run.status, run.answer, run.sub_calls, run.tokens, run.iterations)
        assert figures == ("ok", *(document[key] for key in ("answer", "sub_calls", "tokens", "iterations")))
        assert sum(span.kind == "sub_call" for span in load_run(home, run_id).spans) == run.sub_calls


START_ONE = """
import sys
if "app" in sys.orig_argv:
    import json, threading, time
    def later():
        from traces.home import Home
        from ui.web.launch import Order, start_run
        while not (folder / "go").exists():
            time.sleep(0.02)
        home, corpus, ticket = json.loads(os.environ["TEST_START"])
        start_run(Home(Path(home)), Order("q", corpus, "demo/root", "demo/sub"), ticket)
    threading.Thread(target=later, daemon=True).start()
"""


@pytest.mark.needs("posix")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.full)])
def test_runs_go_on_without_the_app(number: int, home: Home, tmp_path: Path) -> None:
    corpus, ticket = Corpus.from_texts(["a", "b"], home.corpora).corpus_id, new_ticket()
    env = {**surroundings(tmp_path), "TEST_GATE_START": START_ONE}
    env["TEST_START"] = json.dumps([str(home.root), corpus, ticket])
    with running_app(home, env=env) as server:
        (tmp_path / "go").touch()
        wait_for(lambda: home.spool_file(ticket).exists() and is_open(home, ticket))
        server.process.send_signal(number)
        server.process.wait(PATIENCE)
    with running_app(home) as again:
        assert sorted(row["Status"] for row in again.page("runs").rows) == ["ok", "ok", "running"]
        assert load_run(home, ticket).live
        open_gate(tmp_path)
        wait_for(lambda: not is_open(home, ticket))
        assert again.page("run", f"run={ticket}").broken == []
    run = load_run(home, ticket).summary
    assert (run.status, run.answer, run.sub_calls) == ("ok", ANSWER, 3)


# -- the installed wheel -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of an environment into which the wheel was installed, and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, capture_output=True, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    python = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    say = "import sysconfig; print(sysconfig.get_path('purelib')); print(sysconfig.get_path('data'))"
    paths = subprocess.run([python, "-c", say], capture_output=True, text=True, check=True).stdout.split("\n")
    site, data = Path(paths[0]), Path(paths[1])
    (wheel,) = folder.glob("rlmscope-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (shared,) = site.glob("rlmscope-*.data/data")
    shutil.copytree(shared, data, dirs_exist_ok=True)
    # the other packages, from where the tests have them; .pth files there are not followed
    libraries = Path(pytest.__file__).resolve().parents[1]
    (site / "libraries.pth").write_text(f"{libraries}\n")
    yield python


START_AND_WAIT = """
import os, sys, time
from rlm_core.corpus import Corpus
from traces.home import Home
from traces.locks import is_held
from ui.web.launch import Order, launch_state, new_ticket, start_run
from ui.web.order import StartFiles
home = Home.resolve(sys.argv[1])
corpus = Corpus.from_texts(["a", "b"], home.corpora)
ticket = start_run(home, Order("How many?", corpus.corpus_id, "demo/root", "demo/sub"), new_ticket())
while is_held(StartFiles(home, ticket).lock):
    time.sleep(0.02)
print(launch_state(home, ticket))
"""


def run_from(python: Path, home: Home) -> str:
    """What became of a run that an interpreter started."""
    command = [python, "-P", "-c", START_AND_WAIT, str(home.root)]
    return subprocess.run(command, cwd=home.root, capture_output=True, text=True, check=True).stdout


def test_the_installed_wheel(installed: Path, home: Home, tmp_path: Path) -> None:
    """From another folder, one with packages of the same names in it, as in the environment of a user."""
    for name in ("traces", "ui", "rlm_core"):
        (tmp_path / "elsewhere" / name).mkdir(parents=True)
    command = [installed, "-P", "-m", "ui", "app", "--json", "--port", "0", "--home", str(home.root)]
    process = subprocess.Popen(
        command, cwd=tmp_path / "elsewhere", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        server = Server(announced(process)["port"], process)
        assert len(server.page("runs").rows) == 2
        page = server.page("run", f"run={EXAMPLE}")
        assert page.broken == [] and "bidi_component" in page
        assert run_from(installed, home) == f"{Launch('recorded')}\n"
        where = "import ui.web.samples as s; print(s.__file__, s.sample_data(), len(s.samples()))"
        said = subprocess.run([installed, "-P", "-c", where], capture_output=True, text=True, check=True)
    finally:
        process.terminate()
        _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert str(ROOT) not in said.stdout and said.stdout.split()[-1] == "8"
