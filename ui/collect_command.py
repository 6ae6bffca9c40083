"""`rlmscope collect`: receives spans of other programs over OTLP, and writes them as runs."""

from __future__ import annotations

import errno
import signal
import threading
import time
from dataclasses import asdict
from typing import Final

import click

from rlm_core.errors import InputError
from ui.common import State, print_json, say, shared_options
from ui.figures import counted
from ui.visible import line

_STEP: Final = 0.5  # seconds between looks at what has come


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=4318,
    show_default=True,
    metavar="N",
    help="Port of 127.0.0.1; 0 for any free one.",
)
@shared_options
@click.pass_obj
def collect(state: State, /, port: int) -> int:
    """Receive spans of other engines over OTLP, until Ctrl-C.

    A program instrumented with OpenInference or the GenAI conventions of OpenTelemetry sends its spans to
    http://127.0.0.1:4318 (OTEL_EXPORTER_OTLP_ENDPOINT; protobuf or JSON over HTTP), and each of its traces
    appears as a run while it goes on. Only programs on this machine can send.
    """
    home = state.home
    from traces.collecting import Collector
    from traces.otlp.receiver import HOST, Receiver

    collector = Collector(home, say=say)
    try:
        receiver = Receiver(port, collector.take, say)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "another program listens there; choose one with --port" if taken else error.strerror
        raise InputError(f"Port {port} of {HOST} cannot be used: {why}.") from error
    wishes = _wishes_to_stop()  # before anybody knows that there is something to stop
    say(f"Receiving OTLP at http://{HOST}:{receiver.port} (records in {home.root}; stop with Ctrl-C)")
    thread = threading.Thread(target=receiver.serve_forever, args=(_STEP / 5,), name="otlp", daemon=True)
    thread.start()
    while not wishes:
        time.sleep(_STEP)
        collector.tend()
    say("Stopping; what came is written to its end, which takes a moment for long traces.")
    receiver.shutdown()
    receiver.server_close()
    runs = collector.close()
    spans, rejected, put_off = receiver.counts
    if state.as_json:
        print_json(
            {"runs": [asdict(run) for run in runs], "spans": spans, "rejected": rejected, "put_off": put_off}
        )
    else:
        refused = f", {rejected} more could not be used" if rejected else ""
        refused += f", {counted(put_off, 'request')} refused to be sent again" if put_off else ""
        click.echo(line(f"received {counted(spans, 'span')} in {counted(len(runs), 'run')}{refused}"))
    return 0


def _wishes_to_stop() -> list[int]:
    """The signals that ask for the end, as they come: they never break off what is being written."""
    wishes: list[int] = []
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT:
            signal.signal(number, lambda number, _frame: wishes.append(number))
    return wishes
