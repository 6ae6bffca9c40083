"""Sub-calls from cells in a real worker: what reaches the engine, and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rlm_core.frames import MAX_FRAME, MAX_SLOTS
from rlm_core.wire import Slot
from tests.support.workers import Host, Worker, shown


@pytest.fixture(scope="module")
def shared() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


def last(worker: Worker) -> Any:
    return worker.host.calls[-1]


# -- what is sent


def test_a_prompt_and_a_snippet(shared: Worker) -> None:
    assert shared.out("print(llm_query('Summarise: ', documents[0][6:10]))") == "Summarise: <0:6-10>"
    call = last(shared)
    assert (call.op, call.size, call.batch, call.line) == ("llm", 1, False, 1)
    assert call.slots[0].prompt == ["Summarise: "] and call.slots[0].snippet == [[0, 6, 10]]


def test_a_list_of_texts_is_one_snippet(shared: Worker) -> None:
    assert shared.out("print(llm_call('Group:', ['a', documents[1], 'b']))").split("\n\n") == [
        "Group:a",
        "<1:0-12>",
        "b",
    ]


def test_the_line_of_a_call_is_that_of_its_cell(shared: Worker) -> None:
    shared.run("\n\ndef ask():\n    return llm_query('x')")
    shared.run("ask()")
    assert last(shared).line == 4
    shared.run("x = 1\ny = [llm_query(str(n)) for n in range(2)]\nbudget()")
    assert last(shared).line == 2


def test_a_batch_is_one_call_in_order(shared: Worker) -> None:
    assert shared.value("llm_batch([f'p{n}' for n in range(50)])") == [f"p{n}" for n in range(50)]
    assert (last(shared).size, last(shared).batch) == (50, True)
    assert shared.value("llm_query_batched(['a', 'b'], documents)") == ["a<0:0-17>", "b<1:0-12>"]
    assert shared.value("llm_batch(iter(['a', 'b']), snippets=iter(['1', '2']))") == ["a1", "b2"]
    before = len(shared.host.calls)
    assert shared.value("llm_batch([])") == [] and len(shared.host.calls) == before


def test_options_of_a_call(shared: Worker) -> None:
    shared.run("llm_query('x', model='root', schema={'type': 'object'}, max_tokens=7)")
    call = last(shared)
    assert (call.model, call.schema, call.max_tokens) == ("root", {"type": "object"}, 7)


def test_child_runs(shared: Worker) -> None:
    shared.run("rlm_query('why?', documents)\nrlm_query('why?')\nrlm_query('why?', 'one text')")
    whole, default, one = [call.slots[0] for call in shared.host.calls[-3:]]
    assert whole.contexts == [[[0, 0, 17]], [[1, 0, 12]]]
    assert default.contexts is None and one.contexts == [["one text"]]
    shared.run("rlm_query_batched(['a', 'b'], [documents[0], ['x', 'y']])")
    assert last(shared).op == "rlm" and last(shared).size == 2
    assert [slot.contexts for slot in last(shared).slots] == [[[[0, 0, 17]]], [["x"], ["y"]]]


def test_budget_is_a_host_reply(shared: Worker) -> None:
    first = shared.value("budget()")
    assert shared.value("budget()") == {"calls": first["calls"] + 1, "tokens": None}


# -- what comes back


def _reply(slot: Slot) -> Any:
    prompt = shown(slot.prompt)
    if prompt.startswith("fail"):
        return {"err": "rate_limit", "msg": "slow down"}
    if prompt.startswith("value"):
        return {"v": {"$set": [1, 2]}}
    if prompt.startswith("big"):
        return "x" * 3_000_000
    if prompt.startswith("wait"):
        return _later(prompt)
    return prompt


async def _later(prompt: str) -> str:
    await asyncio.sleep(int(prompt.split()[1]) / 1_000)
    return prompt


@pytest.fixture(scope="module")
def scripted() -> Iterator[Worker]:
    with Worker(host=Host(_reply)) as worker:
        yield worker


def test_a_failed_sub_call_is_falsy_and_no_text(scripted: Worker) -> None:
    code = (
        "r = llm_query('fail')\n"
        "print(bool(r), isinstance(r, str), isinstance(r, SubCallError), r.kind, r.message, r == r)\nprint(r)"
    )
    assert scripted.out(code).splitlines() == [
        "False False True rate_limit slow down True",
        "SubCallError(kind='rate_limit', message='slow down')",
    ]


def test_one_failure_keeps_the_others_of_its_batch(scripted: Worker) -> None:
    assert scripted.out("print([bool(r) for r in llm_batch(['a', 'fail', 'c'])])") == "[True, False, True]"


def test_a_failed_sub_call_does_not_slip_into_a_prompt(scripted: Worker) -> None:
    report = scripted.run("replies = llm_batch(['a', 'fail'])\nllm_query('Group:', replies)")
    assert report.exception_type == "TypeError" and report.exception is not None
    assert "snippet 2 of 2" in report.exception and "rate_limit" in report.exception
    report = scripted.run("llm_batch(replies)")
    assert report.exception is not None and "prompts[1]" in report.exception


def test_a_childs_value_comes_back_as_a_value(scripted: Worker) -> None:
    assert scripted.out("print(rlm_query('value') == {1, 2})") == "True"


def test_replies_of_more_than_one_frame(scripted: Worker) -> None:
    assert scripted.out("print([len(r) for r in llm_batch(['big'] * 7)])") == str([3_000_000] * 7)


def test_threads_get_the_replies_that_are_theirs(scripted: Worker) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "prompts = [f'wait {n * 37 % 50} {n}' for n in range(64)]\n"
        "with ThreadPoolExecutor(16) as pool:\n"
        "    replies = list(pool.map(llm_query, prompts))\n"
        "print(replies == prompts)"
    )
    assert scripted.out(code) == "True"


def test_threads_mix_calls_batches_and_budgets(scripted: Worker) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def work(n):\n"
        "    one = llm_query(f'wait {n % 7} {n}')\n"
        "    many = llm_batch([f'{n} {m}' for m in range(20)])\n"
        "    right = one == f'wait {n % 7} {n}' and many == [f'{n} {m}' for m in range(20)]\n"
        "    return right and 'calls' in budget()\n"
        "with ThreadPoolExecutor(12) as pool:\n"
        "    print(all(pool.map(work, range(60))))"
    )
    assert scripted.out(code) == "True"


def test_threads_that_outlive_their_cell(scripted: Worker) -> None:
    """They share the pipe with the cells that follow; neither may take the other's frames."""
    scripted.run(
        "import threading\nstop, wrong = threading.Event(), []\n"
        "def stray(n):\n"
        "    while not stop.is_set():\n"
        "        if llm_query(f'wait 1 {n}') != f'wait 1 {n}' or llm_batch(['a', 'b']) != ['a', 'b']:\n"
        "            wrong.append(n)\n"
        "strays = [threading.Thread(target=stray, args=(n,)) for n in range(4)]\n"
        "for t in strays: t.start()"
    )
    for number in range(20):
        assert scripted.out(f"print(llm_query('wait 2 {number}'))") == f"wait 2 {number}"
    assert scripted.out("stop.set()\nfor t in strays: t.join()\nprint(wrong)") == "[]"


