"""The recorded example runs: one right answer, and one broken by a seeded fault of the demo model.

Unlike the corpora they need the project itself: they are real runs of the engine, recorded by its own
recorder. Their ids, prompts, responses and answers are the same every time; times are those of the machine
they ran on.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Final

QUESTION: Final = "How many tickets are about billing?"
RIGHT: Final = "20260105T090000-0000e001"
BROKEN: Final = "20260105T091500-0000e002"
FAULT_RATE: Final = 0.03
_MOST_SEEDS: Final = 50


def write_examples(corpora: Path, out: Path) -> list[Path]:
    """Record both runs over `corpora`/tickets into `out`, one spool file each; returns the files.

    The broken one takes the first fault seed whose strikes change the answer. Raises `SystemExit` when the
    demo model does not give the gold answer without faults.
    """
    questions = json.loads((corpora / "questions.json").read_text(encoding="utf-8"))
    gold = next(str(entry["answer"]) for entry in questions if entry["question"] == QUESTION)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    answer, right = _record(corpora, out, RIGHT, 0.0, 0)
    if answer != gold:
        raise SystemExit(f"the demo model answers {answer}, not {gold}")
    for seed in range(1, _MOST_SEEDS):
        answer, broken = _record(corpora, out, BROKEN, FAULT_RATE, seed)
        if answer != gold:
            return [right, broken]
        broken.unlink()
    raise SystemExit("no fault seed breaks the answer")


def _record(corpora: Path, out: Path, run_id: str, rate: float, seed: int) -> tuple[str | None, Path]:
    """Run the question once and keep its spool, without the name and process id of this machine."""
    from rlm_core import RLM, Corpus
    from traces.home import Home
    from traces.recording import open_recording

    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        corpus = Corpus.add([corpora / "tickets"], home.corpora)
        facts = {"rlm.example": True}
        with (
            open_recording(home, run_id, facts) as recording,
            RLM("demo/root", "demo/sub", fault_rate=rate, fault_seed=seed) as rlm,
        ):
            answer = rlm.ask(QUESTION, corpus, run_id=run_id, recorder=recording.recorder)
        header, _, rest = recording.spool_path.read_text(encoding="utf-8").partition("\n")
    shown = json.dumps({**json.loads(header), "pid": 0, "host": "example"}, separators=(",", ":"))
    path = out / f"{run_id}.jsonl"
    machine = f"{platform.system()} {platform.release()} {platform.machine()}"
    path.write_text(f"{shown}\n{rest.replace(machine, 'example')}", encoding="utf-8")
    return answer.text, path
