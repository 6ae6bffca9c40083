"""Proving the edges of a lineage, with its log: what the command and the job of the app do alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlm_core.errors import RecordError

if TYPE_CHECKING:
    from traces.diagnosis_log import DiagnosisLog
    from traces.proving import Proof
    from traces.trial import Budget
    from ui.replaying import Present


def proof_of(now: Present, log: DiagnosisLog, span_ids: Sequence[str], budget: Budget) -> Proof:
    """Try these spans, as many as the budget has replays for, and end the log. A run that cannot be played
    again is an outcome, with its reason. Raises RunCancelled, RecordError when the log cannot be written.
    """
    from traces.proving import Proof, prove
    from traces.trial import Replayability

    try:
        made = now.replayer(now.home, now.view, budget=budget, cancelled=log.cancelled)
    except RecordError as error:
        proof = Proof((), (), Replayability("not_replayable", str(error)))
        log.checked(proof.replayability)
    else:
        with made as replayer:
            log.stage("Looking whether the run comes out as recorded when nothing is replaced.")
            proof = prove(
                replayer, now.view, span_ids, most=budget.replays,
                tell=log.trial, checked=log.checked, cancelled=log.cancelled,
            )  # fmt: skip
    log.end()
    return proof