def test_asyncio_inside_a_cell(scripted: Worker) -> None:
    code = (
        "import asyncio\n"
        "async def both():\n"
        "    return await asyncio.gather(*(asyncio.to_thread(llm_query, p) for p in ['wait 5 a', 'b']))\n"
        "print(asyncio.run(both()))"
    )
    assert scripted.out(code) == "['wait 5 a', 'b']"


# -- what is refused in the cell


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("llm_query('x', api_base='http://example.invalid')", "TypeError", "api_base"),
        ("llm_query('x', api_key='k')", "TypeError", "api_key"),
        ("llm_batch(['x'], headers={})", "TypeError", "headers"),
        ("llm_query()", "TypeError", "prompt"),
        ("llm_query(5)", "TypeError", "must be text"),
        ("llm_query('x', {1})", "TypeError", "must be text"),
        ("llm_batch('one prompt')", "TypeError", "llm_query"),
        ("llm_batch(5)", "TypeError", "list"),
        ("llm_batch(['a', 5])", "TypeError", "prompts[1]"),
        ("llm_batch(['a', 'b'], ['c'])", "ValueError", "2 prompts but 1 snippets"),
        ("llm_batch(['a'], [])", "ValueError", "1 prompts but 0 snippets"),
        ("llm_batch(['a'], 'text')", "TypeError", "list"),
        ("rlm_query_batched(['a', 'b'], [[]])", "ValueError", "2 prompts but 1 contexts"),
        ("rlm_query_batched('why?')", "TypeError", "rlm_query"),
        (f"llm_batch(str(n) for n in range({MAX_SLOTS + 1}))", "ValueError", "20,000"),
        ("import itertools\nllm_batch(itertools.repeat('x'))", "ValueError", "20,000"),
        ("llm_query('x', max_tokens=True)", "ValueError", "whole number"),
        ("llm_query('x', max_tokens=0)", "ValueError", "whole number"),
        ("llm_query('x', max_tokens=10**30)", "ValueError", "whole number"),
        ("llm_query('x', max_tokens=1.5)", "ValueError", "whole number"),
        ("llm_query('x', model=5)", "TypeError", "model"),
        ("llm_query('x', model='m' * 1_000_000)", "TypeError", "model"),
        ("llm_query('x', schema=[1])", "TypeError", "schema"),
        ("llm_query('x', schema={'a': {1}})", "TypeError", "set"),
        ("s = {}\ns['s'] = s\nllm_query('x', schema=s)", "ValueError", "Circular"),
        ("llm_query('x', schema={'a': 'x' * 9_000_000})", "FrameError", "limit"),
    ],
)
def test_a_slip_is_an_exception_and_the_worker_lives(shared: Worker, code: str, kind: str, said: str) -> None:
    before = len(shared.host.calls)
    report = shared.run(code)
    assert report.exception_type == kind
    assert report.exception is not None and said in report.exception
    assert len(shared.host.calls) == before, "nothing was sent"
    assert shared.out("print(llm_query('next'))") == "next"


