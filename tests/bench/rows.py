"""What the parts of `make bench` share."""

from __future__ import annotations

import resource

Row = tuple[str, str, list[float], float | None]  # name, unit, values of the repeats, target (an upper bound)


def cpu() -> float:
    """CPU seconds of this process and of the children it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
