"""Span names and attribute keys: the contract between the engine, the record and every reader.

Two public vocabularies stand on the same span: OpenTelemetry GenAI (`gen_ai.*`, text of convention 1.44,
whose constants the Python package still lacks or marks as moved) and OpenInference 0.1.42 (`openinference.*`,
`llm.*`, `input.*`, `output.*`). Facts that neither knows are `rlm.*`. Payload texts never stand on a span: a
key that ends in `.sha256` names a payload, its siblings `.chars` and `.preview` describe it.
"""

from __future__ import annotations

from typing import Final, Literal

GENAI_CONVENTION: Final = "1.44.0"
OPENINFERENCE_CONVENTION: Final = "0.1.42"
RECORD_VERSION: Final = 1

Kind = Literal["run", "iteration", "root_call", "cell", "batch", "sub_call", "attempt", "tool"]
Status = Literal["running", "ok", "error", "cancelled", "lost"]
KINDS: Final[tuple[Kind, ...]] = (
    "run",
    "iteration",
    "root_call",
    "cell",
    "batch",
    "sub_call",
    "attempt",
    "tool",
)

# -- names of spans that do not depend on a model or tool
NAME_RUN: Final = "invoke_agent rlm"
NAME_ITERATION: Final = "rlm.iteration"
NAME_CELL: Final = "execute_tool python"
NAME_BATCH: Final = "rlm.llm_batch"
NAME_ATTEMPT: Final = "rlm.attempt"

# -- OpenTelemetry GenAI
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
TOOL_NAME: Final = "gen_ai.tool.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"  # includes cached reads and writes
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"  # includes reasoning
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
ERROR_TYPE: Final = "error.type"
LIMIT_ERRORS: Final = ("budget", "depth")  # error types of calls that a limit refused, or broke off

# -- OpenInference
OI_KIND: Final = "openinference.span.kind"
OI_MODEL: Final = "llm.model_name"
OI_PROMPT_TOKENS: Final = "llm.token_count.prompt"
OI_COMPLETION_TOKENS: Final = "llm.token_count.completion"
OI_TOTAL_TOKENS: Final = "llm.token_count.total"
OI_COST: Final = "llm.cost.total"
OI_INPUT: Final = "input.value"  # a preview; the whole text is the payload
OI_OUTPUT: Final = "output.value"
OI_KIND_OF: Final[dict[Kind, str]] = {
    "run": "AGENT", "iteration": "CHAIN", "root_call": "LLM", "cell": "TOOL",
    "batch": "CHAIN", "sub_call": "LLM", "attempt": "CHAIN", "tool": "TOOL",
}  # fmt: skip

# -- every span
KIND: Final = "rlm.kind"
RUN_ID: Final = "rlm.run.id"
RUN_PATH: Final = "rlm.run.path"  # "0" for the top run, "0.3" for its child started by call 3
DEPTH: Final = "rlm.depth"
ROLE: Final = "rlm.role"
STATUS: Final = "rlm.status"
ITERATION: Final = "rlm.iteration.index"  # from 0
CELL: Final = "rlm.cell.index"  # from 0, within its (child) run
ERROR_MESSAGE: Final = "rlm.error.message"
PREVIEW: Final = "rlm.preview"  # one line of text for trees and lists

# -- run and child run
QUESTION: Final = "rlm.question"  # payload prefix
ANSWER: Final = "rlm.answer"  # payload prefix: the answer's text
ANSWER_VALUE: Final = "rlm.answer.value"  # payload prefix: the answer in the JSON form of rlm_core.values
ANSWER_VIA: Final = "rlm.answer.via"  # answer | FINAL | FINAL_VAR | SUBMIT | forced | reply (of the root)
ANSWER_EXPRESSION: Final = "rlm.answer.expression"
ANSWER_CELL: Final = "rlm.answer.cell"  # the cell that set the answer; absent when it was forced
ANSWER_CONFIDENCE: Final = "rlm.answer.confidence"
ANSWER_NOTE: Final = "rlm.answer.note"
ANSWER_MARK: Final = "rlm.answer.mark"  # empty | error_text: accepted only at the second try; schema: misfit
STOP_REASON: Final = "rlm.stop_reason"
FORCED: Final = "rlm.forced"
ROOT_MODEL: Final = "rlm.root_model"
SUB_MODEL: Final = "rlm.sub_model"
LIMITS: Final = "rlm.limits"  # JSON
RETRIES: Final = "rlm.retries"  # JSON: the policy by which model calls are tried again
SEEDS: Final = "rlm.seeds"  # JSON: python hash seed, random, numpy, fault seed
VERSIONS: Final = "rlm.versions"  # JSON: engine, python, libraries, record
PROMPTS_VERSION: Final = "rlm.prompts.version"
SANDBOX: Final = "rlm.sandbox.level"  # as the worker found it
SANDBOX_LAYERS: Final = "rlm.sandbox.layers"  # JSON: names of what the lock is made of
CORPUS: Final = "rlm.corpus"  # payload prefix: JSON, the document table and what `context` was
CORPUS_ID: Final = "rlm.corpus.id"
CORPUS_CHARS: Final = "rlm.corpus.text_chars"  # of all documents together
CORPUS_DOCUMENTS: Final = "rlm.corpus.documents"  # how many
CHILD_CONTEXT: Final = "rlm.child.context"  # payload prefix: JSON, parts of each document given to a child
BEST_PARTIAL: Final = "rlm.best_partial"  # payload prefix: what `answer` held when the run ended
DEMO: Final = "rlm.demo"  # true when no language model was involved
LEDGER: Final = "rlm.ledger"  # JSON: spent and limit by dimension at the end

