"""The Ask page: its fields and their complaints, one start for each order, the run beside the form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from tests.support.gated import ANSWER, open_gate, surroundings
from tests.support.pages import (
    HOSTILE,
    ask_page,
    badly_shown,
    open_row,
    problems,
    rows_of,
    shown,
    texts,
    use,
)
from traces import reading
from traces.home import Home, new_run_id
from traces.locks import FileLock, is_held
from traces.reading import load_run
from traces.recording import open_recording
from ui.control import cancel_file
from ui.web import addition_view, launch
from ui.web.additions import Files
from ui.web.order import StartFiles

RUN = "20270115T080000-00000001"
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)
    monkeypatch.setattr(addition_view, "_AT_ONCE", PATIENCE)  # a busy machine reads slowly


@pytest.fixture
def corpus(home: Home) -> str:
    """A corpus of the home, also put into the form by `filled`."""
    return Corpus.from_texts({"a.txt": "a b", "b.txt": "c d"}, home.corpora).corpus_id


class Starts:
    """What was started, in place of processes."""

    def __init__(self) -> None:
        self.orders: list[tuple[launch.Order, str]] = []

    def __call__(self, _home: Home, order: launch.Order, ticket: str) -> str:
        self.orders.append((order, ticket))
        return ticket


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """Nothing is really started in this test."""
    found = Starts()
    monkeypatch.setattr(launch, "start_run", found)
    return found


def filled(corpus: str, question: str = "How many?") -> AppTest:
    """The page with a known corpus chosen and a question put."""
    page = ask_page().run()
    page.get_by_key("ask-source").set_value("saved").run()
    page.selectbox(key="ask-saved").select(corpus)
    page.text_area(key="ask-question").set_value(question)
    return page


def press_start(page: AppTest) -> AppTest:
    return page.button(key="ask-start").click().run()


# -- the form


def test_an_empty_home_says_what_to_do_and_that_no_language_model_is_involved() -> None:
    page = ask_page().run()
    assert "There are no runs yet. Choose a corpus, ask a question and press Start." in texts(page)
    assert (page.text_input(key="ask-root").value, page.text_input(key="ask-sub").value) == (
        "demo/root",
        "demo/sub",
    )
    assert any("no language model is involved" in caption.value for caption in page.caption)


def test_a_suggested_question_becomes_the_question() -> None:
    page = ask_page().run()
    suggested = page.selectbox(key="ask-suggested-contracts")
    assert len(suggested.options) > 5
    suggested.select(suggested.options[0]).run()
    assert page.text_area(key="ask-question").value == suggested.options[0]


def test_models_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLMSCOPE_ROOT_MODEL", "openai/big")
    page = ask_page().run()
    assert [page.text_input(key=f"ask-{name}").value for name in ("root", "sub")] == ["openai/big"] * 2
    assert "no language model" not in shown(page) and "ask-fault-rate" not in shown(page)


def test_an_unusable_model_in_the_environment_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLMSCOPE_ROOT_MODEL", "no model")
    (sentence,) = problems(ask_page().run())
    assert "RLMSCOPE_ROOT_MODEL" in sentence


def test_every_wrong_field_says_so_in_one_sentence(starts: Starts) -> None:
    page = ask_page().run()
    page.get_by_key("ask-source").set_value("path").run()
    page.text_input(key="ask-path").set_value("/nowhere/at/all")
    page.text_input(key="ask-root").set_value("")
    page.text_input(key="ask-sub").set_value("a b")
    page.text_input(key="ask-cost").set_value("a lot")
    assert sorted(problems(press_start(page))) == [
        "'a lot' is not an amount in dollars, like 0.50.",
        "/nowhere/at/all does not exist: check the path.",
        "The question is empty.",
        "The root model is empty; write PROVIDER/NAME, for example openai/NAME or demo/root.",
        "The sub-model 'a b' has a space or control character in it.",
    ]
    assert "Nothing was started: what is missing or wrong is said above, beside its field." in texts(page)
    assert starts.orders == [] and "run" not in page.query_params


def test_a_cost_limit_needs_a_known_price_or_another_limit(corpus: str) -> None:
    page = filled(corpus)
    page.text_input(key="ask-root").set_value("openai/nobody-knows-this")
    page.text_input(key="ask-cost").set_value("0.50")
    (sentence,) = problems(press_start(page))
    assert "the price of openai/nobody-knows-this is unknown" in sentence


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("upload", "No documents are uploaded yet."),
        ("path", "Give the path of a file or folder."),
        ("saved", "There is no known corpus yet: choose another source."),
    ],
)
def test_a_corpus_is_needed(starts: Starts, source: str, sentence: str) -> None:
    page = ask_page().run()
    page.get_by_key("ask-source").set_value(source).run()
    page.text_area(key="ask-question").set_value("What?")
    assert problems(press_start(page)) == [sentence]


def test_a_path_is_read_on_demand(home: Home, tmp_path: Path, starts: Starts) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.txt").write_text("one")
    (tmp_path / "docs" / "two.bin").write_bytes(bytes(100))
    page = ask_page().run()
    page.get_by_key("ask-source").set_value("path").run()
    page.text_input(key="ask-path").set_value(str(tmp_path / "docs"))
    page.button(key="ask-read-now").click().run()
    assert [row["Document"] for row in rows_of(page, "corpus-preview")] == ["one.txt"] and any(
        line.startswith(f"{tmp_path}/docs/two.bin: ") for line in texts(page)
    )
    page.text_area(key="ask-question").set_value("What?")
    press_start(page)
    ((order, _),) = starts.orders
    assert [d.name for d in Corpus.load(home.corpora, order.corpus_id).documents] == ["one.txt"]


@pytest.fixture
def held(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """What is read from a path on the page stays at work until its end is written."""
    files = Files(home, new_run_id())
    lock = FileLock(files.lock)

    def begin(*_: Any) -> str:
        files.folder.mkdir(exist_ok=True)
        assert lock.try_acquire()
        files.write(files.order, {"paths": ["/data/letters"]})
        return files.order.stem

    monkeypatch.setattr(addition_view, "begin", begin)
    yield files
    lock.release()


def asked_over_a_path() -> AppTest:
    """The page after a press on Start, the path not read before."""
    page = ask_page().run()
    page.get_by_key("ask-source").set_value("path").run()
    page.text_input(key="ask-path").set_value("/data/letters")
    page.text_area(key="ask-question").set_value("What?")
    return press_start(page)


def test_a_start_waits_for_documents_that_are_being_read(corpus: str, starts: Starts, held: Files) -> None:
    page = asked_over_a_path()
    waits = "The documents are being read; the run starts after that, if this page is open."
    assert waits in texts(page) and "Looking for files" in shown(page) and starts.orders == []
    held.write(held.end, {"corpus_id": corpus})
    page.run().run()
    assert [order.corpus_id for order, _ in starts.orders] == [corpus]


def test_a_start_whose_documents_cannot_be_read_says_why(starts: Starts, held: Files) -> None:
    page = asked_over_a_path()
    held.write(held.end, {"error": "there is no document to read in /data/letters"})
    assert problems(page.run()) == ["There is no document to read in /data/letters."]
    assert problems(page.run()) == [] and starts.orders == []


def test_a_cancelled_reading_starts_nothing(starts: Starts, held: Files) -> None:
    page = asked_over_a_path()
    page.button(key=f"reading-cancel-{held.order.stem}").click().run()
    assert held.cancel.exists()
    held.write(held.end, {"cancelled": ""})
    assert "The reading was cancelled: nothing was added." in problems(page.run()) and starts.orders == []


# -- the start


def test_the_order_is_what_the_form_says(corpus: str, starts: Starts) -> None:
    page = filled(corpus, "How many?")
    limits = {
        "max_iterations": 7, "max_depth": 0, "max_calls": 9, "max_tokens": 5000, "max_seconds": 60,
        "concurrency": 3, "max_tool_calls": 4, "max_tool_rounds": 2,
    }  # fmt: skip
    for key, value in {**limits, "seed": 11, "fault_seed": 5}.items():
        page.number_input(key=f"ask-{key}").set_value(value)
    page.number_input(key="ask-fault-rate").set_value(0.25)
    page.text_input(key="ask-cost").set_value("0.50")
    press_start(page)
    ((order, ticket),) = starts.orders
    assert order == launch.Order(
        "How many?", corpus, "demo/root", "demo/sub", {**limits, "max_cost_usd": "0.50"}, 11,
        fault_rate=0.25, fault_seed=5,
    )  # fmt: skip
    assert page.query_params["run"] == ticket


def test_a_double_click_starts_once_another_question_starts_again(corpus: str, starts: Starts) -> None:
    page = filled(corpus)
    press_start(press_start(page))
    page.text_area(key="ask-question").set_value("How few?")
    press_start(page)
    first, again, other = (ticket for _, ticket in starts.orders)
    assert first == again != other


def test_two_sessions_have_tickets_of_their_own(corpus: str, starts: Starts) -> None:
    press_start(filled(corpus))
    press_start(filled(corpus))
    assert len({ticket for _, ticket in starts.orders}) == 2


def test_faults_are_for_the_demo_model_only(corpus: str, starts: Starts) -> None:
    page = filled(corpus)
    page.number_input(key="ask-fault-rate").set_value(0.5).run()
    page.text_input(key="ask-root").set_value("openai/big")
    page.text_input(key="ask-sub").set_value("openai/small").run()
    press_start(page)
    ((order, _),) = starts.orders
    assert order.fault_rate == 0


def test_a_refused_start_is_said_beside_the_button(corpus: str, home: Home) -> None:
    page = filled(corpus)
    (home.corpora / corpus / "manifest.json").unlink()
    assert problems(press_start(page)) != []
    assert "run" not in page.query_params


# -- a run beside the form


@pytest.fixture
def gate(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Runs wait in the middle until the gate is opened; at the end none is left."""
    for name, value in surroundings(tmp_path / "gated").items():
        monkeypatch.setenv(name, value)
    yield tmp_path / "gated"
    open_gate(tmp_path / "gated")
    wait_for(lambda: not [lock for lock in (home.root / "requests").glob("*.lock") if is_held(lock)])


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return found


