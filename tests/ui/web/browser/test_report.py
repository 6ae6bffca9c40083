"""A report opened in a browser: it stands by itself, has no script, and can be read in light and in dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.support.diagnosed import diagnosed_run, diagnosis_of
from tests.support.expecting import expect
from traces.home import Home
from traces.report import report
from ui.reporting import write_report

pytestmark = pytest.mark.needs("chromium")

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"], "resultTypes": ["violations"]}
HOSTILE = '<script>window.pwned = 1</script><img src="http://127.0.0.1:9/x" onerror="window.pwned = 1">'


def test_a_report_stands_by_itself(browser: Browser, tmp_path: Path) -> None:
    view = diagnosed_run(Home.resolve(tmp_path / "home"), HOSTILE, prompt="long " * 2_000)
    file = tmp_path / "report.html"
    write_report(report(view, diagnosis_of(view, HOSTILE)), file)
    asked: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        expect(page.get_by_role("heading", level=1)).to_contain_text("Diagnosis of run")
        page.get_by_text("The whole text").click()
        assert page.evaluate("window.pwned") is None and page.locator("img, script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert asked == [file.as_uri()]
    for theme in ("light", "dark"):
        # the checker is a script, which the policy of the file would not let in
        with browser.new_context(color_scheme=theme, bypass_csp=True) as context:  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(file.as_uri())
            assert Axe().run(page, options=RULES).response["violations"] == [], theme
