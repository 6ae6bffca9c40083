"""The `rlmscope` command: finds the subcommand, loads only that one, turns every error into one line."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Any, Final, cast

import click

from ui.common import State
from ui.failure import exit_code
from ui.startup import check_identity

# command -> (module, one line of help); the module defines a click command of the same name (`import_`, where
# that is a word of Python's)
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "app": ("ui.app_command", "Start the app in the browser."),
    "ask": ("ui.ask", "Ask a question over files, folders or a corpus."),
    "compare-strategies": (
        "ui.compare_strategies_command",
        "Answer a question in several ways, side by side.",
    ),
    "resume": ("ui.resume_command", "Continue a dead run from its record."),
    "corpus": ("ui.corpus_commands", "Add, list, show and remove corpora."),
    "runs": ("ui.read_commands", "List the runs, newest first."),
    "show": ("ui.read_commands", "Show the recursion tree of a run."),
    "span": ("ui.read_commands", "Show everything recorded about one span."),
    "diagnose": ("ui.diagnose_command", "Find the sub-calls or cells that broke an answer."),
    "mark": ("ui.mark_command", "Say whether a run or span is right; tag runs."),
    "replay": ("ui.replay_command", "Play a recorded run again, as it was or patched."),
    "lineage": ("ui.lineage_command", "Say how replies came into the answer, and prove it."),
    "diff": ("ui.diff_command", "Compare two runs: which sub-calls were answered differently."),
    "check": ("ui.check_command", "Check a set of runs whose answers are known."),
    "cost": ("ui.cost_command", "Say what runs cost, and on what."),
    "prices": ("ui.prices_command", "List what models cost, and set prices of your own."),
    "export": ("ui.export_command", "Write runs to files: a page, tables, spans, training data."),
    "collect": ("ui.collect_command", "Receive spans of other engines over OTLP, as runs."),
    "import": ("ui.import_command", "Take in runs of other engines, and of other homes."),
    "ingest": ("ui.read_commands", "Take closed runs into the store."),
    "delete": ("ui.upkeep_commands", "Delete runs for good."),
    "prune": ("ui.upkeep_commands", "Remove old runs and what nothing needs any more."),
    "backup": ("ui.upkeep_commands", "Copy the record into a new folder."),
    "doctor": ("ui.doctor", "Check this installation."),
}


class Cli(click.Group):
    """A group that imports a subcommand when it is called, and ends with the exit codes of the contract."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        return cast(click.Command, getattr(import_module(COMMANDS[cmd_name][0]), name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command and leave with its exit code."""
        state = State()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # what cannot be printed is no failure
        try:
            arguments = {**extra, "obj": state, "prog_name": "rlmscope", "standalone_mode": False}
            code = super().main(args, **arguments)
        except Exception as error:
            code = exit_code(error, state)
        sys.exit(code if isinstance(code, int) else 0)


def _version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from rlm_core import __version__

        click.echo(f"rlmscope {__version__}")
        ctx.exit()


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
def cli() -> None:
    """Run, record, read back and debug Recursive Language Model runs.

    A root model writes Python cells over your documents and asks a sub-model from inside the code; every step
    is recorded. RUN is a full run id, a unique prefix, or "last".
    """


def main() -> None:
    """The entry point: checks whose packages were imported, then runs the command."""
    if sys.argv[1:2] != ["doctor"]:  # doctor reports a foreign package among its checks
        check_identity()
    cli.main()
