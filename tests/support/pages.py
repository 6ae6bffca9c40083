"""Pages of the app run without a browser, and what they show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from streamlit.components.v2.bidi_component.constants import EVENT_DELIM
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX
from streamlit.testing.v1 import AppTest

from tests.support.app import named_rows
from tests.support.command import ROOT
from traces.home import Home

# elements that show any text as it is; all others read markdown somewhere
PLAIN = frozenset(
    {"text", "code", "json", "dataframe", "text_area", "text_input", "selectbox", "bidi_component"}
)
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


def runs_page(**query: str) -> AppTest:
    """The Runs page as a new session meets it at an address."""
    page = ask_page().switch_page("pages/runs.py")
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


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


# -- tables of `ui.web.rows_view`


def rows_of(page: AppTest, key: str) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns, badges by their words; none without a table."""
    assert not page.exception, page.exception
    found = _rows_data(page, key)
    return [] if found is None else named_rows(found[1])


def rows_with(page: AppTest, column: str) -> list[dict[str, str]]:
    """The rows of the one table that has a column of that name."""
    assert not page.exception, page.exception
    tables = (named_rows(data) for _, data in _tables(page))
    (found,) = (rows for rows in tables if rows and column in rows[0])
    return found


def open_row(page: AppTest, key: str, row: int) -> AppTest:
    """Click the link of the n-th row."""
    return _did(page, key, what="open", row=row)


def act_in_row(page: AppTest, key: str, row: int, word: str) -> AppTest:
    """Press a button of the n-th row."""
    return _did(page, key, what="act", row=row, word=word)


def sort_rows(page: AppTest, key: str, column: str) -> AppTest:
    """Click the head of a column."""
    return _did(page, key, what="sort", word=column)


def choose_rows(page: AppTest, key: str, *rows: int) -> AppTest:
    """Check the boxes of these rows and no others."""
    found = _rows_data(page, key)
    assert found is not None
    listed = found[1]["rows"]
    return _did(page, key, what="choose", keys=[listed[row]["key"] for row in rows], count=1)


def _did(page: AppTest, key: str, *, row: int | None = None, **value: Any) -> AppTest:
    """Tell the page what a person did in a table, as its script in the browser does."""
    found = _rows_data(page, key)
    assert found is not None, f"there is no table {key}"
    if row is not None:
        value["key"] = found[1]["rows"][row]["key"]
    states = page._tree.get_widget_states()
    state = states.widgets.add()
    state.id = f"{STREAMLIT_INTERNAL_KEY_PREFIX}_{found[0]}{EVENT_DELIM}events"
    state.json_trigger_value = json.dumps([{"event": "did", "value": value}])
    page._run(states)
    assert not page.exception, page.exception
    return page


def _rows_data(page: AppTest, key: str) -> tuple[str, dict[str, Any]] | None:
    return next((found for found in _tables(page) if found[0].endswith(f"-{key}")), None)


def _tables(page: AppTest) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids of the tables on the page, and what each is given to draw."""
    for element in elements(page):
        proto = getattr(element, "proto", None)
        if getattr(proto, "component_name", "") == "rlmscope.rows":
            yield proto.id, json.loads(proto.json)
