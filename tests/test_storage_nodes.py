"""Loading some nodes of a file, and what is read, mapped and kept when a file is loaded."""

import ctypes
import gc
import json
import mmap
import os
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum
from fuzz_storage import Saved, put_together, saved, taken_apart
from test_storage import (
    assert_equal,
    assert_same,
    back,
    kinds,
    mapped_or_read,
    net,
    on_all,
    terms_of,
)
from tnsum import Network, NetworkError, NetworkStack, NetworkSum, Topology
from topologies import BY_NAME, Case

# Without its types: what comes back here is never a sum.
load: Any = tnsum.load
x, y, z = (net(BY_NAME["two_nodes"], which) for which in range(3))


# some nodes


def subsets(names: list[str], seed: str) -> Iterator[list[str]]:
    """The first node, the last, all backwards, and some at random."""
    rng = np.random.default_rng([*seed.encode()])
    some = [name for name in names if rng.random() < 0.5]
    yield from (names[:1], names[-1:], names[::-1], some or names[::2])


def topology_alone(whole: Topology, chosen: list[str]) -> Topology:
    """By the words of `load`: modes that lead to other nodes are physical, after the others."""
    inside = {name: modes for name, modes in whole.nodes.items() if name in chosen}
    outside = {mode for name, held in whole.nodes.items() if name not in chosen for mode in held}
    held = {mode for modes in inside.values() for mode in modes}
    own = [mode for mode in whole.physical_modes if mode in held]
    cut = [mode for mode in whole.contraction_modes if mode in held & outside]
    return Topology(inside, own + cut)