def at_work(home: Home, run_id: str) -> bool:
    """Whether a run has one sub-call answered and two not."""
    if launch.launch_state(home, run_id).state != "recorded":
        return False
    calls = [span.status for span in load_run(home, run_id).spans if span.kind == "sub_call"]
    return sorted(calls) == ["ok", "running", "running"]


def facts(page: AppTest) -> dict[str, str]:
    """Small labels, each with the text that follows it."""
    listed = [e for e in page.main if e.type in ("caption", "text")]
    return {a.value: b.value for a, b in zip(listed, listed[1:], strict=False) if a.type == "caption"}


def test_a_run_from_start_to_answer_also_in_a_new_session(corpus: str, home: Home, gate: Path) -> None:
    page = press_start(filled(corpus, "Is it so?"))
    run_id = page.query_params["run"]
    wait_for(lambda: at_work(home, run_id))
    for seen in (page.run(), ask_page(run=run_id).run()):
        assert {"Sub-calls done": "1", "Running": "2", "Failed": "0"}.items() <= facts(seen).items()
        assert facts(seen)["Iterations"] == "1 of 30" and "Running a cell: cell 0." in texts(seen)
        assert seen.button(key="live-cancel").label == "Cancel the run"
    open_gate(gate)
    wait_for(lambda: launch.launch_state(home, run_id) and not _held(home, run_id))
    for seen in (page.run(), ask_page(run=run_id).run()):
        assert ANSWER in texts(seen) and "The root model gave its answer." in texts(seen)
        assert "Open the run" in [link.value for link in seen.page_link] and f"run={run_id}" in shown(seen)
    again = ask_page(run=run_id).run()
    assert again.text_area(key="ask-question").value == "Is it so?"
    assert again.selectbox(key="ask-saved").value == corpus


