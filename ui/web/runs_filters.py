"""The filters of the Runs page. The address holds them: a widget shows what stands there and writes there.

Query parameters: `q` (words), `status`, `verdict`, `tag`, `model`, `corpus`, `kind`, `strategy`, `same` (the
id of a run: those that ask the same), `replays` (1: also runs that play another one again), `group` (1: by
question), `sort` (a column, `-` in front: descending), `chosen` (ids), `page`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import streamlit as st

from traces.opinions import VERDICTS, Opinions
from traces.reading import RunSummary
from traces.strategies import strategy_of
from ui.visible import line
from ui.web.address import put
from ui.web.notices import note
from ui.web.run_words import COLOURS
from ui.web.runs_table import COLUMNS, KINDS, UNJUDGED, Wanted
from ui.web.words_field import words_field

_SORTABLE: Final = {column.name.lower(): column.name for column in COLUMNS if column.sortable}
_NEWEST: Final = ("Started", True)
_NAMES: Final = (
    "q",
    "status",
    "verdict",
    "tag",
    "model",
    "corpus",
    "kind",
    "strategy",
    "same",
    "replays",
    "group",
    "sort",
    "chosen",
    "page",
)
_LEFT: Final = "runs-address"  # in the session: what the address said when the page was last seen
MOST_CHOSEN: Final = 200  # an address has only so much room


def field(name: str) -> str:
    """The key of the widget of a filter."""
    return f"runs-{name}"


def asked_for(name: str) -> str:
    """What the address says for a parameter, "" when nothing."""
    return str(st.query_params.get(name, ""))


def arrive() -> None:
    """Come back to the list as it was left, unless the address asks for something itself.

    Streamlit loses the query of a page that the browser goes back to, and gives it that of the page it left.
    """
    if field("q") not in st.session_state:  # fields are forgotten while another page is shown
        asked = {name: asked_for(name) for name in _NAMES if asked_for(name)}
        asked = asked or st.session_state.get(_LEFT, {})
        if st.query_params.to_dict() != asked:
            st.query_params.from_dict(asked)
    st.session_state[_LEFT] = {name: asked_for(name) for name in _NAMES if asked_for(name)}


def wanted(runs: Sequence[RunSummary], said: Opinions, corpora: Mapping[str, str]) -> Wanted:
    """Draw the filters and say what they ask for. `corpora` are names of corpora by id."""
    strategies = sorted({strategy_of(run) for run in runs})
    several = len(strategies) > 1 or asked_for("strategy")  # else the field would only take room
    models = {model for run in runs for model in (run.root_model, run.sub_model) if model}
    used = list(dict.fromkeys(run.corpus_id for run in runs if run.corpus_id))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        found = Wanted(
            text=words_field(
                "q",
                key=field("q"),
                placeholder="question, answer, note …",
                width=200 if several else 240,
            ),
            status=_choice("Status", "status", list(COLOURS), 112),
            verdict=_choice("Verdict", "verdict", [*VERDICTS, UNJUDGED], 104),
            tag=_choice("Tag", "tag", said.all_tags, 110),
            model=_choice("Model", "model", sorted(models), 150),
            corpus=_choice("Corpus", "corpus", used, 140, corpora),
            kind=_choice("Kind", "kind", list(KINDS), 140, KINDS),
            strategy=_choice("Strategy", "strategy", strategies, 130) if several else "",
            same=_same(runs),
        )
    return found


def _show(name: str, value: object) -> None:
    """Let a widget show what the address says. Not when it does already: that would stop a person typing."""
    if st.session_state.get(field(name)) != value:
        st.session_state[field(name)] = value


def _choice(
    label: str, name: str, options: Iterable[str], width: int, words: Mapping[str, str] | None = None
) -> str:
    offered = ["", *options]
    value = asked_for(name)
    if value not in offered:
        note(f"No run has the {label.lower()} {value[:80]!r} of the address: that filter is left out.")
        value = ""
    _show(name, value)
    known = words or {}
    st.selectbox(
        label, offered, key=field(name), width=width, on_change=_chose, args=(name,),
        format_func=lambda option: line(known.get(option, option)) if option else "any",
    )  # fmt: skip
    return value


def _chose(name: str) -> None:
    put(name, st.session_state[field(name)])


def _same(runs: Sequence[RunSummary]) -> str:
    value = asked_for("same")
    if value and all(run.run_id != value for run in runs):
        note(f"The address asks for runs like {value[:80]!r}, and there is no such run: all are shown.")
        return ""
    return value


def grouped() -> bool:
    """Whether the address asks for questions rather than runs; what it cannot mean is said."""
    value = asked_for("group")
    if value not in ("", "1"):
        note(f"The address groups by {value[:80]!r}, which means nothing here: runs are shown one by one.")
    return value == "1"


def with_replays() -> bool:
    """Whether the address asks for replays too."""
    return asked_for("replays") == "1"


def replays_switch(count: int) -> None:
    """Draw the switch that shows replays, of which there are so many."""
    if (value := asked_for("replays")) not in ("", "1"):
        note(f"The address says {value[:80]!r} of replays, which means nothing here: they are left out.")
    _show("replays", with_replays())
    st.toggle(
        f"Replays ({count:,})", key=field("replays"), on_change=_switched, args=("replays",),
        help="Also runs that play another run again, as tests of an answer do.",
    )  # fmt: skip


def group_switch() -> None:
    """Draw the switch between runs and questions."""
    _show("group", asked_for("group") == "1")
    st.toggle(
        "By question", key=field("group"), on_change=_switched, args=("group",),
        help="One line for all runs that ask the same question over the same corpus.",
    )  # fmt: skip


def _switched(name: str) -> None:
    put(name, "1" if st.session_state[field(name)] else "")


def order() -> tuple[str, bool]:
    """The column that the address sorts by, and whether the largest come first; by default the newest."""
    value = asked_for("sort")
    if not value:
        return _NEWEST
    name = _SORTABLE.get(value.removeprefix("-"))
    if name is None:
        note(f"There is no column {value[:80]!r} to sort by: the newest run stands first.")
        return _NEWEST
    return name, value.startswith("-")


def set_order(column: str, descending: bool) -> None:
    """Sort by a column from now on."""
    asked = (column, descending)
    put("sort", "" if asked == _NEWEST else f"{'-' if descending else ''}{column.lower()}")


def chosen() -> tuple[str, ...]:
    """The ids of the runs that the address names as chosen; they may be of no run."""
    return tuple(dict.fromkeys(one for one in asked_for("chosen").split(",") if one))


def choose(run_ids: Iterable[str]) -> None:
    """Choose these runs and no others; of very many the first `MOST_CHOSEN`."""
    put("chosen", ",".join(list(run_ids)[:MOST_CHOSEN]))
