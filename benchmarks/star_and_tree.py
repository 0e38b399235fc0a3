"""Sums of Tucker networks and of binary trees whose result is known, ours and others'."""

from functools import reduce
from typing import Any

from measure import Report, Work, gemm_rate, in_seconds, interleaved  # isort: skip - threads

import numpy as np
import quimb.tensor as qtn
import tensorly
from tensorly.decomposition import tucker as tensorly_tucker

import tnsum
from compression_cases import binary_tree, log2_norm

TOLERANCE = 1e-6


def checked(error: float) -> str:
    if not error <= TOLERANCE:
        raise SystemExit(f"ours misses its tolerance {TOLERANCE}: {error}")
    return f"{error:.0e}"


# binary trees


def tree_arrays(nodes: dict[str, Any], words: Any, weights: Any) -> dict[str, Any]:
    """A sum of rank-one tensors as a binary tree; words has shape (leaves, rank, size)."""
    rank = len(weights)
    found = {}
    for name, modes in nodes.items():
        if modes[0].startswith("i"):
            found[name] = words[int(name[1:])].T.copy()
        else:
            found[name] = np.zeros((rank,) * len(modes))
            found[name][(np.arange(rank),) * len(modes)] = 1.0 if name != "top" else weights
    return found


def turned(nodes: dict[str, Any], arrays: dict[str, Any], rng: Any) -> dict[str, Any]:
    """The same in a random gauge."""
    arrays = dict(arrays)
    modes = {m for held in nodes.values() for m in held if m.startswith("r")}
    for mode in sorted(modes):
        holders = [name for name, held in nodes.items() if mode in held]
        size = arrays[holders[0]].shape[nodes[holders[0]].index(mode)]
        turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
        for name in holders:
            k = nodes[name].index(mode)
            arrays[name] = np.moveaxis(np.tensordot(arrays[name], turn, (k, 0)), -1, k)
    return arrays


def binary_trees(report: Report, quick: bool) -> None:
    n, n_words, rank, size = (20 if quick else 100), 20, 5, 10
    rng = np.random.default_rng(0)
    nodes = binary_tree(16)
    physical = [f"i{k}" for k in range(16)]
    words = rng.standard_normal((16, n_words, size))
    words /= np.linalg.norm(words, axis=2, keepdims=True)
    total, terms = np.zeros(n_words), []
    for _ in range(n):
        chosen, weights = rng.permutation(n_words)[:rank], rng.standard_normal(rank)
        total[chosen] += weights
        terms.append(turned(nodes, tree_arrays(nodes, words[:, chosen], weights), rng))
    exact = tree_arrays(nodes, words, total)

    def error(arrays: dict[str, Any]) -> float:
        whole = log2_norm(nodes, physical, [exact], [1])
        return float(2.0 ** (log2_norm(nodes, physical, [exact, arrays], [1, -1]) - whole))

    topology = tnsum.Topology(nodes, physical)
    networks = [tnsum.Network.from_topology(topology, term) for term in terms]
    theirs = [
        qtn.TensorNetwork([qtn.Tensor(a, nodes[name], {name}) for name, a in term.items()])
        for term in terms
    ]
    works: dict[str, Work] = {
        "tnsum": lambda: tnsum.compress(tnsum.add(*networks), TOLERANCE),
        **{
            f"quimb, in batches of {b}": lambda b=b: quimb_trees(theirs, b, len(nodes) - 1)  # type: ignore[misc]
            for b in (2, 5, 15)
        },
    }
    times = interleaved(works, 1.0, at_most=15)
    rows = []
    for name, work in works.items():
        found = work()
        if name == "tnsum":
            note, ranks = checked(error(found.network.arrays)), found.ranks.values()
        else:
            arrays = {t: found[t].transpose(*nodes[t]).data for t in nodes}
            note, ranks = (
                f"{error(arrays):.0e}",
                [found.ind_size(m) for m in topology.contraction_modes],
            )
        ratio = f"{times[name] / times['tnsum']:.3g}"
        rows.append((name, in_seconds(times[name]), ratio, note, max(ranks)))
    report.text(
        f"## Binary trees\n\n16 leaves of size {size}, M = {n}, rank {rank}, tolerance {TOLERANCE:.0e}."
    )
    report.table(("route", "time", "ratio", "error", "rank"), rows)


def quimb_trees(terms: list[Any], batch: int, n_modes: int) -> Any:
    total = terms[0]
    for start in range(1, len(terms), batch):
        total = reduce(qtn.tensor_network_sum, terms[start : start + batch], total)
        total.compress_all_tree_(cutoff=TOLERANCE**2 / n_modes / 4, cutoff_mode="rsum2")
    return total


