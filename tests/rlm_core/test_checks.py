"""What is said about a cell before it runs."""

from __future__ import annotations

import builtins
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.checks import CodeReport, check

REPL = ("context", "documents", "llm_query", "llm_batch", "answer", "FINAL", "FINAL_VAR", "SUBMIT", "budget")


def report(code: str, *defined: str, documents: int = 10, from_calls: tuple[str, ...] = ()) -> CodeReport:
    return check(code, {*REPL, *defined}, documents, from_calls)


def rules(code: str, *defined: str, documents: int = 10, from_calls: tuple[str, ...] = ()) -> list[str]:
    found = report(code, *defined, documents=documents, from_calls=from_calls)
    return [finding.rule for finding in found.findings]


def undefined(code: str, *defined: str) -> list[str]:
    found = report(code, *defined).findings
    return [f.message.split("'")[1] for f in found if f.rule == "undefined_name"]


# -- syntax


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = (", 1),
        ("a = 1\nfor x in:\n  pass", 2),
        ("def f(a):\n    global a", 2),
        ("\x00", 0),
        ("x = '\ud800' +", None),
        ("-" * 5_000 + "1", 0),
        ("(" * 500, 1),
    ],
)
def test_code_that_does_not_parse(code: str, line: int | None) -> None:
    found = report(code)
    assert [finding.rule for finding in found.findings] == ["syntax"]
    assert line is None or found.findings[0].line == line
    assert found.reads == found.writes == []


@pytest.mark.parametrize("code", ["a if b else " * 2_000 + "c", "x=" * 3_000 + "1", "1" + "+1" * 900])
def test_deep_code_never_raises(code: str) -> None:
    assert isinstance(check(code, {"a", "b", "c"}, 3), CodeReport)


# -- names


def test_names_read_and_written() -> None:
    found = report("import os.path as p, sys\nfrom json import loads\nx = y + 1\nz += x\ndef f(): return w\n")
    assert found.writes == ["f", "loads", "p", "sys", "x", "z"]
    assert found.reads == ["w", "x", "y", "z"]


@pytest.mark.parametrize(
    ("code", "reads", "writes"),
    [
        ("t = [w for w in words if w]", ["words"], ["t"]),
        ("t = {k: v for k, v in rows}", ["rows"], ["t"]),
        ("print(any((m := w) for w in words), m)", ["any", "m", "print", "words"], ["m"]),
        ("key = lambda row, n=start: row[n]", ["start"], ["key"]),
        (
            "class C(Base):\n    kind: int = 1\n    also = kind\n    def get(self): return self.kind",
            None,
            ["C"],
        ),
        ("def f():\n    global seen\n    seen = 1", [], ["f", "seen"]),
        ("def f():\n    a = 1\n    def g():\n        nonlocal a\n        a = b\n    return g", ["b"], ["f"]),
        ("match shape:\n    case {'k': k, **rest}: pass\n    case [a, *b] as c: pass", None, None),
        ("@cache\ndef f(x: Kind = base) -> Out: return x", ["Kind", "Out", "base", "cache"], ["f"]),
        ("try:\n    go()\nexcept OSError as error:\n    print(error)", None, []),
        ("with open(name) as file, lock:\n    pass", ["lock", "name", "open"], ["file"]),
        ("for i, (a, *b) in rows:\n    pass", ["rows"], ["a", "b", "i"]),
        ("del old", ["old"], []),
        ("async def f():\n    async for x in source:\n        await x", ["source"], ["f"]),
        ("def f(d): return d\nprint(d)", ["d", "print"], ["f"]),
    ],
)
def test_names_in_scopes(code: str, reads: list[str] | None, writes: list[str] | None) -> None:
    found = report(code)
    assert reads is None or found.reads == reads
    assert writes is None or found.writes == writes


def test_names_of_a_match() -> None:
    found = report("match shape:\n    case {'k': k, **rest}: pass\n    case [a, *b] as c: pass")
    assert found.writes == ["a", "b", "c", "k", "rest"]


def test_a_cell_has_a_bounded_number_of_names_and_findings() -> None:
    found = report("\n".join(f"a{number} = b{number}" for number in range(1_000)))
    assert len(found.reads) == len(found.writes) == 200
    assert len(found.findings) == 50


# -- undefined names


def test_an_undefined_name_is_found_with_its_first_line() -> None:
    found = report("x = 1\nprint(x)\nprint(total)\nprint(total)").findings
    assert [(finding.rule, finding.line) for finding in found] == [("undefined_name", 3)]
    assert "'total'" in found[0].message


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return x\ny = x",
        "t = [w for w in documents]\nprint(w)",
        "class C:\n    a = 1\n    def f(self): return a",
        "def f(): return later_but_never",
        "@decorator\ndef f(): pass",
        "def f(x: Annotation): pass",
        "lambda: nowhere",
    ],
)
def test_names_out_of_their_scope_are_undefined(code: str) -> None:
    assert len(undefined(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "def f(): return g()\ndef g(): return 1",
        "from math import *\nprint(sqrt(2))",
        "if __name__ == '__main__':\n    print(__doc__)",
        "class C:\n    print(__qualname__, __module__)\n    def f(self): return __class__, super()",
        "def f():\n    global seen\n    seen = 1\nf()\nprint(seen)",
        "print([m for w in documents if (m := len(w))], m)",
        "import os.path\nprint(os.sep)",
        "for _ in range(3): pass\nprint(_)",
        "print(known)",
    ],
)
def test_names_that_are_defined(code: str) -> None:
    assert undefined(code, "known") == []


