"""Where files are saved to and loaded from: paths, links, rights, disks that are full, wrong arguments.

One table of paths and two of calls, with the whole message of each.
"""

import errno
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum
from fuzz_storage import put_together, saved, taken_apart
from tnsum import Network, NetworkError, _memory, _unpacking

# Without types: most calls here are wrong.
save: Any = tnsum.save
load: Any = tnsum.load

MOST = 2**24
Reason = str | re.Pattern[str]

x = Network({"A": (np.arange(6.0).reshape(2, 3), ("i", "r")), "B": (np.ones((3, 2)), ("r", "j"))})
y = Network({"A": (np.ones((2, 1)), ("i", "r")), "B": (np.ones((1, 2)), ("r", "j"))})
whole = saved(x)


def assert_raises(call: Callable[[], Any], message: Reason) -> None:
    with pytest.raises(NetworkError) as raised:
        call()
    assert type(raised.value) is NetworkError
    if isinstance(message, str):
        assert str(raised.value) == message
    else:
        assert message.fullmatch(str(raised.value)), raised.value


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is inside is stopped after a time, if it hangs."""

    def stop(*_: object) -> None:
        pytest.fail(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def assert_right(got: Network, expected: Network) -> None:
    assert got.topology == expected.topology
    for name in expected.arrays:
        np.testing.assert_array_equal(got.arrays[name], expected.arrays[name])


def in_words(path: object, verb: str, reason: Reason) -> Reason:
    before = f"{str(path)!r} cannot be {verb}: "
    if isinstance(reason, str):
        return before + reason
    return re.compile(re.escape(before) + reason.pattern, re.DOTALL)


# paths


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"x"


FIRST = "The path of a file must come first, as text or pathlib.Path; {} came."
SECOND = (
    "save takes a path and then a Network, NetworkStack, NetworkSum or SumAccumulator; {} came."
)
UNTEXT = Network({"A\ud800": (np.ones(2), ("i",))})
UNTEXT_MODE = Network({"A": (np.ones(2), ("\udfff",))})
CALLS: dict[str, tuple[Callable[[Path], Any], Reason]] = {
    "load bytes": (lambda _: load(b"x"), FIRST.format("bytes")),
    "load a number": (lambda _: load(0), FIRST.format("int")),
    "load None": (lambda _: load(None), FIRST.format("NoneType")),
    "load an open file": (lambda _: load(sys.stdin), re.compile(
        FIRST.format(r"\w+"))),
    "load a path of bytes": (lambda _: load(BytesPath()),
                             FIRST.format("BytesPath")),
    "save to bytes": (lambda _: save(b"x", x), FIRST.format("bytes")),
    "save to a number": (lambda _: save(1, x), FIRST.format("int")),
    "save to None": (lambda _: save(None, x), FIRST.format("NoneType")),
    "save to a path of bytes": (lambda _: save(BytesPath(), x),
                                FIRST.format("BytesPath")),
    "save an array": (lambda path: save(path, np.ones(2)),
                      SECOND.format("ndarray")),
    "save a list": (lambda path: save(path, [x]), SECOND.format("list")),
    "save None": (lambda path: save(path, None), SECOND.format("NoneType")),
    "save a topology": (lambda path: save(path, x.topology),
                        SECOND.format("Topology")),
    "save the wrong way round": (lambda path: save(x, path),
                                 re.compile(SECOND.format(r"\w+Path"))),
    "nodes a text": (lambda path: load(path / "x", "A"),
                     "nodes must be a list of names; 'A' came."),
    "nodes a number": (lambda path: load(path / "x", 0),
                       "nodes must be a list of names; 0 came."),
}  # fmt: skip

IS_DIRECTORY = "it is a directory or a device, not a file"
NAME_OF_DIRECTORY = "it is the name of a directory. Give the name of a file."
NO_FILE = "it is no file but a directory or a device. Give the name of a file."
MISSING = os.strerror(errno.ENOENT)

# A path below a folder that holds the file `x`; why it is not loaded, and why nothing is saved there.
PATHS: dict[str, tuple[str, str, str | None]] = {
    "missing": ("missing", MISSING, None),
    "missing folder": ("missing/x", MISSING, MISSING),
    "directory": ("", IS_DIRECTORY, NAME_OF_DIRECTORY),
    "directory that is not there": ("new/", MISSING, NAME_OF_DIRECTORY),
    "file with a separator": ("x/", os.strerror(errno.ENOTDIR), NAME_OF_DIRECTORY),
    "file with a dot": ("x/.", os.strerror(errno.ENOTDIR), NAME_OF_DIRECTORY),
    "link to a directory": ("to folder", IS_DIRECTORY, NO_FILE),
    "FIFO": ("fifo", IS_DIRECTORY, NO_FILE),
    "link to a FIFO": ("to fifo", IS_DIRECTORY, NO_FILE),
    "socket": ("socket", IS_DIRECTORY, NO_FILE),
    "device": ("/dev/zero", IS_DIRECTORY, NO_FILE),
    "null": ("/dev/null", IS_DIRECTORY, NO_FILE),
    "below a file": ("x/y", os.strerror(errno.ENOTDIR), os.strerror(errno.ENOTDIR)),
    "link to itself": ("loop", os.strerror(errno.ELOOP), os.strerror(errno.ELOOP)),
    "link to nothing": ("to nothing", MISSING, None),
    "long name": ("n" * 256, os.strerror(errno.ENAMETOOLONG), os.strerror(errno.ENAMETOOLONG)),
    "NUL": ("x\0y", "embedded null byte", "embedded null byte"),
    "empty file": ("empty", "it has 0 bytes, too few for a safetensors file", None),
}


def test_an_open_file_of_a_process_is_not_replaced(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("kept")
    with open(log) as file:
        link = tmp_path / "link"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        for path in (link, Path(f"/proc/self/fd/{file.fileno()}")):
            with pytest.raises(NetworkError) as raised:
                save(path, x)
            fault = "it is an open file of a process. Give the name of a file."
            assert str(raised.value) == f"{str(path)!r} cannot be saved: {fault}"
    assert log.read_text() == "kept"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "x", x)
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    links = {"to folder": ".", "to fifo": "fifo", "loop": "loop", "to nothing": "nothing"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    # The name of a socket must be short.
    with socket.socket(socket.AF_UNIX) as listening, tempfile.TemporaryDirectory() as short:
        listening.bind(f"{short}/s")
        os.rename(f"{short}/s", tmp_path / "socket")
    return tmp_path


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """No file comes or goes inside."""
    before = sorted(os.listdir(folder))
    yield
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(("name", "load_reason", "save_reason"), PATHS.values(), ids=PATHS)
def test_a_path_that_is_no_file_is_refused_in_words(
    name: str, load_reason: str, save_reason: str | None, folder: Path
) -> None:
    path = f"{folder}/{name}" if not name.startswith("/") else name
    # Who opens a FIFO waits for ever, who reads a device reads for ever.
    with unchanged(folder), within(60):
        assert_raises(lambda: load(path), in_words(path, "loaded", load_reason))
        if save_reason is not None:
            assert_raises(lambda: save(path, x), in_words(path, "saved", save_reason))
    if save_reason is None:
        save(path, x)
        assert load(path).topology == x.topology


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_a_wrong_argument_is_refused_in_words(
    call: Callable[[Path], Any], message: Reason, folder: Path
) -> None:
    with unchanged(folder):
        assert_raises(lambda: call(folder), message)


INSIDE: dict[str, tuple[Callable[[Path], Any], str, Reason]] = {
    "no such node": (lambda path: load(path, ["A", "C"]), "loaded",
                     "nodes must be of ('A', 'B'); 'C' came."),
    "no node": (lambda path: load(path, []), "loaded", "nodes must be of ('A', 'B'); none came."),
    "node a number": (lambda path: load(path, [0]), "loaded",
                      "nodes must be of ('A', 'B'); 0 came."),
    "node a list": (lambda path: load(path, [["A"]]), "loaded",
                    "nodes must be of ('A', 'B'); ['A'] came."),
    "node with a long name": (lambda path: load(path, ["A" * 100]), "loaded",
                              f"nodes must be of ('A', 'B'); '{'A' * 76}... came."),
    "nodes as bytes": (lambda path: load(path, b"A"), "loaded",
                       "nodes must be of ('A', 'B'); 65 came."),
    "half a pair in a name": (lambda path: save(path, UNTEXT), "saved",
                              r"names must be valid Unicode; 'A\ud800' is not. Rename it with "
                              "x.rename."),
    "half a pair in a mode": (lambda path: save(path, UNTEXT_MODE + UNTEXT_MODE), "saved",
                              r"names must be valid Unicode; '\udfff' is not. Rename it with x.rename."),
    "weight too large": (lambda path: save(path, 10**400 * x), "saved",
                         "int too large to convert to float"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "verb", "reason"), INSIDE.values(), ids=INSIDE)
def test_what_cannot_be_done_is_told_with_the_path(
    call: Callable[[Path], Any], verb: str, reason: Reason, folder: Path
) -> None:
    path = folder / "x"
    with unchanged(folder):
        assert_raises(lambda: call(path), in_words(path, verb, reason))
    assert path.read_bytes() == whole


# what needs more than a file


def header_too_large(path: Path) -> None:
    """Long names, each in the header and, escaped, in the description."""
    names = [f"{k}" + "ä" * 20_000 for k in range(150)]
    arrays = {name: (np.ones(1), (f"{k}",)) for k, name in enumerate(names)}
    save(path, Network(arrays))


def test_a_header_must_not_be_too_large(folder: Path) -> None:
    pattern = (
        rf"The header of a file must have at most {MOST} bytes; 150 arrays need \d+\. Put networks of "
        r"equal sizes into a NetworkStack, or save several files\."
    )
    path = folder / "x"
    with unchanged(folder):
        assert_raises(lambda: header_too_large(path), in_words(path, "saved", re.compile(pattern)))
    assert path.read_bytes() == whole


def cut_while_read(path: Path) -> None:
    """Load a file that is cut when its header has been checked."""
    with pytest.MonkeyPatch.context() as patch:
        path.write_bytes(whole)
        patch.setattr(
            _unpacking, "check_shapes", lambda *_, **__: os.truncate(path, len(whole) - 8)
        )
        load(path, memory_map=False)


def test_a_file_that_becomes_shorter_is_refused(folder: Path) -> None:
    path = folder / "x"
    message = in_words(path, "loaded", "it became shorter while it was read")
    assert_raises(lambda: cut_while_read(path), message)


def no_right_to_write(path: Path) -> None:
    """Save over a file that is read-only; the system's answer is made up, since root may do all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        save(path, x)


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user without rights, also when root runs the tests."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_rights_are_respected() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = Path(folder) / "x"
        with as_nobody():
            save(path, x)
            path.chmod(0o000)
            denied = os.strerror(errno.EACCES)
            with unchanged(Path(folder)):
                assert_raises(lambda: load(path), in_words(path, "loaded", denied))
            for mode in (0o000, 0o444):
                path.chmod(mode)
                with unchanged(Path(folder)):
                    assert_raises(lambda: save(path, x), in_words(path, "saved", denied))
            assert path.read_bytes() == whole
            os.chmod(path, 0o644)
        os.chmod(folder, 0o555)
        with as_nobody():
            assert_raises(lambda: save(path, x), in_words(path, "saved", denied))
            assert load(path).topology == x.topology
        os.chmod(folder, 0o777)


