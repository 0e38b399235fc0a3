"""Saving and loading, side by side with the safetensors package.

    python benchmarks/storage.py [--quick] [--write FILE]

Every file is read back and compared before anything is timed; a difference ends the run.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from measure import Report, run, in_bytes, in_seconds, interleaved, with_peak_memory  # isort: skip - threads

import numpy as np
import safetensors.numpy as st
from safetensors import safe_open

import tnsum

PACKAGES = ("tnsum", "numpy", "safetensors")
Arrays = dict[str, Any]


def big_train(rank: int) -> tnsum.Network:
    """A train of 6 nodes, 200 MB at rank 250: four large nodes and two small ones."""
    normal = np.random.default_rng(0).standard_normal
    ranks = [1, *[rank] * 5, 1]
    return tnsum.tensor_train([normal((ranks[k], 100, ranks[k + 1])) for k in range(6)])


def many_trains(n: int) -> tnsum.NetworkSum:
    """A sum of single trains of order 10, size 10, rank 8: 42 kB each."""
    normal = np.random.default_rng(0).standard_normal
    ranks = [1, *[8] * 9, 1]
    shapes = [(ranks[k], 10, ranks[k + 1]) for k in range(10)]
    return tnsum.add(*(tnsum.tensor_train([normal(s) for s in shapes]) for _ in range(n)))


def check(what: str, found: Arrays, expected: Arrays) -> None:
    """End the run unless the arrays are equal, bit by bit."""
    same = found.keys() == expected.keys()
    if not same or not all(np.array_equal(found[name], expected[name]) for name in expected):
        raise SystemExit(f"{what}: what was read is not what was written")


def synced(path: Path) -> None:
    """Wait until a file is on the disk, as tnsum.save does."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def largest(arrays: Arrays) -> float:
    """One pass over every entry."""
    return max(float(array.max()) for array in arrays.values())


def forgotten(path: Path) -> None:
    """Ask the system to forget a file's pages, so that the next reading is from the disk."""
    synced(path)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_reads() -> int:
    """How many bytes this process has had the disk read so far, as Linux counts them."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def one_network(report: Report, quick: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _one_network(report, Path(folder), quick)


def _one_network(report: Report, folder: Path, quick: bool) -> None:
    x = big_train(80 if quick else 250)
    arrays = {name: np.ascontiguousarray(array) for name, array in x.arrays.items()}
    ours, theirs = folder / "ours.safetensors", folder / "theirs.safetensors"
    tnsum.save(ours, x)
    st.save_file(arrays, theirs)
    check("tnsum, mapped", dict(tnsum.load(ours).arrays), arrays)
    check("tnsum, read", dict(tnsum.load(ours, memory_map=False).arrays), arrays)
    check("safetensors", st.load_file(theirs), arrays)
    check("safetensors, our file", st.load_file(ours), {f"0/{k}": a for k, a in arrays.items()})

    def save_and_sync() -> None:
        st.save_file(arrays, theirs)
        synced(theirs)

    def their_node() -> Any:
        with safe_open(theirs, framework="numpy") as file:
            return file.get_tensor("node0").sum()

    works = {
        "save, safetensors": lambda: st.save_file(arrays, theirs),
        "save, tnsum": lambda: tnsum.save(ours, x),
        "save and wait for the disk, safetensors": save_and_sync,
        "load, safetensors": lambda: st.load_file(theirs),
        "load, tnsum": lambda: tnsum.load(ours),
        "load, tnsum, memory_map=False": lambda: tnsum.load(ours, memory_map=False),
        "load and read every entry, safetensors": lambda: largest(st.load_file(theirs)),
        "load and read every entry, tnsum": lambda: largest(dict(tnsum.load(ours).arrays)),
        "load one small node, safetensors": their_node,
        "load one small node, tnsum": lambda: tnsum.load(ours, ["node0"]).arrays["node0"].sum(),
    }
    times = interleaved(works, seconds=4)
    base = {work: times[f"{work}, safetensors"] for work in
            ("save", "load", "load and read every entry", "load one small node")}  # fmt: skip
    rows = []
    for name, taken in times.items():
        work = name.split(",")[0]
        ratio = f"{base[work] / taken:.3g}" if work in base else ""
        rows.append((name, in_seconds(taken), ratio))
    report.text(
        f"## One network of {in_bytes(os.path.getsize(ours))}\n\n"
        "Six nodes. tnsum.save waits until the data are on the disk before it replaces the old file; "
        "the safetensors package does not, so it is also timed with that. tnsum.load maps arrays into "
        "memory; therefore also with every entry read once. Files are in the system's cache."
    )
    report.table(("work", "time", "safetensors / this"), rows)
    forgotten(ours)
    before = disk_reads()
    node = tnsum.load(ours, nodes=["node0"]).arrays["node0"]
    check("one node", {"node0": node}, {"node0": arrays["node0"]})
    read = disk_reads() - before
    report.text(
        f"With the file out of the cache, loading the node of {in_bytes(node.nbytes)} and reading it "
        f"makes the disk read {in_bytes(read)} of {in_bytes(os.path.getsize(ours))} (Linux's count, "
        "readahead included)."
    )


def many_networks(report: Report, quick: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _many_networks(report, Path(folder), quick)


def _many_networks(report: Report, folder: Path, quick: bool) -> None:
    s = many_trains(100 if quick else 1000)
    ours, theirs = folder / "sum.safetensors", folder / "arrays.safetensors"
    arrays = {f"{k}/{n}": a for k, x in enumerate(s.summands) for n, a in x.arrays.items()}
    tnsum.save(ours, s)
    st.save_file(arrays, theirs)
    found = {f"{k}/{n}": a for k, x in enumerate(tnsum.load(ours).summands)
             for n, a in x.arrays.items()}  # fmt: skip
    check("sum", found, arrays)
    check("safetensors, many", st.load_file(theirs), arrays)
    works = {
        "save, safetensors, an array per node": lambda: st.save_file(arrays, theirs),
        "save, tnsum": lambda: tnsum.save(ours, s),
        "load, safetensors": lambda: st.load_file(theirs),
        "load, tnsum": lambda: tnsum.load(ours),
    }
    times = interleaved(works, seconds=2)
    _, peak = with_peak_memory(lambda: tnsum.save(ours, s))
    rows = [
        (name, in_seconds(t), f"{next(times[k] for k in times if k[:4] == name[:4]) / t:.3g}")
        for name, t in times.items()
    ]
    report.text(
        f"## A sum of {s.n_summands} networks, {in_bytes(os.path.getsize(ours))}\n\n"
        "Trains of order 10, size 10, rank 8, held singly. tnsum stores equal networks as one array per "
        "node and writes them one after the other: beyond the networks, saving takes "
        f"{in_bytes(peak)} of memory."
    )
    report.table(("work", "time", "safetensors / this"), rows)


if __name__ == "__main__":
    run((one_network, many_networks), "Saving and loading", PACKAGES, __doc__)