# Tucker networks


def star_terms(n: int, size: int, rank: int, n_words: int) -> tuple[list[Any], list[Any], Any]:
    """Cores, factors from common spaces, stacked over terms, and the exact dense sum."""
    rng = np.random.default_rng(0)
    spaces = [np.linalg.qr(rng.standard_normal((size, n_words)))[0] for _ in range(3)]
    inner = [rng.standard_normal((n, n_words, rank)) / n_words**0.5 for _ in range(3)]
    cores = rng.standard_normal((n, rank, rank, rank))
    factors = [
        np.einsum("iw,mwr->mir", space, part) for space, part in zip(spaces, inner, strict=True)
    ]
    core = np.einsum("mabc,mxa,myb,mzc->xyz", cores, *inner, optimize=True)
    return cores, factors, np.einsum("xyz,ix,jy,kz->ijk", core, *spaces, optimize=True)


def stars(report: Report, quick: bool) -> None:
    n, n_words = (300 if quick else 3000), 20
    cores, factors, exact = star_terms(n, 100, 5, n_words)
    s = tnsum.NetworkStack(
        tnsum.tucker(cores[0], [f[0] for f in factors]).topology,
        {"core": cores, **{f"factor{k}": f for k, f in enumerate(factors)}},
    ).sum()

    def loop() -> Any:
        total = np.zeros(exact.shape)
        for m in range(n):
            total += tensorly.tucker_to_tensor((cores[m], [f[m] for f in factors]))
        return tensorly_tucker(total, rank=(n_words,) * 3, init="svd", n_iter_max=1)

    works: dict[str, Work] = {"tnsum": lambda: tnsum.compress(s, TOLERANCE), "TensorLy, loop": loop}
    times = interleaved(works, 1.0, at_most=9)
    dense = {
        "tnsum": works["tnsum"]().network.contract(),
        "TensorLy, loop": tensorly.tucker_to_tensor(loop()),
    }
    errors = {k: float(np.linalg.norm(a - exact) / np.linalg.norm(exact)) for k, a in dense.items()}
    checked(errors["tnsum"])
    report.text(
        f"## Tucker networks\n\n100 x 100 x 100, ranks 5, M = {n}, tolerance {TOLERANCE:.0e}; the sum "
        f"has ranks {n_words}, which TensorLy is told."
    )
    report.table(
        ("route", "time", "ratio", "error"),
        [
            (k, in_seconds(t), f"{t / times['tnsum']:.3g}", f"{errors[k]:.0e}")
            for k, t in times.items()
        ],
    )


def small_stars(report: Report, quick: bool) -> None:
    n, shape, rank = (10_000 if quick else 100_000), (32, 32, 3), 3
    rng = np.random.default_rng(0)
    arrays = {f"factor{k}": rng.standard_normal((n, size, rank)) for k, size in enumerate(shape)}
    arrays["core"] = rng.standard_normal((n, rank, rank, rank))
    one = tnsum.tucker(arrays["core"][0], [arrays[f"factor{k}"][0] for k in range(3)])
    s = tnsum.NetworkStack(one.topology, {k: arrays[k] for k in one.arrays}).sum()
    exact = np.zeros(shape)
    for start in range(0, n, 1000):
        some = [
            a[start : start + 1000]
            for a in (arrays["core"], *(arrays[f"factor{k}"] for k in range(3)))
        ]
        exact += np.einsum("mabc,mxa,myb,mzc->xyz", *some, optimize=True)
    found = tnsum.compress(s, TOLERANCE)
    error = np.linalg.norm(found.network.contract() - exact) / np.linalg.norm(exact)
    # The smallest factor first, then the others: what the dense sum of all terms takes.
    flops = 2 * n * (rank**3 * 3 + rank**3 * 3 * 32 // rank * 3 + rank * 32 * 32 * 3)
    times = interleaved(
        {"tnsum": lambda: tnsum.compress(s, TOLERANCE), "GEMM": gemm_rate.work}, 2.0
    )
    least = flops / gemm_rate.flops * times["GEMM"]
    report.text(
        f"## Small Tucker networks\n\n32 x 32 x 3, ranks 3, M = {n:,}, tolerance {TOLERANCE:.0e}, error "
        f"{checked(float(error))}: {in_seconds(times['tnsum'])}; as one matrix product its arithmetic "
        f"would take {in_seconds(least)}. Ratio {times['tnsum'] / least:.2g}."
    )
