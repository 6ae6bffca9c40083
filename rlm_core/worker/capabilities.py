"""The special rights of root on Linux (capabilities(7)): all of them are given up."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

from rlm_core.worker.kernel import control, system_call

_CAPSET: Final = 126  # of x86_64
_VERSION_3: Final = 0x20080522
_DROP_FROM_BOUNDING_SET: Final = 24
_AMBIENT: Final = 47
_CLEAR_ALL: Final = 4
_LAST_POSSIBLE: Final = 63


def drop() -> None:
    """Empty every set of this thread. Raises `OSError`; without rights there is nothing to fail."""
    with contextlib.suppress(OSError):  # past the last one, or not allowed to because there are none
        for number in range(_LAST_POSSIBLE + 1):
            control(_DROP_FROM_BOUNDING_SET, number)
    with contextlib.suppress(OSError):  # kernels without an ambient set
        control(_AMBIENT, _CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    system_call(_CAPSET, ctypes.byref(header), ctypes.byref(nothing))