def _held(home: Home, run_id: str) -> bool:
    return is_held(StartFiles(home, run_id).lock)


def test_a_run_is_cancelled(corpus: str, home: Home, gate: Path) -> None:
    page = press_start(filled(corpus))
    run_id = page.query_params["run"]
    wait_for(lambda: at_work(home, run_id))
    page.run().button(key="live-cancel").click().run()
    wait_for(lambda: not _held(home, run_id))
    assert {"There is no answer.", "The run was cancelled."} <= set(texts(page.run()))


def test_a_wish_to_cancel_is_remembered_without_the_session(written: Callable[..., Any], home: Home) -> None:
    with written(RUN, close=False):
        page = ask_page(run=RUN).run()
        page.button(key="live-cancel").click().run()
        assert cancel_file(home, RUN).exists()
        assert "Cancelling: calls that are on their way are given up." in texts(ask_page(run=RUN).run())


def test_the_run_stays_beside_the_form_until_it_is_closed(written: Callable[..., Any]) -> None:
    written(RUN)
    page = ask_page(run=RUN).run()
    page.switch_page("pages/runs.py").run()
    page.query_params.pop("run", None)
    page.switch_page("pages/ask.py").run()
    assert page.query_params["run"] == RUN and "The root model gave its answer." in texts(page)
    page.button(key="ask-close").click().run()
    assert "run" not in page.query_params and "##### Last runs" in shown(page)


