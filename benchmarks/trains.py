"""Sums of tensor trains whose result is known, and the routes of other libraries to it.

Every term combines rank-one tensors of a common dictionary, so that the exact sum is a train of the
dictionary's size. The true error of every result is computed from that, by a QR sweep that shares no
code with tnsum.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import quimb.tensor as qtn
import teneva
import torch

import tnsum

with warnings.catch_warnings():
    # It says that its compiled parts are missing; rounding does not use them.
    warnings.simplefilter("ignore")
    import torchtt
import tntorch

torch.set_num_threads(1)

Cores = list[Any]
Route = tuple[Callable[[], Any], Callable[[Any], Cores]]
SIZE, RANK, BATCH = 10, 8, 15


# sums


def dictionary_sum(n: int, order: int, n_words: int, decay: float) -> tuple[list[Cores], Cores]:
    """Trains of rank 8 that combine words of a dictionary, in random gauges, and their exact sum."""
    rng = np.random.default_rng(0)
    words = rng.standard_normal((order, n_words, SIZE))
    words /= np.linalg.norm(words, axis=2, keepdims=True)
    total = np.zeros(n_words)
    terms = []
    for _ in range(n):
        chosen = rng.permutation(n_words)[:RANK]
        weights = rng.standard_normal(RANK) * decay**chosen
        np.add.at(total, chosen, weights)
        terms.append(regauged(diagonal(words[:, chosen], weights), rng))
    return terms, diagonal(words, total)


def diagonal(words: Any, weights: Any) -> Cores:
    """The train of a sum of rank-one tensors."""
    order, rank, size = words.shape
    cores = [np.zeros((rank, size, rank)) for _ in range(order)]
    for core, vectors in zip(cores, words, strict=True):
        core[np.arange(rank), :, np.arange(rank)] = vectors
    cores[0] = np.einsum("k,knl->nl", weights, cores[0])[None]
    cores[-1] = np.einsum("knl->kn", cores[-1])[..., None]
    return cores


def regauged(cores: Cores, rng: Any) -> Cores:
    cores = list(cores)
    for k in range(len(cores) - 1):
        turn = np.linalg.qr(rng.standard_normal((cores[k].shape[-1],) * 2))[0]
        cores[k] = np.tensordot(cores[k], turn, 1)
        cores[k + 1] = np.tensordot(turn.T, cores[k + 1], 1)
    return cores


# errors


def relative_error(found: Cores, exact: Cores) -> float:
    """|found - exact| / |exact|, by a QR sweep over the train of the difference."""
    found = [np.asarray(core, dtype=np.float64) for core in found]
    return sweep([found, [-exact[0], *exact[1:]]]) / sweep([exact])


def sweep(trains: Sequence[Cores]) -> float:
    """The norm of a sum of trains."""
    left = [np.ones((1, 1)) for _ in trains]
    for k in range(len(trains[0])):
        parts = [np.tensordot(r, train[k], 1) for r, train in zip(left, trains, strict=True)]
        matrix = np.concatenate([p.reshape(-1, p.shape[-1]) for p in parts], axis=1)
        if k == len(trains[0]) - 1:
            return float(np.linalg.norm(sum(p for p in parts)))
        triangle = np.linalg.qr(matrix, mode="r")
        ends = np.cumsum([0, *(p.shape[-1] for p in parts)])
        left = [triangle[:, a:b] for a, b in pairwise(ends)]
    raise AssertionError


# routes


def in_batches(terms: Sequence[Any], add: Any, compressed: Any) -> Any:
    """Add and compress every few terms, as one does who knows that ranks add up."""
    total = terms[0]
    for start in range(1, len(terms), BATCH):
        total = compressed(reduce(add, terms[start : start + BATCH], total))
    return total


def ours(terms: list[Cores], tolerance: float, dtype: str = "float64") -> Route:
    networks = [tnsum.tensor_train(cores).astype(dtype) for cores in terms]
    return lambda: tnsum.compress(tnsum.add(*networks), tolerance), lambda c: our_cores(c.network)


def our_cores(x: tnsum.Network) -> Cores:
    arrays = [x.arrays[f"node{k}"] for k in range(len(x.arrays))]
    return [arrays[0][None], *arrays[1:-1], arrays[-1][..., None]]


def of_teneva(terms: list[Cores], tolerance: float) -> dict[str, Route]:
    # Its default squares the condition (is_eigh); below 1e-7 it misses, so the other is timed too.
    found: dict[str, Route] = {}
    for name, is_eigh in (("teneva", True), ("teneva, SVD", False)):

        def rounded(cores: Cores, is_eigh: bool = is_eigh) -> Cores:
            return teneva.truncate(cores, tolerance / 2, is_eigh=is_eigh)

        found[name] = (lambda rounded=rounded: in_batches(terms, teneva.add, rounded), list)  # type: ignore[misc]
    return found


def of_torch(terms: list[Cores], tolerance: float) -> dict[str, Route]:
    tensors = [[torch.asarray(core) for core in cores] for cores in terms]
    trains = [torchtt.TT(cores) for cores in tensors]
    others = [tntorch.Tensor(cores) for cores in tensors]

    def plus(a: Any, b: Any) -> Any:
        return a + b

    def rounded(x: Any) -> Any:
        x.round_tt(eps=tolerance / 2)
        return x

    def arrays(x: Any) -> Cores:
        return [core.numpy() for core in x.cores]

    return {
        "torchTT": (lambda: in_batches(trains, plus, lambda x: x.round(tolerance / 2)), arrays),
        "tntorch": (lambda: in_batches(others, plus, rounded), arrays),
    }


def of_quimb(terms: list[Cores], tolerance: float, rank: int) -> dict[str, Route]:
    """Its compression in batches, by SVD or by `src`, and its `fit` to the list of terms.

    The last two are told a rank that suffices, which they cannot find.
    """
    states = [
        qtn.MatrixProductState([c[0][0], *c[1:-1], c[-1][..., 0]], shape="lpr") for c in terms
    ]
    cutoff = tolerance**2 / (len(terms[0]) - 1) / 4

    def plus(a: Any, b: Any) -> Any:
        return a + b

    def compressed(x: Any) -> Any:
        x.compress(cutoff=cutoff, cutoff_mode="rsum2")
        return x

    def sketched(x: Any) -> Any:
        return qtn.tensor_network_1d_compress(x, rank + 8, cutoff=0.0, method="src")

    def fitted() -> Any:
        return qtn.tensor_network_1d_compress(states, rank, method="fit", tol=1e-12)

    return {
        "quimb": (lambda: in_batches(states, plus, compressed), quimb_cores),
        "quimb, src": (lambda: in_batches(states, plus, sketched), quimb_cores),
        "quimb, fit": (fitted, quimb_cores),
    }


def quimb_cores(x: Any) -> Cores:
    x = x.copy()
    x.permute_arrays("lpr")
    arrays = list(x.arrays)
    return [arrays[0][None], *arrays[1:-1], arrays[-1][..., None]]