def test_ordinary_programs_have_no_undefined_names() -> None:
    """Modules of the standard library as cells, except for names they get from elsewhere at run time."""
    known = {
        "WindowsError",
        "__file__",
    }
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    checked = 0
    for path in paths:
        code = path.read_text("utf-8")
        if "import *" in code or "globals()" in code or "exec(" in code or len(code) > 100_000:
            continue
        found = check(code, (), 1)
        names = {f.message.split("'")[1] for f in found.findings if f.rule == "undefined_name"}
        assert names <= known, path.name
        checked += 1
        if checked == 60:
            break
    assert checked >= 50


def test_every_builtin_is_defined() -> None:
    assert undefined("\n".join(name for name in dir(builtins) if name not in ("None", "True", "False"))) == []


# -- dropped documents


@pytest.mark.parametrize(
    "code",
    [
        "llm_batch([p] * 3, documents[:3])",
        "llm_batch([f'x {d}' for d in context[:4]])",
        "for d in documents[-2:]:\n    llm_query('x', d)",
        "r = [llm_query('x', d) for d in documents[::3]]",
        "r = {d.name: llm_query('x', d) for d in documents[:1]}",
        "llm_query(prompt='x', snippet=documents[0:2])",
    ],
)
def test_a_slice_that_drops_most_documents(code: str) -> None:
    assert rules(code, "p") == ["drops_documents"]
    assert rules(code, "p", documents=1) == []


@pytest.mark.parametrize(
    "code",
    [
        "llm_batch([p] * 8, documents[:8])",
        "llm_batch([p] * 10, documents)",
        "print(documents[:2])",
        "for d in documents[:3]:\n    print(d.name)",
        "llm_query('x', context[:n])",
        "llm_query('x', documents[3])",
        "llm_query('x', documents[::0])",
        "llm_query('x', other[:1])",
    ],
)
def test_slices_that_drop_nothing_that_matters(code: str) -> None:
    assert "drops_documents" not in rules(code, "p", "n", "other")


def test_the_numbers_of_a_dropped_slice_are_said() -> None:
    (found,) = report("llm_batch(p, documents[:3])", "p", documents=40).findings
    assert "3 of 40" in found.message and found.line == 1


# -- exceptions and error texts


@pytest.mark.parametrize(
    "handler",
    ["except:", "except Exception:", "except BaseException as e:", "except (ValueError, Exception):"],
)
def test_a_handler_for_everything_around_a_sub_call(handler: str) -> None:
    assert rules(f"try:\n    r = llm_query('x')\n{handler}\n    r = ''") == ["swallowed_exception"]
    assert rules(f"try:\n    r = 1 / 0\n{handler}\n    r = ''") == []
    assert rules(f"try:\n    r = llm_query('x')\n{handler}\n    raise") == []


def test_a_handler_for_one_error_is_fine() -> None:
    assert rules("try:\n    r = llm_query('x')\nexcept KeyError:\n    r = ''") == []


@pytest.mark.parametrize(
    "code",
    [
        "r = llm_query('x')\nif 'error' in r.lower(): pass",
        "for r in llm_batch(['x']):\n    if r.startswith('Error:'): pass",
        "rs = llm_batch(['x'])\nbad = [r for r in rs if '[ERROR]' in r]",
        "if llm_query('x') == 'Traceback': pass",
        "if 'exception' not in (r := llm_query('x')): pass",
        "rs = llm_batch(['x'])\nfor r in rs:\n    if r.startswith(('Error', 'Failed')): pass",
    ],
)
def test_error_words_searched_in_replies(code: str) -> None:
    assert rules(code) == ["error_text_as_data"]


def test_error_words_searched_in_replies_of_an_earlier_cell() -> None:
    code = "bad = [r for r in replies if 'error' in r]"
    assert rules(code, "replies", from_calls=("replies",)) == ["error_text_as_data"]
    assert rules(code, "replies") == []


@pytest.mark.parametrize(
    "code",
    [
        "n = sum('ERROR' in line for line in context.lines())",
        "errors = [line for line in context.lines() if line.startswith('Error')]",
        "r = llm_query('x')\nif 'billing' in r: pass",
        "r = llm_query('x')\nif not r: print('error')",
    ],
)
def test_error_words_in_the_corpus_are_data(code: str) -> None:
    assert "error_text_as_data" not in rules(code)


# -- what a cell does


@pytest.mark.parametrize("name", ["llm_query", "llm_call", "llm_batch", "llm_query_batched", "rlm_query"])
def test_sub_calls_are_seen(name: str) -> None:
    assert check(f"x = [{name}('a')]", (), 1).makes_sub_calls
    assert not check(f"x = {name}", (), 1).makes_sub_calls


@pytest.mark.parametrize(
    "code", ["FINAL(x)", "if x:\n    FINAL_VAR('x')", "SUBMIT(1)", "answer['ready'] = True"]
)
def test_endings_are_seen(code: str) -> None:
    assert report(code, "x").ends_run
    assert not report("answer['content'] = 5\nprint('FINAL(x)')").ends_run


def test_a_finding_is_plain_data() -> None:
    (found,) = report("nowhere").findings
    assert found.as_dict() == {"rule": "undefined_name", "line": 1, "message": found.message}


def test_nothing_to_say_about_an_ordinary_cell() -> None:
    code = (
        "asked = 'Is it about billing?'\nreplies = llm_batch([asked] * len(documents), documents)\n"
        "yes = [d.name for d, r in zip(documents, replies) if r and r.startswith('yes')]\nprint(yes)"
    )
    found = report(code)
    assert found.findings == [] and found.makes_sub_calls and not found.ends_run


@given(st.text(alphabet="abx =:()[]{}\n\t'\"#,.+*-@:0", max_size=120))
def test_no_code_raises(code: str) -> None:
    assert isinstance(check(code, ("a",), 3), CodeReport)
