"""Training data for supervised fine-tuning: what models said in right runs, as chat JSON lines with a card.

The format is OpenAI's for fine-tuning (`messages`, `weight`), which other trainers read too, with the facts
of each example under `metadata`. Keys are taken out of every text, equal examples stand there once, and the
same record gives the same file, byte for byte.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rlm_core.errors import InputError, RecordError
from rlm_core.normalise import normalise
from traces.each_run import in_groups
from traces.exporters.sft_card import card
from traces.exporters.sft_chat import Example
from traces.exporters.sft_examples import RunExamples
from traces.exporters.sft_runs import Choice, left_out, passed_reruns, unfit
from traces.home import Home
from traces.opinions import Opinions, opinions
from traces.reading import list_runs, load_runs
from traces.view import RunView

EXISTS: Final = "{} is there already; an export never overwrites anything. Name a new file."
Warn = Callable[[str], None]


@dataclass(slots=True)
class Exported:
    """What was written, and what was not. `path` is None when no example was left: then nothing is written.

    `left_out` counts what would have been examples of the runs, by reason; `runs_left_out` are (run id,
    reason). `tokens` are of all examples, `estimated` of them where no provider had counted.
    """

    path: Path | None = None
    card: Path | None = None
    kinds: Counter[str] = field(default_factory=Counter)
    runs: list[str] = field(default_factory=list)
    runs_left_out: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    redacted: int = 0
    tokens: int = 0
    estimated: int = 0
    models: Counter[str] = field(default_factory=Counter)
    sha256: str | None = None

    @property
    def examples(self) -> int:
        """How many."""
        return self.kinds.total()

    def add(self, example: Example) -> None:
        """Count one that is written."""
        self.kinds[example.kind] += 1
        self.models[example.model] += 1
        self.redacted += example.redacted
        self.tokens += example.tokens
        self.estimated += example.tokens if example.estimated else 0
        if self.runs[-1:] != [example.run_id]:  # runs come one after the other
            self.runs.append(example.run_id)

    def to_json(self) -> dict[str, Any]:
        """The JSON document of `rlmscope export --format sft`."""
        return {
            "format": "sft",
            "path": None if self.path is None else str(self.path),
            "card": None if self.card is None else str(self.card),
            "examples": self.examples,
            "kinds": dict(sorted(self.kinds.items())),
            "runs": self.runs,
            "runs_left_out": [{"run_id": run_id, "words": words} for run_id, words in self.runs_left_out],
            "left_out": dict(sorted(self.left_out.items())),
            "duplicates": self.duplicates,
            "redacted": self.redacted,
            "tokens": {"total": self.tokens, "estimated": self.estimated},
            "models": dict(sorted(self.models.items())),
            "sha256": None if self.path is None else self.sha256,
        }


def tagged_runs(home: Home, tag: str | None, warn: Warn | None = None) -> list[str]:
    """The ids of the runs with a tag (None: of all runs), oldest first; runs that play others are none."""
    said = opinions(home)
    listed = (run.run_id for run in reversed(list_runs(home, warn=warn)))
    return [run_id for run_id in listed if tag is None or tag in said.tags(run_id)]


def export_sft(
    home: Home,
    run_ids: Sequence[str],
    out: Path,
    choice: Choice | None = None,
    *,
    warn: Warn | None = None,
    now: datetime | None = None,
) -> Exported:
    """Write the examples of some runs to `out` and a card beside it, whole or not at all.

    Runs that are not fit are left out and named (see `traces.exporters.sft_runs`). `now` is the date on the
    card. Raises InputError for a run that is not there or a place that cannot be written to, or is taken;
    RecordError.
    """
    choice, done = choice or Choice(), Exported()
    target, beside = _places(out)
    said, views = opinions(home), _fit_views(home, run_ids, choice, done, warn)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-incomplete-") as scratch:
            lines = Path(scratch, "lines")
            done.sha256 = _write_lines(lines, _examples(views, said, choice, done))
            if done.examples:
                done.path, done.card = target, beside
                notes = Path(scratch, "card")
                notes.write_bytes(card(done, choice, now or datetime.now(UTC)).encode("utf-8", "replace"))
                _publish({notes: beside, lines: target})
    except OSError as error:
        raise RecordError(f"{target} cannot be written: {error.strerror or error}.") from error
    return done


def _write_lines(path: Path, examples: Iterable[Example]) -> str:
    """The SHA-256 of what was written."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for example in examples:
            raw = example.line().encode("utf-8", "replace") + b"\n"
            digest.update(raw)
            file.write(raw)
    return digest.hexdigest()


def _publish(drafts: Mapping[Path, Path]) -> None:
    """Give whole files their names, all or none."""
    for target in drafts.values():
        _refuse_taken(target)  # somebody else may have made it meanwhile
    made: list[Path] = []
    try:
        for draft, target in drafts.items():
            draft.rename(target)
            made.append(target)
    except OSError:
        for target in made:
            target.unlink(missing_ok=True)
        raise


def _fit_views(
    home: Home, run_ids: Iterable[str], choice: Choice, done: Exported, warn: Warn | None
) -> Iterator[RunView]:
    """The runs that are fit, oldest first; of the others only those are read whose list line says too little.
    `done` lists the others.
    """
    said, passed = opinions(home), passed_reruns(home)
    listed = {run.run_id: run for run in list_runs(home, replays=True, warn=warn)}
    sizes: dict[str, int] = {}
    for run_id in sorted(set(run_ids)):
        run = listed.get(run_id)
        if run is not None and (reason := unfit(run, said, choice, passed)) is not None:
            done.runs_left_out.append((run_id, reason))
        else:
            sizes[run_id] = 0 if run is None else run.spans
    for group in in_groups(sizes):
        for view in load_runs(home, group, warn=warn):
            if (reason := left_out(view, said, choice, passed)) is None:
                yield view
            else:
                done.runs_left_out.append((view.run_id, reason))
    done.runs_left_out.sort()


def _examples(views: Iterable[RunView], said: Opinions, choice: Choice, done: Exported) -> Iterator[Example]:
    """The examples of fit runs, each once; `done` counts them and what is left out."""
    seen = set[bytes]()
    for view in views:
        found = RunExamples(view, said, choice)
        for example in found:
            if (key := _key(example)) in seen:
                done.duplicates += 1
                continue
            seen.add(key)
            done.add(example)
            yield example
        done.left_out += found.left_out


def _key(example: Example) -> bytes:
    """Equal for examples that say the same, whatever case, white space and full stop at the end."""
    digest = hashlib.sha256(example.kind.encode())
    for message in example.messages:
        names = [call.name for call in message.tool_calls]
        for text in (message.role, *names, *(normalise(one) for one in message.texts)):
            digest.update(b"\0" + text.encode("utf-8", "replace"))
    return digest.digest()


def _places(out: Path) -> tuple[Path, Path]:
    """Where the lines and the card go. Raises InputError for a place that is taken or is none."""
    target = out.expanduser().absolute()
    beside = target.with_name(f"{target.stem}.card.md")
    if not target.name or not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to put the file in.")
    for path in (target, beside):
        _refuse_taken(path)
    return target, beside


def _refuse_taken(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InputError(EXISTS.format(path))
