"""What ui/docs/diagnose-page.md says of the Diagnose page is what the page reads and shows."""

from __future__ import annotations

import inspect
import re

from tests.support.command import ROOT
from ui.web import diagnose_forms, diagnosis_report, run_header, span_view, twin_form
from ui.web.diagnose_forms import GOOD, NO_GOOD
from ui.web.diagnose_history import DIAGNOSIS
from ui.web.diagnose_jobs import BUDGET
from ui.web.span_text_form import SPAN

PAGE = (ROOT / "ui" / "docs" / "diagnose-page.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


def test_the_keys_of_the_address_are_those_that_the_page_reads() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.M) == ["run", GOOD, SPAN, DIAGNOSIS]
    assert f"`{NO_GOOD}` for: without one" in PAGE


def test_the_offers_have_the_names_that_the_page_gives_them() -> None:
    offers = re.findall(r"^\d\. \*\*(.+?)\*\*", PAGE, re.M)
    source = inspect.getsource(diagnose_forms)
    assert len(offers) == 3 and all(f"{n} · {name}" in source for n, name in enumerate(offers, 1))


def test_the_ways_named_are_those_of_the_pages() -> None:
    named = {
        "*Diagnose*": inspect.getsource(run_header),
        "*Test this sub-answer*": inspect.getsource(span_view),
        "*Test this code*": inspect.getsource(span_view),
        "*Make a twin*": inspect.getsource(twin_form),
        "*Markdown*": inspect.getsource(diagnosis_report),
    }
    assert all(name in WORDS and name.strip("*") in source for name, source in named.items())


def test_the_budget_named_is_that_of_the_fields() -> None:
    assert f"{BUDGET.replays} replays and no model call" in WORDS and BUDGET.live_calls == 0
