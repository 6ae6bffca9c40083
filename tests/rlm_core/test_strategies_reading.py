"""Strategies that show their root the corpus: what it is sent, what it never is, and how such a run ends."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from rlm_core import RLM, Answer, FunctionLMHandler, Limits, Request
from rlm_core import semconv as sc
from rlm_core.corpus import Corpus
from rlm_core.errors import ConfigError, ModelError
from rlm_core.lm_handler import Completion, Usage
from rlm_core.options import Options
from rlm_core.strategies.texts import parts, render
from rlm_core.telemetry import as_json
from rlm_core.tools import Tool, ToolSpec
from tests.support.scripted import FAST
from traces.coverage import coverage
from traces.home import Home
from traces.reading import RunView, load_run
from traces.recording import open_recording

DOCUMENTS = {
    "harbour.txt": "The northern quay handled 4,812 containers in March.\n" * 20,
    "letters.txt": "Überraschend viele Gäste fragten nach dem großen Leuchtturm.\n" * 15,
    "crane.txt": "Repairs of the second crane were finished late, in April.\n",
}
LONG = {name: text * 12 for name, text in DOCUMENTS.items()}
Reply = Callable[[Request], Any]


class Asked:
    """Runs by a function, and what that was asked."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.requests: list[Request] = []
        self.runs = 0

    def run(
        self, strategy: str, reply: Reply, *, limits: Limits | None = None, corpus: Any = None, **options: Any
    ) -> Answer:
        """One recorded run; what was asked before it is forgotten."""
        self.runs += 1
        self.requests.clear()

        def answer(request: Request) -> Any:
            self.requests.append(request)
            said = reply(request)
            if isinstance(said, Exception):
                raise said
            return said

        how: Any = Options(strategy=strategy, **options)  # type: ignore[arg-type]
        with (
            open_recording(self.home, self.run_id, {}) as recording,
            RLM(
                "test/root", "test/sub", handler=FunctionLMHandler(answer), options=how,
                limits=limits, retries=FAST, corpora=self.home.corpora,
            ) as rlm,
        ):  # fmt: skip
            corpus = DOCUMENTS if corpus is None else corpus
            return rlm.ask(
                "When was the crane repaired?", corpus, recorder=recording.recorder, run_id=self.run_id
            )

    @property
    def run_id(self) -> str:
        """Of the last run."""
        return f"20260101T000000-{self.runs:08x}"

    @property
    def view(self) -> RunView:
        """The recorded run."""
        return load_run(self.home, self.run_id)

    @property
    def facts(self) -> Any:
        """What stands on its run span."""
        return self.view.spans[0].attributes


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    home = Home(tmp_path / "home")
    home.create()
    return Asked(home)


def kinds(view: RunView) -> list[str]:
    return [span.kind for span in view.spans]


def shown(asked: Asked) -> int:
    """Bytes of the corpus that the root of the last run was shown."""
    known = coverage(asked.view)
    assert not known.lower_bound and known.words == ()
    return known.sizes["shown"]


# -- direct


def test_direct_sends_the_whole_corpus_in_one_root_call(asked: Asked) -> None:
    answer = asked.run("direct", lambda _: " In April. \n")
    assert (answer.text, answer.value, answer.stop_reason) == ("In April.", "In April.", "final")
    (request,) = asked.requests
    assert all(text in request.prompt for text in DOCUMENTS.values())
    assert kinds(asked.view) == ["run", "iteration", "root_call", "attempt"]
    assert (asked.facts[sc.FITS], asked.facts[sc.STRATEGY]) == (True, "direct")
    assert shown(asked) == sum(len(text.encode()) for text in DOCUMENTS.values())


def test_a_corpus_that_does_not_fit_is_not_sent(asked: Asked) -> None:
    answer = asked.run("direct", lambda _: "never", root_window=300)
    assert (answer.text, answer.stop_reason, asked.requests) == (None, "error", [])
    assert answer.error is not None
    assert answer.error.startswith("the corpus does not fit: about ")
    assert answer.error.endswith(" tokens, and test/root takes 300")
    assert asked.facts[sc.FITS] is False and asked.facts[sc.FITS_WINDOW] == 300
    assert shown(asked) == 0


