"""Sums of networks with loops, and of CP networks, fitted to small ranks: errors and times.

    python benchmarks/loops.py [--quick] [--write FILE]

Nobody else fits a grid to a list of summands: the first table shows the error reached and the time it
took, with and without a tolerance, the second one what quimb's fits to the dense sum reach in how much
time. Each error is checked against dense arrays that are made here with NumPy alone.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from measure import Report, in_seconds, run  # isort: skip - threads

import numpy as np

import tnsum
from tnsum.compression._fitting import fitted

PACKAGES = ("tnsum", "numpy", "opt_einsum", "cotengra", "quimb", "torch")
Array = Any


def dense_grid(arrays: Sequence[Sequence[Array]]) -> Array:
    """A 4 x 4 grid as a matrix, from its upper and lower halves."""
    return _half(arrays[:2], lower=False) @ _half(arrays[2:], lower=True).T


def _half(rows: Sequence[Sequence[Array]], lower: bool) -> Array:
    """Two rows of a grid: (physical indices, indices of the modes to the other half)."""
    near, far = (rows[0], rows[1]) if lower else (rows[1], rows[0])
    total = np.ones((1, 1, 1, 1))  # physical, cut, right of the far row, right of the near row
    width = len(far)
    for k in range(width):
        f, n = _at_border(far[k], k, width, lower), _inside(near[k], k, width, lower)
        # f: left, right, to the near row, physical; n: left, right, to the far row, to the cut, physical
        column = np.einsum("abvi,cdvxj->acbdxij", f, n)
        total = np.einsum("pqac,acbdxij->pijqxbd", total, column)
        p, i, j, q, x, b, d = total.shape
        total = total.reshape(p * i * j, q * x, b, d)
    return total[:, :, 0, 0]


def _at_border(array: Array, k: int, width: int, lower: bool) -> Array:
    """A node of the first or last row: up or down, and beyond the border, brought to one order."""
    # Axes of a grid's node: up, right, down, left, physical, those beyond the border left out.
    modes = [*(["v"] if lower else []), *(["r"] if k < width - 1 else [])]
    modes += [*([] if lower else ["v"]), *(["l"] if k > 0 else []), "i"]
    return _ordered(array, modes, "lrvi")


def _inside(array: Array, k: int, width: int, lower: bool) -> Array:
    up, down = ("x", "v") if lower else ("v", "x")
    modes = [up, *(["r"] if k < width - 1 else []), down, *(["l"] if k > 0 else []), "i"]
    return _ordered(array, modes, "lrvxi")


def _ordered(array: Array, modes: Sequence[str], wanted: str) -> Array:
    missing = [m for m in wanted if m not in modes]
    array = array.reshape((*array.shape, *(1,) * len(missing)))
    order = [*modes, *missing]
    return array.transpose([order.index(m) for m in wanted])


def dense_ring(cores: Sequence[Array]) -> Array:
    total = cores[0]
    for core in cores[1:]:
        total = np.tensordot(total, core, 1)
    return np.trace(total, axis1=0, axis2=-1).ravel()


def grid_of(x: tnsum.Network) -> list[list[Array]]:
    return [[np.asarray(x.arrays[f"node{a}_{b}"]) for b in range(4)] for a in range(4)]


def ring_of(x: tnsum.Network) -> list[Array]:
    return [np.asarray(x.arrays[f"node{k}"]) for k in range(len(x.arrays))]


def base_grid(size: int, rank: int, rng: np.random.Generator) -> tnsum.Network:
    def node(a: int, b: int) -> Array:
        n_modes = (a > 0) + (a < 3) + (b > 0) + (b < 3)
        return rng.standard_normal((rank,) * n_modes + (size,))

    return tnsum.grid([[node(a, b) for b in range(4)] for a in range(4)])


def base_ring(size: int, rank: int, rng: np.random.Generator) -> tnsum.Network:
    return tnsum.tensor_ring([rng.standard_normal((rank, size, rank)) for _ in range(8)])


def perturbed(x: tnsum.Network, part: float, rng: np.random.Generator) -> tnsum.Network:
    """Each node plus random numbers of a part of its norm."""
    arrays = {}
    for name, array in x.arrays.items():
        noise = rng.standard_normal(array.shape)
        arrays[name] = array + part * noise * np.linalg.norm(array) / np.linalg.norm(noise)
    return tnsum.Network.from_topology(x.topology, arrays)


def terms_of(
    base: tnsum.Network, n: int, model: str, rng: np.random.Generator
) -> list[tnsum.Network]:
    """Summands near a base: 10 % of each node, or of the whole tensor."""
    found = []
    for _ in range(n):
        part, state = 0.1, rng.bit_generator.state
        for _ in range(4 if model == "tensor" else 0):
            rng.bit_generator.state = state
            whole = float(tnsum.distance(perturbed(base, part, rng), base, relative=True))
            part *= 0.1 / whole
        rng.bit_generator.state = state if model == "tensor" else rng.bit_generator.state
        found.append(perturbed(base, part, rng))
    return found


def measured(
    terms: list[tnsum.Network],
    rank: int,
    tolerance: float,
    dense: Callable[[tnsum.Network], Array],
) -> tuple[float, int, float]:
    """The true error, the number of sweeps and the seconds of a fit to the mean of some terms."""
    s = tnsum.mean(*terms)
    sweeps: list[int] = [0]
    start = time.perf_counter()
    y, error = fitted(
        np,
        s,
        dict.fromkeys(s.topology.contraction_modes, rank),
        tolerance,
        0,
        lambda n, _: sweeps.append(n),
    )
    seconds = time.perf_counter() - start
    exact = sum(dense(term) for term in terms) / len(terms)
    true = float(np.linalg.norm(dense(y) - exact) / np.linalg.norm(exact))
    if true > error * (1 + 1e-6):
        raise SystemExit(f"the error is reported as {error}, and is {true}")
    return true, sweeps[-1], seconds


HEADER = ("network", "10 % of", "M", "cap", "error wanted", "error", "sweeps", "time", "to 0.02")


def loops(report: Report, quick: bool) -> None:
    report.text(
        "## Grids and rings\n\nSummands are a base plus 10 %, of each node or of the whole tensor. "
        "Errors are relative to the sum, from dense arrays. `to 0.02`: the time with that tolerance."
    )
    cases: list[tuple[Any, ...]] = []
    for size in (2, 3):
        for n, cap, wanted in ((2, 3, "0.02"), (4, 4, "0.02"), (8, 6, "-")):
            cases.append((f"4 x 4 grid, size {size}, rank 2", base_grid, size, 2, n, cap, wanted))
    for n in (2, 10):
        cases.append(("ring of 8, size 4, rank 3", base_ring, 4, 3, n, 4, "0.03"))
    rows = []
    for name, base, size, rank, n, cap, wanted in cases:
        if quick and cap == 6:
            continue
        for model in ("each node", "tensor"):
            rng = np.random.default_rng(0)
            terms = terms_of(base(size, rank, rng), n, model.split()[-1], rng)
            dense = (
                (lambda x: dense_grid(grid_of(x)))
                if base is base_grid
                else (lambda x: dense_ring(ring_of(x)))
            )
            error, sweeps, seconds = measured(terms, cap, 0.0, dense)
            _, few, quicker = measured(terms, cap, 0.02, dense)
            row = (name, model, n, cap, wanted, f"{error:.4f}", sweeps, in_seconds(seconds))
            rows.append((*row, f"{in_seconds(quicker)} ({few} sweeps)"))
            report.step(" | ".join(map(str, rows[-1])))
    report.table(HEADER, rows)


def cp_networks(report: Report, quick: bool) -> None:
    report.text(
        "## CP networks\n\nThe sum of M terms of rank 3, order 3: of columns drawn from 10 that all "
        "share (the sum has rank 10), or of columns of their own."
    )
    rows = []
    for n, size in ((100, 30), (1000, 100), *(() if quick else ((10_000, 100),))):
        for kind in ("shared columns", "own columns"):
            rng = np.random.default_rng(0)
            columns = [rng.standard_normal((size, 10)) for _ in range(3)]
            chosen = np.argsort(rng.random((n, 10)), axis=1)[:, :3]
            arrays = {}
            for k in range(3):
                own = rng.standard_normal((n, size, 3))
                shared = np.moveaxis(columns[k].T[chosen], 1, 2)
                arrays[f"factor{k}"] = shared if kind.startswith("shared") else own
            topology = tnsum.cp([np.ones((1, 1))] * 3).topology
            s = tnsum.NetworkStack(topology, arrays).sum()
            sweeps = [0]
            start = time.perf_counter()
            y, error = fitted(np, s, {"r": 10}, 0.0, 0, lambda n, _, o=sweeps: o.append(n))
            seconds = time.perf_counter() - start
            flat = [np.moveaxis(a, 1, 0).reshape(size, -1) for a in arrays.values()]
            exact = _dense_cp(flat)
            ours = _dense_cp([np.asarray(a) for a in y.arrays.values()])
            true = float(np.linalg.norm(ours - exact) / np.linalg.norm(exact))
            if true > error * (1 + 1e-6):
                raise SystemExit(f"the error is reported as {error}, and is {true}")
            rows.append((n, size, kind, f"{true:.1e}", sweeps[-1], in_seconds(seconds)))
            report.step(" | ".join(map(str, rows[-1])))
    report.table(("M", "size", "terms", "error at rank 10", "sweeps", "time"), rows)


def _dense_cp(factors: Sequence[Array]) -> Array:
    a, b, c = factors
    return np.reshape(a[:, None, :] * b[None, :, :], (-1, a.shape[1])) @ c.T


def beside_quimb(report: Report, quick: bool) -> None:
    """Errors after some time, of tnsum and of quimb's `fit`, on the same grids."""
    report.text(
        "## Beside quimb\n\nA 4 x 4 grid of size and rank 2, summands that are 10 % away in each node: "
        "errors, from dense arrays, after a time. quimb's `fit` takes one network and no sum: it gets "
        "the sum as one dense tensor, the quickest way that it offers here (as a network of blocks its "
        "search for contraction orders alone takes 20 s), and starts from the mean of the nodes. ALS: "
        "`fit(method='als')`, L-BFGS: `fit(method='autodiff')` with torch; both after numbers of steps, "
        "with their contraction orders found beforehand. tnsum: `compress` with `max_seconds`, with "
        "everything that it takes."
    )
    rows = []
    for n, cap in ((2, 3), *(() if quick else ((4, 4),))):
        rng = np.random.default_rng(0)
        terms = terms_of(base_grid(2, 2, rng), n, "node", rng)
        exact = np.asarray(sum(dense_grid(grid_of(term)) for term in terms)) / n
        s = tnsum.mean(*terms)

        def error_of(y: tnsum.Network, exact: Array = exact) -> float:
            return float(np.linalg.norm(dense_grid(grid_of(y)) - exact) / np.linalg.norm(exact))

        for most in (0.3, 1.0, 3.0, 10.0, 60.0):
            start = time.perf_counter()
            c = tnsum.compress(s, max_rank=cap, max_seconds=most)
            seconds = time.perf_counter() - start
            true = error_of(c.network)
            if true > c.error * (1 + 1e-6):
                raise SystemExit(f"the error is reported as {c.error}, and is {true}")
            rows.append(
                (n, cap, "tnsum", f"{most:g} s at most", in_seconds(seconds), f"{true:.4f}")
            )
            report.step(" | ".join(map(str, rows[-1])))
        for method, steps in (("als", (5, 20, 80)), ("autodiff", (50, 200, 800))):
            fit_by_quimb(s, cap, method, 2)
            for n_steps in steps:
                start = time.perf_counter()
                y = fit_by_quimb(s, cap, method, n_steps)
                seconds = time.perf_counter() - start
                name = "quimb, " + {"als": "ALS", "autodiff": "L-BFGS"}[method]
                rows.append(
                    (n, cap, name, f"{n_steps} steps", in_seconds(seconds), f"{error_of(y):.4f}")
                )
                report.step(" | ".join(map(str, rows[-1])))
    report.table(("M", "cap", "fit", "until", "time", "error"), rows)


def fit_by_quimb(s: tnsum.NetworkSum, cap: int, method: str, n_steps: int) -> tnsum.Network:
    """The fit of quimb to a sum, from the mean of its nodes, by a number of steps."""
    import quimb.tensor as qtn

    nodes = s.topology.nodes
    means = {name: np.mean([term.arrays[name] for term in s.summands], axis=0) for name in nodes}
    start = qtn.TensorNetwork([qtn.Tensor(means[name], held) for name, held in nodes.items()])
    start.expand_bond_dimension_(cap, rand_strength=0.01)
    target = qtn.TensorNetwork([qtn.Tensor(s.contract(), s.physical_modes)])
    more = {"autodiff_backend": "torch"} if method == "autodiff" else {}
    found = start.fit(target, method=method, steps=n_steps, tol=0.0, progbar=False, **more)
    arrays = {
        name: np.asarray(tensor.transpose(*held).data)
        for tensor, (name, held) in zip(found.tensors, nodes.items(), strict=True)
    }
    return tnsum.Network.from_topology(s.topology, arrays)


if __name__ == "__main__":
    run([loops, beside_quimb, cp_networks], "Loops and CP", PACKAGES, __doc__)
