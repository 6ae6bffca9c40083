"""Which handler answers for which model id, and the loopback server as a process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_core.errors import ConfigError, ModelError
from rlm_core.lm_handler import Message, Request
from rlm_core.models import check_model_id, default_models, is_demo, make_handler
from tests.support.loopback import Loopback, Script, echo
from tests.support.processes import lives

SERVER = Path(__file__).parents[1] / "support" / "loopback.py"


def request(model: str, text: str = "What is this?") -> Request:
    return Request(model, (Message("user", text),), "sub", timeout=20.0, request_hash="a" * 64)


def test_nothing_configured_is_the_demo_model_and_says_so() -> None:
    root, sub, notice = default_models({})
    assert (root, sub) == ("demo/root", "demo/sub")
    assert notice is not None and "no language model was involved" in notice


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {"RLMSCOPE_ROOT_MODEL": "openai/a", "RLMSCOPE_SUB_MODEL": "openai/b"},
            ("openai/a", "openai/b", None),
        ),
        ({"RLMSCOPE_ROOT_MODEL": "openai/a"}, ("openai/a", "openai/a", None)),
        ({"RLMSCOPE_SUB_MODEL": "openai/b"}, ("openai/b", "openai/b", None)),
        ({"RLMSCOPE_ROOT_MODEL": "demo/root"}, ("demo/root", "demo/sub", None)),
        ({"RLMSCOPE_SUB_MODEL": "demo/sub"}, ("demo/root", "demo/sub", None)),
    ],
)
def test_configured_models_are_taken_as_they_are(
    environ: dict[str, str], expected: tuple[str, str, str | None]
) -> None:
    assert default_models(environ) == expected


BAD = [
    "",
    " ",
    "open ai/x",
    "openai/",
    "/x",
    "openai//x",
    "a\nb",
    "a\x00b",
    "x" * 201,
    "demo/other",
    "http://x/y",
]


@pytest.mark.parametrize("model", BAD)
def test_an_id_that_cannot_be_one_is_refused_in_one_sentence(model: str) -> None:
    for call in (
        lambda: default_models({"RLMSCOPE_ROOT_MODEL": model}),
        lambda: default_models({"RLMSCOPE_SUB_MODEL": model}),
        lambda: make_handler(model, "demo/sub"),
        lambda: make_handler("demo/root", model),
    ):
        with pytest.raises(ConfigError) as caught:
            call()
        said = str(caught.value)
        assert said.isprintable() and len(said) < 200 and caught.value.exit_code == 2


def test_the_refusal_names_the_variable() -> None:
    with pytest.raises(ConfigError, match="RLMSCOPE_SUB_MODEL 'a b' has a space"):
        default_models({"RLMSCOPE_ROOT_MODEL": "openai/a", "RLMSCOPE_SUB_MODEL": "a b"})


@given(st.text())
def test_every_text_is_accepted_or_refused_in_words(model: str) -> None:
    try:
        check_model_id(model)
    except ConfigError as error:
        assert str(error).isprintable()
    else:
        assert model.isprintable() and not any(c.isspace() for c in model)


def test_the_model_id_of_each_request_decides_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> tuple[str | None, str | None, dict[str, Any]]:
        handler = make_handler("demo/root", "demo/sub", concurrency=2)
        await handler.prepare()
        try:
            demo = await handler.complete(request("demo/sub"))
            assert not server.requests
            other = await handler.complete(request("openai/sub-x", "hello"))
            return demo.text, other.text, server.requests[0]["body"]
        finally:
            await handler.aclose()

    with Loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        demo, other, body = asyncio.run(scenario())
    assert demo and other == echo("hello") and body["model"] == "sub-x"
    assert is_demo("demo/sub") and not is_demo("openai/demo/sub")


def test_faults_without_a_demo_model_and_rates_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="demo model only"):
        make_handler("openai/a", "openai/b", fault_rate=0.1)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        make_handler("demo/root", "demo/sub", fault_rate=1.1)


def test_faults_go_to_the_demo_model() -> None:
    async def outcomes(rate: float) -> list[str]:
        handler = make_handler("demo/root", "demo/sub", fault_rate=rate, fault_seed=3)
        found = []
        for i in range(20):
            asked = Request("demo/sub", (Message("user", f"q{i}"),), "sub", request_hash=f"{i:064x}")
            try:
                found.append(str((await handler.complete(asked)).facts.get("rlm.demo.fault")))
            except ModelError:
                found.append("error")
        await handler.aclose()
        return found

    assert set(asyncio.run(outcomes(0.0))) == {"None"}
    assert "None" not in asyncio.run(outcomes(1.0))


@pytest.mark.parametrize("module", ["rlm_core.models", "rlm_core.pricing", "rlm_core.litellm_handler"])
def test_heavy_libraries_wait_for_their_first_use(module: str) -> None:
    check = "; import sys; print(sorted({'litellm', 'openai', 'httpx', 'genai_prices'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}" + check],
        capture_output=True,
        text=True,
        cwd=SERVER.parents[2],
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"


def test_the_loopback_server_as_a_process_keeps_the_witness_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {
        "root": ["first", {"text": "second", "finish_reason": "length"}],
        "faults": [{"kind": "500", "contains": "struck"}],
    }
    (tmp_path / "script.json").write_text(json.dumps(script))
    log = tmp_path / "log.jsonl"
    command = [sys.executable, str(SERVER), "--port", "0", "--log", str(log)]
    command += ["--script", str(tmp_path / "script.json"), "--max-seconds", "60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = json.loads(process.stdout.readline())
        assert address["base_url"] == f"http://127.0.0.1:{address['port']}/v1"
        monkeypatch.setenv("OPENAI_BASE_URL", address["base_url"])
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        asyncio.run(_talk())
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        assert process.wait(60) == 0
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [(x["event"], x["ordinal"]) for x in lines] == [
        (event, i) for i in range(4) for event in ("request", "response")
    ]
    assert [x["fault"] for x in lines if x["event"] == "request"] == [None, None, "500", None]
    assert lines[4]["body"]["messages"][-1]["content"] == "struck ünï"
    assert lines[7]["body"]["choices"][0]["message"]["content"] == echo("struck ünï")


async def _talk() -> None:
    handler = make_handler("openai/root-x", "openai/sub-x")
    turns = (Message("user", "q"), Message("assistant", "first"), Message("user", "go on"))
    assert (await handler.complete(request("openai/root-x"))).text == "first"
    second = await handler.complete(Request("openai/root-x", turns, "root"))
    assert (second.text, second.finish_reason) == ("second", "length")
    with pytest.raises(ModelError, match="HTTP 500"):
        await handler.complete(request("openai/sub-x", "struck ünï"))
    assert (await handler.complete(request("openai/sub-x", "struck ünï"))).text == echo("struck ünï")
    await handler.aclose()


@pytest.mark.needs("posix")
def test_the_server_ends_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; "
        f"p = subprocess.Popen([sys.executable, {str(SERVER)!r}], stdout=subprocess.PIPE, text=True); "
        "p.stdout.readline(); print(p.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    pid = int(done.stdout)
    for _ in range(600):
        if not lives(pid):
            return
        asyncio.run(asyncio.sleep(0.05))
    pytest.fail("the server outlived its parent")


def test_root_replies_by_a_function_of_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> str | None:
        handler = make_handler("openai/root-x", "openai/sub-x")
        try:
            return (await handler.complete(request("openai/root-x", "abc"))).text
        finally:
            await handler.aclose()

    with Loopback(Script(root=lambda messages: f"saw {len(messages)}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        assert asyncio.run(scenario()) == "saw 1"
