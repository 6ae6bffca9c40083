"""Runs over a few short documents, recorded to see where the text of their prompts came from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rlm_core import Limits
from rlm_core import semconv as sc
from tests.support.scripted import Script, cell, run
from traces.home import Home
from traces.reading import load_run
from traces.recording import open_recording

REPORT = """Annual report of the harbour authority
The northern quay handled 4,812 containers in March, more than in any month before.
\tRepairs of the second crane were finished late, in the third week of April.

Ships from Bergen waited eleven hours on average; ships from Porto waited nine.
    The dredging contract was extended by two years without a new tender.
Contact: Ines Duarte, harbour master, building seven, second floor.
"""
LETTERS = """Überraschend viele Gäste fragten nach dem großen Leuchtturm an der Nordküste.
O cão do faroleiro não gosta de dias com nevoeiro, diz a família inteira.
Наш корабль пришёл в гавань поздно ночью, когда все уже спали крепко.
"""
TABLE = "".join(
    f"{name},{city},{amount}\n"
    for name, city, amount in [
        ("name of the customer", "city", "amount"),
        ("Aurélie Montgolfier", "Lyon-Villeurbanne", "1200.50"),
        ("Bartholomew Oyelaran", "Port Harcourt", "87.00"),
        ("Ekaterina Wolkowska", "Nizhny Novgorod", "430.75"),
    ]
)
RECORDS = json.dumps(
    {
        "title": "Minutes of the board meeting",
        "body": 'They said "no" twice.\nThe motion about the lighthouse failed.',
    }
)
DOCUMENTS = {"report.txt": REPORT, "letters.txt": LETTERS, "table.csv": TABLE, "records.json": RECORDS}
SETUP = """
import base64, csv, io, json, re, string, textwrap
report, letters, table = context["report.txt"], context["letters.txt"], context["table.csv"]
lines = report.splitlines()
line = lines[1]
"""
HEAD, QUAY, CRANE, _, SHIPS, DREDGING, CONTACT = REPORT.splitlines()
GUESTS, DOG, SHIP = LETTERS.splitlines()


@dataclass
class Recorded:
    """Runs with a record in a home folder."""

    home: Home
    run_id: str = "20260101T000000-0000000a"

    def play(
        self, *replies: Any, corpus: Any, sub: Any = lambda _: "ok", question: str = "what?", **limits: Any
    ) -> Any:
        """Run cells (or what a callable does before it gives one), the last of which ends the run.

        Returns the recorded run.
        """
        script = Script([reply if callable(reply) else cell(reply) for reply in replies], sub)
        with open_recording(self.home, self.run_id, {}) as recording:
            options = {"recorder": recording.recorder, "run_id": self.run_id, "sandbox": "none"}
            answer = run(script, corpus, question=question, limits=Limits(**limits), **options)
        assert answer.stop_reason == "final" and recording.problems == 0, answer
        return load_run(self.home, self.run_id)

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind in the spool, in order."""
        lines = self.home.spool_file(self.run_id).read_text("utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["kind"] == kind]


def sources(view: Any) -> list[dict[str, Any]]:
    """The source ranges of all sub-calls, in order."""
    calls = [span for span in view.spans if span.kind == "sub_call"]
    return [json.loads(call.attributes[sc.SOURCE_RANGES]) for call in calls]


def passages(view: Any, documents: Any) -> list[list[str]]:
    """What the ranges of all sub-calls name, call by call: pieces of the very prompt, in its order."""
    raw = [document.encode() for document in documents]
    calls = [span for span in view.spans if span.kind == "sub_call"]
    texts = []
    for call, value in zip(calls, sources(view), strict=True):
        texts.append([raw[number][start:end].decode() for number, start, end in value["ranges"]])
        at, prompt = 0, view.payload(call.attributes[sc.PROMPT + ".sha256"])
        for text in texts[-1]:
            at = prompt.index(text, at) + len(text)
    return texts