STRATEGY: Final = "rlm.strategy"  # a strategy of rlm_core.options; absent: rlm
OPTIONS: Final = "rlm.options"  # JSON of rlm_core.options.Options, with the declared tools and their schemas
RESUME_OF: Final = "rlm.resume.of"  # id of the dead run that this one continues
RESUME_SPENT: Final = "rlm.resume.spent"  # JSON: what the runs before had spent; it counts against the limits
RESUME_ANYWAY: Final = (
    "rlm.resume.anyway"  # true: it went on where its cells came out otherwise than recorded
)
SCHEMA_PROBLEM: Final = (
    "rlm.schema.problem"  # why a reply (or the answer) did not fit its schema, in a sentence
)
COMPACTED: Final = "rlm.compacted"  # on a root call: it was asked to sum up the messages before it
COMPACTED_TURNS: Final = "rlm.compacted.turns"  # beside it: how many turns its reply took the place of

SCRIPTED: Final = "rlm.scripted"  # true when a function of a program, or a record, answered for the models
FITS: Final = "rlm.fits"  # on a run that shows its root the whole corpus at once: whether that was possible
FITS_TOKENS: Final = "rlm.fits.tokens"  # what that takes, by estimate
FITS_WINDOW: Final = "rlm.fits.window"  # what the root model takes, where that is known

# -- run that plays another one again
REPLAY_OF: Final = "rlm.replay.of"  # id of the run that was played again
REPLAY_MODE: Final = "rlm.replay.mode"  # a mode of traces.trial.MODES
REPLAY_PATCHES: Final = "rlm.replay.patches"  # payload prefix: JSON [{span_id, text}, ...]; absent: none
REPLAY_TARGET: Final = "rlm.replay.target"  # payload prefix: the answer it should give
REPLAY_TARGET_FROM: Final = "rlm.replay.target.from"  # expected | good run
REPLAY_MATCH: Final = "rlm.replay.match"  # how answers were compared, see traces.opinions.HOW
REPLAY_OUTCOME: Final = "rlm.replay.outcome"  # an outcome of traces.trial.OUTCOMES
REPLAY_HITS: Final = "rlm.replay.hits"  # sub-calls answered by the record, a patch or another record
REPLAY_MISSES: Final = "rlm.replay.misses"  # requests that none of them held
REPLAY_LIVE_CALLS: Final = "rlm.replay.live_calls"  # calls to a model, root calls included
REPLAY_STOPPED: Final = "rlm.replay.stopped"  # why it could not go on
REPLAY_ASSUMED: Final = "rlm.replay.assumed"  # JSON list of sentences: what its outcome rests on

