"""Which parts of a root reply are code. Every case has inputs of its own."""

from __future__ import annotations

import ast
import random
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.cells import Extraction, extract
from rlm_core.python_text import parses

DEMO = "total = 3\nprint(total)"


def codes(reply: str, finish_reason: str | None = "stop") -> list[str]:
    return [cell.code for cell in extract(reply, finish_reason).cells]


def fenced(code: str, tag: str = "repl", marks: str = "```") -> str:
    return f"{marks}{tag}\n{code}\n{marks}"


# -- the fourteen tricky replies that other engines were measured with


def test_a_plain_block() -> None:
    assert codes(f"First I look.\n\n{fenced(DEMO)}\n\nThen I go on.") == [DEMO]


def test_two_blocks() -> None:
    assert codes(f"{fenced('a = 1')}\nNow b:\n{fenced('b = a')}") == ["a = 1", "b = a"]


def test_fence_lines_inside_a_string() -> None:
    code = 'prompt = """Write this:\n```python\nx = 1\n```\nand this:\n~~~\ny\n~~~\n"""\nprint(len(prompt))'
    assert codes(f"Here:\n{fenced(code)}\nDone.") == [code]


def test_an_inline_fence_inside_a_string() -> None:
    code = "text = 'a ``` b'\nprint(text.split('```'))"
    assert codes(fenced(code)) == [code]


@pytest.mark.parametrize("finish_reason", ["stop", None])
def test_an_unclosed_block(finish_reason: str | None) -> None:
    found = extract(f"So:\n```repl\n{DEMO}\n", finish_reason)
    assert [cell.code.strip() for cell in found.cells] == [DEMO]
    assert [cell.how for cell in found.cells] == ["unclosed_fence"]


def test_line_ends_of_windows() -> None:
    assert codes(f"Look:\r\n```repl\r\n{DEMO.replace(chr(10), chr(13) + chr(10))}\r\n```\r\nbye") == [DEMO]


def test_a_block_indented_in_a_list() -> None:
    code = "for n in range(2):\n    print(n)"
    body = "\n".join(f"   {line}" for line in code.split("\n"))
    assert codes(f"1. Loop:\n\n   ```repl\n{body}\n   ```\n2. Look.") == [code]
    assert codes(f"- ```python\n{body}\n  ```") == [code]


def test_a_tilde_fence() -> None:
    assert codes(fenced(DEMO, "python", "~~~")) == [DEMO]


@pytest.mark.parametrize("tag", ["Python", "REPL", "PY", "{python}", " python", "python title=x"])
def test_tags_in_any_spelling(tag: str) -> None:
    assert codes(f"```{tag}\n{DEMO}\n```") == [DEMO]


def test_text_after_the_closing_fence() -> None:
    found = extract(f"```repl\n{DEMO}\n``` and now I wait for it.")
    assert [cell.code for cell in found.cells] == [DEMO]


def test_prose_only() -> None:
    found = extract("I would call `print(total)` next, and then FINAL(total).")
    assert found.cells == ()
    assert found.remark is not None and "Nothing was executed" in found.remark


@pytest.mark.parametrize("tag", ["", "output", "text", "console"])
def test_an_invented_output_block_after_the_code(tag: str) -> None:
    found = extract(f"{fenced(DEMO)}\nOutput:\n{fenced('3', tag)}\nThe answer is 3.")
    assert [cell.code for cell in found.cells] == [DEMO]
    assert found.kept == fenced(DEMO)


def test_a_fence_of_four_backticks() -> None:
    code = 'text = """\n```\n"""'
    assert codes(fenced(code, "repl", "````")) == [code]
    assert codes(fenced("x = '''\n````\n'''", "repl", "`````")) == ["x = '''\n````\n'''"]


@pytest.mark.parametrize("tag", ["repl", "python", "py", "python3", "ipython", "tool_code"])
def test_any_python_tag(tag: str) -> None:
    assert codes(fenced(DEMO, tag)) == [DEMO]


# -- what else can stand in a reply


def test_bare_fences_count_only_without_tagged_ones() -> None:
    assert codes(fenced(DEMO, "")) == [DEMO]
    assert codes(f"{fenced('x = 1', '')}\n{fenced(DEMO)}") == [DEMO]
    assert codes(fenced("the total is three", "")) == []
    assert codes(fenced("total", "")) == [], "parses, but does nothing"
    assert codes(fenced("ls -l", "bash")) == []


def test_a_block_in_a_block_of_another_language_is_text() -> None:
    assert codes(f"````markdown\n{fenced(DEMO)}\n````") == []
    assert codes("```markdown\n```python\nimport os\n```\n```") == []


def test_a_second_block_that_forgets_to_close_the_first() -> None:
    assert codes("```repl\na = 1\n```repl\nb = 2\n```") == ["a = 1", "b = 2"]
    found = extract("```repl\na = 1\n```output\n1\n```\n```repl\nb = 2\n```")
    assert [cell.code for cell in found.cells] == ["a = 1"]


