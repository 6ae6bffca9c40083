"""From a call in a cell to the request that a model gets, and what makes two of them the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rlm_core import semconv as sc
from rlm_core.call_identity import Identity, hash_of_prompt, hash_of_request, template
from rlm_core.cell_scope import CellScope
from rlm_core.corpus import Corpus
from rlm_core.errors import ModelError
from rlm_core.image_files import Drawn
from rlm_core.images import Named, blind, data_url, facts_of, named, unshown
from rlm_core.lm_handler import Message, Request
from rlm_core.model_calls import NOTHING_BILLED, CallDropped
from rlm_core.run_state import RunState
from rlm_core.schema_check import Shape
from rlm_core.telemetry import RunSpan, as_json, sha256_text
from rlm_core.wire import OpenCall, Part, Slot, chars_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A sub-call that is to be answered: `request` is without its `images`, `shape` is what the reply has to
    fit.
    """

    request: Request
    identity: Identity
    shape: Shape | None
    images: tuple[Named, ...]


@dataclass
class SubRequests:
    """The requests of one run path over one corpus."""

    state: RunState
    corpus: Corpus
    depth: int
    _occurrences: Counter[str] = field(default_factory=Counter)

    def forget(self) -> None:
        """The cells run again from the first one: occurrences are counted anew."""
        self._occurrences.clear()

    def text_of(self, parts: list[Part]) -> str:
        """Parts as text; raises `CorpusError` for a place outside the corpus. Check `chars_of` first."""
        return "".join(part if isinstance(part, str) else self.corpus.text(*part) for part in parts)

    def resolve(self, slot: Slot, model: str) -> str:
        """The prompt as the model will see it; raises `ModelError` for one that is too large."""
        if slot.too_large is not None:
            raise ModelError("too_large", f"a prompt of {slot.too_large:,} bytes is too large to be sent")
        chars, most = chars_of(slot.prompt) + chars_of(slot.snippet), self.state.limits.max_prompt_chars
        if chars > most:
            raise ModelError(
                "too_large", f"a prompt of {chars:,} characters exceeds the limit of {most:,}; send parts"
            )
        return self.text_of(slot.whole())

    def model(self, asked: str | None) -> str:
        """The model of a call; raises `ModelError`: generated code may name only the models of this run."""
        root, sub = self.state.models(self.depth)
        names = {"root": root, "sub": sub, **self.state.aliases}
        model = sub if asked is None else names.get(asked, asked)
        if model not in (root, sub):
            raise ModelError(
                "bad_request", f"model {asked!r} is not part of this run; there are {sub!r} and {root!r}"
            )
        return model

    def images(self, slot: Slot) -> tuple[Named, ...]:
        """The images of a call, not drawn yet. Raises `ModelError` for one that is not there, and for a
        document that can only be shown but was given as text.
        """
        images = named(self.corpus, slot.images)
        if (problem := unshown(self.corpus, slot.whole(), images)) is not None:
            raise ModelError("image", problem)
        return images

    def identify(
        self, call: OpenCall, slot: Slot, model: str, prompt: str, images: Sequence[Named] = ()
    ) -> tuple[Request, Identity]:
        """The request of a call, and what makes it the same as another one. Counts its occurrence. The
        request is without its images until `with_images` puts them in.
        """
        most = min(call.max_tokens or self.state.limits.max_tokens_sub, self.state.limits.max_tokens_sub)
        prompt_hash = hash_of_prompt(prompt, [image.key for image in images])
        tools, read = self.state.options.tool_specs, self.corpus.corpus_id
        request_hash = hash_of_request(prompt_hash, model, most, call.schema, tools, read)
        identity = Identity(
            prompt=prompt,
            prompt_hash=prompt_hash,
            template_hash=sha256_text(template(slot)),
            request_hash=request_hash,
            occurrence=self.next_occurrence(request_hash),
        )
        request = Request(
            model=model,
            messages=(Message("user", prompt),),
            role="sub",
            max_tokens=most,
            schema=call.schema,
            tools=tools,
            corpus_id=read,
            timeout=self.state.limits.request_timeout,
            request_hash=request_hash,
            occurrence=identity.occurrence,
        )
        return request, identity

    async def with_images(self, asked: Asked, scope: CellScope, span: RunSpan) -> Request:
        """The request with its images, which are drawn now and put on the span of the call.

        Raises `ModelError` when one of them cannot be, and `CallDropped` when its cell has ended: no model
        was asked then.
        """
        request, images = asked.request, asked.images
        if not images:
            return request
        try:
            if scope.ended:
                raise CallDropped("the cell that asked has ended")
            drawn = await self.state.images.draw(self.corpus, images)
        except BaseException as error:
            span.set(NOTHING_BILLED)
            if self.state.playback is not None:
                self.state.playback.unsent()
            if isinstance(error, ModelError):
                scope.note_turned_away()
            raise
        payloads = [self._payload(*each) for each in zip(images, drawn, strict=True)]
        span.set(
            {sc.IMAGES: as_json([facts_of(*each) for each in zip(images, drawn, payloads, strict=True)])}
        )
        if (notice := blind(request.model)) is not None and notice not in self.state.notices:
            self.state.notices.append(notice)
        *before, last = request.messages
        shown = replace(last, images=tuple(one.image for one in drawn))
        return replace(request, messages=(*before, shown))

    def _payload(self, image: Named, drawn: Drawn) -> str:
        """The hash under which the record has an image: put there once, however many calls show it."""
        known = self.state.images.payloads
        if image.key not in known:
            known[image.key] = self.state.recorder.payload(data_url(drawn.image))
        return known[image.key]

    def next_occurrence(self, request_hash: str) -> int:
        """How often this request was made on this run path before."""
        occurrence = self._occurrences[request_hash]
        self._occurrences[request_hash] += 1
        return occurrence
