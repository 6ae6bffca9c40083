"""Runs as the app starts them: once for each ticket, stopped by a file, outliving who started them."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError, RecordError
from tests.support.command import ROOT, finish, start
from tests.support.gated import ANSWER, open_gate, processes, surroundings
from traces.home import Home
from traces.ingest import is_open
from traces.locks import is_held
from traces.reading import list_runs, load_run
from traces.upkeep import delete_run
from ui.control import cancel_file
from ui.web import launch, run_process
from ui.web.launch import Order, cancel_run, launch_state, new_ticket, start_run
from ui.web.order import StartFiles

PATIENCE = 60.0  # seconds; only a hung test waits so long
SECRET = "sk-only-in-the-environment"
QUESTION = "How many documents mention a?"


def wait_for(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


@pytest.fixture
def corpus(home: Home) -> str:
    """The id of a small corpus."""
    return Corpus.from_texts(["a b", "c d"], home.corpora).corpus_id


@pytest.fixture
def gate(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder: runs started meanwhile wait for `open_gate`; at the end none is left."""
    folder = tmp_path / "gated"
    for name, value in surroundings(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    yield folder
    open_gate(folder)
    wait_for(lambda: not [lock for lock in (home.root / "requests").glob("*.lock") if is_held(lock)])


def order(corpus: str, **other: Any) -> Order:
    return Order(
        **{"question": QUESTION, "corpus_id": corpus, "root": "demo/root", "sub": "demo/sub", **other}
    )


def in_flight(home: Home, run_id: str) -> bool:
    """Whether a run has a sub-call that is answered and one that is not."""
    if launch_state(home, run_id).state != "recorded":
        return False
    calls = {span.status for span in load_run(home, run_id).spans if span.kind == "sub_call"}
    return {"ok", "running"} <= calls


def ended(home: Home, run_id: str) -> bool:
    return not is_held(StartFiles(home, run_id).lock) and not is_open(home, run_id)


# -- a run from start to end ---------------------------------------------------------------------------------


def test_a_run_is_recorded_and_leaves_no_other_file(home: Home, corpus: str) -> None:
    run_id = start_run(home, order(corpus, limits={"max_calls": 50, "max_seconds": 90.5}), new_ticket())
    assert launch_state(home, run_id).state in ("starting", "recorded")
    wait_for(lambda: ended(home, run_id))
    (run,) = list_runs(home)
    assert (run.run_id, run.question, run.status, run.demo) == (run_id, QUESTION, "ok", True)
    assert launch_state(home, run_id) == launch.Launch("recorded")
    for name in ("requests", "logs", "control"):
        folder = home.root / name
        assert not folder.exists() or list(folder.iterdir()) == []


def test_what_others_on_the_machine_may_see(home: Home, corpus: str, gate: Path) -> None:
    run_id = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: in_flight(home, run_id))
    request = StartFiles(home, run_id).request
    assert stat.S_IMODE(request.stat().st_mode) == 0o600
    assert stat.S_IMODE(request.parent.stat().st_mode) == 0o700
    assert json.loads(request.read_text())["order"]["question"] == QUESTION
    everything = [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    assert not [text for text in everything if SECRET.encode() in text]
    if sys.platform == "linux":
        (pid,) = processes(gate)
        command = Path(f"/proc/{pid}/cmdline").read_text()
        assert run_id in command and QUESTION not in command and SECRET not in command
        assert SECRET in Path(f"/proc/{pid}/environ").read_text()  # a model behind a key can be asked
        assert os.getsid(pid) == pid != os.getsid(0)  # Ctrl-C in our terminal does not reach it


# -- once for each ticket ------------------------------------------------------------------------------------


def test_a_double_click_starts_once(home: Home, corpus: str, gate: Path) -> None:
    ticket = new_ticket()
    assert [start_run(home, order(corpus), ticket) for _ in range(3)] == [ticket] * 3
    wait_for(lambda: in_flight(home, ticket))
    assert start_run(home, order(corpus), ticket) == ticket
    open_gate(gate)
    wait_for(lambda: ended(home, ticket))
    assert start_run(home, order(corpus), ticket) == ticket
    assert launch_state(home, ticket).state == "recorded"
    assert len(processes(gate)) == 1 and len(list_runs(home)) == 1


RACER = """
import sys
from pathlib import Path
from traces.home import Home
from ui.web.launch import Order, start_run
home, corpus, *tickets = Home(Path(sys.argv[1])), *sys.argv[2:]
order = Order("q", corpus, "demo/root", "demo/sub")
for ticket in tickets:
    print("ready", flush=True)
    sys.stdin.readline()
    print(start_run(home, order, ticket), flush=True)
"""


def test_racing_processes_start_once(home: Home, corpus: str, gate: Path) -> None:
    tickets = [new_ticket() for _ in range(4)]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(home.root), corpus, *tickets],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for ticket in tickets:
        for racer in racers:
            assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        assert {racer.stdout.readline() for racer in racers if racer.stdout} == {f"{ticket}\n"}
    for racer in racers:
        racer.communicate()
    open_gate(gate)
    wait_for(lambda: all(ended(home, ticket) for ticket in tickets))
    runs = list_runs(home)
    assert sorted(run.run_id for run in runs) == sorted(tickets)
    assert {(run.status, run.answer, run.sub_calls) for run in runs} == {("ok", ANSWER, 3)}
    assert len(processes(gate)) == len(tickets)


