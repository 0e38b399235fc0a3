"""Refusing what does not fit into memory before it is asked for."""

import os
from pathlib import Path

from tnsum._arrays import dtype_name
from tnsum._typing import DType
from tnsum.errors import NetworkError


def check_memory(n_entries: int, dtype: DType, what: str, advice: str) -> None:
    """Raise when `n_entries` numbers do not fit into the memory that is free."""
    n_bytes = n_entries * {"float32": 4, "complex128": 16}.get(dtype_name(dtype), 8)
    if n_bytes < 2**27:
        return
    available = available_memory()
    if available is not None and n_bytes > available:
        raise NetworkError(
            f"{what} must fit into memory: it needs {_in_words(n_bytes)}, "
            f"{_in_words(available)} are free. {advice}"
        )


def available_memory() -> int | None:
    """The free memory in bytes, of this machine or of the container, as far as the system tells."""
    known = [n for n in (_of_machine(), _of_container()) if n is not None]
    return min(known, default=None)


def _of_container() -> int | None:
    """What is left of the limit that a Linux container has, if it has one."""
    try:
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # Pages of files count as used, but are given back when memory is asked for.
        return max(0, limit - used + int(stat.get("inactive_file", 0)))
    except (OSError, ValueError):
        return None


def _of_machine() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _in_words(n_bytes: int) -> str:
    if n_bytes >= 1000 * 2**40:
        digits = str(n_bytes)
        return f"{digits[0]}.{digits[1]}e+{len(digits) - 1} bytes"
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
