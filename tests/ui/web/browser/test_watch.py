"""The watch itself: what it must notice, it notices; the policy of the pages stops it from getting out."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support.app import Server
from tests.support.browser import visiting

pytestmark = pytest.mark.needs("chromium")

ESCAPES = {
    "image": "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))",
    "request": "fetch('http://127.0.0.1:9/x').catch(() => 0)",
    "websocket": "try { new WebSocket('ws://127.0.0.1:9/x') } catch {}",
    "style": "document.body.style.backgroundImage = 'url(http://127.0.0.1:9/x.png)'",
    "script": "document.head.append(Object.assign(document.createElement('script'), {textContent: '0'}))",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: 'http://127.0.0.1:9'}))",
    "dialog": "alert('hello')",
}


LIGHT = "_stcore/health"  # the smallest answer of the app; it carries the same policy as all others


def test_whatever_leaves_a_page_is_refused_and_noticed(browser: Browser, app: Server) -> None:
    with visiting(browser, f"http://127.0.0.1:{app.port}") as visit:
        page = visit.tab(LIGHT)
        for name, script in ESCAPES.items():
            assert not visit.strays, name
            page.evaluate(script)
            page.evaluate("new Promise(requestAnimationFrame)")
            with pytest.raises(AssertionError, match="dialog: hello" if name == "dialog" else "refused: "):
                visit.check()
            visit.strays.clear()


def test_an_address_elsewhere_and_a_broken_script_are_noticed(browser: Browser, app: Server) -> None:
    url = f"http://127.0.0.1:{app.port}"
    with (
        pytest.raises(AssertionError, match="asked for http"),
        visiting(browser, "http://127.0.0.1:9") as visit,
    ):
        visit.context.new_page().goto(f"{url}/{LIGHT}")
    with pytest.raises(AssertionError, match="script error: .*late"), visiting(browser, url) as visit:
        visit.tab(LIGHT).evaluate("setTimeout(() => { throw new Error('late') })")
