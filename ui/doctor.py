"""`rlmscope doctor`: what this installation is, what works and what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

import click

from ui.common import State, print_json, shared_options
from ui.figures import counted
from ui.models_config import DEMO_WORDS
from ui.startup import PACKAGES, identity_problem
from ui.visible import line

if TYPE_CHECKING:
    from traces.home import Home

LEAST_FREE: Final = 200 << 20  # bytes: below it a run of ordinary size may not fit
_LITELLM: Final = ((1, 108), (1, 112))  # from, below
_COMPROMISED: Final = ("1.82.7", "1.82.8", "1.107.0")  # releases that carried foreign code
_MARKS: Final = {True: "ok", False: "FAILED", None: "note"}
_COLOURS: Final = {True: "green", False: "red", None: "yellow"}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `ok` None: worth knowing, or could not be found out."""

    name: str
    ok: bool | None
    detail: str
    hint: str | None = None


@click.command()
@shared_options
@click.pass_obj
def doctor(state: State, /) -> int:
    """Check this installation: packages, home, store, sandbox, models, disk."""
    checks = list(all_checks(state))
    failed = sum(check.ok is False for check in checks)
    if state.as_json:
        fields = ("name", "ok", "detail", "hint")
        print_json({"checks": [{name: getattr(check, name) for name in fields} for check in checks]})
    else:
        for check in checks:
            mark = click.style(f"{_MARKS[check.ok]:<6}", fg=_COLOURS[check.ok])
            click.echo(f"{mark}  {check.name:<12}  {line(check.detail)}")
            if check.hint:
                click.echo(f"{'':<22}-> {line(check.hint)}")
        click.echo(f"{counted(failed, 'check')} failed" if failed else "no check failed")
    return int(failed > 0)


def all_checks(state: State) -> Iterator[Check]:
    """Every check, in an order in which the first failure explains the later ones."""
    yield _python()
    identity = list(_packages())
    yield from identity
    if any(check.ok is False for check in identity):
        yield Check("the rest", None, "not checked, because it would run code of another project")
        return
    for name, probe in _HOME_CHECKS:
        yield _guarded(name, lambda probe=probe: probe(state.home))  # type: ignore[misc]
    for name, look in _OTHER_CHECKS:
        yield _guarded(name, look)


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    """A check that breaks is a failed check; the others still run."""
    from rlm_core.errors import RLMScopeError

    try:
        return check()
    except RLMScopeError as error:
        return Check(name, False, str(error))
    except Exception as error:
        return Check(name, False, f"the check broke with {type(error).__name__}: {error}")


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check(
        "python",
        ok,
        f"{platform.python_version()} on {platform.system()} {platform.machine()}, {sys.executable}",
        None if ok else "Python 3.11 or newer is needed",
    )


def _packages() -> Iterator[Check]:
    for name in PACKAGES:
        problem = identity_problem(name)
        yield Check(name, problem is None, problem or "the package of this program")


def _home(home: Home) -> Check:
    with tempfile.NamedTemporaryFile(dir=home.root, prefix=".doctor-"):
        return Check("home", True, f"{home.root} can be written")


def _store(home: Home) -> Check:
    import time

    from traces import store
    from traces.migrations import MIGRATIONS, schema_version

    with store.reader(home, time.monotonic() + store.PATIENCE) as con:
        if con is None:
            return Check("store", True, "there is none yet; the first run makes it")
        found, ours = schema_version(con), max(MIGRATIONS)
        runs = len(store.read_summaries(con))
    older = None if found == ours else "it is brought up to date when the next run is taken in"
    return Check(
        "store", True, f"schema version {found} (this program: {ours}), {counted(runs, 'run')}", older
    )


def _record(home: Home) -> Check:
    import time

    from traces import store
    from traces.ingest import survey

    with store.reader(home, time.monotonic() + store.PATIENCE) as con:
        found = survey(home, con)
        stored = store.read_summaries(con) if con is not None else []
    broken = sum(run.problems > 0 for run in stored)
    cut = sum(run.status == "interrupted" for run in stored)
    parts = (
        f"{counted(len(found.open), 'run')} going on",
        f"{counted(len(found.closed), 'spool')} to be taken in",
        f"{counted(cut, 'run')} interrupted",
        f"{counted(broken, 'record')} incomplete",
    )
    return Check("record", True, ", ".join(parts), "rlmscope ingest takes them in" if found.closed else None)