def test_a_file_larger_than_memory_is_mapped_but_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    header, _ = taken_apart(whole)
    end = 3 * 2**37 * 8
    header["0/B"].update(shape=[3, 2**37], data_offsets=[48, 48 + end])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(put_together(text, bytes(48)))
        file.truncate(8 + len(text) + 48 + end)
    reason = (
        r"each of its arrays must fit into memory: it needs 3\.0 TiB, .* are free\. Load it with "
        r"memory_map=True\."
    )
    assert_raises(
        lambda: load(path, memory_map=False), in_words(path, "loaded", re.compile(reason))
    )
    assert load(path, ["A"], memory_map=False).shape == (2, 3)
    assert load(path).shape == (2, 2**37)
    available = _memory.available_memory()
    assert available is None or available < end


FULL_DISK = """
import os, resource, signal, sys
import numpy as np, tnsum
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = sys.argv[1]
for size in (1, 100_000):
    x = tnsum.Network({"A": (np.ones(size), ("i",))})
    for limit in (0, 1, 8, 100, 8 * size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            tnsum.save(path, x)
        except tnsum.NetworkError as error:
            assert str(error) == f"{path!r} cannot be saved: File too large", error
        else:
            raise AssertionError(f"{limit} bytes held a network of {size}")
        assert os.listdir(os.path.dirname(path)) == ["x"], os.listdir(os.path.dirname(path))
"""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save(path, x)
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == whole