def test_a_deleted_run_is_not_started_again(home: Home, corpus: str) -> None:
    ticket = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: ended(home, ticket))
    delete_run(home, ticket)
    assert start_run(home, order(corpus), ticket) == ticket
    assert list_runs(home) == [] and launch_state(home, ticket).state == "failed"
    assert list((home.root / "requests").glob(f"{ticket}*")) == []


# -- stopping ------------------------------------------------------------------------------------------------


def test_cancel(home: Home, corpus: str, gate: Path) -> None:
    run_id = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: in_flight(home, run_id))
    cancel_run(home, run_id)
    wait_for(lambda: ended(home, run_id))
    run = load_run(home, run_id)
    assert (run.summary.status, run.live) == ("cancelled", False)
    calls = sorted(span.status for span in run.spans if span.kind == "sub_call")
    assert calls == ["cancelled", "cancelled", "ok"]
    assert launch_state(home, run_id) == launch.Launch("recorded")
    assert not cancel_file(home, run_id).exists()


def test_cancel_before_there_is_a_record(home: Home, corpus: str, gate: Path) -> None:
    run_id = start_run(home, order(corpus), new_ticket())
    cancel_run(home, run_id)
    wait_for(lambda: ended(home, run_id))
    assert load_run(home, run_id).summary.status == "cancelled"


def test_cancel_reaches_a_run_of_the_command_line(home: Home, gate: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a text\n")
    asking = start("ask", "q", tmp_path / "text.txt", "--json", "--home", home.root)
    (run,) = wait_for(lambda: [run for run in list_runs(home) if in_flight(home, run.run_id)])
    cancel_run(home, run.run_id)
    assert finish(asking, ok=[1])["stop_reason"] == "cancelled"


def test_cancel_after_the_end_does_nothing(home: Home, corpus: str) -> None:
    run_id = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: ended(home, run_id))
    cancel_run(home, run_id)
    assert not cancel_file(home, run_id).exists()
    assert list_runs(home)[0].status == "ok"


@pytest.mark.needs("posix")
def test_sigterm_closes_the_record(home: Home, corpus: str, gate: Path) -> None:
    run_id = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: in_flight(home, run_id))
    os.kill(processes(gate)[-1], signal.SIGTERM)
    wait_for(lambda: ended(home, run_id))
    assert list_runs(home)[0].status == "cancelled"


