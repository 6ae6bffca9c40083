"""`rlmscope check`: sets of recorded runs, played again with a model asked through HTTP, or asked anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from rlm_core import FunctionLMHandler
from rlm_core.corpus import Corpus
from rlm_core.rlm import RLM
from tests.support.checked_sets import make_set
from tests.support.loopback import Loopback, Messages
from tests.support.loopback import Script as Server
from tests.support.replays import span_of
from tests.support.scripted import Script, cell
from traces.check_log import checks
from traces.home import Home
from traces.prices import set_price
from traces.reading import RunView, list_runs, load_run
from traces.recording import open_recording
from ui.check_text import trend_words

Call = Callable[..., Any]
ONE, TWO = "20270115T080000-00000001", "20270115T080001-00000002"
MODELS = ("openai/root", "openai/sub")
TEXTS = {"a.txt": "apples 3", "b.txt": "pears 5", "c.txt": "plums 9"}
LEAVES = 'n = [int(one) for one in llm_batch(["How many?"] * len(documents), documents)]\nprint(sum(n))'
ENDS = 'total = str(sum(n))\nFINAL_VAR("total")'


def count(prompt: str) -> str:
    """A sub-model that makes no mistake."""
    return next(word for word in prompt.split() if word.isdigit())


def mistaken(prompt: str) -> str:
    """One that counts ten times as many pears."""
    return "50" if "pears" in prompt else count(prompt)


def recorded(home: Home, run_id: str, *, end: str = ENDS) -> RunView:
    """A run that counts 17 fruits."""
    handler = FunctionLMHandler(Script([cell(LEAVES), cell(end)], lambda request: count(request.prompt)))
    corpus = Corpus.from_texts(TEXTS, home.corpora)
    with RLM(*MODELS, handler=handler) as rlm, open_recording(home, run_id, {}) as made:
        rlm.ask("How many fruits?", corpus, run_id=run_id, recorder=made.recorder)
        made.close("ok")
    return load_run(home, run_id)


def root(messages: Messages) -> str:
    """A root that writes the same two cells whenever it is asked."""
    return cell(ENDS if any(message["role"] == "assistant" for message in messages) else LEAVES)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(Server(root=root, sub=count)) as running:
        yield running


@pytest.fixture
def asked(server: Loopback) -> dict[str, str]:
    """The environment in which the server is the models'; it has heard nothing yet."""
    server.use(Server(root=root, sub=count))
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}


def test_what_stays_right_passes_and_what_became_wrong_fails_with_the_call_that_moved_it(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    view = recorded(home, ONE)
    make_set(home, "fruits", [(ONE, "17")])
    set_price(home, "openai/better", {"input": Decimal(1), "output": Decimal(2)})
    good = call("check", "fruits", "--sub", "openai/better", "--json", env=asked)
    assert good.code == 0 and (good.json["passed"], good.json["failed"], good.json["live_calls"]) == (1, 0, 3)
    assert good.json["models"] == {"sub": "openai/better"} and Decimal(good.json["cost_usd"]) > 0
    server.use(Server(root=root, sub=mistaken))
    bad = call("check", "fruits", "--sub", "openai/better", "--json", env=asked)
    (result,) = bad.json["results"]
    assert bad.code == 1 and (result["before"], result["now"], result["passed"]) == ("17", "62", False)
    assert (result["was_passing"], result["changed"], result["proven"]) == (True, True, True)
    assert result["moved_by"] == [span_of(view, "sub_call", 1)]
    assert [check.count(True) for check in checks(home, "fruits")] == [1, 0]
    assert call("check", "fruits", "--sub", "").code == 2
    said = call("check", "fruits", "--sub", "openai/better", env=asked)
    assert said.code == 1 and "FAILED" in said.out and "was right in 1 of the last 2 checks" in said.out
    assert re.search(r"moved by sub-call 1 of cell 0 \[\w{8}\] \(proven by replays\)", said.out)
    assert [run.run_id for run in list_runs(home)] == [ONE]  # what was played is hidden


def test_a_typed_answer_after_other_output_is_undecided_and_a_rerun_tells(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    recorded(home, ONE, end='FINAL("17")')
    make_set(home, "fruits", [(ONE, "17")])
    server.use(Server(root=root, sub=mistaken))
    done = call("check", "fruits", "--json", env=asked)
    assert (
        done.code == 1 and done.json["undecided"] == 1 and "--mode rerun" in done.json["results"][0]["words"]
    )
    assert [check.findings[0].why for check in checks(home, "fruits")] == ["typed"]
    again = call("check", "fruits", "--mode", "rerun", "--root", "openai/root", "--json", env=asked)
    (result,) = again.json["results"]
    assert again.code == 1 and (result["now"], result["passed"], result["live_calls"]) == ("62", False, 5)
    assert "another plan" in result["words"] and result["now_run_id"] in {
        run.run_id for run in list_runs(home)
    }


def test_no_more_calls_are_made_than_allowed_for_all_runs_together(
    call: Call, home: Home, server: Loopback, asked: dict[str, str]
) -> None:
    for run_id in (ONE, TWO):
        recorded(home, run_id)
    make_set(home, "fruits", [(ONE, "17"), (TWO, "17")])
    done = call("check", "fruits", "--max-calls", "3", "--json", env=asked)
    first, second = done.json["results"]
    assert done.code == 1 and len(server.requests) == 3 and second["why"] == "budget"
    assert (first["passed"], second["passed"], second["words"]) == (
        True, None, "It was not played: what the check may spend is used up.",
    )  # fmt: skip


def test_a_run_whose_corpus_is_gone_is_undecided_and_what_can_be_checked_is_checked(
    call: Call, home: Home, asked: dict[str, str]
) -> None:
    gone = recorded(home, ONE)
    make_set(home, "fruits", [(ONE, "17")])
    Corpus.remove(home.corpora, gone.summary.corpus_id or "")
    done = call("check", "fruits", env=asked)
    assert done.code == 1 and "undecided" in done.out and "corpus" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "no run has this tag"),
        (("fruits", "--root", "openai/root"), "--root is for --mode rerun"),
        (("fruits", "--sub", "nobody/knows"), "nobody/knows"),
        (
            ("fruits", "--max-cost", "1", "--sub", "openai/unpriced"),
            "the price of openai/unpriced is unknown",
        ),
        (("fruits", "--mode", "frozen"), "frozen"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    call: Call, home: Home, asked: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    recorded(home, ONE)
    make_set(home, "fruits", [(ONE, "17")])
    done = call("check", *arguments, env=asked)
    assert done.code == 2 and said in done.err and "Traceback" not in done.err and checks(home) == []


@pytest.mark.parametrize(
    ("right", "told", "words"),
    [
        (1, 1, "right in the last check"),
        (0, 1, "wrong in the last check"),
        (1, 2, "right in 1 of the last 2 checks"),
    ],
)
def test_the_trend_is_said_as_people_say_it(right: int, told: int, words: str) -> None:
    assert trend_words(right, told) == words