def test_the_last_runs_are_shown_also_while_one_works(written: Callable[..., Any], script: Any) -> None:
    written(RUN, script(question="Done?", answer="Yes."))
    with written("20270115T080000-00000002", script(question="And this?"), close=False):
        page = ask_page().run()
        working, done = rows_of(page, "ask-recent")[:2]
        assert working["Status"] == "running" and (done["Question"], done["Answer"]) == ("Done?", "Yes.")
        assert open_row(page, "ask-recent", 1).query_params["run"] == RUN


def test_a_failed_start_shows_its_sentence(home: Home) -> None:
    files = StartFiles(home, RUN)
    files.request.parent.mkdir()
    files.leave_error("the model said ![HOSTILE](x)")
    page = ask_page(run=RUN).run()
    assert problems(page) == ["The model said ![HOSTILE](x)."] and badly_shown(page, "HOSTILE") == []


@pytest.mark.parametrize(
    ("ref", "sentence"),
    [
        ("nobody", "There is no such run."),
        ("../../x", "This is not a run id."),
        (HOSTILE, "This is not a run id."),
    ],
)
def test_an_unknown_run_is_said_in_one_sentence(ref: str, sentence: str) -> None:
    page = ask_page(run=ref).run()
    assert problems(page) == [sentence] and "There are no runs yet" in shown(page)


def test_an_interrupted_run_is_called_interrupted(home: Home, written: Callable[..., Any]) -> None:
    recording = written(RUN, close=False)
    spool = recording.spool_path.read_bytes()
    recording.close("ok")
    recording.spool_path.write_bytes(spool)  # as its process left it when it was killed
    page = ask_page(run=RUN).run()
    assert "There is no answer." in texts(page) and ":red-badge[interrupted]" in shown(page)
    assert any(text.startswith("The run was interrupted: its process ended") for text in texts(page))


def test_a_run_without_an_answer_says_why(written: Callable[..., Any], script: Any) -> None:
    written(RUN, script(answer=None))
    assert {"There is no answer.", "The limit of iterations was reached."} <= set(
        texts(ask_page(run=RUN).run())
    )


