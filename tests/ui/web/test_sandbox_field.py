"""The Ask page says how far the code of a run is locked in, and asks for consent where that is not far."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from rlm_core.corpus import Corpus
from rlm_core.sandbox import MEANING, Level, Probe
from tests.support.pages import ask_page, shown, use
from traces.home import Home
from ui.web import launch
from ui.web.settings import Settings, save_settings


@pytest.fixture(autouse=True)
def _home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    use(home, monkeypatch)


def machine(monkeypatch: pytest.MonkeyPatch, level: Level, why: str | None, default: Level) -> None:
    found = Probe(level, MEANING[level], (), why)
    monkeypatch.setattr("ui.web.sandbox_field.probe", lambda: found)
    monkeypatch.setattr("ui.web.sandbox_field.default_minimum", lambda: default)


def has_consent(page: AppTest) -> bool:
    return any(box.key == "ask-sandbox" for box in page.checkbox)


def test_a_locked_machine_says_so_and_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, "strict", None, "standard")
    page = ask_page().run()
    assert "Sandbox: strict (no network, nothing of yours is visible)." in [c.value for c in page.caption]
    assert not has_consent(page)


def test_a_machine_below_the_default_says_why_and_needs_consent(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, "weak", "the kernel has no Landlock", "standard")
    started: list[launch.Order] = []
    monkeypatch.setattr(launch, "start_run", lambda _home, order, ticket: started.append(order) or ticket)
    corpus = Corpus.from_texts("text", home.corpora).corpus_id
    page = ask_page().run()
    assert "The kernel has no Landlock." in shown(page) and has_consent(page)
    page.get_by_key("ask-source").set_value("saved").run()
    page.selectbox(key="ask-saved").select(corpus)
    page.text_area(key="ask-question").set_value("How many?")
    page.button(key="ask-start").click().run()
    page.checkbox(key="ask-sandbox").check().run()
    page.button(key="ask-start").click().run()
    assert [order.sandbox for order in started] == [None, "weak"]


def test_a_machine_below_the_level_of_the_settings_needs_consent(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, "standard", "bubblewrap is not installed", "standard")
    page = ask_page().run()
    assert not has_consent(page)
    save_settings(home, Settings(sandbox="strict"))
    page = ask_page().run()
    assert has_consent(page) and "bubblewrap is not installed" in shown(page)
    save_settings(home, Settings(sandbox="none"))
    machine(monkeypatch, "weak", "the kernel has no Landlock", "standard")
    assert not has_consent(ask_page().run())


def test_a_system_without_a_lock_says_so_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, "none", "untested: the lock was never run on plan9", "none")
    page = ask_page().run()
    assert "never run on plan9" in shown(page) and "can read your files" in shown(page)
    assert not has_consent(page)
