"""The question of a log that rlms made, asked again by this engine: the same cells, one other reply."""

from __future__ import annotations

import json
from typing import Any

from rlm_core import RLM, FunctionLMHandler, Limits, Request
from rlm_core.lm_handler import Completion, Usage
from tests.support.command import ROOT
from tests.support.replays import filled
from traces.home import Home
from traces.importers.importing import import_paths
from traces.recording import open_recording

LOG = ROOT / "tests" / "fixtures" / "logs" / "rlms" / "rlms_0.1.3.jsonl"
OURS = "20270101T000000-0000aaaa"
DOCUMENTS = ["The pump failed on 3 May.", "It was replaced on 9 May by the night shift.", "Costs: 40 EUR."]


def pair(home: Home) -> list[str]:
    """Put both into a home: the ids of the two runs of the log, and of the one of this engine."""
    filled(home, "rlms pair", lambda new: (import_paths(new, [LOG]), asked_here(new)))
    return [*sorted(path.stem for path in home.spool.glob("2026*.jsonl")), OURS]


def asked_here(home: Home, late: str = "of 5 characters, and more") -> str:
    """Record the first run of the log as this engine runs it; `late` is the reply that is another one."""
    entries = [json.loads(line) for line in LOG.read_text("utf-8").splitlines()][1:5]
    child = entries[2]["code_blocks"][0]["result"]["rlm_calls"][0]["metadata"]["iterations"]
    replies = {"top": iter(entries), "child": iter(child)}

    def answer(request: Request) -> Any:
        prompt = request.prompt
        if request.role == "sub":
            text = {"Late?": late, "What is 9 - 3?": "6"}.get(prompt, f"of {len(prompt)} characters")
        else:
            inside = "from 3 May" in request.messages[1].content
            text = next(replies["child" if inside else "top"])["response"]
        return Completion(text, usage=Usage(input=len(prompt), output=3))

    with (
        open_recording(home, OURS, {}) as recording,
        RLM(
            "openai/root-large",
            "openai/small",
            handler=FunctionLMHandler(answer),
            limits=Limits(max_depth=2),
            corpora=home.corpora,
        ) as rlm,
    ):
        rlm.ask("How many days was the pump down?", DOCUMENTS, recorder=recording.recorder, run_id=OURS)
        recording.close("ok")
    return OURS
