"""The lock for root, who gives up its special rights in it, and for a user who never had any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlm_core.errors import SandboxError
from rlm_core.sandbox import LEVELS
from tests.escapes.shelter import REFUSED
from tests.support.workers import Worker

pytestmark = pytest.mark.needs("linux", "lock", "bwrap")
ROOT = Path(__file__).resolve().parents[2]
_SOMEBODY = "54321"
_LEVELS = """
import json, os
from tests.support.workers import Worker
found = {}
for level in ("none", "weak", "standard", "strict"):
    with Worker(level=level) as worker:
        said = worker.out(
            "import os, numpy\\nopen('mine', 'w').write('x')\\n"
            "print(os.getuid(), documents[0][:5], llm_query('asked'), os.listdir('.'))"
        )
        report = worker.run("while True: pass", cell_seconds=0.2)
        found[level] = [worker.environment.sandbox.level, said, report.exception_type]
print(json.dumps([os.getuid(), found]))
"""


def as_user(user: str, code: str) -> Any:
    """What code prints as JSON in a process of a user; root becomes another user, others stay themselves."""
    command = [sys.executable, "-m", "tests.escapes.shelter"]
    command += ["--user", user] if os.getuid() == 0 else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/", "TMPDIR": "/tmp"}
    done = subprocess.run(
        [*command, sys.executable, "-c", code], cwd="/tmp", env=environment, capture_output=True, text=True
    )
    if done.returncode == REFUSED:
        pytest.skip(f"no other user can be had here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("user", [str(os.getuid()), _SOMEBODY])
def test_every_level_works_for_every_user(user: str) -> None:
    uid, found = as_user(user, _LEVELS)
    assert found == {level: [level, f"{uid} alpha asked ['mine']", "KeyboardInterrupt"] for level in LEVELS}


@pytest.fixture
def closed_to_root(tmp_path: Path) -> Path:
    """A corpus in a folder that only its owner, somebody else, may enter."""
    if os.getuid() != 0:
        pytest.skip("another system: needs root, who alone can own what is not his")
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "text.txt").write_text("private words")
    for path in (folder / "text.txt", folder):
        os.chown(path, int(_SOMEBODY), int(_SOMEBODY))
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder / "text.txt"


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_a_corpus_that_root_may_not_read_without_its_rights_is_named(
    closed_to_root: Path, level: Any
) -> None:
    with Worker(level=level, texts={"a.txt": "a"}) as worker:
        facts = dict(worker.environment.documents[0])
    worker = Worker(level=level, texts={"a.txt": "a"})
    worker.environment.documents = [{**facts, "path": str(closed_to_root), "bytes": 13, "chars": 13}]
    with pytest.raises(SandboxError) as refused, worker:
        pass
    said = str(refused.value)
    assert str(closed_to_root) in said
    if level == "standard":
        assert "root gives up its special rights there" in said and "run the program as its owner" in said
