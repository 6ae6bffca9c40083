"""`rlmscope app`: the app in the browser, served from this process until Ctrl-C."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from ui.common import State, say, shared_options
from ui.visible import line


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port of 127.0.0.1, 0 for any free one [default: 8501, or the next free one].",
)
@click.option(
    "--folder",
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Let the path fields read only what lies below; may be repeated [default: anything].",
)
@shared_options
@click.pass_obj
def app(state: State, /, port: int | None, folders: tuple[Path, ...]) -> int:
    """Start the app: ask questions, watch runs, open their trees in the browser.

    Prints the address, opens no browser, and serves until Ctrl-C; only programs on this machine can reach it.
    Runs that it started go on without it. With --json the address is one document: url, port, pid.
    """
    home = state.home
    from ui.web.folders import allow_only
    from ui.web.server import bind, serve

    allow_only(folders, os.environ)
    listener = bind(port)
    _install_examples(state)

    def ready(url: str) -> None:
        if state.as_json:
            click.echo(json.dumps({"url": url, "port": listener.getsockname()[1], "pid": os.getpid()}))
        else:
            click.echo(line(f"rlmscope is at {url} (records in {home.root}; stop with Ctrl-C, runs go on)"))

    serve(home, listener, ready)
    return 0


def _install_examples(state: State) -> None:
    """The example runs, if they can be had: the app works without them."""
    from rlm_core.errors import RecordError
    from ui.web.samples import install_examples

    try:
        install_examples(state.home)
    except RecordError as error:
        say(f"rlmscope: {error}")
