"""Model ids that LiteLLM can place nowhere are refused before anything is started or imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlm_core import providers
from rlm_core.errors import ConfigError
from rlm_core.litellm_handler import _load
from rlm_core.models import check_usable, make_handler
from rlm_core.providers import check_key


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-5", "demo/root", "gpt-4o", "ollama/any thing".replace(" ", "-"), "ft:gpt-4o:me::1",
     "openrouter/anthropic/claude", "nano-gpt/x", "meta/llama:" + "0af" * 21 + "1", "hosted_vllm/mine"],
)  # fmt: skip
def test_an_id_with_a_place_is_accepted(model: str) -> None:
    check_usable(model)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        ("nonsense", "write PROVIDER/NAME"),
        ("openai", "write PROVIDER/NAME"),
        ("opnai/gpt-5", "did you mean openai/NAME?"),
        ("OpenAI/gpt-5", "did you mean openai/NAME?"),
        ("qqqqqq/gpt-5", "write PROVIDER/NAME"),
        ("openai_like" * 12 + "/x", "write PROVIDER/NAME"),
    ],
)
def test_an_id_without_one_is_refused_in_one_sentence(model: str, advice: str) -> None:
    for call in (lambda: check_usable(model), lambda: make_handler(model, "demo/sub")):
        with pytest.raises(ConfigError) as caught:
            call()
        said = str(caught.value)
        assert said.endswith(advice) or advice in said
        assert "names no provider that LiteLLM knows" in said and len(said) < 250 and said.isprintable()


def test_a_proxy_for_all_models_takes_any_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_LITELLM_PROXY", "True")
    check_usable("nonsense")


def test_nothing_is_refused_where_the_list_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    providers.providers.cache_clear()
    monkeypatch.setattr(providers, "_LIST", tmp_path / "nothing.py")
    try:
        check_usable("nonsense/x")
    finally:
        providers.providers.cache_clear()


def test_the_list_is_the_one_of_litellm() -> None:
    litellm = _load(1)
    known = {str(getattr(provider, "value", provider)) for provider in litellm.provider_list}
    assert known <= providers.providers()
    for model in (*litellm.open_ai_chat_completion_models, *litellm.anthropic_models, *litellm.gemini_models):
        check_usable(model)


def test_to_refuse_an_id_litellm_is_not_imported() -> None:
    code = (
        "import sys\nfrom rlm_core.models import check_usable\n"
        "try:\n    check_usable('nonsense/x')\nexcept Exception as error:\n    print(error)\n"
        "print('litellm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "False" and "names no provider" in done.stdout


@pytest.mark.parametrize(
    ("model", "environ", "missing"),
    [
        ("openai/x", {}, "OPENAI_API_KEY"),
        ("openai/x", {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://x"}, "OPENAI_API_KEY"),
        ("anthropic/x", {"OPENAI_API_KEY": "k"}, "ANTHROPIC_API_KEY"),
        ("gemini/x", {}, "GEMINI_API_KEY"),
        ("openai/x", {"OPENAI_API_KEY": "k"}, None),
        ("openai/x", {"OPENAI_IDENTITY_PROVIDER_ID": "i"}, None),
        ("anthropic/x", {"ANTHROPIC_AUTH_TOKEN": "t"}, None),
        ("gemini/x", {"GOOGLE_API_KEY": "k"}, None),
        ("openai/x", {"USE_LITELLM_PROXY": "true"}, None),
        ("ollama/x", {}, None),
        ("demo/root", {}, None),
    ],
)
def test_a_key_is_missed_only_where_there_can_be_none(
    model: str, environ: dict[str, str], missing: str | None
) -> None:
    if missing is None:
        check_key(model, environ)
        return
    with pytest.raises(ConfigError, match=f"{model}: the environment variable {missing} is missing"):
        check_key(model, environ)
