"""Sample corpora and example runs: where they are found, and that they come once and never again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlm_core.corpus import Corpus
from rlm_core.errors import RecordError
from tests.support.command import ROOT
from traces.home import Home
from traces.reading import list_runs
from traces.upkeep import delete_run
from ui.web.samples import install_examples, sample_data, samples

SHIPPED = sorted(path.stem for path in (ROOT / "sample_data" / "examples").glob("*.jsonl"))


def test_every_sample_is_a_corpus_with_questions(home: Home) -> None:
    found = {sample.name: sample for sample in samples()}
    assert found.keys() >= {"tickets", "contracts", "papers", "needle"}
    for sample in found.values():
        assert sample.questions and all(sample.questions)
    small = found["server_log"]
    corpus = Corpus.add([small.folder], home.corpora)
    assert len(corpus.documents) == small.documents and not corpus.problems


def test_in_a_checkout_the_samples_are_those_of_the_checkout() -> None:
    assert sample_data() == ROOT / "sample_data"


def test_the_examples_come_once(home: Home) -> None:
    assert sorted(install_examples(home)) == SHIPPED and len(SHIPPED) == 2
    before = {path: path.stat().st_mtime_ns for path in home.spool.iterdir()}
    assert install_examples(home) == ()
    assert {path: path.stat().st_mtime_ns for path in home.spool.iterdir()} == before
    runs = list_runs(home)
    assert sorted(run.run_id for run in runs) == SHIPPED
    assert {(run.status, run.demo, run.complete, run.sub_calls) for run in runs} == {("ok", True, True, 200)}
    assert len({run.answer for run in runs}) == 2
    assert install_examples(home) == ()


def test_a_deleted_example_never_comes_back(home: Home) -> None:
    install_examples(home)
    delete_run(home, SHIPPED[0])
    assert install_examples(home) == ()
    assert [run.run_id for run in list_runs(home)] == SHIPPED[1:]


def test_several_processes_at_once(home: Home) -> None:
    code = (
        "import sys; from pathlib import Path; from traces.home import Home; "
        "from ui.web.samples import install_examples; from traces.reading import list_runs; "
        "home = Home(Path(sys.argv[1])); install_examples(home); print(len(list_runs(home)))"
    )
    command = [sys.executable, "-c", code, str(home.root)]
    others = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [other.communicate()[0] for other in others] == ["2\n"] * 4
    assert sorted(path.name for path in home.spool.iterdir()) == [f"{name}.jsonl" for name in SHIPPED]


@pytest.mark.usefixtures("no_root_rights")
def test_a_home_that_cannot_be_written(home: Home) -> None:
    home.spool.chmod(0o500)
    try:
        with pytest.raises(RecordError, match=r"^The example runs cannot be copied: .*\.$"):
            install_examples(home)
    finally:
        home.spool.chmod(0o700)


def test_half_a_copy_is_no_run(home: Home) -> None:
    (home.spool / ".example-killed").write_text("half a rec")
    assert sorted(install_examples(home)) == SHIPPED
    assert len(list_runs(home)) == 2


def test_without_sample_data_there_are_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.web.samples.sample_data", lambda: None)
    assert install_examples(home) == () and samples.__wrapped__() == ()
    assert list(Path(home.spool).iterdir()) == []