def test_a_very_long_answer_is_cut_and_can_be_had_whole(written: Callable[..., Any], script: Any) -> None:
    written(RUN, script(answer="word " * 10_000))
    page = ask_page(run=RUN).run()
    assert page.toggle(key="outcome-answer-all").label == "Show all 50,000 characters"
    assert len(page.code[0].value) == 20_000
    page.toggle(key="outcome-answer-all").set_value(True).run()
    assert len(page.code[0].value.strip()) == 49_999


def test_a_very_long_question_leaves_the_answer_in_sight(written: Callable[..., Any], script: Any) -> None:
    written(RUN, script(question="Is it so? " * 500))
    page = ask_page(run=RUN).run()
    assert max(map(len, texts(page))) < 1_000
    assert "All 5,000 characters" in [box.label for box in page.expander]


def test_ask_again_takes_the_corpus(corpus: str, home: Home, gate: Path) -> None:
    open_gate(gate)
    run_id = press_start(filled(corpus)).query_params["run"]
    wait_for(lambda: not _held(home, run_id))
    page = ask_page(run=run_id).run()
    page.get_by_key("ask-source").set_value("sample").run()
    page.button(key="outcome-again").click().run()
    assert page.selectbox(key="ask-saved").value == corpus


# -- untrusted text, broken stores


def test_hostile_text_stands_only_in_plain_elements(written: Callable[..., Any], script: Any) -> None:
    written(RUN, script(question=HOSTILE, answer=HOSTILE, model="openai/HOSTILE![x](y)"))
    for page in (ask_page().run(), ask_page(run=RUN).run()):
        told = "".join([*texts(page), *(row["Question"] for row in rows_of(page, "ask-recent"))])
        assert "HOSTILE" in told and badly_shown(page, "HOSTILE") == []
        assert not any(mark in text for text in texts(page) for mark in "\x1b\u202e")
    assert page.text_area(key="ask-question").value == ""  # a field would obey the marks


def test_a_hostile_run_at_work_stands_only_in_plain_elements(home: Home) -> None:
    with open_recording(home, RUN, {}) as recording:
        recorder = recording.recorder
        digest = recorder.payload(HOSTILE)
        facts = {sc.RUN_PATH: "0", sc.DEPTH: 0, sc.ROOT_MODEL: HOSTILE, sc.LIMITS: HOSTILE}
        run = recorder.start("run", sc.NAME_RUN, None, {**facts, sc.QUESTION + ".sha256": digest})
        iteration = recorder.start("iteration", sc.NAME_ITERATION, run, facts)
        recorder.start("cell", sc.NAME_CELL, iteration, {**facts, sc.CELL: 0, sc.CODE + ".sha256": digest})
        page = ask_page(run=RUN).run()
    assert "HOSTILE" in page.code[0].value and any("HOSTILE" in text for text in texts(page))
    assert badly_shown(page, "HOSTILE") == []


def test_hostile_names_of_documents_stand_only_in_plain_elements(home: Home) -> None:
    corpus = Corpus.from_texts({HOSTILE: "a", "empty HOSTILE": ""}, home.corpora)
    page = filled(corpus.corpus_id).run()
    assert "HOSTILE" in "".join(texts(page)) and badly_shown(page, "HOSTILE") == []


def test_a_store_that_cannot_be_read_is_one_sentence(home: Home, written: Callable[..., Any]) -> None:
    written(RUN)
    home.store.write_bytes(b"something else")
    (sentence,) = problems(ask_page().run())
    assert sentence.endswith(".")


def test_a_busy_store_is_one_sentence(written: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any, warn: Callable[[str], None], **__: Any) -> list[Any]:
        warn("The store is in use ![HOSTILE](x).")
        return []

    monkeypatch.setattr(reading, "list_runs", busy)
    page = ask_page().run()
    assert "The store is in use ![HOSTILE](x)." in texts(page) and badly_shown(page, "HOSTILE") == []


def test_a_home_that_cannot_be_used_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "file" / "home"))
    (sentence,) = problems(ask_page().run())
    assert "cannot be used" in sentence
