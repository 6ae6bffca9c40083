"""What the root is told: by family of models, and that the patterns it is shown work as they stand."""

from __future__ import annotations

import re

import pytest

from rlm_core.limits import Limits
from rlm_core.lm_handler import Message
from rlm_core.options import DepthModels, Options
from rlm_core.prompt_families import family_of
from rlm_core.prompts import (
    SHORT_SYSTEM,
    SYSTEM,
    is_summary_request,
    last_output,
    parse_question,
    summary_request,
    turns_so_far,
    with_summary,
)
from tests.support.scripted import Script, cell, play, run

DOCUMENTS = {f"note {n}": f"On day {n} the keeper writes a line.\n" * 3 for n in range(45)}


def patterns(system: str) -> list[str]:
    return re.findall(r"```repl\n(.*?)```", system, re.S)


@pytest.mark.parametrize(
    ("root", "sub", "version"),
    [
        ("openai/gpt-4o", "openai/gpt-4o-mini", "3/gpt"),
        ("demo/root", "demo/sub", "3/gpt"),
        ("openai/gpt-5", "openai/gpt-5-mini", "3/reasoning"),
        ("openai/gpt-5-chat-latest", "openai/gpt-5-mini", "3/gpt"),
        ("xai/grok-4-fast-non-reasoning", "x/y", "3/gpt"),
        ("deepseek/deepseek-reasoner", "x/y", "3/reasoning"),
        ("anthropic/claude-sonnet-4-5", "x/y", "3/claude"),
        ("openrouter/qwen/qwen3-coder", "x/y", "3/qwen"),
        ("openai/Qwen3-8B", "openai/Qwen3-8B", "3/small+qwen"),
        ("openai/llama-3.1-70b", "x/y", "3/gpt"),
        ("openai/o3", "x/y", "3/reasoning"),
        ("openai/pro3", "x/y", "3/gpt"),
    ],
)
def test_the_family_is_read_from_the_models_ids(root: str, sub: str, version: str) -> None:
    assert family_of(root, sub).version == version


def test_a_model_without_traits_is_told_the_plain_text() -> None:
    assert family_of("openai/gpt-4o", "openai/gpt-4o-mini").system == SYSTEM


def test_a_window_that_somebody_set_counts_before_the_name() -> None:
    assert family_of("openai/gpt-4o", "x/y", root_window=32_000).version == "3/small"
    assert family_of("openai/Qwen3-8B", "x/y", root_window=128_000).version == "3/qwen"


def test_a_small_window_is_told_less_and_small_sub_models_get_small_snippets() -> None:
    family = family_of("openai/Qwen3-8B", "openai/Qwen3-8B")
    assert family.system.startswith(SHORT_SYSTEM[:300]) and len(SHORT_SYSTEM) < len(SYSTEM) * 0.7
    assert "100,000" not in family.system and f"{family.snippet_chars:,} characters" in family.system
    assert family.snippet_chars < 64_000


def test_a_model_that_thinks_is_told_what_that_counts_into() -> None:
    told = family_of("openai/gpt-5", "openai/gpt-5-mini", reply_tokens=12_345).system
    assert "12,345 tokens" in told and "max_tokens=16000" in told
    assert "max_tokens=16000" not in family_of("openai/gpt-5", "openai/gpt-4o-mini").system


@pytest.mark.parametrize("root", ["openai/gpt-4o", "openai/Qwen3-8B", "openrouter/qwen/qwen3-coder"])
def test_every_pattern_that_is_shown_runs_as_it_stands(root: str) -> None:
    shown = patterns(family_of(root, "x/y").system)
    assert shown
    answer, script = play(*shown, "FINAL(replies)", corpus=DOCUMENTS, sub=lambda _: "yes, it does")
    assert answer.value[0] == "yes, it does"
    assert not any("Error" in output for output in script.outputs)


def test_the_pattern_for_sequences_gives_each_part_the_notes_of_the_one_before() -> None:
    (pattern,) = [code for code in patterns(SYSTEM) if "notes" in code]
    replies = iter(["first notes", None, "third notes"])

    def sub(request: object) -> str:
        said = next(replies)
        if said is None:
            raise ValueError("no reply")
        return said

    answer, script = play(pattern, "FINAL(notes)", corpus=dict(list(DOCUMENTS.items())[:3]), sub=sub)
    assert answer.value == "third notes" and "SubCallError" in script.outputs[0]
    told = [request.prompt for request in script.sub_requests]
    assert "Notes so far: none." in told[0] and "Notes so far: first notes." in told[-1]


def test_child_runs_are_told_by_the_family_of_their_own_models() -> None:
    script = Script([cell("r = rlm_query('deeper?')"), cell("FINAL(1)"), cell("FINAL(r)")])
    options = Options(models={1: DepthModels(root="test/qwen3-coder")})
    run(script, options=options, limits=Limits(max_depth=1))
    systems = {request.model: request.messages[0].content for request in script.root_requests}
    assert systems["test/root"] == SYSTEM
    assert systems["test/qwen3-coder"] == family_of("test/qwen3-coder", "test/sub").system != SYSTEM


def test_a_summary_is_read_back_by_whoever_wrote_it() -> None:
    asked = with_summary(
        Message("user", "# Question\nHow many?\n\n# Context\n2 documents\n(turn 1)"), "Two.", 1_234
    )
    messages = (
        Message("system", "s"),
        asked,
        Message("assistant", "a"),
        Message("user", "# Output\n7\n(turn 2)"),
    )
    assert parse_question(messages) == "How many?" and last_output(messages) == "7"
    assert turns_so_far(messages) == 1_235
    assert not is_summary_request(messages)
    assert is_summary_request((*messages[:-1], summary_request(messages[-1], 200)))


def test_the_plain_text_is_short_enough_to_be_sent_with_every_turn() -> None:
    """It makes up most of what a root is sent in thirty tiny turns, which may be 100 KB in all."""
    assert len(SYSTEM.encode()) <= 1_880


@pytest.mark.parametrize(
    ("name", "small"),
    [("x-8b", True), ("x3b", True), ("x-72b", False), ("x-8x7b", False), ("x-30b-a3b-instruct", False)],
)
def test_few_parameters_are_counted_as_the_name_gives_them(name: str, small: bool) -> None:
    assert ("small" in family_of(f"openai/{name}", "test/sub").traits) is small
