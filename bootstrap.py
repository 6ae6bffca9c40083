"""Set the project up and start something: `python3 bootstrap.py NAME [ARGS]`.

Needs nothing but Python 3.11. The first call makes `.venv` beside this file (or at `RLMSCOPE_VENV`) from the
wheels of `requirements.lock`, hashes checked; later calls find it ready. Exit code 2 means wrong usage, 1
that the set-up failed, else it is that of the thing started. An older Python gets one sentence, so this file
must parse on it.
"""

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - the one place that meets older interpreters
    sys.exit(
        "rlmscope needs Python 3.11 or newer, and this is Python {}: install one and start this file "
        "with it, for example `python3.12 bootstrap.py app`.".format(".".join(map(str, sys.version_info[:3])))
    )

ROOT = Path(__file__).resolve().parent
LOCK = ROOT / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"
MARKER = "rlmscope-environment.json"
PACKAGES = ("rlm_core", "traces", "ui")
QUESTION = "How many tickets are about billing?"
NO_PIP = (
    "This Python has neither ensurepip nor pip (22.3 or newer), so nothing can be installed: on Debian or "
    "Ubuntu run `apt install python3-venv`, elsewhere install Python whole, then start this again."
)
PLATFORMS = (
    "Wheels are locked for CPython 3.11 to 3.15 on Linux (x86-64 and arm64, glibc 2.28 or newer), "
    "macOS (arm64) and Windows (x86-64)."
)
LEAKS = re.compile(
    r"PYTHON(PATH|HOME|STARTUP|USERBASE|SAFEPATH)|__PYVENV_LAUNCHER__|"
    r"PIP_(TARGET|PREFIX|ROOT|REQUIREMENT|NO_BINARY|NO_DEPS|DRY_RUN)"
)


class SetupError(Exception):
    """The set-up cannot go on; the message is one clear sentence for the person at the terminal."""


# -- where things are ----------------------------------------------------------------------------------------


def base_python() -> str:
    """The interpreter outside any virtual environment: one that is about to be replaced must not build it."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def environment_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the project's virtual environment is, or will be."""
    return Path(environ.get("RLMSCOPE_VENV") or ROOT / ".venv").absolute()


def program(venv: Path, name: str, windows: bool = os.name == "nt") -> Path:
    """The path of an installed program ("python", "rlmscope", ...) in an environment."""
    return venv / ("Scripts" if windows else "bin") / (name + ".exe" if windows else name)


