"""The look of the app: colours and sizes, light and dark, as Streamlit options for the server to set.

Fonts are the ones Streamlit ships: nothing is fetched from anywhere. One accent colour; red, orange, green
and grey stand beside a word that says the same.
"""

from __future__ import annotations

from typing import Final

Option = str | int | bool

_SHARED: Final[dict[str, Option]] = {
    "baseFontSize": 15,
    "baseRadius": "0.375rem",
    "buttonRadius": "0.375rem",
    "codeFontSize": "0.85rem",
    "headingFontWeights": "600",
    "linkUnderline": False,
    "paddingTop": "1.25rem",
    "paddingBottom": "3rem",
    "showWidgetBorder": True,
}

_LIGHT: Final[dict[str, Option]] = {
    "primaryColor": "#1c5d99",
    "backgroundColor": "#ffffff",
    "secondaryBackgroundColor": "#f3f5f7",
    "codeBackgroundColor": "#f3f5f7",
    "textColor": "#10161f",  # captions are this at 60 %: any lighter and they fall under 4.5:1
    "codeTextColor": "#10161f",
    "linkColor": "#1c5d99",
    "borderColor": "#d5dbe1",
    "dataframeBorderColor": "#dfe4e9",
    "dataframeHeaderBackgroundColor": "#f3f5f7",
    "dataframeHeaderTextColor": "#465261",
    "redColor": "#b3261e",
    "orangeColor": "#9a5b00",
    "greenColor": "#1d7044",
    "blueColor": "#1c5d99",
    "grayColor": "#5b6673",
}

_DARK: Final[dict[str, Option]] = {
    "primaryColor": "#3779be",
    "backgroundColor": "#14181d",
    "secondaryBackgroundColor": "#1f252c",
    "codeBackgroundColor": "#1b2027",
    "textColor": "#e3e7ec",
    "codeTextColor": "#e3e7ec",
    "linkColor": "#7fb4e6",
    "borderColor": "#39424d",
    "dataframeBorderColor": "#2d353e",
    "dataframeHeaderBackgroundColor": "#1f252c",
    "dataframeHeaderTextColor": "#a9b4c0",
    "redColor": "#f28b82",
    "orangeColor": "#eab067",
    "greenColor": "#79cc9c",
    "blueColor": "#7fb4e6",
    "grayColor": "#a3adb8",
}

# for pages that draw themselves anew while a run goes on: what is about to be drawn does not fade meanwhile
CALM: Final = """
<style>
[data-stale="true"] { opacity: 1 !important; }
</style>
"""

# full option names, as `streamlit.config.set_option` takes them
OPTIONS: Final[dict[str, Option]] = {
    **{f"theme.{name}": value for name, value in _SHARED.items()},
    **{f"theme.light.{name}": value for name, value in _LIGHT.items()},
    **{f"theme.dark.{name}": value for name, value in _DARK.items()},
}