def test_a_fence_behind_the_last_line_of_code() -> None:
    assert codes(f"```repl\n{DEMO}```") == [DEMO]


def test_a_syntax_error_is_a_cell_that_says_so() -> None:
    found = extract(f"{fenced('print(1')}\n{fenced('b = 2')}")
    assert [(cell.code, cell.parses) for cell in found.cells] == [("print(1", False), ("b = 2", True)]


def test_a_broken_cell_does_not_set_its_strings_free() -> None:
    """Code inside a string is not executed because its surroundings have a syntax error."""
    reply = 'x\n```repl\np = """\n```python\nimport shutil\n```\n"""\nprint(p\n```\n'
    assert not any(code.startswith("import shutil") for code in codes(reply))


def test_an_empty_block() -> None:
    assert codes("```repl\n```") == [""]
    assert codes("```repl\n\n```") == [""]
    assert codes("```repl") == [""]
    assert codes("") == []


def test_blank_lines_in_strings_keep_their_spaces() -> None:
    code = 'text = """a\n   \n\tb\n"""'
    assert codes(fenced(code)) == [code]


def test_a_reply_cut_by_its_length_is_never_executed() -> None:
    found = extract(fenced("total = 3"), "length")
    assert found.cells == () and found.remark is not None and "cut off" in found.remark


@pytest.mark.parametrize("characters", ["\x00", "\ud800", "\u2028", "\x0c"])
def test_odd_characters_do_not_raise(characters: str) -> None:
    assert isinstance(extract(f"{characters}\n{fenced('x = 1' + characters)}\n{characters}"), Extraction)


# -- made-up output


@pytest.mark.parametrize(
    "claim",
    [
        "Output:\n3",
        "**Output:** 3",
        "The output is:\n3",
        "# Output\n3",
        "Result: 3",
        ">>> total\n3",
        "Out[1]: 3",
        "This prints: 3",
        "<function_results>3</function_results>",
        "<output>\n3\n</output>",
    ],
)
def test_a_claim_of_output_ends_what_is_believed(claim: str) -> None:
    found = extract(f"{fenced('a = 1')}\n{claim}\n{fenced('FINAL(3)')}")
    assert [cell.code for cell in found.cells] == ["a = 1"]
    assert found.remark is not None and "made-up" in found.remark
    assert found.kept == fenced("a = 1")


@pytest.mark.parametrize("text", ["Then count them.", "Now the outputs of all of them:", "a > b", "# Step 2"])
def test_ordinary_text_between_blocks_is_no_claim(text: str) -> None:
    assert codes(f"{fenced('a = 1')}\n{text}\n{fenced('b = 2')}") == ["a = 1", "b = 2"]


def test_what_is_kept_ends_with_the_last_cell() -> None:
    found = extract(f"I look.\n{fenced('a = 1')}\n{fenced('b = 2')}\nIt printed 7, so FINAL(7).")
    assert found.kept == f"I look.\n{fenced('a = 1')}\n{fenced('b = 2')}"
    assert extract("only words").kept is None


# -- tool calls


@pytest.mark.parametrize(
    "reply",
    [
        '<invoke name="repl"><parameter name="code">total = 3\nprint(total)</parameter></invoke>',
        '<function_calls>\n<invoke name="python">\n<parameter name="language">python</parameter>\n'
        '<parameter name="code">\ntotal = 3\nprint(total)\n</parameter>\n</invoke>\n</function_calls>',
        '<ns:invoke name="x"><ns:parameter name="source">total = 3\nprint(total)</ns:parameter></ns:invoke>',
        "<code>\ntotal = 3\nprint(total)\n</code>",
        '<tool_call>\n{"name": "repl", "arguments": {"code": "total = 3\\nprint(total)"}}\n</tool_call>',
        '<tool_call>{"name": "x", "arguments": "{\\"code\\": \\"total = 3\\\\nprint(total)\\"}"}</tool_call>',
        '{"name": "python", "parameters": {"code": "total = 3\\nprint(total)"}}',
        '```json\n{"name": "python", "input": {"cell": "total = 3\\nprint(total)"}}\n```',
        '{"type": "function", "function": {"name": "python", "arguments": "total = 3\\nprint(total)"}}',
    ],
)
def test_tool_calls_are_cells(reply: str) -> None:
    found = extract(reply)
    assert [(cell.code, cell.how) for cell in found.cells] == [(DEMO, "tool_call")]
    assert codes(f"I run it.\n{reply}\nDone.") == [DEMO] or reply.startswith("{")


def test_escaped_code_in_a_tool_call() -> None:
    assert codes('<parameter name="code">print(1 &lt; 2)</parameter>') == ["print(1 < 2)"]
    kept = "print('&lt;')"
    assert codes(f'<parameter name="code">{kept}</parameter>') == [kept], "parses as it is: nothing to undo"
    assert codes('<parameter name="code"><![CDATA[print(1 < 2)]]></parameter>') == ["print(1 < 2)"]