def test_a_corpus_that_the_provider_finds_too_long_does_not_fit(asked: Asked) -> None:
    answer = asked.run("direct", lambda _: ModelError("context_window", "test/root: too long"))
    assert answer.error is not None and "does not fit" in answer.error and "too long" in answer.error
    assert asked.facts[sc.FITS] is False and shown(asked) == 0


def test_it_is_said_that_nothing_is_known_of_the_window(asked: Asked) -> None:
    answer = asked.run("direct", lambda _: "x")
    assert any("how much test/root takes is not known" in notice for notice in answer.notices)
    assert asked.run("direct", lambda _: "x", root_window=100_000).notices == ()


def test_more_than_a_prompt_may_have_is_not_sent_to_a_model_of_which_nothing_is_known(asked: Asked) -> None:
    answer = asked.run("direct", lambda _: "x", limits=Limits(max_prompt_chars=500))
    assert answer.error is not None and "a prompt may have 500 here" in answer.error and not asked.requests
    known = asked.run("direct", lambda _: "x", limits=Limits(max_prompt_chars=500), root_window=100_000)
    assert known.error is not None and "(test/root takes 100,000 tokens)" in known.error


def test_an_empty_reply_is_no_answer_and_a_cut_one_says_so(asked: Asked) -> None:
    empty = asked.run("direct", lambda _: Completion(None, finish_reason="length"))
    assert empty.text is None and empty.error is not None and "held no text" in empty.error
    cut = asked.run("direct", lambda _: Completion("In Ap", finish_reason="length"))
    assert (cut.text, cut.note) == ("In Ap", "the reply was cut off by its length limit")


def test_an_answer_that_does_not_fit_its_schema_is_sent_back(asked: Asked) -> None:
    replies = iter(["April", '{"month": 4}', '```json\n{"month": "April"}\n```'])
    schema = {"type": "object", "properties": {"month": {"type": "string"}}, "required": ["month"]}
    answer = asked.run("direct", lambda _: next(replies), schema=schema)
    assert (answer.value, answer.mark, answer.iterations) == ({"month": "April"}, None, 3)
    assert as_json(schema) in asked.requests[0].messages[0].content
    assert [message.role for message in asked.requests[2].messages][2:] == ["assistant", "user"] * 2


def test_one_that_never_fits_is_marked(asked: Asked) -> None:
    answer = asked.run("retrieve", lambda _: "April", schema={"type": "integer"})
    assert (answer.text, answer.mark, len(asked.requests)) == ("April", "schema", 3)


# -- retrieval


def test_retrieval_gives_the_passages_that_fit_best_and_no_others(asked: Asked) -> None:
    answer = asked.run("retrieve", lambda _: "In April.", passages=1)
    (request,) = asked.requests
    assert answer.text == "In April."
    assert DOCUMENTS["crane.txt"] in request.prompt and "quay" not in request.prompt
    assert shown(asked) == len(DOCUMENTS["crane.txt"])


def test_where_no_passage_holds_a_word_of_the_question_nobody_is_asked(asked: Asked) -> None:
    answer = asked.run("retrieve", lambda _: "x", corpus={"a.txt": "nothing of it"})
    assert answer.error == "no passage of the corpus holds a word of the question" and not asked.requests


# -- compaction


def test_compaction_reads_every_part_once_and_answers_from_its_summary(asked: Asked) -> None:
    def reply(request: Request) -> str:
        return f"summary {len(asked.requests)}"

    answer = asked.run("compaction", reply, root_window=1_000)
    count = len(asked.requests)
    assert count > 3 and (answer.text, answer.iterations) == (f"summary {count}", count)
    for before, request in enumerate(asked.requests[1:], 1):
        assert f"# Summary so far\nsummary {before}" in request.prompt
    assert "===" not in asked.requests[-1].prompt  # no text, only the summary
    turns = [span.attributes for span in asked.view.spans if span.kind == "iteration"]
    sent = [json.loads(turn[sc.SHOWN_RANGES])["ranges"] for turn in turns if sc.SHOWN_RANGES in turn]
    assert len(sent) == count - 1
    places = sorted(place for ranges in sent for place in ranges)
    for document, text in enumerate(DOCUMENTS.values()):
        mine = [place[1:] for place in places if place[0] == document]
        ends = [0, *(end for _, end in mine)]
        assert [start for start, _ in mine] == ends[:-1] and ends[-1] == len(text.encode())


