"""What holds for every test: no network, no keys, a home of its own, fixed examples; and the closing list.

`@pytest.mark.needs("bwrap", ...)` names what a test cannot do without. A name is an entry of `NEEDS`, else a
program on PATH. `@pytest.mark.full` keeps a test for `make test-full`. Every test that did not run is
counted, with its reason, before pytest's closing line; with RLMSCOPE_REQUIRE_ALL=1 one that could have run on
this kind of machine makes the whole run fail.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import ipaddress
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

FULL = os.environ.get("RLMSCOPE_FULL") == "1"
REQUIRE_ALL = os.environ.get("RLMSCOPE_REQUIRE_ALL") == "1"
ONLY_FULL = "long test: only in test-full"
ELSEWHERE = "another system: "

# -- no network ----------------------------------------------------------------------------------------------

# Whatever a test (or something below it) asked of the network, also when the refusal was swallowed later.
_refused: list[str] = []


class NetworkForbidden(RuntimeError):
    """A test tried to leave this machine. Not an OSError: no retry may take it for an outage."""


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(name))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or address.is_unspecified or bool(mapped and mapped.is_loopback)


def _guard(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: unlike a patched attribute it also sees calls through references taken before it."""
    if not event.startswith("socket."):
        return
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        sock, address = args
        if sock.family not in (socket.AF_INET, socket.AF_INET6) or address is None:
            return
        host = address[0] if isinstance(address, tuple) else address
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = args[0]
    elif event == "socket.getnameinfo":
        host = args[0][0]
    else:
        return
    if not _is_local(host):
        _refused.append(f"{event} {host!r}")
        raise NetworkForbidden(f"tests may not use the network: {event} {host!r}")


sys.addaudithook(_guard)


# -- temporary files in memory -------------------------------------------------------------------------------

_MEMORY = Path("/dev/shm")
_ROOM = 3 << 30  # bytes that must be free there; the tests need a tenth
_OURS = "rlmscope-"
_kept_in_memory: Path | None = None


def _files_into_memory() -> None:
    """Temporary files wait for no disk: stores and spools are synced after every step, thousands of times.

    A TMPDIR that was given stays. What a run with failures left is removed by the next one.
    """
    global _kept_in_memory
    if "TMPDIR" in os.environ or not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return
    facts = os.statvfs(_MEMORY)
    if facts.f_flag & os.ST_NOEXEC or facts.f_bavail * facts.f_frsize < _ROOM:
        return
    for old in _MEMORY.glob(f"{_OURS}*"):
        if not Path("/proc", old.name.removeprefix(_OURS)).exists():
            shutil.rmtree(old, ignore_errors=True)
    _kept_in_memory = _MEMORY / f"{_OURS}{os.getpid()}"
    _kept_in_memory.mkdir(mode=0o700)
    os.environ["TMPDIR"] = str(_kept_in_memory)
    tempfile.tempdir = None  # asked for anew


# -- no keys, own home ---------------------------------------------------------------------------------------

_SECRETS = re.compile(
    r".*_(API_KEY|API_BASE|API_TOKEN|AUTH_TOKEN|BASE_URL|ACCESS_KEY|ACCESS_KEY_ID|SESSION_TOKEN)|HF_TOKEN"
    r"|(RLMSCOPE|OTEL|LITELLM|STREAMLIT)_(?!FULL$|REQUIRE_ALL$|VENV$|SEEDS$).*",
    re.IGNORECASE,
)
_COLOURS = ("CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NO_PROXY = "127.0.0.1,localhost,::1"


def _settings_of_the_caller() -> list[str]:
    return [name for name in os.environ if name in _COLOURS or _SECRETS.fullmatch(name)]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes make names that nobody can read, and packed ones hold the time: no two processes would agree."""
    return argname if isinstance(val, bytes) else None


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is imported: drop the caller's settings; send what a child process asks for nowhere."""
    gc.disable()  # reading thousands of tests makes much that is kept, and looking for garbage takes a third
    _files_into_memory()
    for name in _settings_of_the_caller():
        del os.environ[name]
    # The guard lives in this process only. A child that honours proxies meets a closed port instead.
    os.environ.update(dict.fromkeys(_PROXIES, "http://127.0.0.1:9"), NO_PROXY=_NO_PROXY, no_proxy=_NO_PROXY)
    settings.register_profile("rlmscope", derandomize=True, deadline=None, max_examples=500 if FULL else 50)
    settings.load_profile("rlmscope")


def pytest_collection_finish() -> None:
    """From here on garbage is looked for among what the tests make, not among the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _shared_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A home for fixtures that outlive one test."""
    os.environ["RLMSCOPE_HOME"] = str(tmp_path_factory.mktemp("rlmscope-home"))


@pytest.fixture(autouse=True, scope="session")
def _empty_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty store is made once and then copied: making one takes more than many a test of its content."""
    from traces import store

    make, made = store._make, tmp_path_factory.mktemp("empty") / "store.duckdb"

    def copy(path: Path) -> None:
        if not made.exists():
            make(made)
        if any(path.parent.glob(f"{path.name}*")):  # something is in the way
            return make(path)
        fresh = path.with_name(path.name + ".new")
        shutil.copyfile(made, fresh)
        fresh.chmod(0o600)
        return os.replace(fresh, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_make", copy)
        yield


@pytest.fixture(autouse=True)
def _own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home of the test's own, no settings left by others, and a failure for any refused connection."""
    for name in _settings_of_the_caller():
        monkeypatch.delenv(name)
    monkeypatch.setenv("RLMSCOPE_HOME", str(tmp_path / "rlmscope-home"))
    monkeypatch.setenv(
        "COLUMNS", "120"
    )  # not those of the terminal or pipe that the tests happen to write to
    monkeypatch.setenv("LINES", "40")
    _refused.clear()
    yield
    if _refused:
        pytest.fail("the network was asked for: " + "; ".join(_refused))


@pytest.fixture
def refused_connections() -> Iterator[list[str]]:
    """For tests of the guard: what was refused so far, which then does not fail the test."""
    yield _refused
    _refused.clear()


@pytest.fixture
def no_root_rights() -> Iterator[None]:
    """File modes count in this test, also for root, who on Linux gives up the right to ignore them meanwhile.

    Programs the test starts have that right again.
    """
    if os.name != "posix":
        pytest.skip(f"{ELSEWHERE}needs POSIX file modes")
    if os.geteuid():
        yield
        return
    if sys.platform != "linux":
        pytest.skip(f"{ELSEWHERE}root cannot give up rights on {sys.platform}")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the capability structures, this thread
    before, after = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0 == libc.capget(header, after)
    after[0] &= ~0b110  # effective CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    assert libc.capset(header, after) == 0
    yield
    assert libc.capset(header, before) == 0


# -- what cannot run here ------------------------------------------------------------------------------------


def _on_path(*names: str, package: str = "") -> Callable[[], str | None]:
    hint = f" (Debian: apt install {package})" if package else ""
    return lambda: None if any(map(shutil.which, names)) else f"not on PATH{hint}"


def _bwrap() -> str | None:
    missing = _on_path("bwrap", package="bubblewrap")()
    if missing:
        return missing
    done = subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True, text=True, check=False
    )
    return f"cannot start a sandbox here: {done.stderr.strip()}" if done.returncode else None