def test_an_error_without_a_number_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk has gone")

    monkeypatch.setattr(os, "fsync", fail)
    path = folder / "x"
    assert_raises(lambda: save(path, y), in_words(path, "saved", "the disk has gone"))


@pytest.mark.parametrize("function", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    function: str, error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, function, fail)
    expected = NetworkError if isinstance(error, OSError) else KeyboardInterrupt
    with unchanged(folder), pytest.raises(expected):
        save(folder / "x", x + y)
    assert (folder / "x").read_bytes() == whole


# files as they should be


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_paths_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    longest = ("ä" * 200).encode()[:254].decode() + "x"
    assert len(longest.encode()) == 255
    paths: list[Any] = [
        *("relative", "./folder/../dotted", tmp_path / "path", str(tmp_path / "text"), longest),
        *(Path("folder") / "x", " ", "new\nline", "~", "x.npz"),
    ]
    for path in paths:
        save(path, x)
        assert_right(load(path), x)
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    expected = ["relative", "dotted", "path", "text", longest, "folder/x", " ", "new\nline", "~"]
    assert found == sorted([*expected, "x.npz"])


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(Path("there") / "file")
    (tmp_path / "chain").symlink_to("link")
    for each in (x, y):
        save(tmp_path / "chain", each)
        assert_right(load(tmp_path / "link"), each)
        assert_right(load(tmp_path / "there" / "file"), each)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "chain").is_symlink()
    assert os.listdir(tmp_path / "there") == ["file"]


def test_the_mode_is_the_old_ones_or_what_the_umask_says(tmp_path: Path) -> None:
    old_umask = os.umask(0o027)
    try:
        save(tmp_path / "new", x)
        assert mode_of(tmp_path / "new") == 0o640
        for mode in (0o600, 0o666, 0o755):
            (tmp_path / "new").chmod(mode)
            save(tmp_path / "new", x)
            assert mode_of(tmp_path / "new") == mode
    finally:
        os.umask(old_umask)


def test_a_private_file_is_never_public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "x", x)
    (tmp_path / "x").chmod(0o600)
    modes = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
    )
    save(tmp_path / "x", y)
    assert modes[0] == 0o600


def test_data_are_on_the_disk_before_the_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "x", x)
    events: list[object] = []
    replace = os.replace

    def replacing(*names: str) -> None:
        events.append("name")
        replace(*names)

    monkeypatch.setattr(os, "fsync", lambda fd: events.append(os.fstat(fd).st_size))
    monkeypatch.setattr(os, "replace", replacing)
    save(tmp_path / "x", x)
    # Last comes the folder, with the new name.
    assert events[:2] == [len(whole), "name"]
    assert len(events) == 3