def test_a_tool_call_keeps_its_fences_and_a_fence_its_markup() -> None:
    code = 'p = """\n```python\nimport os\n```\n"""'
    assert codes(f'<parameter name="code">\n{code}\n</parameter>') == [code]
    code = 'p = """\n<parameter name="code">import os</parameter>\n"""'
    assert codes(fenced(code)) == [code]


def test_results_invented_after_a_tool_call_are_dropped() -> None:
    call = '<invoke name="repl">\n<parameter name="code">a = 1</parameter>\n</invoke>'
    found = extract(f"{call}\n<function_results>\n1\n</function_results>\n{call.replace('a = 1', 'b = 2')}")
    assert [cell.code for cell in found.cells] == ["a = 1"]
    assert found.kept == call


@pytest.mark.parametrize(
    "prose",
    [
        "Use <code>os.remove(x)</code> for that.",
        '<parameter name="timeout">5</parameter>',
        '<parameter name="code">never closed',
        "<tool_call>no json</tool_call>",
        '<tool_call>{"name": "repl", "arguments": {"code": 5}}</tool_call>',
        '<tool_call>{"name": "repl"}</tool_call>',
        '{"code": "x = 1"}',
        "{broken",
        '{"a": ' * 20_000,
    ],
)
def test_markup_that_is_no_call_is_prose(prose: str) -> None:
    assert codes(prose) == []


# -- any program, any surroundings

_STDLIB = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
_WORDS = st.text(alphabet="abc ,.'\"()#\n-*", max_size=60).filter(lambda text: "#" not in text)
_LITERALS = st.text(alphabet="ab`~ '\"\\\n\t", max_size=30)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Small programs whose strings hold whatever fences and quotes there are."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        quote = draw(st.sampled_from(['"""', "'''"]))
        inside = draw(_LITERALS).replace("\\", "\\\\").replace(quote[0], "\\" + quote[0])
        lines.append(
            draw(
                st.sampled_from(
                    [
                        f"v{number} = {quote}{inside}{quote}",
                        f"v{number} = {draw(_LITERALS)!r}",
                        f"def f{number}(x):\n    # it's a ````` comment\n    return {quote}{inside}{quote}",
                        f"if True:\n    v{number} = [1,\n  2]",
                        "",
                    ]
                )
            )
        )
    return "\n".join(lines)


def _surrounded(code: str, marks: str, before: str, after: str) -> str:
    return f"{before}\n{marks}python\n{code}\n{marks}\n{after}"


@given(programs(), st.integers(3, 6), _WORDS, _WORDS)
def test_any_program_comes_back_exactly(code: str, length: int, before: str, after: str) -> None:
    ast.parse(code)
    assert codes(_surrounded(code, "`" * length, before, after))[:1] == [code]


def test_programs_of_the_standard_library_come_back_exactly() -> None:
    for path in random.Random(5).sample(_STDLIB, 25):
        code = path.read_text("utf-8").replace("\r\n", "\n").removesuffix("\n")
        assert codes(_surrounded(code, "```", "I'd do this:", "Don't wait")) == [code], path.name


@given(st.text(alphabet="`~\n py<>/{}\"'\\#:cdeo", max_size=300))
def test_no_reply_raises(reply: str) -> None:
    found = extract(reply)
    assert found.cells or found.remark


# -- work is bounded: each of these took minutes when every fence line was tried as an end

HOSTILE = {
    "fence lines": "```\n" * 10_000,
    "openings": "```python\n" * 10_000,
    "openings with a bracket": "```python\n(\n" * 10_000,
    "broken blocks": "```python\n(\n```\n" * 5_000,
    "quotes that hide the end": "```python\n\\'''\n```\n" * 5_000,
    "one string over all fences": '```python\nx = """\n' + "```\n" * 10_000,
    "one broken block over all fences": "```python\nx = (\n" + "```\n" * 10_000,
    "tildes and backticks": "~~~py\n```py\n" * 5_000,
    "unclosed parameters": '<parameter name="code">' * 10_000,
    "unclosed code tags": "<code>\n" * 10_000,
    "json that never ends": '<tool_call>{"a": "' * 10_000,
    "signs": "-" * 200_000,
    "blank lines between blocks": fenced("a = 1") + "\n -" * 50_000 + "\n" + fenced("b = 2"),
    "deep brackets": fenced("(" * 5_000),
    "deep expression": fenced("a if b else " * 3_000 + "c"),
    "long list marker": "1" * 200_000 + ". ```python\nx",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_cost_bounded_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    def counted(code: str) -> bool:
        nonlocal read
        read += len(code)
        return parses(code)

    monkeypatch.setattr("rlm_core.python_text.parses", counted)
    assert isinstance(extract(HOSTILE[name]), Extraction)
    assert read < 10_000_000