def _lock() -> str | None:
    from rlm_core.worker.lock import untested

    if (why := untested()) is not None:
        return why
    from rlm_core.worker import landlock

    return None if landlock.version() else "this kernel has no Landlock, or it is switched off"


def _module(name: str) -> Callable[[], str | None]:
    return lambda: None if importlib.util.find_spec(name) else f"this Python has no {name}"


def _system(*platforms: str) -> Callable[[], str | None]:
    return lambda: None if sys.platform in platforms else f"this is {sys.platform}"


# Each value answers None when the thing is there, else why not.
NEEDS: dict[str, Callable[[], str | None]] = {
    "bwrap": _bwrap,
    "chromium": _on_path("chromium", "chromium-browser", "google-chrome", package="chromium"),
    "ensurepip": _module("ensurepip"),
    "git": _on_path("git", package="git"),
    "linux": _system("linux"),
    "lock": _lock,
    "macos": _system("darwin"),
    "make": _on_path("make", package="make"),
    "posix": lambda: None if os.name == "posix" else f"this is {sys.platform}",
    "windows": _system("win32"),
}
_SYSTEMS = ("linux", "macos", "posix", "windows")


@cache
def _lacking(name: str) -> str | None:
    """Why a need is not met here, as one line; None when it is."""
    why = NEEDS.get(name, _on_path(name))()
    if why is None:
        return None
    return f"{ELSEWHERE}needs {name}, {why}" if name in _SYSTEMS else f"needs {name}: {why}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason that the closing list counts, what is long or lacks something."""
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if why := _lacking(name):
                pytest.skip(why)
    if not FULL and item.get_closest_marker("full"):
        pytest.skip(ONLY_FULL)


def _not_run(reporter: Any) -> Counter[str]:
    """Reason -> number of tests, of everything that was skipped, by whatever means."""
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", ()):
        where = report.longrepr
        reasons[str(where[2] if isinstance(where, tuple) else where).removeprefix("Skipped: ")] += 1
    return reasons


def _could_have_run(reasons: Counter[str]) -> int:
    return sum(n for why, n in reasons.items() if why != ONLY_FULL and not why.startswith(ELSEWHERE))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With RLMSCOPE_REQUIRE_ALL=1 an absence is a failure. Only the process that reports decides."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if REQUIRE_ALL and reporter and exitstatus == 0 and _could_have_run(_not_run(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if _kept_in_memory and session.exitstatus == 0:
        shutil.rmtree(_kept_in_memory, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The counted list of what did not run and why."""
    reasons = _not_run(terminalreporter)
    terminalreporter.section("not run")
    terminalreporter.write_line(f"Tests that did not run: {reasons.total()}")
    for why, number in reasons.most_common():
        terminalreporter.write_line(f"{number:>6}  {why}")
    if REQUIRE_ALL and (missing := _could_have_run(reasons)):
        terminalreporter.write_line(f"RLMSCOPE_REQUIRE_ALL=1: {missing} of them fail this run.", red=True)
