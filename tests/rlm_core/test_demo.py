"""The demo model: its programs over generated corpora with known answers, and its seeded faults."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import random
import re
import sysconfig
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core import demo_sub, prompts, semconv
from rlm_core.demo import DemoLMHandler, is_demo
from rlm_core.errors import ConfigError, ModelError
from rlm_core.lm_handler import Completion, Message, Request
from rlm_core.sub_call_error import SubCallError
from rlm_core.texts import Text
from sample_data.generators import code_repo, contracts, needle, papers, server_log, tickets
from sample_data.generators.common import Corpus

BILLING = "How many tickets are about billing?"


class Run:
    """A mini engine: asks the root, runs its cells in one namespace, answers llm_batch by the handler."""

    def __init__(self, documents: Sequence[Text], handler: DemoLMHandler | None = None) -> None:
        self.handler = handler or DemoLMHandler()
        self.replies: dict[tuple[str, int], Completion | ModelError] = {}
        self.answer: dict[str, Any] = {"content": "", "ready": False}
        self.names: dict[str, Any] = {
            "documents": documents,
            "context": documents,
            "answer": self.answer,
            "FINAL": self.final,
        }
        self.names |= {"llm_batch": self.llm_batch, "FINAL_VAR": lambda name: self.final(self.names[name])}
        self.cells: list[str] = []
        self.messages: list[Message] = []

    def final(self, value: Any) -> None:
        self.answer |= {"content": value, "ready": True}

    def llm_batch(self, asked: Sequence[str], snippets: Sequence[str]) -> list[Any]:
        return [self.sub_call(f"{a}\n\n{b}") for a, b in zip(asked, snippets, strict=True)]

    def sub_call(self, prompt: str) -> Any:
        occurrence = sum(known == prompt for known, _ in self.replies) if (prompt, 0) in self.replies else 0
        try:
            self.replies[prompt, occurrence] = reply = ask(self.handler, prompt, occurrence)
            return reply.text
        except ModelError as error:
            self.replies[prompt, occurrence] = error
            return SubCallError(error.kind, str(error))

    def ask(self, question: str, turns: int = 8) -> dict[str, Any]:
        self.messages = list(prompts.opening(question, "documents", "plenty"))
        for _ in range(turns):
            request = Request("demo/root", tuple(self.messages), "root")
            text = asyncio.run(self.handler.complete(request)).text or ""
            found = re.search(r"(`{3,})repl\n(.*?)\n\1", text, re.S)
            assert found, text
            self.cells.append(found[2])
            output = self.run_cell(found[2])
            self.messages += [Message("assistant", text), prompts.cell_output([output], "plenty")]
            if self.answer["ready"]:
                return self.answer
        raise AssertionError("the run did not end")

    def run_cell(self, code: str) -> str:
        out = io.StringIO()
        with redirect_stdout(out):
            try:
                exec(compile(code, "cell", "exec"), self.names)
            except Exception:
                out.write(traceback.format_exc())
        return prompts.cut_middle(out.getvalue(), 4_000)


def ask(handler: DemoLMHandler, prompt: str, occurrence: int = 0) -> Completion:
    request = Request(
        "demo/sub", (Message("user", prompt),), "sub", None, None, None, 60.0, prompt, occurrence
    )
    return asyncio.run(handler.complete(request))


def documents_of(files: dict[str, str]) -> list[Text]:
    return [Text(text, number, 0, name) for number, (name, text) in enumerate(sorted(files.items()))]


def answer_of(question: str, *texts: str, name: str = "text.txt") -> dict[str, Any]:
    return Run([Text(text, n, 0, name) for n, text in enumerate(texts)]).ask(question)


# -- generated corpora with gold


@pytest.mark.parametrize("seed", range(30))
def test_tickets_are_counted_with_one_sub_call_each(seed: int) -> None:
    corpus = tickets.tickets(seed)
    gold = next(q.answer for q in corpus.questions if q.question == BILLING)
    run = Run(documents_of(corpus.files))
    assert run.ask(BILLING) == {"content": gold, "ready": True}
    assert len(run.replies) == 200 and len(run.cells) == 4


def corpora(seed: int) -> list[Corpus]:
    made = (
        contracts.contracts, contracts.es_contratos, papers.papers, needle.needle, code_repo.code_repo,
        server_log.server_log, tickets.pt_chamados,
    )  # fmt: skip
    return [make(seed) for make in made] + [tickets.tickets(seed, 60)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_question_with_an_exact_gold_is_answered(seed: int) -> None:
    for corpus in corpora(seed):
        documents = documents_of(corpus.files)
        for question in corpus.questions:
            if question.kind in ("open", "summarise"):
                continue
            run = Run(documents)
            assert run.ask(question.question)["content"] == question.answer, question
            assert question.sub_calls in (None, len(run.replies)), question


@pytest.mark.parametrize("seed", range(5))
def test_oblique_wording_is_marked(seed: int) -> None:
    corpus = tickets.tickets(seed, 100, oblique=0.12)
    answer = Run(documents_of(corpus.files)).ask(BILLING)
    assert isinstance(answer["content"], int) and answer["confidence"] == "low"
    assert answer["note"] == "low confidence: 12 of 100 tickets are worded obliquely"


def test_some_programs_type_the_answer_and_others_hand_over_a_variable() -> None:
    corpus = contracts.contracts(1)
    typed, handed = Run(documents_of(corpus.files)), Run(documents_of(corpus.files))
    typed.ask("Which contract has the highest annual fee?")
    handed.ask("List all e-mail addresses in the contracts.")
    assert re.fullmatch(r"FINAL\('k-\d+\.md'\)", typed.cells[-1])
    assert 'FINAL_VAR("result")' in handed.cells[-1] or "FINAL_VAR('result')" in handed.cells[-1]


# -- needles: 150 files of the interpreter's own library, two unrelated families of wording


@cache
def library() -> tuple[Text, ...]:
    found = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:150]
    return tuple(Text(p.read_text("utf-8", "replace"), n, 0, p.name) for n, p in enumerate(found))


def with_line(rng: random.Random, line: str) -> list[Text]:
    documents = list(library())
    number = rng.randrange(len(documents))
    lines = documents[number].split("\n")
    styles = ("# {}", '"""{}"""', "NOTE = '{}'", "{}", '    "note": "{}",', "        # {}")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(styles).format(line))
    documents[number] = Text("\n".join(lines), number, 0, documents[number].name)
    return documents


@pytest.mark.parametrize("seed", range(40))
def test_a_needle_of_the_generator_is_found(seed: int) -> None:
    rng = random.Random(seed)
    question, value, sentence = needle.draw(rng)
    assert Run(with_line(rng, sentence)).ask(question)["content"] == value


# (question, sentences, kinds of value)
OTHER_FAMILY = (
    ("What password opens the {a} {n}?", ("The {a} {n} opens with the password {v}.",), "cwu"),
    ("What is {a}-{n}'s secret key?", ("secret key for {a}-{n} -> {v}",), "cnu"),
    ("Who guards the {a} {n}?", ("The {a} {n} is guarded by {v}.", "The guard of the {a} {n} is {v}."), "p"),
    ("How many crates are stored in the {a} {n}?", ("The {a} {n} stores {v} crates.",), "s"),
    ("What is the deadline for the {a}-{n} review?", ("The {a}-{n} review is due on {v}.",), "d"),
    ("What is the rent of the {a} {n}?", ("The {a} {n} rents for {v} a month.",), "m"),
    ("What is {a}_{n} set to?", ("{a}_{n} is set to {v}.", "{a}_{n} = {v}"), "cnw"),
    ("Please find the serial number of unit {a}-{n}", ("Unit {a}-{n} bears serial number {v}.",), "cnu"),
    ("What is the e-mail address of the {a} {n} desk?", ("Write to the {a} {n} desk at {v}.",), "e"),
    ("At what time does the {a} {n} open?", ("The {a} {n} opens at {v}.",), "t"),
    ("¿Cuál es el código de acceso del {n} {a}?", ("El código de acceso del {n} {a} es {v}.",), "cn"),
    ("Qual é a senha do {n} {a}?", ("A senha do {n} {a} é {v}.",), "cw"),
)  # fmt: skip


def value_of(rng: random.Random, kind: str) -> str:
    word = rng.choice(("tangerine", "walrus", "cinnamon", "quartz", "ember", "thistle"))
    return {
        "c": f"{rng.choice('ABCDEFG')}{rng.randint(10, 99)}-{rng.choice('KLMNP')}{rng.randint(100, 999)}",
        "w": word,
        "u": f"{rng.getrandbits(32):08x}-1a2b-4c3d-8e4f-{rng.getrandbits(48):012x}",
        "n": str(rng.randint(10_000, 9_999_999)),
        "p": rng.choice(("Osaka", "Tallinn", "Montrose")),
        "s": str(rng.randint(20, 900)),
        "d": rng.choice((f"{rng.randint(1, 28)} March 2031", f"2033-0{rng.randint(1, 9)}-14")),
        "m": rng.choice((f"EUR {rng.randint(1, 9)},{rng.randint(100, 999)}.50", f"${rng.randint(200, 999)}")),
        "e": f"{word}.desk@{word}.example",
        "t": f"{rng.randint(6, 22)}:30",
    }[kind]


def other_needle(seed: int) -> tuple[random.Random, str, str, str]:
    rng = random.Random(f"other {seed}")
    question, wordings, kinds = OTHER_FAMILY[seed % len(OTHER_FAMILY)]
    value = value_of(rng, rng.choice(kinds))
    adjective, noun = rng.choice(("misty", "oaken", "silent")), rng.choice(("badger", "canyon", "pavilion"))
    names = {"a": adjective, "n": noun, "v": value}
    return rng, question.format(**names), value, rng.choice(wordings).format(**names)


@pytest.mark.parametrize("seed", range(48))
def test_a_needle_of_an_unrelated_wording_is_found(seed: int) -> None:
    rng, question, value, sentence = other_needle(seed)
    assert Run(with_line(rng, sentence)).ask(question)["content"] == value


@pytest.mark.parametrize("seed", range(24))
def test_what_is_not_there_is_not_found(seed: int) -> None:
    question = other_needle(seed)[1] if seed % 2 else needle.draw(random.Random(seed))[0]
    run = Run(library())
    answer = run.ask(question)
    assert answer["content"] == "not found" and answer["note"]
    assert len(run.replies) <= 8


def test_a_similar_name_is_not_taken_for_the_one_asked_for() -> None:
    text = "The access code for the south archive is 1111.\nThe access code for the north archive is 2222.\n"
    assert answer_of("What is the access code for the north archive?", text)["content"] == "2222"
    answer = answer_of("What is the access code for the west archive?", text)
    assert answer["content"] == "not found"


# -- forms of questions and shapes of corpora


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("How many lines contain ERROR?", 2),
        ("¿Cuántas líneas contienen ERROR?", 2),
        ("Quantas linhas contêm ERROR?", 2),
        ('How many lines in the log contain "disk full"?', 1),
        ("How many times does disk occur in the text?", 2),
        ("How many lines are there?", 4),
        ("How many documents are there?", 1),
    ],
)
def test_counting_text_needs_no_sub_call(question: str, content: int) -> None:
    run = Run([Text("ERROR disk full\nINFO disk ok\nERROR net down\nINFO\n", 0, 0, "x.log")])
    assert run.ask(question) == {"content": content, "ready": True} and not run.replies


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", '{"body": "invoice wrong"}\n{"body": "password lost"}\n\n{"body": "refund late"}\n'),
        ("rows.csv", 'id,body\n1,"invoice,\nwrong"\n2,password lost\n3,refund late\n'),
        ("blocks.txt", "invoice wrong\nagain\n\npassword lost\n\n\nrefund late\n"),
        ("lines.txt", "invoice wrong\npassword lost\nrefund late"),
    ],
)
def test_one_document_is_split_into_records(name: str, text: str) -> None:
    run = Run([Text(text, 0, 0, name)])
    assert run.ask("How many records are about billing?") == {"content": 2, "ready": True}
    assert len(run.replies) == 3
    assert all(isinstance(r, Text) and text[r.start : r.start + len(r)] == r for r in run.names["records"])


def test_pairs_name_the_lower_one_first() -> None:
    texts = [
        f"customer: C-{n}\n\n{body}" for n, body in ((3, "my invoice"), (1, "a refund"), (2, "my password"))
    ]
    answer = answer_of("Which pairs of customers both have a ticket about billing?", *texts)
    assert answer["content"] == ["(C-1, C-3)"]


@pytest.mark.parametrize(
    "question",
    [
        "Why did the errors rise?",
        "How many tickets are about billing in March?",
        "How many tickets from customer C-0012 are about billing?",
        "Translate the contracts into French.",
        "How many lines contain ERROR and mention checkout?",
    ],
)
def test_a_question_beyond_the_forms_is_answered_with_that(question: str) -> None:
    answer = answer_of(question, "Errors rose in March because a disk was full.", "Nothing else.")
    assert answer["content"].startswith("The demo model has no plan for this question.")
    assert answer["confidence"] == "low"


FORMS = (
    BILLING,
    "What is the most common category of the tickets?",
    "List all pairs of customers where both have a ticket about login.",
    "How many lines contain x?",
    "How many records mention x?",
    "How many files are there?",
    "List all dates in the documents.",
    "Which document has the latest date?",
    "Which contracts renew automatically?",
    "Which files mention x?",
    "Which tickets are about a bug?",
    "Summarise the documents.",
    "What is the fee of contract K-001?",
    "What is the meaning?",
    "Explain.",
    "¿Cuál es la categoría más común?",
    "Qual contrato tem a maior tarifa?",
    "",
)


@pytest.mark.parametrize("question", FORMS)
def test_every_form_survives_no_document_one_document_and_failures(question: str) -> None:
    everything = DemoLMHandler(fault_rate=1.0, fault_seed=3)
    shapes: list[list[Text]] = [
        [],
        [Text("", 0, 0, "empty.txt")],
        [Text("İstanbul 12,5 EUR — 3 de mayo de 2024")],
    ]
    shapes.append([Text("invoice\n\n2024-05-01", n, 0, f"{n}.txt") for n in range(12)])
    for documents in shapes:
        for handler in (DemoLMHandler(), everything):
            run = Run(documents, handler)
            assert run.ask(question)["ready"]
            assert not any("Traceback" in m.content for m in run.messages)


def test_names_lost_between_two_cells_are_made_again() -> None:
    run = Run([Text("invoice", n, 0, f"{n}.txt") for n in range(3)])
    usual = run.run_cell

    def losing(code: str) -> str:
        if code.startswith("from collections") and len(run.cells) == 3:
            run.names.pop("replies")
        return usual(code)

    run.run_cell = losing  # type: ignore[method-assign]
    assert run.ask(BILLING) == {"content": 3, "ready": True}
    assert any("NameError" in m.content for m in run.messages)


def test_the_forced_answer_is_the_last_one_seen_or_says_what_is_missing() -> None:
    run = Run([Text("invoice", n, 0, f"{n}.txt") for n in range(3)])
    run.ask(BILLING)

    def forced(messages: Sequence[Message]) -> str | None:
        request = Request("demo/root", (*messages, prompts.final_request("No iteration is left.")), "root")
        return asyncio.run(run.handler.complete(request)).text

    assert forced(run.messages) == "3"
    assert forced(run.messages[:2]) == "The demo model was stopped before its cells had printed an answer."


@given(st.text(max_size=200))
def test_the_root_always_writes_python_that_parses(question: str) -> None:
    messages = list(prompts.opening(question, "documents", "plenty"))
    for _ in range(5):
        text = asyncio.run(DemoLMHandler().complete(Request("demo/root", tuple(messages), "root"))).text or ""
        found = re.search(r"(`{3,})repl\n(.*)\n\1", text, re.S)
        assert found
        ast.parse(found[2])
        messages += [Message("assistant", text), prompts.cell_output(["odd \x00 ``` ANSWER: {"], "plenty")]


# -- the sub-model


@given(
    st.text(max_size=400),
    st.sampled_from(["Labels: a, b\nText:", "List: date\nText:", "Question: what?\nText:", ""]),
)
def test_the_sub_model_always_has_a_reply(text: str, head: str) -> None:
    assert demo_sub.reply(f"{head}\n\n{text}").text


def test_programs_as_the_literature_writes_them_get_sensible_replies() -> None:
    text = "The pump failed twice. A valve was replaced. Later the pump ran again. Nothing else happened."
    assert (
        demo_sub.reply(f"Summarise in 2 lines: {text}").text == "The pump failed twice. A valve was replaced."
    )
    themes = demo_sub.reply(
        "Group these by theme:\n\nthe pump failed\nthe pump ran\nbread was baked\nbread rose"
    ).text
    assert themes.splitlines() == ["bread: 2 of 4", "pump: 2 of 4"]
    worked = "Does this contract renew automatically? Answer yes or no first, then quote the clause."
    assert demo_sub.reply(f"{worked}\n\nIt renews automatically each year.").text.startswith("yes")
    assert demo_sub.reply(f"{worked}\n\nIt does not renew automatically.").text.startswith("no")


def test_usage_is_estimated_and_the_quoted_sentence_is_a_fact() -> None:
    said = ask(DemoLMHandler(), "Question: What is the fee?\nText:\n\nThe fee is EUR 20 a year.")
    assert said.text == 'EUR 20 | "The fee is EUR 20 a year."'
    assert said.facts == {semconv.DEMO_QUOTE: "The fee is EUR 20 a year."}
    assert said.usage.estimated and said.usage.input and said.model_returned == "demo/sub"


def test_only_its_own_ids_are_answered() -> None:
    assert is_demo("demo/root") and is_demo("demo/sub") and not is_demo("openai/demo/sub")
    with pytest.raises(ModelError, match="demo/sub"):
        asyncio.run(DemoLMHandler().complete(Request("openai/x", (Message("user", "hi"),), "sub")))
    with pytest.raises(ConfigError, match=r"between 0 and 1, not 1\.5"):
        DemoLMHandler(fault_rate=1.5)


# -- faults


def outcome(handler: DemoLMHandler, prompt: str, occurrence: int = 0) -> tuple[Any, ...]:
    try:
        said = ask(handler, prompt, occurrence)
    except ModelError as error:
        return error.kind, error.retryable, str(error)
    return said.text, said.finish_reason, json.dumps(dict(said.facts))


PROMPTS = st.sampled_from(
    (
        "Labels: billing, bug, other\nText:\n\nmy invoice {}",
        "Question: What is the fee?\nText:\n\nThe fee is EUR {}0.",
        "Question: What is the fee?\nText:\n\nNothing {}.",
        "List: date\nText:\n\n2024-05-0{}",
    )
)


@given(PROMPTS, st.integers(1, 9), st.floats(0, 1), st.integers(0, 10**9), st.integers(0, 3))
def test_a_fault_repeats_and_nothing_else_changes(
    prompt: str, number: int, rate: float, seed: int, occurrence: int
) -> None:
    prompt = prompt.format(number)
    clean = outcome(DemoLMHandler(), prompt, occurrence)
    struck = outcome(DemoLMHandler(rate, seed), prompt, occurrence)
    assert struck == outcome(DemoLMHandler(rate, seed), prompt, occurrence)
    assert struck == clean or struck[0] != clean[0]
    assert struck[0] and outcome(DemoLMHandler(1.0, seed), prompt, occurrence)[0] != clean[0]


def test_a_fault_says_its_kind_and_all_kinds_occur() -> None:
    kinds = set()
    for number in range(200):
        handler = DemoLMHandler(1.0, number)
        for prompt in ("Labels: a, b\nText:\n\na", "Question: What is the fee?\nText:\n\nThe fee is EUR 20."):
            try:
                said = ask(handler, prompt)
            except ModelError as error:
                assert error.kind == "server" and not error.retryable
                kinds.add("error")
                continue
            kind = str(said.facts[semconv.DEMO_FAULT])
            assert (said.finish_reason == "length") == (kind == "truncated") and said.text
            kinds.add(kind)
    assert kinds == {"wrong_label", "digit", "missed", "truncated", "refused", "error"}


def test_the_root_is_never_struck() -> None:
    messages = prompts.opening(BILLING, "documents", "plenty")
    request = Request("demo/root", messages, "root")
    clean, struck = (asyncio.run(DemoLMHandler(rate).complete(request)) for rate in (0.0, 1.0))
    assert clean == struck


def test_faults_move_a_count_only_by_the_struck_calls() -> None:
    documents = documents_of(tickets.tickets(4).files)
    clean, struck, again = (
        Run(documents),
        Run(documents, DemoLMHandler(0.03, 1)),
        Run(documents, DemoLMHandler(0.03, 1)),
    )
    clean.ask(BILLING)
    assert struck.ask(BILLING) == again.ask(BILLING)
    differing = [key for key, reply in clean.replies.items() if struck.replies[key] != reply]
    assert 0 < len(differing) < 20 and len(struck.replies) == 200
    failed = sum(isinstance(struck.replies[key], ModelError) for key in differing)
    facts = [
        r.facts
        for r in struck.replies.values()
        if isinstance(r, Completion) and semconv.DEMO_FAULT in r.facts
    ]
    assert len(facts) + failed == len(differing)