@on_all
def test_some_nodes_are_those_of_the_whole(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for number, x in enumerate(kinds(case, "float32")):
        tnsum.save(path, x)
        explicit = x.to_network() if isinstance(x, NetworkSum) else x
        for k, chosen in enumerate(subsets(list(case.nodes), case.name)):
            got = load(path, chosen, memory_map=(k + number) % 2 == 0)
            assert type(got) is type(explicit)
            assert got.topology == topology_alone(explicit.topology, chosen)
            assert list(got.arrays) == [name for name in case.nodes if name in chosen]
            for name in got.arrays:
                whole = x.node(name) if isinstance(x, NetworkSum) else explicit.arrays[name]
                assert_equal(got.arrays[name], whole)
            pass_the_checks_again(got)


def pass_the_checks_again(x: Saved) -> None:
    """What was built without checks passes those of its class."""
    if isinstance(x, Network):
        Network.from_topology(x.topology, x.arrays)
    elif isinstance(x, NetworkStack):
        NetworkStack(x.topology, x.arrays)


@pytest.mark.parametrize("name", ["star3", "ring4", "disconnected_chains", "disconnected_scalar"])
def test_nodes_that_were_loaded_apart_make_the_whole(name: str, tmp_path: Path) -> None:
    s = next(s for s in kinds(BY_NAME[name], "float64") if isinstance(s, NetworkSum))
    tnsum.save(tmp_path / "s", s)
    machines = [load(tmp_path / "s", nodes=[node]) for node in s.topology.nodes]
    nodes = {
        node: (one.arrays[node], one.topology.nodes[node])
        for one, node in zip(machines, s.topology.nodes, strict=True)
    }
    whole = Network(nodes, s.physical_modes)
    np.testing.assert_allclose(whole.contract(), s.contract(), rtol=1e-12)


def test_one_summand_needs_no_blocks(tmp_path: Path) -> None:
    x = net(BY_NAME["disconnected_chains"])
    tnsum.save(tmp_path / "s", 2 * x)
    first = load(tmp_path / "s", nodes=["A"])
    assert first.topology.nodes["A"] == x.topology.nodes["A"]
    assert_equal(first.arrays["A"], 2 * x.arrays["A"])


@mapped_or_read
def test_other_nodes_are_not_looked_at(memory_map: bool, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for x in kinds(BY_NAME["tensor_train5"], "float64"):
        data = bytearray(saved(x))
        header, rest = taken_apart(bytes(data))
        for name, entry in header.items():
            if name.partition("/")[2] not in ("", "B", "D"):
                begin, end = (len(data) - len(rest) + at for at in entry["data_offsets"])
                data[begin:end] = b"\xff" * (end - begin)
        path.write_bytes(data)
        got = load(path, ["D", "B"], memory_map)
        for node in ("B", "D"):
            whole = x.node(node) if isinstance(x, NetworkSum) else x.arrays[node]
            assert_equal(got.arrays[node], whole)
        assert np.isnan(load(path, ["C"], memory_map).arrays["C"]).any()


# what is read, what is kept


N_COLUMNS = 2**24


@pytest.fixture
def large_file(tmp_path: Path) -> Path:
    """Of 400 MB, nearly all of them a hole: A is small, B before it large."""
    header, _ = taken_apart(saved(x))
    end = 3 * N_COLUMNS * 8
    header["0/B"].update(shape=[3, N_COLUMNS], data_offsets=[0, end])
    header["0/A"].update(shape=[2, 3], data_offsets=[end, end + 48])
    a = np.arange(6.0)
    path = tmp_path / "large"
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(put_together(text + b" " * (-len(text) % 8)))
        file.seek(end, os.SEEK_CUR)
        file.write(a.tobytes())
    return path


def resident_bytes(path: Path) -> int:
    """How much of a file has been read into memory, by anybody."""
    page = mmap.PAGESIZE
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        states = (ctypes.c_ubyte * -(-len(data) // page))()
        view = np.frombuffer(data, np.uint8)
        address, length = ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(len(data))
        assert ctypes.CDLL(None).mincore(address, length, states) == 0
        del view
    return page * int(np.sum(np.frombuffer(bytes(states), np.uint8) & 1))


@contextmanager
def memory_bounded(n_bytes: int) -> Iterator[None]:
    """Nothing inside asks Python or NumPy for more memory than that at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= n_bytes
    finally:
        tracemalloc.stop()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")


@on_linux
def test_only_what_is_used_is_read(large_file: Path) -> None:
    with memory_bounded(2**20):
        whole, part = load(large_file), load(large_file, nodes=["A"])
        for got in (whole, part):
            np.testing.assert_array_equal(got.arrays["A"], np.arange(6.0).reshape(2, 3))
    assert resident_bytes(large_file) < 2**24
    # This test is able to fail: 64 MB that are used are in memory.
    assert not whole.arrays["B"][0, : 2**23].any()
    assert resident_bytes(large_file) > 2**25


@on_linux
def test_one_node_alone_is_read(large_file: Path) -> None:
    def n_read() -> int:
        text = Path("/proc/self/io").read_text()
        return int(text.split()[1])

    with memory_bounded(2**20):
        before = n_read()
        part = load(large_file, ["A"], memory_map=False)
        assert n_read() - before < 2**16
    np.testing.assert_array_equal(part.arrays["A"], np.arange(6.0).reshape(2, 3))
    assert resident_bytes(large_file) < 2**24


def test_saving_takes_no_second_copy(tmp_path: Path) -> None:
    factor = np.ones((1000, 3))
    large = [tnsum.chain([np.full((100, 1000), float(k)), factor]) for k in range(50)]
    with memory_bounded(2 * 100 * 1000 * 8):
        tnsum.save(tmp_path / "s", tnsum.add(*large))


def test_mapped_arrays_are_read_only_and_others_are_not(tmp_path: Path) -> None:
    for s in kinds(BY_NAME["two_nodes"], "complex64"):
        tnsum.save(tmp_path / "s", s)
        for memory_map in (True, False):
            got = load(tmp_path / "s", memory_map=memory_map)
            held = [a for term in terms_of(got) for a in term.arrays.values()]
            assert {a.flags.writeable for a in held} == {not memory_map}


@mapped_or_read
def test_a_network_outlives_its_file(memory_map: bool, tmp_path: Path) -> None:
    path = tmp_path / "x"
    got = back(path, x + y, memory_map=memory_map)
    tnsum.save(path, z)
    assert_same(got, x + y)
    assert_same(load(path), z)
    path.unlink()
    assert_same(got, x + y)


def open_files() -> list[str]:
    """The paths of the files that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        # The one through which the folder was listed is closed again.
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found


@on_linux
def test_files_are_closed(tmp_path: Path) -> None:
    def n_open() -> int:
        # Of this folder only: other tests and libraries open and close files of their own meanwhile.
        gc.collect()
        return sum(opened.startswith(str(tmp_path)) for opened in open_files())

    for memory_map in (True, False):
        got: Any = back(tmp_path / "x", x + y, memory_map=memory_map)
        # A mapping holds its file open as long as an array of it lives.
        assert n_open() == memory_map
        part = got.summands[1].arrays["A"][:1]
        del got
        assert n_open() == memory_map
        del part
        assert n_open() == 0
    (tmp_path / "x").write_bytes(saved(x)[:-1])
    with pytest.raises(NetworkError):
        load(tmp_path / "x")
    assert n_open() == 0


def test_a_mapped_network_is_saved_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "x"
    got = back(path, x + y)
    for _ in range(3):
        tnsum.save(path, got)
        got = load(path)
    assert_same(got, x + y)