def test_a_window_without_room_for_a_part_is_said(asked: Asked) -> None:
    answer = asked.run("compaction", lambda _: "x", root_window=300)
    assert answer.error == "a window of 300 tokens leaves no room for parts of the corpus"


def test_at_the_limit_of_turns_it_answers_from_what_it_has_read(asked: Asked) -> None:
    limits = Limits(max_iterations=2)
    answer = asked.run("compaction", lambda _: "so far", root_window=1_000, limits=limits)
    assert (answer.text, answer.stop_reason, answer.forced) == ("so far", "max_iterations", True)
    assert answer.note is not None and "characters were read" in answer.note
    assert len(asked.requests) == 2 and asked.requests[1].messages[-1].content.startswith("# Final answer")


def test_a_part_that_got_no_reply_is_said(asked: Asked) -> None:
    replies = iter([None, "two", *["more"] * 20])
    answer = asked.run("compaction", lambda _: Completion(next(replies)), root_window=1_000)
    assert answer.note is not None and answer.note.startswith("1 of ") and "got no reply" in answer.note


def test_a_budget_without_room_for_the_corpus_ends_it(asked: Asked) -> None:
    answer = asked.run("direct", lambda _: "x", limits=Limits(max_tokens=500))
    assert (answer.text, answer.stop_reason, asked.requests) == (None, "budget", [])
    assert answer.error is not None and "tokens limit leaves no room" in answer.error


