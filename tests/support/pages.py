"""Pages of the app run without a browser, and what they show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.support.command import ROOT
from traces.home import Home

# elements that show any text as it is; all others read markdown somewhere
PLAIN = frozenset({"text", "code", "json", "dataframe", "text_area", "text_input", "selectbox"})
HOSTILE = (
    "![HOSTILE](http://127.0.0.1:9/x) <script>HOSTILE</script> [HOSTILE](javascript:1) "
    "\x1b[31m \u202e:red[HOSTILE] $HOSTILE$"
)


def ask_page(**query: str) -> AppTest:
    """The Ask page as a new session meets it; not run yet."""
    page = AppTest.from_file(str(ROOT / "ui" / "web" / "main.py"), default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    return page


def corpora_page(**query: str) -> AppTest:
    """The Corpora page as a new session meets it; `corpus=ID` opens one."""
    page = ask_page().run().switch_page("pages/corpora.py")
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def runs_page() -> AppTest:
    """The Runs page as a new session meets it."""
    return ask_page().run().switch_page("pages/runs.py").run()


def elements(page: AppTest) -> Iterator[Any]:
    """Everything on the page: elements and blocks."""
    yield from page.main


def shown(page: AppTest) -> str:
    """All that stands on the page, labels included."""
    assert not page.exception, page.exception
    return "\n".join(_words(element) for element in elements(page))


def _words(element: Any) -> str:
    if element.type == "dataframe":
        return str(element.value.to_string())
    return str(getattr(element, "proto", "")).encode().decode("unicode_escape", "replace")


def badly_shown(page: AppTest, marker: str) -> list[str]:
    """The types of elements that show a text in which the marker stands, and should not."""
    return [e.type for e in elements(page) if e.type not in PLAIN and marker in str(getattr(e, "proto", ""))]


def texts(page: AppTest) -> list[str]:
    """What stands on the page as plain text."""
    assert not page.exception, page.exception
    return [element.value for element in page.text]


def problems(page: AppTest) -> list[str]:
    """The sentences that stand behind a word of ours that says something is wrong."""
    listed = list(elements(page))
    found = []
    for place, element in enumerate(listed):
        if element.type == "markdown" and element.value == ":red-badge[Problem]":
            found.append(next(e.value for e in listed[place:] if e.type == "text"))
    return found


def use(home: Home, monkeypatch: Any) -> Home:
    """Make a home the one the pages use."""
    monkeypatch.setenv("RLMSCOPE_HOME", str(home.root))
    return home