def clean_environ(venv: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for all that is started: no user site, no PYTHONPATH, no pip target of the user's own.

    Index and proxy settings of pip stay, since a machine may need them to reach anything; the hashes in the
    lock decide what may be installed.
    """
    kept = {key: value for key, value in environ.items() if not LEAKS.fullmatch(key)}
    path = os.pathsep.join(filter(None, (str(program(venv, "python").parent), kept.get("PATH", ""))))
    own = {
        "PYTHONNOUSERSITE": "1",
        "PIP_USER": "0",
        "PIP_CONSTRAINT": "",
        "VIRTUAL_ENV": str(venv),
        "PATH": path,
    }
    return {**kept, **own}


# -- the environment -----------------------------------------------------------------------------------------


def fingerprint() -> dict[str, str]:
    """What an environment was made from; it is ready only while all of it is unchanged."""
    interpreter = (
        platform.python_implementation(),
        platform.python_version(),
        sys.platform,
        platform.machine(),
    )
    return {
        "lock": hashlib.sha256(LOCK.read_bytes()).hexdigest(),
        "project": hashlib.sha256(PROJECT.read_bytes()).hexdigest(),
        "python": " ".join(interpreter) + " " + sys.base_prefix,
        "root": str(ROOT),
    }


def read_marker(venv: Path) -> dict[str, str]:
    """The fingerprint an environment was finished with; empty for one that is unfinished or not ours."""
    try:
        found = json.loads((venv / MARKER).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def ensure_environment(venv: Path) -> None:
    """Make the environment what the lock says, unless it already is. Raises SetupError."""
    wanted = fingerprint()
    with one_at_a_time():
        found = read_marker(venv) if program(venv, "python").exists() else {}
        if found == wanted:
            return
        if any(found.get(key) != wanted[key] for key in ("lock", "python")):
            rebuild(venv)
        (venv / MARKER).write_text("{}", "utf-8")
        install_project(venv)
        (venv / MARKER).write_text(json.dumps(wanted, indent=1), "utf-8")


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two calls in one checkout wait for each other (not on Windows, which cannot lock a read-only file)."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with open(__file__, "rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def rebuild(venv: Path) -> None:
    """Make the environment from nothing: no interrupted or older install can show through."""
    if venv.is_dir() and any(venv.iterdir()) and not (venv / MARKER).exists():
        raise SetupError(
            f"{venv} was not made by bootstrap.py and is not touched: remove it, or set RLMSCOPE_VENV to "
            "another path."
        )
    shutil.rmtree(venv, ignore_errors=True)
    venv.mkdir(parents=True, exist_ok=True)
    (venv / MARKER).write_text("{}", "utf-8")
    print(f"Setting up {venv} from {LOCK.name}: this happens once and takes a minute or two.", flush=True)
    pip = create_environment(venv)
    install_locked(venv, pip, LOCK)


def create_environment(venv: Path) -> list[str]:
    """Make an empty virtual environment and return the pip command that installs into it."""
    if importlib.util.find_spec("venv") is None:
        raise SetupError(NO_PIP)
    make = [base_python(), "-I", "-m", "venv", str(venv)]
    if importlib.util.find_spec("ensurepip") is not None and quiet(make, venv):
        return pip_command(venv)
    if not quiet([*make, "--without-pip"], venv):
        raise SetupError(f"The virtual environment {venv} cannot be made: `{' '.join(make)}` says why.")
    return pip_command(venv)


def pip_command(venv: Path) -> list[str]:
    """The pip of the environment, else one from outside that can install into it. Raises SetupError."""
    python = str(program(venv, "python"))
    own = [python, "-I", "-m", "pip"]
    if quiet([*own, "--version"], venv):
        return own
    outside = (shutil.which(name) for name in ("pip3", "pip"))
    for candidate in ([base_python(), "-I", "-m", "pip"], *([path] for path in outside if path)):
        command = [*candidate, "--python", python]
        if quiet([*command, "--version"], venv):
            return command
    raise SetupError(NO_PIP)


def install_locked(venv: Path, pip: Sequence[str], lock: Path) -> None:
    """Install a hash-locked requirements file, wheels only. Raises SetupError."""
    install = [
        *pip,
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--require-hashes",
        "--only-binary",
        ":all:",
    ]
    if not sys.stdout.isatty():
        install.append("-qq")  # errors only: no list of a hundred packages in a log
    if run([*install, "-r", str(lock)], venv):
        raise SetupError(f"The packages could not be installed; pip says why above. {PLATFORMS}")


def install_project(venv: Path) -> None:
    """Install this checkout, editable, from what the environment already holds. Raises SetupError."""
    pip = [*pip_command(venv), "install", "--disable-pip-version-check", "--quiet", "--no-index"]
    if run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], venv):
        raise SetupError("The project itself could not be installed; pip says why above.")
    # Editable or not, the build copies the shared data; the samples of a checkout are those in the checkout.
    shutil.rmtree(venv / "share" / "rlmscope", ignore_errors=True)


# -- running things ------------------------------------------------------------------------------------------


def quiet(command: Sequence[str], venv: Path) -> bool:
    """Whether a command succeeds; its output is dropped."""
    try:
        done = subprocess.run(
            command, env=clean_environ(venv), cwd=ROOT, capture_output=True, stdin=subprocess.DEVNULL
        )
    except OSError:
        return False
    return done.returncode == 0


def run(command: Sequence[str | Path], venv: Path, extra: Mapping[str, str] | None = None) -> int:
    """Run a command in the checkout, told of Ctrl-C and SIGTERM and waited for; returns its exit code."""
    sys.stdout.flush()
    environ = {**clean_environ(venv), **(extra or {})}
    with subprocess.Popen([str(part) for part in command], env=environ, cwd=ROOT) as child:
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        try:
            while True:
                try:
                    return child.wait()
                except KeyboardInterrupt:
                    continue  # the child got it too, and its exit code tells how that ended
        finally:
            signal.signal(signal.SIGTERM, before)


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check(venv: Path, args: Sequence[str]) -> int:
    """Lint, format, strict types, import contracts: all of them run, and 1 says that one complained."""
    python = program(venv, "python")
    steps: dict[str, list[str | Path]] = {
        "ruff check": [python, "-m", "ruff", "check", "--output-format", "concise", ".", *args],
        "ruff format": [python, "-m", "ruff", "format", "--check", "--output-format", "concise", "."],
        "mypy --strict": [python, "-m", "mypy", "--strict", "bootstrap.py", *PACKAGES],
        "import contracts": [program(venv, "lint-imports"), "--no-logo"],
    }
    failed = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        if run(command, venv):
            failed.append(name)
    print(f"== check failed: {', '.join(failed)}" if failed else "== check passed", flush=True)
    return 1 if failed else 0


def pytest(venv: Path, args: Sequence[str], full: bool) -> int:
    """Run the tests; with arguments of the caller's own exactly those, else all of them on two processes."""
    parallel = ["-n", "2", "--dist", "worksteal"] if cores() >= 2 else []
    extra = {"RLMSCOPE_FULL": "1"} if full else {}
    return run([program(venv, "python"), "-m", "pytest", *(args or parallel)], venv, extra)


def test(venv: Path, args: Sequence[str], full: bool = False) -> int:
    """`check` and the tests; with arguments, which go to pytest, only the tests they name."""
    checked = 0 if args else check(venv, ())
    tested = pytest(venv, args, full)
    if checked and not tested:
        print("The tests passed, but `check` complained (above).", flush=True)
    return tested or checked


def test_full(venv: Path, args: Sequence[str]) -> int:
    """`test` with the long tests (marker `full`)."""
    return test(venv, args, full=True)


def demo(venv: Path, args: Sequence[str]) -> int:
    """Ask a sample corpus with the demo model, which is free and offline, and show the recorded tree."""
    rlmscope = program(venv, "rlmscope")
    models = ["--root", "demo/root", "--sub", "demo/sub"]
    asked = run([rlmscope, "ask", QUESTION, ROOT / "sample_data" / "tickets", *models, *args], venv)
    return asked or run([rlmscope, "show", "last"], venv)


def bench(venv: Path, args: Sequence[str]) -> int:
    """Measure, and print the figures beside the targets."""
    return run([program(venv, "python"), ROOT / "tests" / "bench" / "run.py", *args], venv)


def bench_diagnosis(venv: Path, args: Sequence[str]) -> int:
    """Plant faults in runs of 200 calls, diagnose them, and print how many were found exactly."""
    return run([program(venv, "python"), "-m", "tests.bench.diagnosis", *args], venv)


def escapes(venv: Path, args: Sequence[str]) -> int:
    """Run every escape attempt at every level of the sandbox, and print what came of it."""
    return run([program(venv, "python"), "-m", "tests.escapes", *args], venv)


def chaos(venv: Path, args: Sequence[str]) -> int:
    """Kill what writes and reads the record at random moments, and print what became of the record."""
    return run([program(venv, "python"), "-m", "tests.chaos", *args], venv)


def pictures(venv: Path, args: Sequence[str]) -> int:
    """Make the pictures of the README anew; needs Chromium."""
    return run([program(venv, "python"), "-m", "tests.support.readme_pictures", *args], venv)


def app(venv: Path, args: Sequence[str]) -> int:
    """Start the app in the browser."""
    return run([program(venv, "rlmscope"), "app", *args], venv)


COMMANDS: dict[str, tuple[Callable[[Path, Sequence[str]], int], str]] = {
    "app": (app, "start the app"),
    "test": (test, "lint, types, import contracts and the tests (arguments go to pytest)"),
    "demo": (demo, "ask a sample corpus with the offline demo model and show the tree"),
    "check": (check, "lint, types and import contracts only (arguments go to ruff check)"),
    "bench": (bench, "measure and compare with the targets"),
    "bench-diagnosis": (bench_diagnosis, "plant faults, and print how often exactly these are found"),
    "escapes": (escapes, "try to get out of the sandbox at every level, and print the table"),
    "chaos": (chaos, "200 kills at random moments, and what the record holds after them"),
    "pictures": (pictures, "make the pictures of the README anew"),
    "test-full": (test_full, "the tests with the long ones"),
}


def main(argv: Sequence[str]) -> int:
    """Set up and start what `argv` names; returns the exit code."""
    if not argv or argv[0] not in COMMANDS:
        lines = [f"  {name:<15} {text}" for name, (_, text) in COMMANDS.items()]
        print("usage: python3 bootstrap.py NAME [ARGS], where NAME is", *lines, sep="\n")
        return 0 if argv[:1] in (["-h"], ["--help"]) else 2
    venv = environment_dir()
    try:
        ensure_environment(venv)
        return COMMANDS[argv[0]][0](venv, argv[1:])
    except (SetupError, OSError) as error:
        print(f"bootstrap.py: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("bootstrap.py: interrupted; the next start begins the set-up again.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
