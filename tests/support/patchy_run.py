"""A real run that read its corpus in patches: sent, shown, only given to code, never touched."""

from __future__ import annotations

from rlm_core.corpus import Corpus
from tests.support.command import ROOT
from tests.support.scripted import Script, cell, run
from traces.home import Home
from traces.recording import open_recording

PATCHY = "20270115T080000-0000ab01"
QUESTION = "What do the contracts say about their end?"
_OTHERS = ("contract.pdf", "slides.pptx", "orders.xlsx", "minutes.docx", "rates.csv", "manual.pdf")
_LOOK = """
contracts = [documents[name] for name in documents.names if name.startswith("k-")][:20]
print(contracts[1][:200])
print(contracts[10][100:400])
"""
_ASK = """
prompts = [("How does this one end?", contract[at:at + 90])
           for contract in contracts[:6] for at in range(0, len(contract), 220)]
prompts += [("And here?", contract) for contract in contracts[6:9]]
long = documents["long_text.txt"]
prompts += [("And here?", long[at:at + 1500]) for at in range(20_000, 140_000, 4_000)]
replies = llm_batch(prompts)
pages = [name for name in documents.names if name.endswith(".pdf")]
for name in pages:
    text = documents[name]
    at = text.find("\\f")
    llm_query(f"Sum up this page: <<{text[:at] if at > 0 else text[:200]}>>")
"""


def patchy_run(home: Home, run_id: str = PATCHY) -> str:
    """The run, over contracts and documents of other kinds."""
    samples, good = ROOT / "sample_data", ROOT / "tests" / "fixtures" / "documents" / "good"
    folders = [samples / name for name in ("contracts", "needle", "papers")]
    corpus = Corpus.add(
        [*folders, *(good / name for name in _OTHERS)], home.corpora, name="Contracts and others"
    )
    script = Script([cell(_LOOK), cell(_ASK), cell("FINAL('Little.')")], lambda _: "Nothing of note.")
    with open_recording(home, run_id, {}) as recording:
        answer = run(
            script, corpus, question=QUESTION, recorder=recording.recorder, run_id=run_id, sandbox="none"
        )
    assert answer.stop_reason == "final", answer
    return run_id
