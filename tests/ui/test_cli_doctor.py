"""doctor: each check says what is, and exit code 1 follows from a failed one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from rlm_core.sandbox import MEANING, Probe
from traces.home import Home
from ui.cli import cli
from ui.web.settings import Settings, save_settings
from ui.web.settings_keys import set_key

NAMES = {
    "python",
    "rlm_core",
    "traces",
    "ui",
    "home",
    "disk",
    "store",
    "record",
    "sandbox",
    "models",
    "litellm",
    "prices",
}


def checks(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for check in document["checks"]:
        assert set(check) == {"name", "ok", "detail", "hint"}
        assert check["ok"] in (True, False, None) and isinstance(check["detail"], str)
        assert check["hint"] is None or isinstance(check["hint"], str)
    return {check["name"]: check for check in document["checks"]}


def test_a_fresh_installation(call: Callable[..., Any]) -> None:
    result = call("doctor", "--json")
    found = checks(result.json)
    assert result.code == 0 and not NAMES - found.keys()
    assert not [check for check in found.values() if check["ok"] is False]
    assert "no language model involved" in found["models"]["hint"]
    assert found["sandbox"]["detail"].startswith("level ")
    assert "no check failed" in call("doctor").out


def test_the_store_and_the_record_are_described(
    call: Callable[..., Any], written: Callable[..., Any]
) -> None:
    written("20270115T080000-00000001")
    found = checks(call("doctor", "--json").json)
    assert "1 spool to be taken in" in found["record"]["detail"] and "ingest" in found["record"]["hint"]
    call("ingest")
    found = checks(call("doctor", "--json").json)
    assert "schema version" in found["store"]["detail"] and "1 run" in found["store"]["detail"]
    assert "0 spools to be taken in" in found["record"]["detail"] and found["record"]["hint"] is None


def test_keys_are_said_to_be_there_and_never_shown(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("RLMSCOPE_ROOT_MODEL", "openai/big")
    result = call("doctor", "--json")
    models = checks(result.json)["models"]
    assert models["ok"] is True and "OPENAI_API_KEY yes (environment)" in models["detail"]
    assert "root openai/big (environment), sub openai/big (environment)" in models["detail"]
    assert "very-secret" not in result.out + call("doctor").out


def test_it_says_which_models_and_keys_come_from_the_settings(call: Callable[..., Any], home: Home) -> None:
    save_settings(home, Settings(root="openai/big"))
    set_key(home, "OPENAI_API_KEY", "sk-very-secret")
    set_key(home, "OPENAI_BASE_URL", "http://secret@127.0.0.1:9/v1")
    result = call("doctor", "--json")
    detail = checks(result.json)["models"]["detail"]
    assert "root openai/big (settings), sub openai/big (settings)" in detail
    assert "OPENAI_API_KEY yes (keys.json)" in detail and "OPENAI_BASE_URL yes (keys.json)" in detail
    assert "secret" not in result.out


def test_a_sandbox_below_the_settings_fails(
    call: Callable[..., Any], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Probe("weak", MEANING["weak"], (), "the kernel has no Landlock")
    monkeypatch.setattr("rlm_core.sandbox.probe", lambda: found)
    assert checks(call("doctor", "--json").json)["sandbox"]["ok"] is None
    save_settings(home, Settings(sandbox="strict"))
    sandbox = checks(call("doctor", "--json").json)["sandbox"]
    assert sandbox["ok"] is False and "the settings ask for strict" in sandbox["detail"]


def test_a_broken_model_id_is_a_failed_check(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMSCOPE_ROOT_MODEL", "two words")
    result = call("doctor", "--json")
    assert result.code == 1 and checks(result.json)["models"]["ok"] is False
    assert "1 check failed" in call("doctor").out


@pytest.mark.parametrize(
    ("version", "ok"),
    [
        ("1.110.2", True),
        ("1.108.0", True),
        ("1.112.0", False),
        ("1.107.0", False),
        ("1.82.8", False),
        ("2.0", False),
        ("x.y", None),
    ],
)
def test_litellm_versions(
    version: str, ok: bool | None, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.doctor.version", lambda _name: version)
    assert checks(call("doctor", "--json").json)["litellm"]["ok"] is ok


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_full_disk_fails(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: Usage(10**9, 10**9, 1000))
    result = call("doctor", "--json")
    assert result.code == 1 and checks(result.json)["disk"]["ok"] is False


def test_an_unusable_home_fails_without_hiding_the_rest(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = CliRunner().invoke(cli, ["doctor", "--home", str(tmp_path / "file")])
    assert result.exit_code == 1 and "Traceback" not in result.output
    assert "FAILED  home" in result.stdout and "litellm" in result.stdout


def test_a_check_that_breaks_is_a_failed_check(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("rlm_core.sandbox.probe", broken)
    sandbox = checks(call("doctor", "--json").json)["sandbox"]
    assert sandbox["ok"] is False and "ZeroDivisionError" in sandbox["detail"]


def test_a_store_that_is_not_a_store_fails(call: Callable[..., Any], home: Any) -> None:
    home.store.write_bytes(os.urandom(5000))
    result = call("doctor", "--json")
    assert result.code == 1 and checks(result.json)["store"]["ok"] is False
