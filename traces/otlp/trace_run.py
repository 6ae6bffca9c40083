"""The run that the spans of one trace make, with what they do not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rlm_core import semconv as sc
from rlm_core.telemetry import sha256_text
from traces.imported import sentences_of
from traces.importers.foreign import ForeignRun, ForeignSpan
from traces.otlp.arranging import AWAITED, MADE, arrange
from traces.otlp.messages import last_of
from traces.otlp.spans import OtlpSpan
from traces.otlp.translating import LEFT_OUT, SAID_KIND

FORMAT: Final = "otlp"
_UNKNOWN: Final = "unknown_service"
_CALLS: Final = ("root_call", "sub_call")


def run_of_trace(trace_id: str, spans: Sequence[OtlpSpan]) -> ForeignRun:
    """The run of all spans of a trace that are there so far. Spans that have not ended or not come are
    `running`, and the run is not closed while its own span is one of them.
    """
    top = arrange(trace_id, spans)
    run = ForeignRun(FORMAT, engine_of(spans), _key(trace_id, spans), top, stem=trace_id, trace_id=trace_id)
    run.closed = top.status != "running"
    run.root_model, run.sub_model = (_model(top, kind) for kind in _CALLS)
    complete = [] if _told_before(run) else _complete(top)
    for sentence in (*complete, *_gaps(top)):
        if sentence not in run.missing:
            run.missing.append(sentence)
    return run


def _told_before(run: ForeignRun) -> bool:
    """What was known of a run that was imported before it was exported: its program, and what it lacks.
    Whether it is one: what it does not hold was not there for its first import either, which says so.
    """
    told = run.top.attributes
    told.pop(sc.IMPORT_FILE, None)  # it is read from another one now
    engine = told.pop(sc.IMPORT_ENGINE, None)
    run.missing += sentences_of(told.pop(sc.IMPORT_MISSING, None))
    run.problems += sentences_of(told.pop(sc.IMPORT_PROBLEMS, None))
    if not isinstance(engine, str) or not engine:
        return False
    run.engine = engine[:200]
    return True


def settle(run: ForeignRun) -> ForeignRun:
    """The run once nothing more is expected: what is still open was lost."""
    for span in run.top.walk():
        if span.status == "running":
            span.status = "lost"
    return run


def _key(trace_id: str, spans: Iterable[OtlpSpan]) -> str:
    """The trace and what of it is there: a later record of it that holds more is another one."""
    ended = sorted(f"{span.span_id}{'.' if span.ended else ''}" for span in spans)
    return f"{trace_id} {sha256_text(' '.join(ended))}"


def engine_of(spans: Sequence[OtlpSpan]) -> str:
    """The program as its resource names it, else the instrumentation that made most of the spans."""
    for span in spans:
        service, version = (span.scope.resource.get(f"service.{part}") for part in ("name", "version"))
        if service == span.scope.name:
            version = version or span.scope.version
        if isinstance(service, str) and service and not service.startswith(_UNKNOWN):
            return f"{service} {version}"[:200] if isinstance(version, str) and version else service[:200]
    scopes = Counter(f"{span.scope.name} {span.scope.version}".strip() for span in spans)
    return (scopes.most_common(1)[0][0] or "unknown program")[:200]


def _counted(number: int, what: str) -> str:
    """A number of things in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _model(top: ForeignSpan, kind: str) -> str | None:
    """The model that most calls of a kind asked."""
    models = Counter(span.model for span in top.walk() if span.kind == kind and span.model is not None)
    return models.most_common(1)[0][0] if models else None


def _complete(top: ForeignSpan) -> list[str]:
    """Question and answer out of the root calls where the run itself tells none; says so."""
    said: list[str] = []
    calls = [span for span in _of_run(top) if span.kind == "root_call"]
    if sc.QUESTION not in top.texts:
        asked = next((text for call in calls if (text := last_of(call.messages, "user"))), None)
        if asked is None:
            said.append("The spans do not hold the question.")
        else:
            top.texts[sc.QUESTION] = asked
            said.append("The span of the run holds no question: it is what the first root call was asked.")
    if sc.ANSWER not in top.texts and top.status != "running":
        last = calls[-1].texts.get(sc.RESPONSE) if calls else None
        if last is None:
            said.append("The spans do not hold the answer.")
        else:
            top.texts[sc.ANSWER] = last
            said.append("The span of the run holds no answer: it is the reply of the last root call.")
    return said


def _of_run(top: ForeignSpan) -> list[ForeignSpan]:
    """The spans of a run itself, in order, without those of runs below it."""
    waiting, found = list(reversed(top.children)), list[ForeignSpan]()
    while waiting:
        span = waiting.pop()
        found.append(span)
        waiting += [] if span.kind == "run" else reversed(span.children)
    return found


def _gaps(top: ForeignSpan) -> list[str]:
    """What is not there, one sentence for each kind of thing."""
    spans = list(top.walk())
    calls = [span for span in spans if span.kind in _CALLS]
    silent = sum(not {sc.RESPONSE, sc.PROMPT} & set(span.texts) and not span.messages for span in calls)
    untold = sum(span.tokens.value is None for span in calls)
    cut = sum(LEFT_OUT in span.attributes for span in spans)
    awaited = sum(span.attributes.get(SAID_KIND) == AWAITED for span in spans)
    made = [span for span in spans if span.attributes.get(SAID_KIND) == MADE]
    turns = any(span.kind == "iteration" for span in made)
    sentences = {
        f"{silent} of {len(calls)} model calls hold neither prompt nor reply: their program did not send "
        "texts.": silent,
        f"{untold} of {len(calls)} model calls do not tell their tokens.": untold,
        f"Attributes of {_counted(cut, 'span')} were cut or left out: they are too long or too many.": cut,
        f"{_counted(awaited, 'span')} that others stand in did not come: of such a one only what it holds is "
        "known.": awaited,
        "No span stands around the whole trace; the run was made around its spans.": top in made,
        "The spans tell no iterations: each is a root call with what follows it up to the next one.": turns,
    }
    return [sentence for sentence, there in sentences.items() if there]
