"""`rlmscope diff`: text for people, the keys of the contract, one clear line for what is no run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.test_cli_hostile_text import EVIL, FORBIDDEN

BAD, GOOD = "20270115T080000-00000001", "20270115T090000-00000002"


def test_the_frontier_comes_first_then_the_code_then_counts(
    written: Callable[..., Any], script: Any, sub_call: Any, call: Callable[..., Any]
) -> None:
    written(BAD, script(answer="41", calls=[sub_call("Which?", "billing"), sub_call("What?", "x")]))
    written(GOOD, script(answer="42", calls=[sub_call("Which?", "Billing."), sub_call("What?", "y")]))
    out = call("diff", BAD, GOOD).out
    assert out.startswith(f"A {BAD}: 41\nB {GOOD}: 42\nThe answers differ")
    assert "The difference begins in 1 sub-call:" in out
    assert "  asked  What?\n  A      x\n  B      y\n" in out
    assert out.splitlines()[-2].split() == ["sub_call", "1", "1", "0", "0", "0"]


def test_other_code_is_shown_as_a_diff(
    written: Callable[..., Any], script: Any, call: Callable[..., Any]
) -> None:
    written(BAD, script(answer="41", code="n = 41\nFINAL(n)", calls=[]))
    written(GOOD, script(answer="42", code="n = 42\nFINAL(n)", calls=[]))
    out = call("diff", BAD, GOOD).out
    assert "The difference begins in 1 cell:" in out
    assert "-n = 41\n+n = 42\n FINAL(n)\n" in out and "Only texts and numbers in the code differ:" in out
    assert "both roots had been shown the same until then" in out


def test_long_lists_and_long_code_are_cut_and_that_is_said(
    written: Callable[..., Any], script: Any, sub_call: Any, call: Callable[..., Any]
) -> None:
    code = "\n".join(f"a{number} = 1" for number in range(100))
    calls = [[sub_call(f"Text {n}", reply) for n in range(30)] for reply in ("no", "yes")]
    written(BAD, script(answer="41", code=code, calls=calls[0]))
    written(GOOD, script(answer="42", code=code.replace("1", "2"), calls=calls[1]))
    cut, whole = call("diff", BAD, GOOD).out, call("diff", BAD, GOOD, "--all").out
    assert "... and 21 more; --all lists them" in cut and "more lines; --all shows them" in cut
    assert "--all" not in whole and whole.count("  asked  ") == 30


def test_the_json_document_has_the_keys_of_the_contract(
    written: Callable[..., Any], script: Any, call: Callable[..., Any]
) -> None:
    written(BAD, script(answer="41"))
    written(GOOD, script(answer="42 "))
    told = call("diff", BAD, GOOD, "--match", "number±1", "--json").json
    assert {"answers", "rows", "frontier"} <= told.keys()
    assert told["answers"] == {"a": "41", "b": "42 ", "same": True, "how": "number±1"}
    assert all({"a", "b", "status"} <= row.keys() for row in told["rows"])


def test_a_run_beside_itself_is_said_to_be_one_run(
    written: Callable[..., Any], script: Any, call: Callable[..., Any]
) -> None:
    written(BAD, script())
    out = call("diff", BAD, "last").out
    assert "A and B are the same run." in out and "No difference begins" in out


def test_what_is_no_run_or_no_comparison_is_one_clear_line(
    written: Callable[..., Any], script: Any, call: Callable[..., Any]
) -> None:
    written(BAD, script())
    unknown, odd = call("diff", BAD, "20990101"), call("diff", BAD, BAD, "--match", "guess")
    assert unknown.code == odd.code == 2
    assert "20990101" in unknown.error and "guess" in odd.error


def test_hostile_text_stays_text(
    written: Callable[..., Any], script: Any, sub_call: Any, call: Callable[..., Any]
) -> None:
    for run, more in ((BAD, "1"), (GOOD, "2")):
        asked = [sub_call(EVIL, EVIL + more), sub_call(EVIL + EVIL, EVIL, error=EVIL + more)]
        written(run, script(question=EVIL, answer=EVIL + more, code=EVIL + more, calls=asked))
    done = call("diff", BAD, GOOD, "--all")
    assert done.code == 0 and not FORBIDDEN.search(done.out)
    assert call("diff", BAD, GOOD, "--json").out.isascii()


@pytest.mark.parametrize("how", ["regex", "contains"])
def test_what_looks_for_an_expected_text_is_no_comparison_of_two_runs(
    written: Callable[..., Any], call: Callable[..., Any], how: str
) -> None:
    written(BAD)
    written(GOOD)
    done = call("diff", BAD, GOOD, "--match", how)
    assert (
        done.code == 2 and f"{how} looks for an expected text, and no answer of two runs is one" in done.err
    )