def _disk(home: Home) -> Check:
    free = shutil.disk_usage(home.root).free
    ok = free >= LEAST_FREE
    hint = None if ok else "make room, or choose another place with --home or RLMSCOPE_HOME"
    return Check("disk", ok, f"{free / 1e9:,.1f} GB free at {home.root}", hint)


def _sandbox(home: Home) -> Check:
    from rlm_core.sandbox import below, probe
    from ui.web.settings import load_settings

    found, asked = probe(), load_settings(home).sandbox
    if asked is not None and below(found.level, asked):
        why = found.why or "no reason was found"
        return Check("sandbox", False, f"level {found.level}, but the settings ask for {asked}: {why}")
    locked = not below(found.level, "standard")
    layers = f" [{', '.join(found.layers)}]" if found.layers else ""
    hint = f"not higher, because {found.why}" if found.why else None
    return Check("sandbox", True if locked else None, f"level {found.level}: {found.detail}{layers}", hint)


def _models(home: Home) -> Check:
    from rlm_core.models import ROOT_VARIABLE, SUB_VARIABLE
    from ui.models_config import choose_models
    from ui.web.settings import load_settings
    from ui.web.settings_keys import key_origins
    from ui.web.settings_needs import PROVIDERS

    settings = load_settings(home)
    models = choose_models(None, None, settings.over(os.environ))
    root_from, sub_from = settings.origin(os.environ)
    origins = key_origins(home, os.environ)
    known = (key for _, key, _ in PROVIDERS.values() if key is not None)
    names = dict.fromkeys((*known, *origins))
    keys = ", ".join(f"{name} {_KEY_WORDS[origins.get(name)]}" for name in names)
    detail = f"root {models.root} ({root_from}), sub {models.sub} ({sub_from}); keys: {keys}"
    if models.demo:
        how = f"set {ROOT_VARIABLE} and {SUB_VARIABLE}, or use the app's Settings page"
        return Check("models", None, detail, f"{DEMO_WORDS}; {how}, to ask a language model")
    if not origins:
        return Check("models", None, detail, "no key is set; a server of your own may need none")
    return Check("models", True, detail)


_KEY_WORDS: Final = {"environment": "yes (environment)", "file": "yes (keys.json)", None: "no"}


def _litellm() -> Check:
    hint = "install what requirements.lock names"
    try:
        found = version("litellm")
    except PackageNotFoundError:
        return Check("litellm", False, "not installed", hint)
    if found in _COMPROMISED:
        return Check(
            "litellm", False, f"{found} is a compromised release; remove it and change your keys", hint
        )
    try:
        major, minor = (int(part) for part in found.split(".")[:2])
    except ValueError:
        return Check("litellm", None, f"version {found} cannot be judged", hint)
    ok = _LITELLM[0] <= (major, minor) < _LITELLM[1]
    return Check(
        "litellm", ok, f"{found} (accepted: 1.108 up to, not including, 1.112)", None if ok else hint
    )


def _prices() -> Check:
    try:
        return Check("prices", True, f"genai-prices {version('genai-prices')}")
    except PackageNotFoundError:
        return Check("prices", False, "genai-prices is not installed", "install what requirements.lock names")


def _sending() -> Check:
    from traces.sending import ENDPOINT, TRACES_ENDPOINT, switched_off, target

    found = target(os.environ)
    if found is None:
        off = switched_off(os.environ)
        if off is None or not (os.environ.get(ENDPOINT) or os.environ.get(TRACES_ENDPOINT)):
            return Check("sending", True, f"spans stay here ({ENDPOINT} would send them elsewhere too)")
        return Check("sending", None, f"no span is sent, because of {off}")
    from traces.sending_http import reach

    problem = reach(found, _REACH_SECONDS)
    texts = _CONTENT_WORDS[found.content.level]
    if problem is None:
        return Check("sending", True, f"spans go to {found.shown} too, {texts}")
    return Check(
        "sending", False, f"{found.shown} takes no spans: {problem}", "runs are recorded all the same"
    )


_REACH_SECONDS: Final = 3.0
_CONTENT_WORDS: Final = {
    "none": "without texts",
    "previews": "with the first 200 characters of texts",
    "whole": "with whole texts",
}
_HOME_CHECKS: Final = (
    ("home", _home),
    ("disk", _disk),
    ("store", _store),
    ("record", _record),
    ("sandbox", _sandbox),
    ("models", _models),
)
_OTHER_CHECKS: Final = (
    ("litellm", _litellm),
    ("prices", _prices),
    ("sending", _sending),
)