# -- run that was read from the log of another engine, or brought along from another home (run span or header)
IMPORT_FORMAT: Final = "rlm.import.format"  # what it was read from: rlms, recursive-flow, dspy, otlp, ...
IMPORT_OWN: Final = "rlmscope"  # of `IMPORT_FORMAT`: a run of this engine, with all of its record
IMPORT_INSTRUMENT: Final = "instrument"  # of `IMPORT_FORMAT`: its program told its steps (traces.instrument)
IMPORT_ENGINE: Final = "rlm.import.engine"  # the program that made it, with its version where it says so
IMPORT_FILE: Final = "rlm.import.file"  # name of the file or folder, without its place
IMPORT_KEY: Final = "rlm.import.key"  # sha256 of what was read: the same thing is not taken in twice
IMPORT_STEM: Final = (
    "rlm.import.stem"  # sha256 of how its record begins: equal for states of a growing record
)
IMPORT_MISSING: Final = "rlm.import.missing"  # JSON list of sentences: what the source does not say
IMPORT_PROBLEMS: Final = "rlm.import.problems"  # JSON list of sentences: what of the source is unreadable
IMPORT_LACKS_CALLS: Final = "rlm.import.lacks_calls"  # run span, true: some are known to be nowhere in it
IMPORT_ORDER: Final = "rlm.import.order"  # "arrival": spans stand in the order in which they came
#: On a span of such a run: how far its numbers can be trusted, as JSON {tokens | cost | start | seconds:
#: reported | derived | known_wrong | missing}. What is missing or known to be wrong is absent from the span's
#: own facts; the wrong number is in `rlm.usage.raw`. A span without this was recorded by this engine.
TRUST: Final = "rlm.trust"
TRUST_WHY: Final = "rlm.trust.why"  # JSON {tokens | ...: a sentence}, where there is something to say

# -- model calls
PROMPT: Final = "rlm.prompt"  # payload prefix: the rendered prompt of a sub-call
RESPONSE: Final = "rlm.response"  # payload prefix
REASONING: Final = "rlm.reasoning"  # payload prefix: reasoning text, where a provider returns it
MESSAGES_PRIOR: Final = (
    "rlm.messages.prior"  # number of messages shared with the previous root call of this run path
)
MESSAGES_ADDED: Final = "rlm.messages.added"  # JSON [[role, sha256], ...] after those
PARAMETERS: Final = "rlm.parameters"  # JSON of request parameters
USAGE_RAW: Final = "rlm.usage.raw"  # JSON as reported by the provider
USAGE_ESTIMATED: Final = "rlm.usage.estimated"  # true when the engine counted, not the provider
COST_USD: Final = "rlm.cost.usd"  # decimal string; absent when unknown
COST_STATUS: Final = "rlm.cost.status"  # priced | free | unknown | demo
COST_PRICE: Final = "rlm.cost.price"  # JSON: the price row used
COST_LITELLM: Final = "rlm.cost.litellm_usd"  # decimal string: what LiteLLM says the last attempt cost
CALL_ID: Final = "rlm.call.id"
CALL_LINE: Final = "rlm.call.line"  # line in the cell that made the call
CALL_INDEX: Final = "rlm.call.index"  # ordinal in its cell by submission, from 0; in a batch: the slot
CALL_ORDINAL: Final = "rlm.call.ordinal"  # in its cell by submission, from 0; slots of batches count each
CALL_OCCURRENCE: Final = "rlm.call.occurrence"  # among equal request hashes of this run path, from 0
PROMPT_HASH: Final = "rlm.hash.prompt"  # of the prompt with its snippets, and of its images where it has any
TEMPLATE_HASH: Final = "rlm.hash.template"
REQUEST_HASH: Final = "rlm.hash.request"
RESPONSE_NORM_HASH: Final = "rlm.hash.response_normalised"
#: Where the text of a prompt stands in the corpus of its run, as JSON {how, ranges, places, also?, left_out?,
#: why?}. `ranges` are [document, start byte, end byte] of the canonical UTF-8 texts, in the order of the
#: prompt; `places` says of each, in words, which page, slide or sheet it is (null: the document has none).
#: how = "reference": every passage that is known was given as a place, such as a slice. "located": passages
#: of text that code built were found, byte for byte; what was given as a place is among the ranges too.
#: "none": not verbatim; no passage of the corpus that is long enough stands in it word for word. What only
#: repeats words of the run's question is no passage.
#: "not_searched": unknown. `also` counts for each range of "located" the other places at which the same text
#: stands (a lower bound in the thousands; 0 for what was given as a place), `left_out` the ranges that are
#: not listed; `why` is a clause that says why text of the prompt was not searched, also beside "reference".
#: On the span of a child run: its question and the documents it was given, in the corpus of the run above.
SOURCE_RANGES: Final = "rlm.source_ranges"
#: What of the corpus stands in what the root was shown, in the same form: on a cell its output as shown, on a
#: run the description of the corpus. It was read only if a root call of the run came after it. On an
#: iteration: what its own root call was given to read, by a strategy that shows the corpus to the root.
SHOWN_RANGES: Final = "rlm.shown_ranges"
SERVED_FROM: Final = (
    "rlm.served_from"  # model | record (an answer the run, or its record, had) | patch | cache
)
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "rlm.tool.arguments"  # payload prefix: JSON as the model wrote it
TOOL_RESULT: Final = "rlm.tool.result"  # payload prefix: what the model was told
TOOL_ROUND: Final = "rlm.tool.round"  # on an attempt or tool span: from 0, how often tools had run before
#: Images of a prompt, as JSON [{name, key, source, sha256, mime, bytes, width, height}, ...]: `key` is part
#: of the request hash, `source` is [document, page] (page 0: an image file) or null for one that code made.
#: `sha256` names a payload that holds the image as a data URL; it and what follows it are there only when the
#: image was sent to a model, not where the reply came out of a record.
IMAGES: Final = "rlm.images"
BATCH_SIZE: Final = "rlm.batch.size"
BATCH_FAILED: Final = "rlm.batch.failed"
ATTEMPT: Final = "rlm.attempt.index"  # from 0
ATTEMPTS: Final = "rlm.attempts"  # on a call: how many tries it took
RETRY_WAIT: Final = "rlm.attempt.wait_seconds"  # waited before this try
RETRY_AFTER: Final = "rlm.attempt.retry_after_seconds"  # what the server asked for
HTTP_STATUS: Final = "http.response.status_code"
DEMO_FAULT: Final = "rlm.demo.fault"
DEMO_QUOTE: Final = "rlm.demo.quote"

