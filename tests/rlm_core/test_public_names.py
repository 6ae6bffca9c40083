"""The public names of the engine are the ones it declares, and its settings are checked at once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

import rlm_core
from rlm_core import RLM, Answer, FunctionLMHandler, Request
from tests.support.command import ROOT
from tests.support.scripted import cell


@pytest.mark.parametrize("name", rlm_core.__all__)
def test_every_declared_name_can_be_imported(name: str) -> None:
    assert getattr(rlm_core, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        rlm_core.Nothing  # noqa: B018 - the access is the test


def test_importing_the_package_costs_next_to_nothing() -> None:
    code = "import sys; before = set(sys.modules); import rlm_core; print(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40


def test_completion_is_ask_with_the_prompt_as_corpus() -> None:
    with RLM("t/r", "t/s", handler=FunctionLMHandler(lambda _: cell("FINAL(context)"))) as rlm:
        assert rlm.completion("the whole prompt").text == "the whole prompt"


def test_an_rlm_can_be_used_again_and_from_several_threads() -> None:
    answers: list[Answer] = []
    with RLM("t/r", "t/s", handler=FunctionLMHandler(lambda _: cell("FINAL(context * 2)"))) as rlm:
        threads = [
            threading.Thread(target=lambda n=n: answers.append(rlm.ask("?", f"<{n}>"))) for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers.append(rlm.ask("?", "again"))
    assert sorted(str(answer) for answer in answers) == ["<0><0>", "<1><1>", "<2><2>", "<3><3>", "againagain"]


def test_close_ends_what_runs() -> None:
    started = threading.Event()

    def hang(_: Request) -> str:
        started.set()
        time.sleep(0.5)
        return "late"

    rlm = RLM("t/r", "t/s", handler=FunctionLMHandler(hang))
    found: list[Answer] = []
    asking = threading.Thread(target=lambda: found.append(rlm.ask("?", "x")))
    asking.start()
    started.wait(60)
    rlm.close()
    asking.join(60)
    assert not asking.is_alive() and found[0].stop_reason == "cancelled"