def test_a_prompt_too_large_for_a_frame_is_sent_as_its_size(shared: Worker) -> None:
    shared.run("r = llm_batch(['a', 'x' * 9_000_000, 'c'])")
    sizes = [slot.too_large for slot in last(shared).slots]
    assert sizes[0] is sizes[2] is None and sizes[1] is not None and sizes[1] > MAX_FRAME
    assert [shown(slot.prompt) for slot in last(shared).slots] == ["a", "", "c"]


def test_a_batch_too_large_as_a_whole_keeps_what_fits() -> None:
    with Worker() as worker:
        worker.run("import rlm_core.frames\nrlm_core.frames.MAX_BATCH = 1_000_000")
        worker.run("r = llm_batch(['x' * 70_000] * 40)")
        large = [slot.too_large is not None for slot in last(worker).slots]
    assert large == sorted(large) and large.count(False) == 14


@pytest.fixture(scope="module")
def unlocked() -> Iterator[Worker]:
    """Where forks are possible."""
    with Worker(level="none") as worker:
        yield worker


def test_another_process_cannot_make_sub_calls(unlocked: Worker) -> None:
    code = (
        "import os\nread, write = os.pipe()\n"
        "if (pid := os.fork()) == 0:\n"
        "    try:\n        llm_query('from the fork')\n"
        "    except RuntimeError as error:\n        os.write(write, str(error).encode())\n"
        "    os._exit(0)\n"
        "os.close(write)\nprint(os.read(read, 200).decode())\nos.waitpid(pid, 0)"
    )
    assert "not from another process" in unlocked.out(code)
    assert unlocked.out("print(llm_query('x'))") == "x"


def test_a_fork_that_runs_on_does_not_answer_for_its_worker(unlocked: Worker) -> None:
    report = unlocked.run(
        "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('once')\nforked = True"
    )
    assert report.stdout == "once\n"
    assert unlocked.out("print(forked, llm_query('x'))") == "True x"


def test_pipes_a_cell_made_non_blocking_work_again(shared: Worker) -> None:
    code = (
        "import os\nchannel = llm_query.__self__._channel\n"
        "os.set_blocking(channel._reader, False)\nos.set_blocking(channel._writer, False)\n"
        "print(len(llm_query('x' * 3_000_000)))"
    )
    assert shared.out(code) == "3000000"