# -- cells
CODE: Final = "rlm.code"  # payload prefix
CODE_HOW: Final = "rlm.code.how"  # how the code was extracted
STDOUT: Final = "rlm.stdout"  # payload prefix: all that the worker kept
STDOUT_TRUE_CHARS: Final = "rlm.stdout.true_chars"
STDOUT_SHOWN: Final = "rlm.stdout_shown"  # payload prefix: as shown to the root
STDOUT_RULE: Final = "rlm.stdout_shown.rule"  # JSON: how much of the output was kept and shown, from where
NATIVE_OUTPUT: Final = "rlm.native_output"  # payload prefix: what C code printed past Python's own streams
EXCEPTION: Final = "rlm.exception"  # payload prefix: traceback
EXCEPTION_TYPE: Final = "rlm.exception.type"
CELL_INTERRUPTED: Final = "rlm.cell.interrupted"  # why the engine stopped the cell
PHASE: Final = "rlm.phase"  # Explore | Decompose | Aggregate | Terminate
VARIABLES: Final = "rlm.variables"  # payload prefix: JSON list {name, type, size, hash, preview, change}
NAMES_READ: Final = "rlm.names.read"  # JSON list
NAMES_WRITTEN: Final = "rlm.names.written"  # JSON list
VALUES_READ: Final = "rlm.names.read_values"  # JSON {name: hash of its value before the cell, null: unknown}
#: Which parts of the corpus code was given in a cell, as JSON {whole, parts, left_out?}. `whole` lists ranges
#: of documents, [first number, last number], each given as one `str`: what code read of it is not known.
#: `parts` are [document, start byte, end byte]; `left_out` counts parts that are not listed. The worker says
#: so: it is a hint, no proof.
TOUCHED: Final = "rlm.touched"
FINDINGS: Final = "rlm.findings"  # JSON list {rule, line, message}
CELL_CPU: Final = "rlm.cell.cpu_seconds"
CELL_WALL: Final = "rlm.cell.wall_seconds"  # less the time sub-calls were outstanding
WORKER: Final = "rlm.worker.generation"  # from 0; rises with each rebuild
LOST_NAMES: Final = "rlm.names.lost"  # JSON list, after a death

# -- events (records of kind `ev`, never OTel span events: those are capped)
EV_HOST_REPLY: Final = "host_reply"  # budget() and other replies that code can see
EV_WORKER_DIED: Final = "worker_died"
EV_REBUILT: Final = "worker_rebuilt"
EV_NOTICE: Final = "notice"
EV_SOURCES: Final = "rlm.sources"  # ranges found after the span had ended: readers put them on the span
EV_PLACED: Final = "rlm.placed"  # what a span is, known when the spans around it had come: put on the span
EV_WITHDRAWN: Final = "rlm.withdrawn"  # a span that was made around others, and is not there after all
EV_REPLAY: Final = "rlm.replay"  # what came of a replay, known after its run had ended: put on its span too


def chat(model: str) -> str:
    """The span name of a model call."""
    return f"chat {model}"
