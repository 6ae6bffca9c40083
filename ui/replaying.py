"""What replays need of this machine: the corpus, who answers live calls, keys, prices, the sandbox.

Shared by the command line and the processes that the app starts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlm_core.errors import ConfigError, CorpusError, InputError

if TYPE_CHECKING:
    from rlm_core.pricing import PriceTable
    from traces.home import Home
    from traces.opinions import Opinions
    from traces.reading import RunView
    from traces.replay import Replayer
    from traces.rows import RunSummary
    from traces.trial import Budget, Mode, Target

#: Mode -> whose turns a model may be asked for, by role.
ASKED: Final[dict[Mode, tuple[str, ...]]] = {
    "strict": (),
    "frozen": (),
    "recompute": ("sub",),
    "live": ("sub",),
    "reask": ("root", "sub"),
}
_LEAST_CALLS: Final = 100  # that a mode which asks may make when nobody said how many
_ROOM: Final = 2  # times the calls of the record: other replies may lead to more calls


@dataclass(frozen=True, slots=True)
class Present:
    """The present configuration of a home for replays of one run.

    `root` and `sub` are who is asked live: those that were given, else those of the record. `demo` says that
    none of those that may be asked is a language model; `notices` are sentences for the person.
    """

    home: Home
    view: RunView
    root: str | None
    sub: str | None
    prices: PriceTable
    sandbox: str | None
    notices: tuple[str, ...] = ()
    demo: bool = False

    def replayer(self, home: Home, view: RunView, **options: Any) -> Replayer:
        """A `Replayer` with the models, prices and sandbox of this configuration: what `diagnose` takes."""
        from traces.replay import Replayer

        given = {"root": self.root, "sub": self.sub, "prices": self.prices, "sandbox": self.sandbox}
        return Replayer(home, view, **{**given, **options})


@contextmanager
def present(
    home: Home,
    view: RunView,
    environ: Mapping[str, str],
    *,
    roles: tuple[str, ...] = (),
    root: str | None = None,
    sub: str | None = None,
    budget: Budget | None = None,
) -> Iterator[Present]:
    """The configuration for replays of a run; while it lasts, the provider keys of the home are lent to this
    process if a language model may be asked.

    `roles` are those that may be asked ("root", "sub"), see `ASKED`. Adds the corpus of a recorded example
    where it is missing. Raises InputError for a model that cannot be asked, or a limit in dollars that cannot
    hold.
    """
    from traces.imported import not_again
    from traces.prices import price_table
    from ui.web.settings import load_settings
    from ui.web.settings_keys import keys_lent

    if not_again(view.summary) is not None:
        roles = ()  # nobody will be asked: that is the reason to give, not what is wrong with its models

    settings, prices = load_settings(home), price_table(home)
    given = {"root": root, "sub": sub}
    asked = _asked(view, roles, given)
    every = {*asked.values(), *_deeper(view, roles, given)}
    _check_dollars(budget, every, prices)
    ensure_corpus(home, view)
    demo = all(map(_is_demo, every))
    now = Present(home, view, root, sub, prices, settings.sandbox, _notices(asked), demo)
    if demo:
        yield now
        return
    with keys_lent(home):
        yield now


def _asked(view: RunView, roles: tuple[str, ...], given: Mapping[str, str | None]) -> dict[str, str]:
    """The models that may be asked, by role. Raises InputError for one that cannot be."""
    from rlm_core.models import check_usable

    recorded = {"root": view.summary.root_model, "sub": view.summary.sub_model}
    words = {"root": "root model", "sub": "sub-model"}
    asked = {}
    for role in roles:
        model = given[role] or recorded[role]
        if model is None:
            raise InputError(f"run {view.run_id} does not say which {words[role]} it had: give --{role}")
        check_usable(
            model, f"--{role}" if given[role] else f"the recorded {words[role]} (--{role} names another)"
        )
        asked[role] = model
    return asked


def _deeper(view: RunView, roles: tuple[str, ...], given: Mapping[str, str | None]) -> Iterator[str]:
    """The recorded models of child runs that may be asked. Raises InputError for one that cannot be."""
    from rlm_core import semconv as sc
    from rlm_core.models import check_usable
    from traces.recorded_settings import read_options
    from traces.replay_facts import top_facts

    for depth, named in read_options(top_facts(view).text(sc.OPTIONS)).models.items():
        for role in roles:
            model = getattr(named, role)
            if given[role] is None and model is not None:
                check_usable(model, f"the recorded model of depth {depth} (--{role} names another)")
                yield model


def _is_demo(model: str) -> bool:
    from rlm_core.models import is_demo

    return is_demo(model)


def _notices(asked: Mapping[str, str]) -> tuple[str, ...]:
    if not asked:
        return ()
    words = {"root": "root turns", "sub": "sub-calls"}
    named = ", ".join(f"{model} ({words[role]})" for role, model in asked.items())
    demo = ", no language model is involved" if all(map(_is_demo, asked.values())) else ""
    return (f"live calls go to {named}{demo}",)


def _check_dollars(budget: Budget | None, asked: Any, prices: PriceTable) -> None:
    if budget is None or budget.usd is None:
        return
    unknown = [model for model in dict.fromkeys(asked) if prices.upper_bound_usd(model, 1, 1) is None]
    if unknown:
        raise ConfigError(
            f"the cost limit cannot hold: the price of {' and '.join(unknown)} is unknown; limit the calls "
            "(--max-calls) instead, or set its price with `rlmscope prices set`"
        )


def calls_allowed(run: RunSummary, mode: Mode, repeat: int = 1) -> int:
    """How many live calls a replay in this mode may make when nobody said: twice those of the record, at
    least 100; none in a mode that asks nobody.
    """
    if not ASKED[mode]:
        return 0
    return max(_LEAST_CALLS, _ROOM * (run.sub_calls + run.refused_sub_calls + run.iterations)) * repeat


def target_of(
    said: Opinions, run_id: str, *, expected: str | None = None, how: str | None = None
) -> Target | None:
    """The answer a replay of a run should give: a given one, else the one that a person expects of the run,
    compared as was given, else as the person said. None where nobody said any. Raises InputError for a way
    to compare that does not exist.
    """
    from traces.opinions import NORMALISED, check_how
    from traces.trial import Target

    opinion = said.of(run_id)
    kept = None if opinion is None else opinion.expected
    text = kept if expected is None else expected
    if text is None:
        if how is not None:
            check_how(how, None)
        return None
    kept_how = opinion.how if opinion is not None and text == kept else NORMALISED
    chosen = how or kept_how
    check_how(chosen, text)
    return Target(text, chosen)


# -- the corpus of a recorded example


def ensure_corpus(home: Home, view: RunView) -> bool:
    """Add the corpus of a run from the sample data, when the home does not have it and it is one of those.

    Returns whether it was added. Where it is no sample, nothing is done: the replay says what is missing.
    """
    from rlm_core.corpus import Corpus

    corpus_id = view.summary.corpus_id
    if corpus_id is None:
        return False
    try:
        Corpus.load(home.corpora, corpus_id)
    except CorpusError:
        folder = _sample_of(view, corpus_id)
        if folder is not None:
            Corpus.add([folder], home.corpora)
        return folder is not None
    return False


def _sample_of(view: RunView, corpus_id: str) -> Path | None:
    """The folder of the sample corpus with this id, which only reading it can tell."""
    from rlm_core import semconv as sc
    from rlm_core.corpus import Corpus
    from ui.web.samples import samples

    top = next((span for span in view.spans if span.kind == "run"), None)
    documents = None if top is None else top.attributes.get(sc.CORPUS_DOCUMENTS)
    for sample in samples():
        if sample.documents != documents:
            continue
        with tempfile.TemporaryDirectory(prefix="rlmscope-sample-") as scratch:
            if Corpus.add([sample.folder], Path(scratch)).corpus_id == corpus_id:
                return sample.folder
    return None
