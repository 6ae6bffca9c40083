"""What a worker uses, as the system counts it. Nothing here believes the worker."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def process_cpu_seconds(pid: int) -> float | None:
    """User and system time of a process, or None where there is no /proc."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)  # twice in every cell: no text layer above it
        try:
            line = os.read(file, 4096)
        finally:
            os.close(file)
    except OSError:
        return None
    fields = line.rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def anonymous_bytes(pid: int) -> int:
    """Anonymous memory of a process: mapped files do not count. 0 where there is no /proc."""
    return _status(pid, "RssAnon:") * 1024


def thread_count(pid: int) -> int:
    """Threads of a process. 0 where there is no /proc."""
    return _status(pid, "Threads:")


def _status(pid: int, name: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def scratch_use(folder: str, most_bytes: int, most_files: int) -> tuple[int, int]:
    """Bytes on disk and number of entries below a folder; stops counting just above either limit."""
    used = files = 0
    folders = [folder]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                with contextlib.suppress(OSError):
                    used += _bytes_on_disk(entry.stat(follow_symlinks=False))
                if used > most_bytes or files > most_files:
                    return used, files
    return used, files


def deleted_bytes(pid: int, folder: str, most: int) -> int:
    """Bytes on disk of files of a folder that a process has removed and still holds: no listing shows them.

    One that is only mapped cannot be measured and counts as `most`, the largest it can be. 0 without /proc.
    """
    used = 0
    seen: set[int] = set()
    descriptors = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(descriptors):
            with contextlib.suppress(OSError):
                status = os.stat(f"{descriptors}/{name}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_ino not in seen:
                    seen.add(status.st_ino)
                    used += _bytes_on_disk(status)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as maps:
        for line in maps:
            if line.endswith(" (deleted)\n"):
                *_, inode, path = line.split(maxsplit=5)
                if path.startswith(folder + "/") and int(inode) not in seen:
                    seen.add(int(inode))
                    used += most
    return used


def _bytes_on_disk(status: os.stat_result) -> int:
    """Blocks, so that a sparse file costs what it takes; the plain size where there are no blocks."""
    return int(getattr(status, "st_blocks", -(-status.st_size // 512))) * 512
