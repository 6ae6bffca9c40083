"""What a run may use, and the one ledger that counts it for the whole tree."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run and all its children; None = no limit.

    `max_depth` 0 = no child runs; the top run's depth is 0. `max_calls` counts sub-calls (retries are attempts, not
    calls). `cell_seconds` is wall time without the time sub-calls are outstanding, `cell_cpu_seconds` is CPU time of
    the worker, which never pauses. Sizes are in characters or bytes as named.
    """

    max_iterations: int = 30
    max_depth: int = 1
    max_calls: int | None = 5_000
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None
    max_seconds: float | None = None
    concurrency: int = 32
    cell_seconds: float = 60.0
    cell_cpu_seconds: float = 60.0
    max_workers: int = 8  # live workers per depth
    max_prompt_chars: int = 4_000_000
    memory_bytes: int = 2 << 30
    scratch_bytes: int = 1 << 30
    scratch_files: int = 10_000
    output_kept_chars: int = 200_000
    output_shown_chars: int = 10_000
    request_timeout: float = 60.0
    max_tokens_sub: int = 4096
    max_tokens_root: int = 8192
