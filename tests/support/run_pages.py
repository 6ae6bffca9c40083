"""The Run page without a browser: looking at it, what it says about the run and the span, ways through it."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.pages import ask_page, elements
from traces.reading import RunView, SpanRow


def run_page(run: str, span: str | None = None) -> AppTest:
    """The page as a new session meets it."""
    page = ask_page().switch_page("pages/run.py")
    page.query_params["run"] = run
    if span is not None:
        page.query_params["span"] = span
    return looked_at(page)


def looked_at(page: AppTest) -> AppTest:
    """The page after one more run of its script."""
    page.run()
    assert not page.exception, page.exception
    return page


def facts(page: AppTest) -> dict[str, str]:
    """Values by the label that stands above them; those of the run first, those of the span after."""
    listed = [element for element in elements(page) if element.type in ("caption", "text")]
    pairs = zip(listed, listed[1:], strict=False)
    return {
        name.value: value.value for name, value in pairs if (name.type, value.type) == ("caption", "text")
    }


def press(page: AppTest, label: str) -> AppTest:
    """Press the one button whose label holds these words."""
    (button,) = (button for button in page.button if label in button.label)
    button.click()
    return looked_at(page)


def chosen(page: AppTest) -> str:
    """The span of the address."""
    span = page.query_params["span"]
    return span[0] if isinstance(span, list) else str(span)


def open_tab(page: AppTest, name: str) -> AppTest:
    """Open a tab of the span; what stands in it is on the page afterwards."""
    page.session_state[f"span-tabs-{'-'.join(tabs(page))}"] = name
    return looked_at(page)


def tabs(page: AppTest) -> list[str]:
    """The names of the span's tabs."""
    return [tab.label for tab in page.tabs]


def named(view: RunView, kind: str, number: int = 0) -> SpanRow:
    """The span of a kind with that place among them."""
    return [span for span in view.spans if span.kind == kind][number]
