"""Whether processes of others go on, asked while they end."""

from __future__ import annotations

import os
from pathlib import Path


def lives(pid: int) -> bool:
    """Whether a process exists and has not ended; one that its parent has not asked for yet has ended."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except OSError:  # it is gone by now, or this system tells no more
        return not Path("/proc/self/stat").exists()
    return state not in "ZX"
