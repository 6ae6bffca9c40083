"""The rules of tests/conftest.py: the network guard, the clean surroundings, the list of what did not run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

FORBIDDEN = "tests may not use the network"
ELSEWHERE = "another system: "
TESTS = Path(__file__).parent


def _udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("192.0.2.1", 9))


def _connect_ex() -> None:
    with socket.socket() as sock:
        sock.connect_ex(("192.0.2.1", 9))


ATTEMPTS = {
    "connect": lambda: socket.create_connection(("192.0.2.1", 9), timeout=1),
    "connect_ex": _connect_ex,
    "ipv6": lambda: socket.create_connection(("2001:db8::1", 9), timeout=1),
    "name": lambda: socket.getaddrinfo("model.invalid", 443),
    "old name look-up": lambda: socket.gethostbyname("model.invalid"),
    "udp": _udp,
    "asyncio": lambda: asyncio.run(asyncio.open_connection("192.0.2.1", 9)),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_nothing_leaves_this_machine(attempt: object, refused_connections: list[str]) -> None:
    assert callable(attempt)
    with pytest.raises(RuntimeError, match=FORBIDDEN):
        attempt()
    assert refused_connections


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_loopback_is_free(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError as error:
            pytest.skip(f"{ELSEWHERE}no {host} here, {error}")
        server.listen()
        with socket.create_connection(server.getsockname()[:2]) as client:
            assert client.getpeername()[:2] == server.getsockname()[:2]


def test_a_child_that_honours_proxies_gets_nowhere() -> None:
    proxies = urllib.request.getproxies()
    assert proxies["http"] == proxies["https"] == "http://127.0.0.1:9"
    assert urllib.request.proxy_bypass("127.0.0.1") and not urllib.request.proxy_bypass("model.invalid")


def test_keys_and_home_of_the_caller_are_out_of_reach(tmp_path: Path) -> None:
    names = [n for n in os.environ if re.search(r"(_API_KEY|_BASE_URL|_API_BASE|_TOKEN)$", n)]
    assert not names
    assert Path(os.environ["RLMSCOPE_HOME"]).is_relative_to(tmp_path)


def test_file_modes_count_for_root_too(no_root_rights: None, tmp_path: Path) -> None:
    (tmp_path / "closed").touch(mode=0)
    with pytest.raises(PermissionError):
        (tmp_path / "closed").read_bytes()
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        (tmp_path / "new").touch()
    tmp_path.chmod(0o700)


# -- the rules seen from outside: a run of its own in an empty folder ----------------------------------------

SAMPLE = """
import contextlib, os, socket, pytest

def test_runs():
    assert "OPENAI_API_KEY" not in os.environ and "RLMSCOPE_ROOT" not in os.environ

@pytest.mark.needs("no-such-program")
def test_lacks(): raise AssertionError

@pytest.mark.needs("no-such-program")
@pytest.mark.parametrize("n", [1, 2])
def test_lacks_too(n): raise AssertionError

@pytest.mark.full
def test_long(): pass

@pytest.mark.needs("windows", "macos")
def test_of_two_systems(): raise AssertionError
"""
SWALLOWS = """
import contextlib, socket

def test_swallows():
    with contextlib.suppress(Exception):
        socket.create_connection(("192.0.2.1", 9))
"""


def _pytest(folder: Path, source: str, *args: str, **environ: str) -> tuple[int, str]:
    shutil.copy(TESTS / "conftest.py", folder)
    (folder / "test_sample.py").write_text(source, "utf-8")
    settings = f"[pytest]\npythonpath = '{TESTS.parent}'\nmarkers =\n  needs: x\n  full: x\n"
    (folder / "pytest.ini").write_text(settings, "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RLMSCOPE_", "PYTEST_"))}
    env = kept | {"OPENAI_API_KEY": "k", "RLMSCOPE_ROOT": "m"} | environ
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("args", [(), ("-n", "2")], ids=["one process", "two processes"])
def test_what_did_not_run_is_counted_with_its_reason(tmp_path: Path, args: tuple[str, ...]) -> None:
    code, output = _pytest(tmp_path, SAMPLE, *args)
    assert code == 0, output
    assert "Tests that did not run: 5\n" in output
    assert "     3  needs no-such-program: not on PATH" in output
    assert "     1  long test: only in test-full" in output
    assert "     1  another system: needs " in output
    assert re.search(r"=+ 1 passed, 5 skipped in .* =+\s*$", output)


@pytest.mark.parametrize("args", [(), ("-n", "2")], ids=["one process", "two processes"])
def test_with_require_all_an_absence_fails_the_run(tmp_path: Path, args: tuple[str, ...]) -> None:
    code, output = _pytest(tmp_path, SAMPLE, *args, RLMSCOPE_REQUIRE_ALL="1")
    assert code == 1
    assert "RLMSCOPE_REQUIRE_ALL=1: 3 of them fail this run." in output


def test_with_require_all_only_what_could_run_here_counts(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, SAMPLE, "-k", "runs or long or systems", RLMSCOPE_REQUIRE_ALL="1")
    assert code == 0, output


def test_a_full_run_takes_the_long_tests(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, SAMPLE, "-k", "runs or long", RLMSCOPE_FULL="1")
    assert code == 0, output
    assert "Tests that did not run: 0\n" in output and "2 passed" in output


def test_a_swallowed_refusal_still_fails_the_test(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, SWALLOWS)
    assert code == 1
    assert "the network was asked for: socket.getaddrinfo '192.0.2.1'" in output
