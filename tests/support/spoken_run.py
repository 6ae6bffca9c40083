"""A run whose texts are words that can be looked for, with a key in one of them."""

from __future__ import annotations

from typing import Any

from rlm_core import semconv as sc
from rlm_core.telemetry import as_json
from traces.reading import RunView
from traces.recording import Recording

KEY = "sk-" + "abcdefgh1234" * 3
WORDS = ("QUESTION", "SYSTEM", "FIRST", "REPLY0", "SECOND", "REPLY1", "THOUGHT", "CODE", "STDOUT", "EVENT",
         "PROMPT", "PROBLEM", "ANSWER")  # fmt: skip


def talk(made: Recording) -> None:
    """Two root calls of one conversation, a cell, a sub-call that fails, an event."""
    recorder = made.recorder
    place = {sc.RUN_PATH: "0", sc.DEPTH: 0}
    run = recorder.start("run", sc.NAME_RUN, None, {**place, sc.PREVIEW: "QUESTION"})
    run.text(sc.QUESTION, "QUESTION " + "q" * 300)
    run.set({sc.OI_INPUT: "QUESTION"})
    for number, (prior, added) in enumerate(((0, ["SYSTEM", "FIRST"]), (2, ["REPLY0", "SECOND"]))):
        roles = ("system", "user") if not number else ("assistant", "user")
        listed = as_json([[role, recorder.payload(text)] for role, text in zip(roles, added, strict=True)])
        facts = {**place, sc.MESSAGES_PRIOR: prior, sc.MESSAGES_ADDED: listed, sc.OI_INPUT: added[-1]}
        call = recorder.start("root_call", "chat r", run, facts)
        call.text(sc.RESPONSE, f"REPLY{number}")
        call.text(sc.REASONING, "THOUGHT")
        call.end("ok", {sc.FINISH_REASONS: '["stop"]', sc.OI_OUTPUT: f"REPLY{number}"})
    cell = recorder.start("cell", sc.NAME_CELL, run, place)
    cell.text(sc.CODE, "CODE")
    cell.text(sc.STDOUT_SHOWN, "STDOUT")
    cell.event("notice", {"words": "EVENT " + "e" * 300})
    call = recorder.start("sub_call", "chat s", cell, place)
    call.text(sc.PROMPT, f"PROMPT {'p' * 160} key={KEY} end")  # a preview cuts the key off
    call.fail("timeout", "PROBLEM")
    cell.end()
    run.text(sc.ANSWER, "ANSWER")
    run.end()


def facts_of(view: RunView) -> list[dict[str, Any]]:
    """What must survive the way out and in again."""
    texts = (sc.QUESTION, sc.PROMPT, sc.RESPONSE, sc.REASONING, sc.CODE, sc.STDOUT_SHOWN, sc.ANSWER)
    numbers = {span.span_id: number for number, span in enumerate(view.spans)}
    return [
        {
            "kind": span.kind, "name": span.name, "status": span.status, "error": span.error_type,
            "parent": None if span.parent_id is None else numbers[span.parent_id],
            "times": (span.start_ns, span.end_ns), "model": span.model, "tokens": span.tokens,
            "cost": span.cost_usd,
            "texts": {
                prefix: view.payload(span.attributes[f"{prefix}.sha256"])
                for prefix in texts if f"{prefix}.sha256" in span.attributes
            },
            "messages": span.attributes.get(sc.MESSAGES_ADDED),
        }
        for span in view.spans
    ]  # fmt: skip
