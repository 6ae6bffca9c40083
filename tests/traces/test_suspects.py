"""Suspects: which sub-calls look wrong, and why, from the record alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import Request
from rlm_core import semconv as sc
from rlm_core.normalise import normalise
from rlm_core.telemetry import sha256_text
from tests.support.recorded_runs import wide_run
from tests.support.replays import recorded
from tests.traces.records import RUN, end, fin, header, home_in, recording, start, write_spool
from traces.home import Home
from traces.reading import RunView, load_run
from traces.replies import declines, form, found_nothing, named_values, unfounded
from traces.suspects import MEANINGS, UNSEEN, WEIGHTS, suspects, unseen_words


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_in(tmp_path)


def run_with(
    home: Home, calls: Iterable[tuple[str, str]], *, finish: str = "stop", code: str = ""
) -> RunView:
    """A run whose one cell asked prompts on one line and got replies."""
    with recording(home) as made:
        recorder = made.recorder
        run = recorder.start("run", sc.NAME_RUN, None, {sc.DEPTH: 0})
        cell = recorder.start("cell", sc.NAME_CELL, run, {sc.CELL: 0})
        cell.text(sc.CODE, code)
        for index, (prompt, reply) in enumerate(calls):
            place = {sc.CELL: 0, sc.CALL_LINE: 3, sc.CALL_INDEX: index, sc.REQUEST_MODEL: "s"}
            call = recorder.start("sub_call", "chat s", cell, {**place, sc.PROMPT_HASH: sha256_text(prompt)})
            call.text(sc.PROMPT, prompt)
            call.text(sc.RESPONSE, reply)
            hashed = {sc.RESPONSE_NORM_HASH: sha256_text(normalise(reply))}
            call.end("ok", {**hashed, sc.FINISH_REASONS: json.dumps([finish])})
        cell.end()
        run.end("ok")
        made.close("ok")
        run_id = made.run_id
    return load_run(home, run_id)


def kinds(view: RunView) -> dict[int, list[str]]:
    """Kinds of signals by the number of the call."""
    return {
        view.by_id[span_id].call_index or 0: [signal.kind for signal in suspect.signals]
        for span_id, suspect in suspects(view).items()
    }


def labels(*replies: str) -> list[tuple[str, str]]:
    return [(f"Text {n}. Labels: billing, login, other", reply) for n, reply in enumerate(replies)]


def test_calls_that_failed_or_came_back_empty_are_suspects_and_those_that_went_well_are_not(
    home: Home,
) -> None:
    view = load_run(home, wide_run(home, 500))
    found = suspects(view)
    failed = {span.span_id for span in view.spans if span.kind == "sub_call" and span.status == "error"}
    empty = {span.span_id for span in view.spans if span.kind == "sub_call" and span.response_chars == 0}
    assert {key for key, s in found.items() if s.signals[0].kind == "error"} == failed
    assert {key for key, s in found.items() if s.signals[0].kind == "empty"} == empty
    assert found.keys() == failed | empty
    assert found[next(iter(failed))].signals[0].words == (
        "The call failed: the server answered with status 500"
    )


def test_the_most_suspicious_comes_first_and_more_evidence_is_more_suspicious(home: Home) -> None:
    replies = ["billing"] * 20 + ["I'm sorry, but I cannot help with this text at all today."]
    found = suspects(run_with(home, labels(*replies, "bananas")))
    assert [len(suspect.signals) for suspect in found.values()] == [2, 1]
    scores = [suspect.score for suspect in found.values()]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


def test_a_reply_cut_off_at_its_length_limit_is_a_suspect(home: Home) -> None:
    assert kinds(run_with(home, [("Tell me all.", "It was a dark and")], finish="length")) == {0: ["cut off"]}


def test_a_refusal_among_answers_is_a_suspect(home: Home) -> None:
    replies = ["billing"] * 9 + ["I cannot help with this text."]
    assert kinds(run_with(home, labels(*replies))) == {9: ["refusal", "format"]}


def test_finding_nothing_is_suspicious_only_where_it_is_rare(home: Home, tmp_path: Path) -> None:
    rare = run_with(home, labels(*["billing"] * 9, "not found"))
    assert kinds(rare) == {9: ["refusal"]}
    search = run_with(
        home_in(tmp_path / "other"), labels(*["not found"] * 9, "EUR 860 for each of the parties")
    )
    assert not [found for found in kinds(search).values() if found != ["value"]]


def test_a_reply_of_another_form_than_its_siblings_is_a_suspect(home: Home) -> None:
    replies = ['{"label": "billing"}'] * 9 + ["The label is billing, I think."]
    (suspect,) = suspects(run_with(home, labels(*replies))).values()
    assert suspect.signals[0].words == (
        "The reply is running text; 9 of 10 siblings are a JSON object with the keys label."
    )


def test_a_label_that_nobody_offered_and_nobody_else_gave_is_a_suspect(home: Home) -> None:
    assert kinds(run_with(home, labels(*["billing", "login"] * 10, "bananas"))) == {20: ["format"]}


def test_a_rare_label_that_the_prompt_offers_is_no_suspect(home: Home) -> None:
    assert kinds(run_with(home, labels(*["billing", "login"] * 10, "other"))) == {}


def test_a_number_that_stands_nowhere_in_its_prompt_is_a_suspect(home: Home) -> None:
    calls = [(f"Contract {n} costs EUR {n},500 a year.", f"EUR {n}500") for n in range(10, 20)]
    calls[3] = (calls[3][0], "EUR 96,418")
    (suspect,) = suspects(run_with(home, calls)).values()
    assert [signal.words for signal in suspect.signals] == [
        "96,418 stands in the reply but nowhere in the prompt."
    ]


def test_a_number_that_is_one_slip_away_from_one_of_the_prompt_says_from_which(home: Home) -> None:
    calls = [(f"Contract {n} costs EUR {n},500 a year.", f"EUR {n}500") for n in range(10, 20)]
    calls[3] = (calls[3][0], "EUR 73,500")
    (suspect,) = suspects(run_with(home, calls)).values()
    assert [(signal.kind, signal.words) for signal in suspect.signals] == [
        ("digit", "73,500 stands in the reply but nowhere in the prompt; 13,500, a digit away, stands there.")
    ]


def test_a_name_that_neither_prompt_nor_siblings_know_is_a_suspect(home: Home) -> None:
    people = ["Gruber", "Novak", "Silva", "Moreau", "Weiss", "Costa", "Leroy", "Brandt", "Ortega", "Kowal"]
    calls = [(f"Plant {n} is led by {name}.", f"It is {name}") for n, name in enumerate(people)]
    assert kinds(run_with(home, calls[:9] + [(calls[9][0], "It is Kovacs")])) == {9: ["name"]}


def test_a_reply_that_stops_in_the_middle_is_a_suspect(home: Home) -> None:
    whole = "The ship was delayed by a storm off the coast, and the cargo was lost with it."
    replies = [whole] * 9 + ["The ship was delayed by a storm off the coast, and the cargo was lost with"]
    assert kinds(run_with(home, labels(*replies))) == {9: ["unfinished"]}


def test_a_number_of_another_size_is_a_suspect(home: Home) -> None:
    calls = [(f"Sizes: {n}00, 9000000", f"{n}00") for n in range(10, 20)] + [("Sizes: 9000000", "9000000")]
    assert kinds(run_with(home, calls)) == {10: ["outlier"]}


@pytest.mark.parametrize(
    "code",
    [
        "for r in replies:\n    try:\n        total += int(r)\n    except ValueError:\n        pass",
        "total = sum(float(r) if r.isdigit() else 0 for r in replies)",
    ],
)
def test_a_reply_that_made_code_take_its_fallback_is_a_suspect(home: Home, code: str) -> None:
    calls = [(f"Text {n}: {n}0 crates.", f"{n}0") for n in range(10, 19)] + [
        ("Text 19: 190 crates.", "190 crates")
    ]
    assert "fallback" in kinds(run_with(home, calls, code=code))[9]
    assert (
        "fallback" not in kinds(run_with(home_in(home.root / "b"), calls, code="x = [r for r in replies]"))[9]
    )


def test_numbers_that_the_task_is_to_work_out_are_no_evidence(home: Home) -> None:
    calls = [(f"Add 1{n}00 and 2{n}11.", f"{1000 + n * 100 + 2011 + n * 100}") for n in range(12)]
    assert kinds(run_with(home, calls)) == {}


def test_where_replies_add_numbers_of_their_own_one_without_any_of_its_prompt_is_a_suspect(
    home: Home,
) -> None:
    calls = [
        (f"Shop {n} had {n}7 refunds.", f"{n}7 refunds, certainty {n * 3 % 90} %") for n in range(30, 42)
    ]
    assert kinds(run_with(home, [*calls, ("Shop 50 had 507 refunds.", "517 refunds, certainty 88 %")])) == {
        12: ["digit"]
    }


def test_a_reply_without_a_number_among_numbers_is_a_suspect(home: Home) -> None:
    calls = [(f"Shop {n}: {n}7 refunds.", f"It counts {n}7 refunds in all.") for n in range(30, 42)]
    found = kinds(run_with(home, [*calls, ("Shop 50: 507 refunds.", "It counts many refunds in all.")]))
    assert found == {12: ["format"]}


def test_suspects_that_the_answer_does_not_rest_on_come_later(home: Home) -> None:
    def sub(request: Request) -> str:
        return "" if "item 4" in request.prompt or "aside 2" in request.prompt else "3"

    view = recorded(
        home,
        "aside = llm_batch([f'aside {n}' for n in range(6)])",
        "replies = llm_batch([f'item {n}' for n in range(6)])\ntotal = sum(int(r or 0) for r in replies)",
        "FINAL_VAR('total')",
        sub=sub,
    )
    found = {view.by_id[key].cell: suspect for key, suspect in suspects(view).items()}
    assert list(found) == [1, 0]
    assert found[0].influence < found[1].influence and "nothing behind the answer" in found[0].reach
    assert found[1].to_json("x")["signals"] == [{"kind": "empty", "words": "The reply is empty."}]


def test_what_suspects_cannot_show_is_said_whether_there_are_some_or_not() -> None:
    assert all(kind in unseen_words(count) for kind in UNSEEN for count in (0, 3))
    assert unseen_words(0).startswith("There is no suspect")


def test_equal_prompts_that_were_answered_differently_name_the_odd_ones(home: Home) -> None:
    same = "Is this about billing?"
    view = run_with(home, [(same, "Yes."), (same, "yes"), (same, "no"), ("Another?", "no")])
    assert kinds(view) == {2: ["disagreement"]}


def test_a_reply_far_longer_than_those_of_its_siblings_is_a_suspect(home: Home) -> None:
    calls = [(f"Sum up {n}.", "It tells of a ship. " * (5 if n == 4 else 1) * 5) for n in range(10)]
    assert kinds(run_with(home, calls)) == {4: ["length"]}


def test_among_few_siblings_nobody_stands_out(home: Home) -> None:
    assert kinds(run_with(home, labels("billing", "{}", "A long and winding sentence about nothing."))) == {}


def test_every_kind_of_signal_has_a_weight_and_a_meaning() -> None:
    assert WEIGHTS.keys() == MEANINGS.keys()
    assert all(0 < weight < 1 for weight in WEIGHTS.values())


def test_a_record_with_facts_of_wrong_types_has_suspects_all_the_same(home: Home) -> None:
    bad = {sc.PROMPT_HASH: 7, sc.RESPONSE_NORM_HASH: 2.5, sc.CALL_LINE: "x", sc.RUN_PATH: True}
    bad[sc.FINISH_REASONS] = '{"a": [[['
    failed = end("c", status="error", a={"error.type": "server", sc.ERROR_MESSAGE: 3})
    write_spool(home, [header(), start("c", a=bad), failed, start("d", a={"rlm.response.chars": -1}), fin()])
    assert [suspect.signals[0].kind for suspect in suspects(load_run(home, RUN)).values()] == [
        "error",
        "error",
    ]


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        ("42", "a number"),
        ("€ 1,234.50", "a number"),
        ("billing", "a word or two"),
        ("```json\n[1, 2]\n```", "a JSON list"),
        ('{"b": 1, "a": 2}', "a JSON object with the keys a, b"),
        ("{}", "an empty JSON object"),
        ("{not json", "running text"),
        ("It was the best of times.", "running text"),
    ],
)
def test_the_form_of_a_reply_is_told_in_words(reply: str, what: str) -> None:
    assert form(reply) == what


@pytest.mark.parametrize(
    "reply", ["I'm sorry, but no.", "As an AI, I ...", "Lo siento, pero no.", "Desculpe!", "Es tut mir leid."]
)
def test_refusals_are_known_in_several_languages(reply: str) -> None:
    assert declines(reply)
    assert not found_nothing(reply)


@pytest.mark.parametrize("reply", ["Not found.", "N/A", "none", "No information.", "No encontrado", "null"])
def test_replies_that_find_nothing_are_known(reply: str) -> None:
    assert found_nothing(reply)
    assert not declines(reply)


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ("1,234.50", "it costs 1234.5 dollars"),
        ("1.234,50", "it costs 1,234.50 dollars"),
        ("2024", "signed 2024-05-01"),
        ("PRV-65", "the provider prv-65 agrees"),
        ("1. first\n2. second", "no number here"),
        ("a 10-year term", "a term of 10 years"),
    ],
)
def test_values_written_in_another_way_are_found_in_their_source(reply: str, source: str) -> None:
    assert unfounded(named_values(reply), source) == {}


@pytest.mark.parametrize("reply", ["1,235.50", "PRV-66", "2021-07-08", "notices.24@cedar.example"])
def test_values_of_no_source_are_told_as_they_are_written(reply: str) -> None:
    source = "1,234.50 to PRV-65 on 2021-07-09, notices.23@cedar.example, 8 and 7 and 24"
    assert list(unfounded(named_values(reply), source).values()) == [reply]


def test_texts_made_to_be_slow_are_not() -> None:
    assert named_values("\n" * 200_000 + "7") == {"7": "7"}  # for ever, where a line's mark may span lines
    codes = [f"AB{number}x" for number in range(20_000)]  # each may have to be looked for in a whole prompt
    assert list(named_values(" ".join(codes)).values()) == codes[:200]


@given(st.text())
def test_any_text_has_a_form_and_its_values_are_found_in_itself(text: str) -> None:
    assert form(text)
    assert unfounded(named_values(text), text) == {}
