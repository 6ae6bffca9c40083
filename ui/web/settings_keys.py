"""Keys and server addresses of model providers: `home/keys.json` (0600), beside what the environment has.

A key goes from its field into this file, and from there into the environment of processes that call models.
It is never returned to a page, written to a log, a record or the store, or put in a command line; a worker's
environment is built from nothing (`rlm_core.sandbox.worker_environment`), so generated code has none of it.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from rlm_core.errors import InputError, RecordError

if TYPE_CHECKING:
    from traces.home import Home

Origin = Literal["environment", "file"]

ADDRESS_ENDS: Final = ("_API_BASE", "_BASE_URL")
_SECRET_ENDS: Final = ("_API_KEY", "_ACCESS_KEY_ID", "_SECRET_ACCESS_KEY", "_API_VERSION", "_REGION_NAME")
# no other names: the file must not be a way to set PATH or PYTHONPATH of a process
_NAME: Final = re.compile(rf"[A-Z][A-Z0-9_]{{1,60}}(?:{'|'.join(ADDRESS_ENDS + _SECRET_ENDS)})")
_LONGEST: Final = 4_000
_OTHERS: Final = 0o077
_changes: Final = threading.Lock()  # two tabs that each save a key


def is_key_name(name: str) -> bool:
    """Whether a variable of this name may stand in the file of keys."""
    return _NAME.fullmatch(name) is not None


def environment_with_keys(home: Home, environ: Mapping[str, str]) -> dict[str, str]:
    """A copy of an environment with the keys of the file in it; what the environment itself has goes first.

    Raises InputError when the file cannot be used.
    """
    given = {name: value for name, value in environ.items() if value or not is_key_name(name)}
    return {**_read(home), **given}


@contextmanager
def keys_lent(home: Home) -> Iterator[None]:
    """For as long as it lasts, the keys of the file are in this process's environment, where LiteLLM looks.

    Raises InputError when the file cannot be used.
    """
    before = dict(os.environ)
    added = {name: value for name, value in environment_with_keys(home, before).items()
             if before.get(name) != value}  # fmt: skip
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def key_origins(home: Home, environ: Mapping[str, str]) -> dict[str, Origin]:
    """Where each key and address that is set comes from, by the name of its variable. Values are not told.

    Raises InputError when the file cannot be used.
    """
    found: dict[str, Origin] = dict.fromkeys(_read(home), "file")
    return found | dict.fromkeys((name for name, value in environ.items() if value and is_key_name(name)),
                                 "environment")  # fmt: skip


def address_host(home: Home, environ: Mapping[str, str], name: str) -> str | None:
    """Host and port of an address that is set, without any name or password in it; None: it is not set."""
    value = environment_with_keys(home, environ).get(name)
    if value is None:
        return None
    return _netloc(value).rpartition("@")[2] or "an address that cannot be read"


def _netloc(value: str) -> str:
    """Of an address of the web; "" for anything else."""
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""


def set_key(home: Home, name: str, value: str) -> None:
    """Keep a key or address in the file, instead of any that stood there under this name.

    Raises InputError for what cannot be one (the sentence does not repeat it), RecordError when it cannot be
    written.
    """
    if not is_key_name(name):
        raise InputError(f"{name[:80]!r} is not the name of a key or an address, like OPENAI_API_KEY")
    value = value.strip()
    if not value:
        raise InputError(f"nothing was entered for {name}")
    if fault := _fault(value):
        raise InputError(f"what was entered for {name} {fault}")
    if name.endswith(ADDRESS_ENDS) and not _netloc(value):
        raise InputError(f"{name} must be an address that begins with http:// or https://")
    with _changes:
        _write(home, {**_read(home), name: value})


def _fault(value: str) -> str | None:
    """What keeps a text from being a key or an address, without repeating any of it; None: nothing does."""
    if len(value) > _LONGEST:
        return f"is too long: {len(value):,} characters, and at most {_LONGEST:,} can be kept"
    if any(character.isspace() for character in value):
        return "has white space inside (a space, a tab or a line break); paste the key alone"
    if not value.isascii():
        return "has a character that no key has, such as an accented letter or a long dash; copy it again"
    if not value.isprintable():
        return "has a control character inside, which cannot be seen; copy it again"
    return None


def remove_key(home: Home, name: str) -> None:
    """Take a key out of the file; one that is not there is no failure.

    Raises InputError when the file cannot be used, RecordError when it cannot be written.
    """
    with _changes:
        kept = _read(home)
        if kept.pop(name, None) is not None:
            _write(home, kept)


def _read(home: Home) -> dict[str, str]:
    path = home.keys
    try:
        with open(path, encoding="utf-8") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & _OTHERS:
                raise InputError(
                    f"the file of keys can be read by other users of this machine; run `chmod 600 {path}`, "
                    "and change the keys in it if others may have read them"
                )
            kept = json.load(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"the file of keys {path} cannot be read: {error.strerror or error}") from None
    except ValueError:  # no cause: it would quote the file
        raise InputError(f"the file of keys {path} is not JSON; remove it and enter the keys again") from None
    good = isinstance(kept, dict) and all(is_key_name(k) and isinstance(v, str) for k, v in kept.items())
    if not good:
        raise InputError(f"the file of keys {path} holds something else; remove it and enter the keys again")
    return {name: value for name, value in kept.items() if value}


def _write(home: Home, kept: Mapping[str, str]) -> None:
    write_private(home.keys, json.dumps(dict(sorted(kept.items())), indent=1) + "\n")


def write_private(path: Path, text: str) -> None:
    """Put a text in a file that only its owner may read, all of it or nothing. Raises RecordError."""
    draft: str | None = None
    try:
        handle, draft = mkstemp(dir=path.parent, prefix=f".{path.name}-")  # it makes files of mode 0600
        with open(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(draft, path)
    except OSError as error:
        if draft is not None:
            with suppress(OSError):
                os.unlink(draft)
        raise RecordError(f"{path} cannot be written: {error.strerror or error}.") from error
