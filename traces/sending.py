"""Whether spans are also sent to another program, as the standard variables of OpenTelemetry say.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/. The record does not depend on it: what is sent is
a copy, and nothing that goes wrong on its way raises or makes a run wait longer than a few seconds at its
end. This module is light; OpenTelemetry's exporter is imported when there is somewhere to send to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rlm_core.errors import InputError
from rlm_core.telemetry import preview

if TYPE_CHECKING:
    from traces.exporters.otlp_content import Content
    from traces.sending_spans import SpanSender

TRACES_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
PATIENCE: Final = "OTEL_BSP_EXPORT_TIMEOUT"  # milliseconds
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"
_PATH: Final = "/v1/traces"
_SECONDS: Final = 5.0  # that the end of a run waits at most, unless `PATIENCE` says otherwise


@dataclass(frozen=True, slots=True)
class Target:
    """Where spans go. `endpoint` is the whole address; `shown` is it without what may be secret in it.
    `patience` is how many seconds the end of a run waits for spans that have not been taken yet.
    """

    endpoint: str
    shown: str
    content: Content
    patience: float


def switched_off(environ: Mapping[str, str]) -> str | None:
    """The setting by which spans go nowhere although there is an address for them; None where there is none
    such setting.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "OTEL_SDK_DISABLED=true"
    exporters = [name.strip().lower() for name in environ.get("OTEL_TRACES_EXPORTER", "").split(",")]
    if any(exporters) and "otlp" not in exporters:
        return f"OTEL_TRACES_EXPORTER={preview(environ['OTEL_TRACES_EXPORTER'], 40)}"
    return None


def target(environ: Mapping[str, str]) -> Target | None:
    """Where spans go; None where the variables name no place, or switch it off.

    Raises InputError for settings that cannot work.
    """
    name = next((name for name in (TRACES_ENDPOINT, ENDPOINT) if environ.get(name, "").strip()), None)
    if name is None or switched_off(environ) is not None:
        return None
    from traces.exporters.otlp_content import Content

    address = environ[name].strip()
    if name == ENDPOINT:
        address = address.rstrip("/") + _PATH
    _check_protocol(environ)
    return Target(address, _shown(name, address), Content.asked(environ), _patience(environ))


def open_sender(environ: Mapping[str, str], spool: Path) -> tuple[SpanSender | None, str | None]:
    """Who sends the spans of a run whose spool this is, and in one sentence why nobody does although that
    was asked for. Never raises.
    """
    try:
        found = target(environ)
        if found is None:
            return None, None
        from traces.sending_spans import SpanSender

        return SpanSender(found, spool), None
    except InputError as error:
        return None, f"No span is sent: {error}."
    except Exception as error:  # the record must not fail with it
        return None, f"No span is sent: OpenTelemetry's exporter cannot be set up ({type(error).__name__})."


def _check_protocol(environ: Mapping[str, str]) -> None:
    name = next((name for name in _PROTOCOLS if environ.get(name, "").strip()), None)
    if name is None or environ[name].strip().lower() == _SPOKEN:
        return
    raise InputError(
        f"{name} is {preview(environ[name], 40)!r}, but this program speaks {_SPOKEN} alone; set it to that, "
        "with the port of the receiver for HTTP (usually 4318)"
    )


def _shown(name: str, address: str) -> str:
    """The address without user, password, query. Raises InputError where it is none of HTTP."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in ("http", "https"):
        raise InputError(f"{name} is no address that begins with http:// or https://")
    where = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{where}{'' if port is None else f':{port}'}{parts.path}"


def _patience(environ: Mapping[str, str]) -> float:
    raw = environ.get(PATIENCE, "").strip()
    try:
        seconds = float(raw) / 1000 if raw else _SECONDS
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InputError(f"{PATIENCE} is {preview(raw, 40)!r}, but it takes a number of milliseconds")
    return seconds
