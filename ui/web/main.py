"""The entry script of the app: pages and what they all need. Streamlit runs it anew at every interaction.

Pages are scripts of their own, named by path, so that any page can link to another: `st.page_link` and
`st.switch_page` take "pages/run.py" with query parameters.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from rlm_core.errors import RLMScopeError
from traces.home import Home
from ui.web.notices import problem
from ui.web.theme import OPTIONS

# Streamlit leaves a sixth of a small window at the sides, and writes what is selected in the accent colour:
# in the dark that has too little contrast for text, as have the colours it gives to parts of code
_PARTS: Final = {
    "keyword": "blue",
    "builtin": "blue",
    "boolean": "blue",
    "string": "green",
    "number": "orange",
}
_TOKENS: Final = "".join(
    f"[data-testid=stCode] code .token.{part} {{ color: light-dark({OPTIONS[f'theme.light.{colour}Color']}, "
    f"{OPTIONS[f'theme.dark.{colour}Color']}); }}\n"
    for part, colour in (_PARTS | {"operator": "orange", "comment": "gray", "punctuation": "gray"}).items()
)
_STYLE: Final = f"""
<style>
[data-testid="stMainBlockContainer"] {{ padding-left: 2.5rem; padding-right: 2.5rem; }}
[class*="st-key-"][class*="-facts"] {{ row-gap: 0.25rem; }}
[role="tab"][aria-selected="true"] p, [role="radiogroup"] button[aria-checked="true"] p,
[data-selected="true"] p {{
  color: light-dark({OPTIONS["theme.light.linkColor"]}, {OPTIONS["theme.dark.linkColor"]});
}}
{_TOKENS}</style>
"""


def _to_ask() -> None:
    """What `/ask` leads to. Streamlit serves the default page at `/` only, and its own path is an error."""
    st.switch_page("pages/ask.py")


def main() -> None:
    """Show the page that the address names. The home folder is that of `$RLMSCOPE_HOME`."""
    st.set_page_config(page_title="rlmscope", layout="wide")
    st.html(_STYLE)
    page = st.navigation(
        [
            st.Page("pages/ask.py", title="Ask", url_path="start", default=True),
            st.Page("pages/runs.py", title="Runs", url_path="runs"),
            st.Page("pages/strategies.py", title="Strategies", url_path="strategies"),
            st.Page("pages/sets.py", title="Sets", url_path="sets"),
            st.Page("pages/spend.py", title="Spend", url_path="spend"),
            st.Page("pages/corpora.py", title="Corpora", url_path="corpora"),
            st.Page("pages/settings.py", title="Settings", url_path="settings"),
            st.Page("pages/run.py", title="Run", url_path="run", visibility="hidden"),
            st.Page("pages/compare.py", title="Compare", url_path="compare", visibility="hidden"),
            st.Page("pages/diagnose.py", title="Diagnose", url_path="diagnose", visibility="hidden"),
            st.Page(_to_ask, title="Ask", url_path="ask", visibility="hidden"),
        ],
        position="top",
    )
    try:
        Home.resolve()
    except RLMScopeError as error:
        problem(error)
        return
    page.run()


main()