@pytest.mark.needs("posix")
def test_a_killed_run_is_interrupted(home: Home, corpus: str, gate: Path) -> None:
    run_id = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: in_flight(home, run_id))
    os.kill(processes(gate)[-1], signal.SIGKILL)
    wait_for(lambda: ended(home, run_id))
    assert list_runs(home)[0].status == "interrupted"
    assert launch_state(home, run_id).state == "recorded"


# -- orders that cannot work ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"question": " \n"}, "the question is empty"),
        ({"question": "\ud800"}, "the question is not valid UTF-8 text"),
        ({"corpus_id": "0123456789abcdef"}, "there is no corpus"),
        ({"corpus_id": "../../etc"}, "there is no corpus"),
        ({"root": "a model"}, "the root model 'a model'"),
        ({"sub": "demo/other"}, "the sub-model 'demo/other' is no demo model"),
        ({"limits": {"max_calls": 0}}, "the limit of calls must be a whole number of at least 1, not 0"),
        ({"limits": {"concurrency": True}}, "the concurrency must be a whole number"),
        ({"limits": {"max_seconds": float("nan")}}, "the limit of seconds must be a number above 0"),
        ({"limits": {"max_cost_usd": "a dollar"}}, "the cost limit must be an amount in dollars"),
        ({"limits": {"max_cost_usd": "NaN"}}, "the cost limit must be above 0"),
        ({"limits": {"memory": 3}}, "there is no limit 'memory'"),
        ({"sandbox": "steel"}, "unknown sandbox level"),
        (
            {"root": "openai/x", "sub": "openai/x", "fault_rate": 0.1},
            "faults are made by the demo model only",
        ),
        (
            {"root": "openai/nobody-sells-this", "limits": {"max_cost_usd": "0.50"}},
            "the price of openai/nobody-sells-this is unknown",
        ),
    ],
)
def test_a_bad_order_starts_nothing(change: dict[str, Any], sentence: str, home: Home, corpus: str) -> None:
    with pytest.raises(InputError) as caught:
        start_run(home, order(corpus, **change), new_ticket())
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert not (home.root / "requests").exists() and list(home.spool.iterdir()) == []


def test_limits_that_are_absent_or_none_are_the_defaults(home: Home, corpus: str) -> None:
    from rlm_core.limits import Limits
    from ui.web.order import checked_limits

    given = {"max_calls": None, "max_depth": 0, "max_cost_usd": "0.50", "max_seconds": 3}
    limits = checked_limits(given)
    assert (limits.max_calls, limits.max_depth, limits.max_seconds) == (Limits().max_calls, 0, 3.0)
    assert str(limits.max_cost_usd) == "0.50"


@pytest.mark.parametrize("ticket", ["", "../x", "a b", "x" * 101])
def test_a_ticket_that_is_no_run_id(ticket: str, home: Home, corpus: str) -> None:
    with pytest.raises(InputError, match="is not a run id"):
        start_run(home, order(corpus), ticket)
    assert launch_state(home, ticket) == launch.Launch("failed", "This is not a run id.")


# -- starts that fail ----------------------------------------------------------------------------------------


def start_by_hand(home: Home, what: Order) -> str:
    """Write an order without any check and run its process to the end."""
    ticket = new_ticket()
    files = StartFiles(home, ticket)
    files.request.parent.mkdir(exist_ok=True)
    files.write_order(what)
    command = [sys.executable, "-m", "ui.web.run_process", str(home.root), ticket]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and done.returncode == 2
    return ticket


def test_a_corpus_that_is_gone_leaves_its_sentence(home: Home, corpus: str) -> None:
    run_id = start_by_hand(home, order("0123456789abcdef"))
    found = launch_state(home, run_id)
    assert found.state == "failed" and found.error is not None
    assert found.error.startswith("there is no corpus 0123456789abcdef")
    assert QUESTION not in StartFiles(home, run_id).request.read_text()
    assert list_runs(home) == []


