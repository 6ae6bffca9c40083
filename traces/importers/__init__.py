"""Runs out of the records of other engines: each format has a module with `recognises` and `read`.

A reader turns a `Source` into `ForeignRun`s and knows nothing of spools; `writing` puts such a run into the
spool of a home, from where it is read like any other. Records are untrusted: what cannot be used is left out
and said, and only a source of which nothing can be had raises InputError.
"""

from __future__ import annotations

from typing import Final

#: Format -> its module, in the order in which they are tried: the most particular first. Each has
#: `recognises(source: Source) -> bool`, which looks at content, never at names, and
#: `read(source: Source) -> Iterator[ForeignRun]`.
IMPORTERS: Final[dict[str, str]] = {
    "rlmscope": "traces.importers.own",
    "otlp": "traces.importers.otlp",
    "rlms": "traces.importers.rlms",
    "fast-rlm": "traces.importers.fast_rlm",
    "recursive-flow": "traces.importers.recursive_flow",
    "dspy": "traces.importers.dspy",
    "predict-rlm": "traces.importers.predict_rlm",
    "droste": "traces.importers.droste",
}