def counted(request: Request, chars: int) -> Completion:
    """A reply to a prompt of which so many characters count as a token."""
    sent = sum(len(message.content) for message in request.messages)
    return Completion("so far", usage=Usage(input=sent // chars, output=10))


def test_a_budget_that_is_used_up_leaves_room_for_an_answer_from_the_summary(asked: Asked) -> None:
    def reply(request: Request) -> Completion:
        return counted(request, 4)

    asked.run("compaction", reply, root_window=2_000, corpus=LONG)
    all_of_it, limits = len(asked.requests), Limits(max_tokens=4_800)
    answer = asked.run("compaction", reply, root_window=2_000, limits=limits, corpus=LONG)
    assert (answer.text, answer.stop_reason, answer.forced) == ("so far", "budget", True)
    assert 1 < len(asked.requests) < all_of_it and answer.tokens["total"] <= 4_800


def test_parts_fit_also_where_the_provider_counts_far_more_tokens(asked: Asked) -> None:
    used: list[int] = []

    def reply(request: Request) -> Completion:
        used.append(sum(len(message.content.encode()) for message in request.messages) * 4 // 9)
        return Completion("so far", usage=Usage(input=used[-1], output=10))

    answer = asked.run("compaction", reply, root_window=4_000, corpus=LONG)
    assert answer.stop_reason == "final" and 2_500 < max(used) <= 4_000


@pytest.mark.parametrize(("strategy", "text"), [("retrieve", None), ("compaction", "so far")])
def test_the_time_of_a_run_ends_it(asked: Asked, strategy: str, text: str | None) -> None:
    async def reply(request: Request) -> str:
        if len(asked.requests) == (1 if text is None else 2):
            await asyncio.sleep(60)
        return "so far"

    limits = Limits(max_seconds=0.3 if text is None else 2)  # time for what comes before
    answer = asked.run(strategy, reply, root_window=1_000, limits=limits)
    assert (answer.text, answer.stop_reason, answer.forced) == (text, "timeout", text is not None)


def test_a_cancelled_run_says_so(asked: Asked) -> None:
    async def reply(_: Request) -> str:
        await asyncio.sleep(60)
        return "never"

    with RLM("a/b", "a/b", handler=FunctionLMHandler(reply), options=Options(strategy="direct")) as rlm:

        async def cancelled() -> Answer:
            task = asyncio.ensure_future(rlm.aask("When?", {"a.txt": "x"}, on_event=lambda _: rlm.cancel()))
            return await task

        assert asyncio.run(cancelled()).stop_reason == "cancelled"


# -- parts


@settings(deadline=None, max_examples=60)
@given(
    texts=some.lists(
        some.text(some.sampled_from("ab \nüя漢🙂"), max_size=400), min_size=1, max_size=6
    ).filter(any),
    most=some.integers(120, 600),
)
def test_parts_cover_the_corpus_in_order_and_keep_to_their_size(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], most: int
) -> None:
    documents = {f"{number}.txt": text for number, text in enumerate(texts)}
    corpus = Corpus.from_texts(documents, tmp_path_factory.mktemp("corpora"))
    found = list(parts(corpus, most))
    joined = ["" for _ in corpus.documents]
    for part in found:
        assert len(render(corpus, part).encode()) <= most
        for piece in part:
            assert len(joined[piece.document].encode()) == corpus.byte_range(*piece)[0]
            joined[piece.document] += corpus.text(*piece)
    assert joined == [corpus.text(d.number, 0, d.chars) for d in corpus.documents]


def test_tools_are_refused_where_no_sub_model_is_asked() -> None:
    tool = Tool(ToolSpec("look", "Look.", {"type": "object"}), lambda *_: None)
    with pytest.raises(ConfigError, match="the strategy direct asks none"):
        Options(strategy="direct", tools=(tool,))
    assert Options(strategy="retrieve+rlm", tools=(tool,)).tools


def test_a_price_that_is_not_known_still_stops_a_limit_of_dollars() -> None:
    with pytest.raises(ConfigError, match="max_cost_usd cannot hold"):
        RLM("test/root", "test/sub", limits=Limits(max_cost_usd=Decimal(1)), options=Options("direct"))


def test_a_part_that_the_provider_refuses_ends_the_reading_with_what_was_read(asked: Asked) -> None:
    def reply(_: Request) -> Any:
        return "so far" if len(asked.requests) < 3 else ModelError("context_window", "test/root: too long")

    answer = asked.run("compaction", reply, corpus=LONG, root_window=3_000)
    assert (answer.stop_reason, answer.text, answer.best_partial) == ("error", None, "so far")
    assert len(asked.requests) == 3 and "too long" in str(answer.error)


def test_a_search_that_nobody_waits_for_any_more_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def passages(*_: Any) -> list[Any]:
        begun.set()
        go_on.wait(60)
        return []

    monkeypatch.setattr("rlm_core.strategies.texts.passages", passages)
    rlm = RLM(handler=FunctionLMHandler(lambda _: "x"), options=Options(strategy="retrieve"))
    closing = threading.Thread(target=rlm.close)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(rlm.ask, "Which crane?", "A huge text.")
        assert begun.wait(60)
        closing.start()
        closing.join(45)
        ended = not closing.is_alive()
        go_on.set()
    assert ended and asking.result().stop_reason == "cancelled"


@pytest.mark.parametrize(("strategy", "window"), [("retrieve", 1_500), ("retrieve+rlm", 2_500)])
def test_of_passages_that_do_not_all_fit_the_best_are_shown(asked: Asked, strategy: str, window: int) -> None:
    told = "```repl\nFINAL('April')\n```" if "rlm" in strategy else "April"
    every = asked.run(strategy, lambda _: told, corpus=LONG, root_window=20_000)
    assert every.text == "April" and not every.notices
    best = asked.requests[0].messages[1].content.count("=== [")
    fewer = asked.run(strategy, lambda _: told, corpus=LONG, root_window=window)
    assert fewer.text == "April" and 0 < asked.requests[0].messages[1].content.count("=== [") < best
    assert any("passages were shown: more do not fit" in notice for notice in fewer.notices)
    none = asked.run("retrieve", lambda _: "x", corpus=LONG, root_window=450)
    assert none.text is None and "not one passage fits" in str(none.error) and not asked.requests
