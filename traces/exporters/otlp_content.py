"""What a span says to another program: its recorded attributes, and as much of its texts as was asked for.

Without a word about it spans go as they are on record: hashes, lengths and previews of texts. Whole texts
stand under the prefix of their hash (`rlm.prompt` beside `rlm.prompt.sha256`, so that an import has all of
them), as input and output of OpenInference, and as the messages of OpenTelemetry's GenAI convention, which
Phoenix too shows as a chat: no messages flattened into hundreds of attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from rlm_core import semconv as sc
from rlm_core.errors import InputError
from rlm_core.telemetry import as_json, preview
from traces.detail import decoded
from traces.exporters.redaction import Redactor

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
Level = Literal["none", "previews", "whole"]
Message = tuple[str, str]  # role, text (or the hash of it)
_LEVELS: Final[dict[str, Level]] = {
    "": "previews", "NO_CONTENT": "none", "FALSE": "none", "EVENT_ONLY": "none",
    "SPAN_ONLY": "whole", "SPAN_AND_EVENT": "whole", "TRUE": "whole",
}  # fmt: skip
_HIDDEN_INPUTS: Final = ("OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_INPUT_MESSAGES",
                         "OPENINFERENCE_HIDE_INPUT_TEXT")  # fmt: skip
_HIDDEN_OUTPUTS: Final = ("OPENINFERENCE_HIDE_OUTPUTS", "OPENINFERENCE_HIDE_OUTPUT_MESSAGES",
                          "OPENINFERENCE_HIDE_OUTPUT_TEXT")  # fmt: skip
_PREVIEW: Final = ".preview"
_HASH: Final = ".sha256"
_INPUTS: Final = (sc.QUESTION, sc.PROMPT, sc.CODE, sc.TOOL_ARGUMENTS, sc.CORPUS, sc.CHILD_CONTEXT,
                  sc.REPLAY_PATCHES)  # fmt: skip
_SHOWN_AS_INPUT: Final = (sc.QUESTION, sc.PROMPT, sc.CODE, sc.TOOL_ARGUMENTS)
_SHOWN_AS_OUTPUT: Final = (sc.ANSWER, sc.RESPONSE, sc.STDOUT_SHOWN, sc.STDOUT, sc.TOOL_RESULT)
#: Attributes that may quote what a model or a document says, besides previews.
_QUOTING: Final = frozenset(
    (sc.PREVIEW, sc.OI_INPUT, sc.OI_OUTPUT, sc.ANSWER_EXPRESSION, sc.ANSWER_NOTE, sc.ERROR_MESSAGE)
    + (sc.SCHEMA_PROBLEM, sc.DEMO_QUOTE, sc.FINDINGS, sc.REPLAY_STOPPED, sc.REPLAY_ASSUMED, sc.SOURCE_RANGES)
    + (sc.SHOWN_RANGES, sc.IMAGES)
)
_QUOTING_OUTPUT: Final = _QUOTING - {sc.OI_INPUT, sc.SOURCE_RANGES, sc.SHOWN_RANGES, sc.IMAGES}
_QUOTING_INPUT: Final = frozenset((sc.OI_INPUT, sc.PREVIEW, sc.SOURCE_RANGES, sc.SHOWN_RANGES, sc.IMAGES))
#: Viewers guess the type of what does not say it, and try to read texts as JSON.
_MIME: Final = {sc.OI_INPUT: "input.mime_type", sc.OI_OUTPUT: "output.mime_type"}
_CALLS: Final = ("root_call", "sub_call", "run")


@dataclass(frozen=True, slots=True)
class Content:
    """How much of the texts leaves: none, previews of 200 characters, or all; inputs and outputs apart."""

    level: Level = "previews"
    inputs: bool = True
    outputs: bool = True

    @classmethod
    def asked(cls, environ: Mapping[str, str]) -> Content:
        """What the standard variables ask for. Raises InputError for a value that none of them takes."""
        raw = environ.get(CAPTURE, "")
        level = _LEVELS.get(raw.strip().upper())
        if level is None:
            raise InputError(
                f"{CAPTURE} is {preview(raw, 40)!r}, but it takes NO_CONTENT, SPAN_ONLY or SPAN_AND_EVENT"
            )
        inputs, outputs = (
            not any(environ.get(name, "").strip().lower() in ("true", "1") for name in names)
            for names in (_HIDDEN_INPUTS, _HIDDEN_OUTPUTS)
        )
        return cls(level, inputs, outputs)

    def takes(self, prefix: str) -> bool:
        """Whether a text of this prefix may leave, be it as a preview."""
        return self.level != "none" and (self.inputs if prefix in _INPUTS else self.outputs)


class Conversations:
    """The messages of every root call, put together from what each adds to the one before on its path.

    Feed root calls in the order in which they were made.
    """

    def __init__(self) -> None:
        self._paths: dict[object, list[Message]] = {}

    def of(self, attributes: Mapping[str, Any]) -> tuple[Message, ...]:
        """(role, sha256) of all messages a root call was sent, as far as the record tells."""
        path = attributes.get(sc.RUN_PATH)
        before = self._paths.get(path, [])
        prior, added = attributes.get(sc.MESSAGES_PRIOR, 0), decoded(attributes.get(sc.MESSAGES_ADDED))
        kept = before[:prior] if type(prior) is int and prior >= 0 else before
        pairs = added if isinstance(added, list) else []
        now = [*kept, *((pair[0], pair[1]) for pair in pairs if _is_message(pair))]
        self._paths[path] = now
        return tuple(now)


class SpanWords:
    """Makes the attributes that leave, span by span in any order. `text_of` finds payloads by their hash."""

    def __init__(
        self, content: Content, text_of: Callable[[Collection[str]], Mapping[str, str]], redactor: Redactor
    ) -> None:
        self._content, self._text_of, self._redactor = content, text_of, redactor
        self._changed: dict[str, str] = {}  # texts that held keys, by hash: messages come again and again

    def attributes(
        self, recorded: Mapping[str, Any], messages: Sequence[Message] | None = None
    ) -> dict[str, Any]:
        """The attributes of one span. `messages` are those of a root call, (role, sha256)."""
        content = self._content
        whole, sent = ({}, None) if content.level == "none" else self._texts(recorded, messages or ())
        clean = self._redactor.attributes(
            {key: list(value) if isinstance(value, tuple) else value for key, value in recorded.items()}
        )
        said = {
            key: plain(value) for key, value in clean.items() if value is not None and self._may_leave(key)
        }
        if content.level == "whole":
            said |= {prefix: plain(text) for prefix, text in whole.items() if content.takes(prefix)}
            said |= self._shown(
                said, {prefix: text for prefix, text in whole.items() if prefix in said}, sent
            )
        return said

    def event(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of an event of a span: they may quote code and models."""
        content = self._content
        if content.level == "none" or not (content.inputs and content.outputs):
            return {}
        clean = self._redactor.attributes(recorded)
        if content.level == "previews":
            clean = {key: preview(value) if isinstance(value, str) else value for key, value in clean.items()}
        return {key: plain(value) for key, value in clean.items()}

    def name(self, recorded: str) -> str:
        """The name of a span or event."""
        return str(plain(self._redactor.text(recorded)))

    def problem(self, attributes: Mapping[str, Any]) -> str | None:
        """What went wrong in a span, out of the attributes that leave."""
        said = attributes.get(sc.ERROR_MESSAGE) or attributes.get(sc.ERROR_TYPE)
        return said if isinstance(said, str) else None

    def _texts(
        self, recorded: Mapping[str, Any], messages: Sequence[Message]
    ) -> tuple[dict[str, str], tuple[Message, ...] | None]:
        """The texts of a span by prefix, and its messages, without keys. Previews need them too: only whole
        texts tell whether what a preview ends with is the beginning of a key.
        """
        named = {
            key.removesuffix(_HASH): value
            for key, value in recorded.items()
            if key.endswith(_HASH) and isinstance(value, str)
        }
        cited = messages if self._content.level == "whole" else messages[-1:]
        texts = self._text_of({*named.values(), *(sha256 for _, sha256 in cited)})
        clean = {sha256: self._clean(sha256, text) for sha256, text in texts.items()}
        whole = {prefix: clean[sha256] for prefix, sha256 in named.items() if sha256 in clean}
        sent = tuple((self.name(role), clean[sha256]) for role, sha256 in cited if sha256 in clean)
        complete = bool(cited) and len(sent) == len(cited) and self._content.inputs
        return whole, sent if complete else None

    def _clean(self, sha256: str, text: str) -> str:
        if sha256 not in self._changed:
            clean = self._redactor.payload(sha256, text)[1]
            if clean == text:
                return text
            self._changed[sha256] = clean
        return self._changed[sha256]

    def _may_leave(self, key: str) -> bool:
        content = self._content
        if key.endswith(_PREVIEW) and key != sc.PREVIEW:
            return content.takes(key.removesuffix(_PREVIEW))
        if key not in _QUOTING:
            return True
        if content.level == "none" or not (content.inputs or key not in _QUOTING_INPUT):
            return False
        return content.outputs or key not in _QUOTING_OUTPUT

    def _shown(
        self, said: Mapping[str, Any], whole: Mapping[str, str], sent: tuple[Message, ...] | None
    ) -> dict[str, Any]:
        """What viewers show of a span: its input and output, and of a call its messages."""
        asked = next((whole[prefix] for prefix in _SHOWN_AS_INPUT if prefix in whole), None)
        given = next((whole[prefix] for prefix in _SHOWN_AS_OUTPUT if prefix in whole), None)
        calls = said.get(sc.KIND) in _CALLS
        if sent is None and asked is not None and calls:
            sent = (("user", asked),)
        shown: dict[str, Any] = {}
        if asked is not None or sent:
            shown[sc.OI_INPUT] = plain(asked if asked is not None or not sent else sent[-1][1])
        if given is not None:
            shown[sc.OI_OUTPUT] = plain(given)
        if calls and sent:
            shown[INPUT_MESSAGES] = plain(as_json([_message(role, text) for role, text in sent]))
        if calls and given is not None:
            shown[OUTPUT_MESSAGES] = plain(as_json([_reply(said, whole, given)]))
        return shown | {mime: "text/plain" for key, mime in _MIME.items() if key in shown}


def plain(value: Any) -> Any:
    """A value as OTLP can carry it: text without lone surrogates, whole numbers of 64 bits."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    return plain(as_json(value))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _reply(said: Mapping[str, Any], whole: Mapping[str, str], text: str) -> dict[str, Any]:
    reasons = decoded(said.get(sc.FINISH_REASONS))
    reason = reasons[0] if isinstance(reasons, list) and reasons else None
    message = _message("assistant", text)
    if sc.REASONING in whole:
        message["parts"].insert(0, {"type": "reasoning", "content": whole[sc.REASONING]})
    return message | {"finish_reason": reason if isinstance(reason, str) else "unknown"}


def _is_message(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
