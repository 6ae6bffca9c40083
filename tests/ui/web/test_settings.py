"""Settings and keys of a home: who decides, what is refused, and where a key may never be seen."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_core.corpus import Corpus
from rlm_core.errors import InputError
from tests.support.command import rlmscope
from tests.support.loopback import Fault, Loopback, Script
from traces.home import Home
from traces.reading import load_run
from ui.models_config import choose_models
from ui.web import launch
from ui.web.settings import Settings, load_settings, save_settings
from ui.web.settings_keys import (
    address_host,
    environment_with_keys,
    key_origins,
    keys_lent,
    remove_key,
    set_key,
)
from ui.web.settings_trial import carry_out, last_trial, start_trial

KEY = "sk-kept-in-a-private-file-0123456789"
PATIENCE = 60.0  # seconds; only a hung test waits so long


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def running() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def server(running: Loopback, home: Home) -> Loopback:
    """A model server whose address and key are in the file of keys."""
    running.use(Script())
    set_key(home, "OPENAI_BASE_URL", running.base_url)
    set_key(home, "OPENAI_API_KEY", KEY)
    return running


def kept(home: Home, secret: str = KEY) -> list[str]:
    """The files below the home in which a key stands."""
    files = [path for path in home.root.rglob("*") if path.is_file()]
    return [str(path.relative_to(home.root)) for path in files if secret.encode() in path.read_bytes()]


# -- settings


def test_what_is_saved_is_loaded(home: Home) -> None:
    said = Settings("openai/big", "openai/schön", {"max_calls": 7, "max_cost_usd": "0.50"}, "strict")
    save_settings(home, said)
    assert load_settings(home) == said
    assert stat.S_IMODE(home.settings.stat().st_mode) == 0o600
    assert load_settings(Home(home.root / "other")) == Settings()


def test_an_option_goes_before_the_environment_that_before_settings_those_before_the_demo(home: Home) -> None:
    nothing = Settings()
    some = Settings("openai/set-root", "openai/set-sub")
    environ = {"RLMSCOPE_ROOT_MODEL": "openai/env-root"}
    for settings, given, env, expected in [
        (nothing, None, {}, ("demo/root", "demo/sub")),
        (some, None, {}, ("openai/set-root", "openai/set-sub")),
        (some, None, environ, ("openai/env-root", "openai/set-sub")),
        (some, "openai/given", environ, ("openai/given", "openai/set-sub")),
        (Settings(sub="openai/one"), None, {}, ("openai/one", "openai/one")),
    ]:
        models = choose_models(given, None, settings.over(env))
        assert (models.root, models.sub) == expected
    assert nothing.origin({}) == ("demo", "demo")
    assert some.origin(environ) == ("environment", "settings")
    assert Settings(sub="openai/one").origin({}) == ("settings", "settings")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("root = ", "is not TOML"),
        ('roof = "openai/x"', "there is no setting 'roof'"),
        ('root = "two words"', "the setting root 'two words' has a space"),
        ('root = "nonsense"', "names no provider"),
        ("sub = 5", "the setting sub must be a text"),
        ('sandbox = "iron"', "unknown sandbox level 'iron'"),
        ("limits = 3", "the settings of limits are a table"),
        ("[limits]\nmax_cells = 3", "there is no limit 'max_cells'"),
        ("[limits]\nmax_calls = 0", "the limit of calls must be a whole number of at least 1"),
        ('[limits]\nmax_cost_usd = "much"', "the cost limit must be an amount"),
        ("\udcff", "is not TOML"),
    ],
)
def test_a_file_that_holds_no_settings_is_one_sentence_and_names_the_file(
    text: str, words: str, home: Home, call: Callable[..., Any]
) -> None:
    home.settings.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=words) as caught:
        load_settings(home)
    assert str(home.settings) in str(caught.value) and "\n" not in str(caught.value)
    assert call("ask", "Why?", str(home.root)).code == 2


def test_limits_and_sandbox_come_from_the_settings_unless_an_option_says_otherwise(
    home: Home, call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("A short note.")
    save_settings(home, Settings(limits={"max_iterations": 1}, sandbox="none"))
    ask = ("ask", "How many documents are there?", str(tmp_path / "note.txt"), "--json")
    assert call(*ask).json["iterations"] == 1
    assert call(*ask, "--max-iterations", "9").json["iterations"] > 1


# -- keys


def test_a_key_is_kept_privately_replaced_and_removed(home: Home) -> None:
    set_key(home, "OPENAI_API_KEY", "  first\n")
    set_key(home, "OPENAI_API_KEY", KEY)
    set_key(home, "MISTRAL_API_KEY", "other")
    assert stat.S_IMODE(home.keys.stat().st_mode) == 0o600
    assert environment_with_keys(home, {}) == {"OPENAI_API_KEY": KEY, "MISTRAL_API_KEY": "other"}
    remove_key(home, "OPENAI_API_KEY")
    remove_key(home, "OPENAI_API_KEY")
    assert environment_with_keys(home, {"A": "b"}) == {"A": "b", "MISTRAL_API_KEY": "other"}
    assert [path.name for path in home.root.iterdir() if "keys" in path.name] == ["keys.json"]


def test_the_environment_goes_before_the_file_and_an_empty_variable_is_none(home: Home) -> None:
    set_key(home, "OPENAI_API_KEY", KEY)
    set_key(home, "OPENAI_BASE_URL", "https://name:word@models.example:8443/v1")
    environ = {"OPENAI_API_KEY": "of the shell", "GROQ_API_KEY": "", "PATH": ""}
    assert environment_with_keys(home, environ)["OPENAI_API_KEY"] == "of the shell"
    assert environment_with_keys(home, {"OPENAI_API_KEY": ""})["OPENAI_API_KEY"] == KEY
    assert environment_with_keys(home, environ)["PATH"] == ""
    assert key_origins(home, environ) == {"OPENAI_API_KEY": "environment", "OPENAI_BASE_URL": "file"}
    assert address_host(home, environ, "OPENAI_BASE_URL") == "models.example:8443"
    assert address_host(home, environ, "GROQ_API_BASE") is None
    broken = {"GROQ_API_BASE": "http://[name:word@models.example"}
    assert address_host(home, broken, "GROQ_API_BASE") == "an address that cannot be read"


def test_keys_are_in_the_environment_only_while_they_are_needed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "")
    set_key(home, "OPENAI_API_KEY", KEY)
    set_key(home, "MISTRAL_API_KEY", KEY)
    before = dict(os.environ)
    with keys_lent(home):
        assert os.environ["OPENAI_API_KEY"] == os.environ["MISTRAL_API_KEY"] == KEY
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PATH", "/tmp", "is not the name of a key"),
        ("LD_PRELOAD", "x", "is not the name of a key"),
        ("openai_api_key", "x", "is not the name of a key"),
        ("OPENAI_API_KEY", " ", "nothing was entered"),
        ("OPENAI_API_KEY", "secret words", "white space inside"),
        ("OPENAI_API_KEY", "secretü", "a character that no key has"),
        ("OPENAI_API_KEY", "secret\x00s", "a control character inside"),
        ("OPENAI_API_KEY", "secret" * 1000, "too long: 6,000 characters"),
        ("OPENAI_BASE_URL", "secret", "must be an address"),
        ("OPENAI_BASE_URL", "http://[secret", "must be an address"),
    ],
)
def test_what_cannot_be_a_key_is_refused_without_being_repeated(
    name: str, value: str, words: str, home: Home
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        set_key(home, name, value)
    assert "secret" not in str(caught.value) and not home.keys.exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"PATH": "/evil"}', '{"OPENAI_API_KEY": 5}', '{"OPENAI_API_KEY": "se'],
)  # fmt: skip
def test_a_file_of_other_things_is_refused_and_not_quoted(text: str, home: Home) -> None:
    home.keys.write_text(text)
    home.keys.chmod(0o600)
    with pytest.raises(InputError, match="remove it and enter the keys again") as caught:
        environment_with_keys(home, {})
    assert "evil" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.needs("posix")
def test_a_file_of_keys_that_others_can_read_is_refused_by_a_run_that_needs_it(
    home: Home, call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("A short note.")
    set_key(home, "OPENAI_API_KEY", KEY)
    home.keys.chmod(0o644)
    refused = call("ask", "What?", str(tmp_path / "note.txt"), "--root", "openai/x")
    assert refused.code == 2 and f"chmod 600 {home.keys}" in refused.error
    assert (
        call("ask", "How many documents are there?", str(tmp_path / "note.txt"), "--root", "demo/root").code
        == 0
    )


# -- where a key may not be


def test_ask_calls_the_models_of_the_settings_with_the_kept_key_which_stands_nowhere_but_in_its_file(
    server: Loopback, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "note.txt").write_text("A short note.")
    look = f"""```repl
import os
def read(path):
    try:
        return open(path, 'rb').read()
    except OSError:
        return b''
places = [{str(home.keys)!r}, *(f'/proc/{{n}}/environ' for n in [*range(1, 200), os.getpid(), os.getppid()])]
seen = b''.join(map(read, places)) + repr(dict(os.environ)).encode()
FINAL(b'kept-in-a-private' in seen)
```"""
    said_by_server = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    refusal = Fault("401", contains="struck", times=None, body=said_by_server)
    asks = "```repl\ntry:\n    llm_query('struck')\nexcept Exception as error:\n    print(error)\n```"
    server.use(Script(root=[asks, look], faults=[refusal]))
    save_settings(home, Settings("openai/root-set", "openai/sub-set"))
    said = rlmscope("ask", "Any key?", tmp_path / "note.txt", "--home", home.root)
    assert (said["root_model"], said["sub_model"]) == ("openai/root-set", "openai/sub-set")
    assert (said["value"], said["sandbox"] in ("standard", "strict")) == (False, True)
    assert {request["headers"]["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert kept(home) == ["keys.json"]


def test_a_run_of_the_app_calls_with_the_kept_key_and_no_command_line_has_it(
    server: Loopback, home: Home
) -> None:
    corpus = Corpus.from_texts(["a b", "c d"], home.corpora).corpus_id
    order = launch.Order("What?", corpus, "openai/root-x", "openai/sub-x")
    run_id = launch.start_run(home, order, launch.new_ticket())
    seen: set[bytes] = set()

    def ended() -> bool:
        seen.update(_command_lines())
        return home.spool_file(run_id).exists() and load_run(home, run_id).summary.status == "ok"

    wait_for(ended)
    assert {request["headers"]["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in os.environ.values()
    assert seen and not any(KEY.encode() in words for words in seen)
    wait_for(lambda: not list((home.root / "requests").glob("*.lock")))
    assert kept(home) == ["keys.json"]


def _command_lines() -> Iterator[bytes]:
    yield b"none"  # where there is no /proc nothing is to be seen
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


# -- trying a model


def tried(home: Home, model: str) -> Any:
    start_trial(home, "root", model)
    return wait_for(lambda: (t := last_trial(home, "root")) and (t.answer or t.error) and t)


def test_a_model_is_tried_with_one_call_and_its_answer_told(server: Loopback, home: Home) -> None:
    server.use(Script(sub=lambda _prompt: "ready, <b>really</b>"))
    assert last_trial(home, "root") is None
    trial = tried(home, "openai/sub-x")
    assert (trial.model, trial.answer, trial.error) == ("openai/sub-x", "ready, <b>really</b>", None)
    assert len(server.requests) == 1 and trial.tokens is not None and last_trial(home, "sub") is None
    assert kept(home) == ["keys.json"]


def test_why_a_model_does_not_answer_is_one_sentence_without_the_key(server: Loopback, home: Home) -> None:
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    server.use(Script(faults=[Fault("401", contains="", times=None, body=body)]))
    trial = carry_out(home, "openai/sub-x")
    assert (
        trial.error is not None and trial.answer is None and "OPENAI_API_KEY is probably wrong" in trial.error
    )
    assert kept(home) == ["keys.json"] and "\n" not in trial.error
    with pytest.raises(InputError, match="the root model 'nonsense' names no provider"):
        start_trial(home, "root", "nonsense")


def test_a_trial_whose_process_is_gone_says_so(home: Home) -> None:
    (home.root / "trials").mkdir()
    (home.root / "trials" / "sub.json").write_text(json.dumps({"model": "openai/x"}))
    trial = last_trial(home, "sub")
    assert trial is not None and trial.error == "the process that asked ended without a word"
