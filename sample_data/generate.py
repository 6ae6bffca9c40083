"""Make the sample corpora with their questions and gold answers, or hide a needle in an existing folder.

    python sample_data/generate.py                              all corpora and example runs, into sample_data
    python sample_data/generate.py --out DIR --seed 7 --only tickets --oblique 0.2 --count 50
    python sample_data/generate.py needle --into COPY_OF_FOLDER --seed 7

Each corpus becomes a folder of DIR, its questions DIR/questions.json. The same seed gives the same bytes.
Standard library only, but for the example runs in DIR/examples, made with all corpora in plain wording: they
need the project's environment, and are left out with a word where it is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))  # run as a file: make this folder importable under its own name

from sample_data.generators import (  # noqa: E402
    code_repo,
    contracts,
    examples,
    needle,
    papers,
    server_log,
    tickets,
)
from sample_data.generators.common import Corpus  # noqa: E402

DEFAULT_SEED = 1


def makers(oblique: float, count: int | None) -> dict[str, Callable[[int], Corpus]]:
    """Corpus name -> its generator; `count` is the number of tickets."""
    return {
        "contracts": contracts.contracts,
        "tickets": lambda seed: tickets.tickets(seed, 200 if count is None else count, oblique),
        "server_log": server_log.server_log,
        "code_repo": code_repo.code_repo,
        "papers": papers.papers,
        "needle": needle.needle,
        "es_contratos": contracts.es_contratos,
        "pt_chamados": tickets.pt_chamados,
    }


def write(corpora: Sequence[Corpus], out: Path) -> list[dict[str, object]]:
    """Write corpora and questions.json under `out`; returns the questions.

    Folders made by an earlier run are replaced. Raises `SystemExit` where a folder of that name is somebody
    else's.
    """
    made_here = (out / "questions.json").exists()
    for corpus in corpora:
        if (out / corpus.name).exists() and not made_here:
            raise SystemExit(
                f"{out / corpus.name} exists and was not made by this generator: choose another --out"
            )
        shutil.rmtree(out / corpus.name, ignore_errors=True)
        for path, text in corpus.files.items():
            _write(out / corpus.name / path, text)
        for path, text in corpus.beside.items():
            _write(out / path, text)
    questions = [asdict(question) for corpus in corpora for question in corpus.questions]
    _write(out / "questions.json", json.dumps(questions, ensure_ascii=False, indent=1) + "\n")
    return questions


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError("must be between 0.0 and 1.0")
    return value


def _number(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    if arguments[:1] == ["needle"]:
        return _hide(arguments[1:])
    names = list(makers(0.0, None))
    parser = argparse.ArgumentParser(
        prog="generate.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=HERE, metavar="DIR", help="where the folders go (default: here)"
    )
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, metavar="N")
    parser.add_argument("--only", choices=names, action="append", help="this corpus only (may be repeated)")
    parser.add_argument(
        "--oblique", type=_share, default=0.0, metavar="SHARE", help="share of obliquely worded tickets"
    )
    parser.add_argument(
        "--count", type=_number, default=None, metavar="N", help="number of tickets (default: 200)"
    )
    options = parser.parse_args(arguments)
    chosen = options.only or names
    corpora = [
        make(options.seed) for name, make in makers(options.oblique, options.count).items() if name in chosen
    ]
    questions = write(corpora, options.out)
    plain = not options.only and not options.oblique and options.count is None
    recorded = _examples(options.out) if plain else []
    summary = {corpus.name: str(options.out / corpus.name) for corpus in corpora}
    print(
        json.dumps(
            {
                "corpora": summary,
                "questions": str(options.out / "questions.json"),
                "count": len(questions),
                "examples": recorded,
            }
        )
    )
    return 0


def _examples(out: Path) -> list[str]:
    """Record the example runs over the corpora just made."""
    try:
        import rlm_core.rlm  # noqa: F401 - is the environment there?
        import traces.recording  # noqa: F401
    except ImportError as error:
        print(f"The example runs were not made: {error} (use the project's Python).", file=sys.stderr)
        return []
    return [str(path) for path in examples.write_examples(out, out / "examples")]


def _hide(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="generate.py needle", description="Hide one needle in a copy of a folder."
    )
    parser.add_argument(
        "--into", type=Path, required=True, metavar="FOLDER", help="a copy: one of its files is changed"
    )
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, metavar="N")
    options = parser.parse_args(arguments)
    if not options.into.is_dir():
        parser.error(f"{options.into} is no folder")
    hidden = needle.hide(options.into, options.seed)
    print(
        json.dumps(
            {"question": hidden.question, "answer": hidden.answer, "file": hidden.note}, ensure_ascii=False
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
