"""Files that are replaced at one stroke: whatever happens, there is the old one or the new one."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from tnsum.errors import NetworkError

# As many as Linux follows.
_MOST_LINKS = 40


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file beside `path` that takes its place at the end of the block, and goes if that fails."""
    target = _target(path)
    old = _old_file(target)
    temporary = os.path.join(os.path.dirname(target), f".tnsum-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Nobody may read the new file, not even for a moment, who may not read the old one.
    descriptor = os.open(temporary, flags, 0o666 if old is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            # The data must be on the disk before the name is, or a power cut leaves an empty file.
            os.fsync(descriptor)
        if old is not None:
            _take_over_rights(temporary, old)
        os.replace(temporary, target)
        _sync_folder(os.path.dirname(target))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _target(path: str | os.PathLike[str]) -> str:
    """The file that a path leads to, through symbolic links."""
    name = os.path.abspath(path)
    if os.path.basename(path) in ("", ".", ".."):
        raise NetworkError("it is the name of a directory. Give the name of a file.")
    for _ in range(_MOST_LINKS):
        if os.path.islink(name):
            # /dev/stdout is a link to here; the file that the output goes to is not to be replaced.
            if name.startswith("/proc/"):
                raise NetworkError("it is an open file of a process. Give the name of a file.")
            name = os.path.join(os.path.dirname(name), os.readlink(name))
    return os.path.realpath(name)


def _take_over_rights(path: str, old: os.stat_result) -> None:
    """Give a file the owner, group and mode of an older one, as far as the system lets us."""
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(OSError):
                os.chown(path, owner, group)
        if os.stat(path).st_gid != old.st_gid:
            mode &= ~stat.S_IRWXG
    os.chmod(path, mode)


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk too, where folders can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _old_file(target: str) -> os.stat_result | None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        raise NetworkError("it is no file but a directory or a device. Give the name of a file.")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return old
