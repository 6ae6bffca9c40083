"""Cells in a real worker: state, names, output, answers."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.workers import TEXTS, Worker, answer_value


@pytest.fixture(scope="module")
def shared() -> Iterator[Worker]:
    """One worker for every test that leaves nothing behind that another would notice."""
    with Worker() as worker:
        yield worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as fresh:
        yield fresh


# -- state


def test_state_persists_from_cell_to_cell(shared: Worker) -> None:
    shared.run("import math\nnumbers = [1, 2]\ndef twice(x):\n    return 2 * x")
    shared.run("numbers.append(twice(3))")
    assert shared.out("print(numbers, math.floor(2.5))") == "[1, 2, 6] 2"


def test_state_survives_an_exception_inside_a_cell(shared: Worker) -> None:
    report = shared.run("kept = llm_query('paid')\n\n1 / 0\nnever = 1")
    assert report.exception_type == "ZeroDivisionError"
    assert shared.out("print(kept, 'never' in globals())") == "paid False"


def test_a_traceback_has_the_lines_of_its_cells_only(shared: Worker) -> None:
    shared.run("\ndef broken(x):\n    return x['key']")
    report = shared.run("a = 1\n\nbroken({})")
    assert report.exception is not None
    assert re.findall(r'File "<cell \d+>", line (\d+)', report.exception) == ["3", "3"]
    assert "return x['key']" in report.exception and "broken({})" in report.exception
    report = shared.run("llm_query(5)")
    assert report.exception is not None and report.exception.count("File ") == 1
    assert os.path.dirname(os.path.dirname(__file__)) not in report.exception


def test_a_chain_of_errors_is_told_as_python_tells_it(shared: Worker) -> None:
    report = shared.run("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e")
    assert report.exception_type == "KeyError" and report.exception is not None
    assert "ZeroDivisionError" in report.exception and "direct cause" in report.exception


def test_a_line_of_a_cell_may_hold_any_separator(shared: Worker) -> None:
    report = shared.run("a = 'x\u2028y\x0cz'\n1 / 0")
    assert report.exception is not None and "line 2" in report.exception and "1 / 0" in report.exception


def test_a_syntax_error_is_an_exception_of_the_cell(shared: Worker) -> None:
    report = shared.run("x = (")
    assert report.exception_type == "SyntaxError" and report.stdout == ""


def test_an_exception_keeps_no_locals_alive(shared: Worker) -> None:
    shared.run("import weakref\nclass Big: pass\ndef fail():\n    big = Big()\n    global seen")
    shared.run(
        "def fail():\n    global seen\n    big = Big()\n    seen = weakref.ref(big)\n    1 / 0\nfail()"
    )
    assert shared.out("import gc\n_ = gc.collect()\nprint(seen())") == "None"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import sys\nsys.exit(3)", "SystemExit"),
        ("exit()", "SystemExit"),
        ("raise SystemExit", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("input('name? ')", "RuntimeError"),
        ("class E(BaseException): pass\nraise E", "E"),
    ],
)
def test_what_would_end_a_program_ends_a_cell(shared: Worker, code: str, kind: str) -> None:
    assert shared.run(code).exception_type == kind
    assert shared.out("print('still here')") == "still here"


def test_standard_input_is_empty(shared: Worker) -> None:
    assert shared.out("import sys\nprint(repr(sys.stdin.read()))") == "''"


def test_the_last_expression_is_echoed(shared: Worker) -> None:
    assert shared.out("x = 5\nx + 1") == "6"
    assert shared.out("'plain text'") == "plain text"
    assert shared.out("['quoted']") == "['quoted']"
    assert shared.out("None") == shared.out("x = 1") == shared.out("") == shared.out("# comment") == ""
    assert shared.out("documents[1]") == TEXTS["b.txt"].strip()


def test_cells_are_the_main_module(shared: Worker) -> None:
    assert shared.out("if __name__ == '__main__':\n    print('main')") == "main"
    code = (
        "import pickle\nfrom dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n"
        "print(pickle.loads(pickle.dumps(Point(3))))"
    )
    assert shared.out(code) == "Point(x=3)"
    assert shared.out("import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))").startswith(
        "def f"
    )


def test_a_future_import_and_a_decorator_at_the_end(shared: Worker) -> None:
    code = "from __future__ import annotations\ndef f(x: Nowhere): pass\nprint(f.__annotations__)"
    assert shared.out(code) == "{'x': 'Nowhere'}"


# -- names


@pytest.mark.parametrize("name", ["llm_query", "llm_batch", "FINAL", "context", "budget", "SubCallError"])
def test_fixed_names_come_back(worker: Worker, name: str) -> None:
    report = worker.run(f"{name} = 'mine'")
    assert report.restored == (name,)
    assert worker.out(f"print({name}_, {name} == {name}_)") == "mine False"
    assert worker.run(f"del {name}").restored == ()
    assert worker.out("print(llm_query('x'))") == "x"


@pytest.mark.parametrize(
    "code",
    [
        "import builtins\ndel builtins.Exception",
        "import builtins\ndel builtins.BaseException\n1 / 0",
        "import builtins\nbuiltins.print = None",
        "import builtins\nbuiltins.dict = builtins.len = builtins.type = builtins.isinstance = None",
        "import builtins\nbuiltins.__dict__.clear()",
        "import builtins\nbuiltins.__import__ = builtins.__build_class__ = None\nraise ValueError",
        "__builtins__ = {}",
        "__builtins__.__dict__['repr'] = lambda x: 1 / 0\n{1}",
        "import sys\nsys.modules.pop('builtins')",
        "import sys\nsys.settrace(lambda *a: 1 / 0)",
        "import sys\nsys.setprofile(lambda *a: 1 / 0)",
        "import sys\nsys.settrace(lambda *a: sys.exit())\nsys.setprofile(lambda *a: sys.exit())",
        "import sys\nsys.stdin.close()",
        "import sys\nsys.setrecursionlimit(60)\n1 / 0",
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys\nsys.stdout.close()\nsys.stderr.close()",
        "import sys, os\nos.close(1)\nos.close(2)",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)",
        "__name__ = 'other'",
    ],
)
def test_the_interpreter_is_mended_after_every_cell(worker: Worker, code: str) -> None:
    worker.run(code)
    check = (
        "class C: pass\nimport json\n"
        "try:\n    raise ValueError\nexcept Exception:\n    pass\n"
        "print(len('ab'), type({}).__name__, isinstance(1, int), repr({1}), __name__, flush=True)"
    )
    assert worker.out(check) == "2 dict True {1} __main__"


def test_a_variable_named_like_a_builtin_is_kept_under_another_name(worker: Worker) -> None:
    report = worker.run("sum = 7\nlen = 5\nprint(sum)")
    assert report.stdout == "7\n" and set(report.restored) == {"sum", "len"}
    assert {row["name"] for row in report.variables} == {"sum_", "len_"}
    assert worker.out("print(sum([1, 2]), sum_, len('abc'), len_)") == "3 7 3 5"


def test_names_of_the_interactive_prompt_are_free(worker: Worker) -> None:
    assert worker.run("license = 'MIT'").restored == ()
    assert worker.out("print(license)") == "MIT"


def test_documents_may_be_replaced(worker: Worker) -> None:
    assert worker.run("documents = context[0].split('\\n')").restored == ()
    assert worker.out("print(documents)") == "['alpha', 'beta', 'gamma', '']"


def test_show_vars(worker: Worker) -> None:
    assert "documents: Documents" in worker.out("print(SHOW_VARS())")
    worker.run("count = 3\ndef helper(): pass")
    assert {"count: int", "helper: function"} <= set(worker.out("print(SHOW_VARS())").splitlines())


def test_the_variable_table_of_a_cell(worker: Worker) -> None:
    rows = {row["name"]: row for row in worker.run("a = 1\nb = [1, 2]\nimport math").variables}
    assert rows.keys() == {"a", "b"}
    assert (rows["b"]["type"], rows["b"]["size"], rows["b"]["preview"]) == ("list", 2, "[1, 2]")
    changes = {row["name"]: row["change"] for row in worker.run("b.append(3)\ndel a\nc = 0").variables}
    assert changes == {"a": "deleted", "b": "changed", "c": "new"}
    assert worker.run("b").variables == []


# -- output


def test_long_output_keeps_head_and_tail_and_its_true_length() -> None:
    with Worker(output_kept_chars=10_000) as worker:
        report = worker.run(
            "print('first')\nblock = 'x' * 1_000_000\n"
            "for _ in range(100):\n    print(block, end='')\nprint('last')"
        )
    assert report.true_chars == 100_000_000 + 11
    assert report.stdout.startswith("first\nx") and report.stdout.endswith("xlast\n")
    assert "characters were not kept" in report.stdout and len(report.stdout) < 10_200


def test_many_lines(shared: Worker) -> None:
    report = shared.run("for n in range(20_000):\n    print(n)")
    assert report.stdout.splitlines()[-1] == "19999" and report.true_chars == len(report.stdout)


def test_what_cannot_be_encoded_is_printed_all_the_same(shared: Worker) -> None:
    assert shared.run("print('\\ud800 \\x00 \\udfff')").stdout == "\ud800 \x00 \udfff\n"
    assert shared.run("raise ValueError('\\ud800')").exception_type == "ValueError"


def test_standard_error_is_output_too(shared: Worker) -> None:
    assert (
        shared.out("import sys\nprint('warned', file=sys.stderr)\nsys.stdout.write('x')\nNone") == "warned\nx"
    )


def test_what_c_code_prints_never_touches_the_protocol(shared: Worker) -> None:
    report = shared.run("import os\nos.write(1, b'from below')\nos.write(2, b', twice')\nprint('above')")
    assert report.stdout == "above\n"
    later = shared.run("import time\ntime.sleep(0.05)")
    assert "from below, twice" in report.native_output + later.native_output


def test_a_thread_that_prints_while_the_cell_ends(shared: Worker) -> None:
    shared.run(
        "import threading\nstop = threading.Event()\n"
        "def chatter():\n    while not stop.is_set():\n        print('x' * 50)\n"
        "threads = [threading.Thread(target=chatter, daemon=True) for _ in range(3)]\n"
        "for t in threads: t.start()"
    )
    for _ in range(20):
        report = shared.run("y = 1")
        assert report.exception is None
    shared.run("stop.set()\nfor t in threads: t.join()")


# -- answers


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2**60 + 1", 2**60 + 1),
        ("{1, 2}", {1, 2}),
        ("b'\\x00\\xff'", b"\x00\xff"),
        ("(1, 'a', None)", (1, "a", None)),
        ("{(1, 2): {'x': -0.0}}", {(1, 2): {"x": -0.0}}),
        ("documents[0][:5]", "alpha"),
        ("'\\ud800'", "\ud800"),
        ("False", False),
    ],
)
def test_values_of_answers_are_exact(shared: Worker, expression: str, value: Any) -> None:
    assert answer_value(shared.run(f"FINAL({expression})")) == value


def test_huge_and_odd_numbers_are_exact_too(shared: Worker) -> None:
    assert answer_value(shared.run("FINAL(10**5000)")) == 10**5000
    assert math.isnan(answer_value(shared.run("FINAL(float('nan'))")))


def test_ways_to_answer(shared: Worker) -> None:
    def given(code: str) -> tuple[Any, ...]:
        answer = shared.run(code).answer
        assert answer is not None
        return answer["via"], answer["expression"], answer["text"]

    assert given("FINAL('a')") == ("FINAL", None, "a")
    assert given("total = 4\nFINAL_VAR('total')\ntotal = 5") == ("FINAL_VAR", "total", "5")
    assert given("FINAL_VAR(' total ')") == ("FINAL_VAR", "total", "5")
    assert given("FINAL_VAR(total)") == ("FINAL_VAR", None, "5")
    assert given("SUBMIT(1, 'b')") == ("SUBMIT", None, "(1, 'b')")
    assert given("SUBMIT(count=1)") == ("SUBMIT", None, "{'count': 1}")
    assert given("FINAL(1)\nFINAL(2)") == ("FINAL", None, "2")


def test_a_missing_variable_is_said(shared: Worker) -> None:
    answer = shared.run("FINAL_VAR('totl')").answer
    assert answer is not None and answer["missing"] is True and answer["expression"] == "totl"
    answer = shared.run("FINAL_VAR('x' * 10_000_000)").answer
    assert answer is not None and answer["missing"] is True


def test_the_answer_is_read_at_the_end_of_the_cell(worker: Worker) -> None:
    report = worker.run("answer['ready'] = True\nanswer['content'] = 'late'\nanswer['note'] = 'n' * 9_000")
    assert report.answer is not None and report.answer["ready"] is True
    assert answer_value(report) == "late" and len(report.answer["note"]) == 2_000
    report = worker.run("x = 1")
    assert report.answer is not None and report.answer["ready"] is False, "ready is of one cell only"
    report = worker.run("answer = {'content': [1], 'ready': True, 'confidence': 'low'}")
    assert answer_value(report) == [1] and report.answer is not None and report.answer["confidence"] == "low"
    assert worker.out("print(answer)").startswith("{'content': [1], 'ready': False")


def test_a_cell_without_an_answer_has_none(worker: Worker) -> None:
    assert worker.run("x = 1").answer is None
    assert worker.run("answer = 5").restored == ("answer",)
    assert worker.run("answer.clear()").answer is None
    assert worker.run("del answer").answer is None


def test_what_the_dict_says_goes_with_any_ending(worker: Worker) -> None:
    report = worker.run("answer['confidence'] = 'low'\nFINAL(3)")
    assert report.answer is not None and report.answer["confidence"] == "low"


_HOSTILE = "class H:\n    def __repr__(self): {}\n"


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        (_HOSTILE.format("raise ValueError('no')") + "FINAL(H())", "ValueError"),
        (_HOSTILE.format("raise SystemExit") + "FINAL([H()])", "SystemExit"),
        (_HOSTILE.format("return 5") + "FINAL(H())", "TypeError"),
        ("x = [1]\nfor _ in range(60): x = [x, x]\nFINAL(x)", "summary"),
        ("FINAL('x' * 9_000_000)", "summary"),
        ("FINAL(['x' * 1_000_000] * 30)", "summary"),
        ("x = []\nfor _ in range(100_000): x = [x]\nFINAL(x)", "RecursionError"),
    ],
)
def test_an_answer_that_cannot_be_written_says_why(shared: Worker, code: str, failed: str) -> None:
    answer = shared.run(code).answer
    assert answer is not None and answer["ready"] is True
    assert failed in answer["failed"] and answer["form"] is None


def test_an_answer_that_holds_itself(shared: Worker) -> None:
    report = shared.run("loop = [1]\nloop.append(loop)\nFINAL(loop)")
    assert report.answer is not None and report.answer["text"] == "[1, [...]]"


def test_a_ready_flag_that_cannot_be_read_is_an_error_of_the_cell(shared: Worker) -> None:
    code = "class F:\n    def __bool__(self): raise ValueError('unclear')\nanswer['ready'] = F()"
    report = shared.run(code)
    assert report.exception_type == "ValueError" and report.answer is None
    shared.run("answer['ready'] = False")


@pytest.mark.parametrize(
    "code",
    [
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
        "class E(Exception):\n    def __bool__(self): raise SystemExit\nraise E",
        "class E(Exception):\n    __class__ = property(lambda self: 1 / 0)\nraise E",
        "class E(Exception):\n    def __setattr__(self, *a): raise SystemExit\nraise E",
        "class M(type): __name__ = property(lambda self: 1 / 0)\nclass X(metaclass=M): pass\nFINAL(X())",
        "class M(type): __name__ = property(lambda self: 1 / 0)\nclass X(metaclass=M): pass\nx = X()",
        "class D(dict):\n    def __len__(self): raise SystemExit\nx = D()",
        "class S(str):\n    def __len__(self, *a): raise SystemExit\n    __getitem__ = __len__\nx = S('a')",
        "class S(str):\n    def __repr__(self): raise SystemExit\nx = [S('abc')]",
        "class W(str):\n    def __len__(self): raise SystemExit\nimport sys\nsys.stdout.write(W('d'))",
        "globals()[5] = 1\nglobals()['x' * 9_000_000] = 2",
        "for n in range(3_000):\n    globals()[f'v{n}'] = [n] * 300",
        "raise type('E' * 9_000_000, (Exception,), {})('m' * 9_000_000)",
    ],
)
def test_hostile_objects_do_not_end_the_worker(worker: Worker, code: str) -> None:
    worker.run(code)
    assert worker.out("print('still here')") == "still here"


# -- surroundings


def test_nothing_of_the_callers_environment_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "RLMSCOPE_SECRET_OF_THE_TEST", "PYTHONPATH", "HTTP_PROXY"):
        monkeypatch.setenv(name, "visible-to-the-parent")
    with Worker() as worker:
        seen = worker.value("dict(__import__('os').environ)")
        assert not any("visible-to-the-parent" in value for value in seen.values())
        assert seen["HOME"] == seen["TMPDIR"] == worker.value("__import__('os').getcwd()")


def test_scratch_is_the_workers_own_and_removed_with_it() -> None:
    with Worker() as worker, Worker() as other:
        worker.run("open('note.txt', 'w').write('x')")
        folder = worker.value("__import__('os').getcwd()")
        assert os.path.exists(os.path.join(folder, "note.txt"))
        assert other.value("__import__('os').listdir('.')") == []
    assert not os.path.exists(folder)


def test_equal_seeds_give_equal_randomness() -> None:
    code = (
        "import random, numpy\n"
        "print(hash('text'), random.random(), random.getrandbits(64), numpy.random.rand(), {'a', 'b', 'c'})"
    )
    seen = []
    for seed in (3, 3, 4):
        with Worker(seed=seed) as worker:
            seen.append(worker.out(code))
    assert seen[0] == seen[1] != seen[2]


def test_nothing_heavy_is_imported_before_a_cell_asks(worker: Worker) -> None:
    heavy = {
        "numpy",
        "pandas",
        "asyncio",
        "litellm",
        "opentelemetry",
        "dataclasses",
        "tempfile",
        "inspect",
        "ast",
    }
    assert heavy.isdisjoint(worker.out("import sys\nprint(*sys.modules)").split())


def test_a_module_of_the_project_lies_behind_the_installed_ones(worker: Worker) -> None:
    assert worker.out("import sys\nprint('' in sys.path, sys.argv)") == "False ['']"


def test_prompts_and_replies_may_hold_anything(shared: Worker) -> None:
    assert shared.out("print(llm_query('\\ud800\\x00') == '\\ud800\\x00')") == "True"


def test_a_worker_ends_also_when_its_end_is_cancelled() -> None:
    """As by Ctrl-C in the last moment of a run: nothing of it may be left."""
    with Worker() as worker:
        pid = worker.environment.pid
        assert pid is not None

        async def impatient() -> None:
            ending = asyncio.create_task(worker.environment.close())
            for _ in range(3):
                await asyncio.sleep(0)
                ending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ending

        worker.wait(impatient())
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