def test_a_model_id_that_is_wrong_leaves_its_sentence(home: Home, corpus: str) -> None:
    found = launch_state(home, start_by_hand(home, order(corpus, root="no model")))
    assert found.error is not None and "the root model 'no model'" in found.error


def test_an_error_nobody_foresaw_leaves_a_sentence_and_a_log(
    home: Home, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = new_ticket()
    files = StartFiles(home, ticket)
    files.request.parent.mkdir()
    files.write_order(order(corpus))

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("ui.ask_run.run_in_turn", broken)
    assert run_process.run(home, ticket, {}) == 1
    found = launch_state(home, ticket)
    assert found.state == "failed" and found.error is not None
    assert found.error.startswith("ZeroDivisionError, which was not expected; details are in ")
    (log,) = (home.root / "logs").iterdir()
    assert "a secret detail" in log.read_text() and "secret" not in found.error


@pytest.mark.needs("posix")
def test_a_process_that_dies_at_once(
    home: Home, corpus: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_GATE_START", "import os, sys; sys.stderr.write('last words'); os._exit(9)")
    run_id = start_run(home, order(corpus), new_ticket())
    found = wait_for(
        lambda: next(iter([s] if (s := launch_state(home, run_id)).state != "starting" else []), None)
    )
    log = StartFiles(home, run_id).log
    assert found.state == "failed" and found.error is not None and str(log) in found.error
    assert "last words" in log.read_text()


def test_a_model_that_refuses_leaves_the_reason_beside_the_record(
    home: Home, corpus: str, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = """
from rlm_core.errors import ModelError
async def refuse(request):
    raise ModelError("auth", "the key was refused")
rlm_core.models.make_handler = lambda *_, **__: FunctionLMHandler(refuse)
"""
    monkeypatch.setenv("TEST_GATE_START", refusal)
    run_id = start_run(home, order(corpus), new_ticket())
    wait_for(lambda: ended(home, run_id))
    found = launch_state(home, run_id)
    assert found.state == "recorded" and found.error is not None and "the key was refused" in found.error
    assert list_runs(home)[0].status == "error"


def test_a_process_that_cannot_be_started(home: Home, corpus: str) -> None:
    ticket = new_ticket()
    (home.root / "logs").write_text("in the way")
    with pytest.raises(RecordError, match=r"^The run could not be started: .*\.$"):
        start_run(home, order(corpus), ticket)
    (home.root / "logs").unlink()
    assert start_run(home, order(corpus), ticket) == ticket  # the same form, once more
    wait_for(lambda: ended(home, ticket))
    assert [run.status for run in list_runs(home)] == ["ok"]


def test_a_run_nobody_ordered(home: Home) -> None:
    assert launch_state(home, new_ticket()) == launch.Launch("failed", "There is no such run.")
    assert run_process.run(home, new_ticket(), {}) == 2


# -- the end of who started it -------------------------------------------------------------------------------

STARTER = """
import sys, time
from pathlib import Path
from traces.home import Home
from ui.web.launch import Order, start_run
start_run(Home(Path(sys.argv[1])), Order("q", sys.argv[2], "demo/root", "demo/sub"), sys.argv[3])
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.needs("posix")
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)]
)
def test_a_run_outlives_who_started_it(number: int, home: Home, corpus: str, gate: Path) -> None:
    ticket = new_ticket()
    command = [sys.executable, "-c", STARTER, str(home.root), corpus, ticket]
    starter = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    with starter:
        assert starter.stdout is not None and starter.stdout.readline() == b"started\n"
        os.killpg(starter.pid, number)
    assert launch_state(home, ticket).state in ("starting", "recorded")
    wait_for(lambda: in_flight(home, ticket))
    assert start_run(home, order(corpus), ticket) == ticket  # a page that was reloaded meanwhile
    open_gate(gate)
    wait_for(lambda: ended(home, ticket))
    (run,) = list_runs(home)
    assert (run.run_id, run.status, run.answer) == (ticket, "ok", ANSWER)
