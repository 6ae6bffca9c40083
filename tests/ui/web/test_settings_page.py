"""The Settings page: models and their trial, keys that are never shown, defaults, prices, the home."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.sandbox import MEANING, Level, Probe
from tests.support.pages import HOSTILE, act_in_row, ask_page, badly_shown, problems, rows_of, shown, use
from traces.home import Home
from traces.prices import overrides, set_price
from ui.web import settings_trial
from ui.web.settings import Settings, load_settings, save_settings
from ui.web.settings_keys import environment_with_keys, set_key
from ui.web.settings_trial import Trial

KEY = "sk-kept-in-a-private-file-0123456789"


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use(home, monkeypatch)
    machine(monkeypatch, "strict")
    yield


def machine(monkeypatch: pytest.MonkeyPatch, level: Level, why: str | None = None) -> None:
    monkeypatch.setattr("ui.web.settings_defaults.probe", lambda: Probe(level, MEANING[level], (), why))


def open_part(part: str, **query: str) -> AppTest:
    page = ask_page().run().switch_page("pages/settings.py")
    for name, value in {"part": part, **query}.items():
        page.query_params[name] = value
    return page.run()


# -- the address


@pytest.mark.parametrize("part", ["models", "keys", "defaults", "prices", "home"])
def test_each_part_has_an_address_and_opens_in_an_empty_home(part: str) -> None:
    page = open_part(part)
    assert not problems(page) and page.query_params["part"] == part


def test_an_unknown_part_is_said_in_one_sentence() -> None:
    page = open_part("zzz" + HOSTILE)
    assert "There is no part “zzz" in problems(page)[0] and not badly_shown(page, "HOSTILE")
    assert page.text_input(key="settings-root")


def test_a_file_of_settings_that_is_none_is_said_and_the_other_parts_work(home: Home) -> None:
    home.settings.write_text('roof = "x"')
    assert "there is no setting 'roof'" in problems(open_part("models"))[0].lower()
    assert not problems(open_part("keys"))


# -- models


def test_models_are_kept_and_those_in_force_are_told_with_their_origin(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_part("models")
    assert shown(page).count("Because no model is set.") == 2
    page.text_input(key="settings-root").set_value(" openai/big ").run()
    page.text_input(key="settings-sub").set_value("anthropic/small").run()
    page.button(key="settings-models-save").click().run()
    assert load_settings(home) == Settings("openai/big", "anthropic/small")
    assert "Saved" in shown(page) and "Root model: openai/big" in shown(page)
    assert "ANTHROPIC_API_KEY is not set" in shown(page)
    monkeypatch.setenv("RLMSCOPE_ROOT_MODEL", "openai/of-the-shell")
    again = open_part("models")
    assert "Root model: openai/of-the-shell" in shown(again)
    assert "From the environment of the app (RLMSCOPE_ROOT_MODEL)" in shown(again)


def test_a_model_that_cannot_be_used_is_said_below_its_field_and_nothing_is_kept(home: Home) -> None:
    page = open_part("models")
    page.text_input(key="settings-root").set_value("nonsense").run()
    page.text_input(key="settings-sub").set_value("two words").run()
    page.button(key="settings-models-save").click().run()
    said = problems(page)
    assert "The root model 'nonsense' names no provider" in said[0] and "'two words' has a space" in said[1]
    assert load_settings(home) == Settings()


def test_where_calls_go_is_told_without_what_is_secret_in_an_address(home: Home) -> None:
    save_settings(home, Settings("openai/big"))
    set_key(home, "OPENAI_BASE_URL", "http://name:secret@127.0.0.1:9/v1")
    page = open_part("models")
    assert "Calls go to 127.0.0.1:9 (OPENAI_BASE_URL)." in shown(page) and "secret" not in shown(page)


def test_a_trial_is_begun_awaited_and_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    save_settings(home, Settings("openai/big", "demo/sub"))
    begun: list[tuple[str, str]] = []

    def began(_home: Home, role: Any, model: str) -> None:
        begun.append((role, model))

    monkeypatch.setattr("ui.web.settings_models.start_trial", began)
    monkeypatch.setattr("ui.web.settings_models.last_trial", lambda _home, _role: found)
    found: Trial | None = None
    page = open_part("models")
    assert not [button for button in page.button if button.key == "settings-try-sub"]
    page.button(key="settings-try-root").click().run()
    assert begun == [("root", "openai/big")]
    for found, words in [
        (Trial("openai/big"), "The model is being asked."),
        (Trial("openai/big", HOSTILE, None, 1.5, 12), "(1.5 s, 12 tokens)"),
        (Trial("openai/big", "", None, 1.5), "(an empty text) (1.5 s)"),
        (Trial("openai/big", None, "openai/big: " + HOSTILE), "Problem"),
    ]:
        page = open_part("models")
        assert words in shown(page) and not badly_shown(page, "HOSTILE")
        assert page.button(key="settings-try-root").disabled is (found.answer is None and found.error is None)
    found = Trial("openai/another", "ready")
    assert "ready" not in [text.value for text in open_part("models").text]


def test_the_app_asks_no_model_itself(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(settings_trial, "start_process", lambda _module, words, *_: started.append(words))
    save_settings(home, Settings("openai/big", "openai/small"))
    set_key(home, "OPENAI_API_KEY", KEY)
    open_part("models").button(key="settings-try-sub").click().run()
    assert started == [[str(home.root), "sub"]]


# -- keys


def states(page: AppTest) -> dict[str, str]:
    return {row["Variable"]: row["Set in"] for row in rows_of(page, "settings-keys")}


def test_a_key_is_kept_and_no_page_has_it_afterwards(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "of-the-shell")
    page = open_part("keys")
    assert states(page)["GROQ_API_KEY"] == "environment" and states(page)["OPENAI_API_KEY"] == "not set"
    page.text_input(key="settings-key-value").set_value(KEY)
    page.button(key="settings-key-keep").click().run()
    assert environment_with_keys(home, {})["OPENAI_API_KEY"] == KEY
    assert states(page)["OPENAI_API_KEY"] == "kept here" and "OPENAI_API_KEY is kept" in shown(page)
    for part in ("keys", "models", "home"):
        assert KEY not in shown(open_part(part)) and "of-the-shell" not in shown(open_part(part))
    assert KEY not in shown(page) and page.text_input(key="settings-key-value").value == ""
    assert not any(KEY in str(value) for value in [page.session_state[name] for name in page.session_state])


def test_a_kept_key_is_removed(home: Home) -> None:
    set_key(home, "OPENAI_API_KEY", KEY)
    page = open_part("keys")
    page.button(key="settings-key-remove").click().run()
    assert environment_with_keys(home, {}) == {} and states(page)["OPENAI_API_KEY"] == "not set"
    assert page.button(key="settings-key-remove").disabled


def test_a_key_that_is_shadowed_by_the_environment_is_said_to_be(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_key(home, "OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-shell")
    page = open_part("keys")
    assert states(page)["OPENAI_API_KEY"] == "environment"
    assert "OPENAI_API_KEY is also kept here; the one of the environment is used." in shown(page)


def test_what_cannot_be_a_key_is_said_and_gone(home: Home) -> None:
    page = open_part("keys")
    page.text_input(key="settings-key-value").set_value("two words")
    page.button(key="settings-key-keep").click().run()
    (said,) = problems(page)
    assert said.startswith("What was entered for OPENAI_API_KEY has white space inside")
    assert said.endswith(".") and "two words" not in shown(page)
    page.button(key="settings-key-keep").click().run()
    assert problems(page) == ["Nothing was entered for OPENAI_API_KEY."]
    assert not home.keys.exists()


# -- limits and sandbox


def test_limits_and_the_sandbox_are_kept(home: Home) -> None:
    page = open_part("defaults")
    page.number_input(key="settings-max_calls").set_value(50)
    page.number_input(key="settings-max_seconds").set_value(90.5)
    page.text_input(key="settings-max_cost_usd").set_value("$0.50")
    page.selectbox(key="settings-sandbox").select("strict")
    page.button(key="settings-defaults-save").click().run()
    limits = {"max_calls": 50, "max_seconds": 90.5, "max_cost_usd": "0.50"}
    assert load_settings(home) == Settings(limits=limits, sandbox="strict") and "Saved" in shown(page)
    again = open_part("defaults")
    again.text_input(key="settings-max_cost_usd").set_value("")
    again.button(key="settings-defaults-save").click().run()
    assert (
        set(load_settings(home).limits) == {"max_calls", "max_seconds"}
        and load_settings(home).sandbox == "strict"
    )


def test_a_cost_that_is_none_is_said_and_nothing_is_kept(home: Home) -> None:
    page = open_part("defaults")
    page.text_input(key="settings-max_cost_usd").set_value("much")
    page.button(key="settings-defaults-save").click().run()
    assert "'much' is not an amount in dollars" in problems(page)[0] and load_settings(home) == Settings()


def test_a_machine_below_the_minimum_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, "weak", "the kernel has no Landlock")
    save_settings(home, Settings(sandbox="strict"))
    page = open_part("defaults")
    assert "This machine does not give strict" in problems(page)[0]
    assert "the kernel has no Landlock" in shown(page)
    save_settings(home, Settings(sandbox="none"))
    page = open_part("defaults")
    assert not problems(page) and "the file of keys among them" in shown(page)


# -- prices


def prices(page: AppTest) -> dict[str, tuple[str, str]]:
    return {row["Model"]: (row["Price"], row["Input"]) for row in rows_of(page, "settings-prices-rows")}


def test_a_price_of_ones_own_is_set_marked_and_withdrawn(home: Home) -> None:
    page = open_part("prices", model="openai/of-my-own")
    assert prices(page)["openai/of-my-own"] == ("unknown", "unknown")
    assert page.text_input(key="settings-price-model").value == "openai/of-my-own"
    page.text_input(key="settings-price-input").set_value("0.25")
    page.text_input(key="settings-price-output").set_value("2")
    page.button(key="settings-price-set").click().run()
    assert prices(page)["openai/of-my-own"] == ("yours", "0.25")
    assert [o.rates["output"] for o in overrides(home) if o.rates] == [Decimal(2)]
    act_in_row(page, "settings-prices-own", 0, "Withdraw")
    assert overrides(home) == [] and prices(page)["openai/of-my-own"] == ("unknown", "unknown")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "openai/x"}, "the price of input tokens is missing"),
        ({"model": "openai/x", "input": "much"}, "Input: 'much' is not a price"),
        ({"model": "two words", "input": "1", "output": "1"}, "has a space"),
        ({"model": "openai/x", "input": "1", "output": "1", "from": "soon"}, "must be a date like"),
    ],
)
def test_what_is_no_price_is_said(fields: dict[str, str], words: str, home: Home) -> None:
    page = open_part("prices")
    for name, value in fields.items():
        page.text_input(key=f"settings-price-{name}").set_value(value)
    page.button(key="settings-price-set").click().run()
    assert words.lower() in problems(page)[0].lower() and not overrides(home)


def test_any_model_can_be_looked_up_and_the_search_is_in_the_address(home: Home) -> None:
    page = open_part("prices")
    assert set(prices(page)) == {"demo/root", "demo/sub"}
    page.text_input(key="settings-price-find").set_value("openai/gpt-5-mini").run()
    assert (
        page.query_params["model"] == "openai/gpt-5-mini" and prices(page)["openai/gpt-5-mini"][0] == "priced"
    )
    assert "No model fits" in shown(open_part("prices", model="no such words"))


def test_a_note_of_a_price_is_shown_as_plain_text(home: Home) -> None:
    note = HOSTILE.replace("\x1b", "").replace("\u202e", "")
    set_price(home, "openai/x", {"input": Decimal(1), "output": Decimal(1)}, note=note)
    page = open_part("prices", model=HOSTILE)
    assert not badly_shown(page, "HOSTILE")
    page = open_part("prices")
    assert "HOSTILE" in shown(page) and not badly_shown(page, "HOSTILE")


# -- the home


def test_the_home_is_told_with_sizes_by_part(home: Home) -> None:
    (home.spool / "one.jsonl").write_bytes(b"x" * 4200)
    (home.root / "trials").mkdir()
    (home.root / "trials" / "root.json").write_bytes(b"x" * 800)
    page = open_part("home")
    sizes = {row["Name"]: row["Size"] for row in rows_of(page, "settings-home")}
    assert sizes["spool"] == "4.2 KB" and str(home.root) in shown(page)
    assert int(sizes[""].split()[0]) >= 800 and "Together" in shown(page)
