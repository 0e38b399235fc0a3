"""Sums asked for by rank, without a tolerance: the part of the energy that is held, and times.

    python benchmarks/by_rank.py [--quick] [--only PART] [--write FILE]

The energy held by a network Y of a sum s is 1 - |s - Y|^2 / |s|^2. What is best is known for matrices
(NumPy's SVD of the dense sum). For other trees it is compared with `method="direct"` and with
`tnsum.decompose` of the dense sum (TT-SVD, HOSVD).
"""

from measure import Report, in_seconds, interleaved, run  # isort: skip - threads

from typing import Any

import numpy as np

import tnsum
from compression_cases import binary_tree, comb, decaying, operator_train, star, train

Array = Any


def dense_error(s: Any, network: tnsum.Network, exact: Array) -> float:
    rest = exact - network.contract().astype(exact.dtype)
    return float(np.linalg.norm(rest) / np.linalg.norm(exact))


def matrices(report: Report, quick: bool) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for width, n, rank, decay in (
        (2048, 64, 16, 1.0), (2048, 64, 16, 0.97), (1024, 200, 8, 1.0), (512, 1000, 16, 0.99)
    ):  # fmt: skip
        for dtype in ("float32", "float64"):
            left, right = (rng.standard_normal((n, width, rank)).astype(dtype) for _ in range(2))
            terms = [tnsum.chain([a, b.T]) for a, b in zip(left, right, strict=True)]
            s = tnsum.add(*terms, weights=list(decay ** np.arange(n)))
            exact = np.asarray(s.contract(), dtype=float)
            singular = np.linalg.svd(exact, compute_uv=False)
            best = float(np.sum(singular[:rank] ** 2) / np.sum(singular**2))
            c = tnsum.compress(s, max_rank=rank)
            error = dense_error(s, c.network, exact)

            def qr_and_svd(s: Any = s, rank: int = rank) -> Any:
                return tnsum.compress(s, max_rank=rank, method="direct")

            works = {"ours": lambda s=s, r=rank: tnsum.compress(s, max_rank=r)}
            if not quick:
                works["direct"] = qr_and_svd
            times = interleaved(works, 2.0, at_least=2)
            rows.append(
                (
                    f"{n} of {width} x {width}, rank {rank}, weights {decay}^m",
                    dtype,
                    f"{best:.4f}",
                    f"{(1 - error**2) / best:.5f}",
                    f"{c.error / error:.4f}",
                    in_seconds(times["ours"]),
                    in_seconds(times["direct"]) if "direct" in times else "",
                )
            )
            report.step(" | ".join(rows[-1]))
    report.text(
        "## Sums of matrices, asked for the rank of one term\n\nThe best energy (SVD of the dense sum), "
        "the part of it that is held, reported over true error, and the times of `auto` and `direct`."
    )
    header = "sum", "dtype", "best energy", "held", "reported / true", "auto", "direct"
    report.table(header, rows)


def trees(report: Report, quick: bool) -> None:
    cases = {
        "train, order 4, size 20": (train(4), 20, 6, 12),
        "operator train, order 4, size 4": (operator_train(4), 4, 6, 12),
        "Tucker, 60^3": (star(3), 60, 5, 8),
        "binary tree, 8 leaves of size 5": (binary_tree(8), 5, 4, 6),
        "comb, 3 teeth of 6 x 6": (comb(3), 6, 4, 6),
    }
    rows = []
    for name, (nodes, size, own_rank, rank) in cases.items():
        for word, decay in (("flat", 0.0), ("slow", 0.5), ("fast", 2.0)):
            for n in (100,) if quick else (100, 400):
                rng = np.random.default_rng(n)
                terms = [
                    decaying(nodes, size, own_rank, lambda k, p=decay: (k + 1.0) ** -p, rng)
                    for _ in range(n)
                ]
                s = tnsum.NetworkStack.from_networks(terms).sum(0.99 ** np.arange(n))
                exact = np.asarray(s.contract())
                works = {
                    method: lambda s=s, r=rank, m=method: tnsum.compress(s, max_rank=r, method=m)
                    for method in ("auto", "direct")
                }
                found = {method: work() for method, work in works.items()}
                errors = {m: dense_error(s, c.network, exact) for m, c in found.items()}
                kind = {"train": "tensor_train", "Tucker": "tucker"}.get(name.split(",")[0])
                if kind is not None:
                    ranks = (rank,) * (3 if kind == "tucker" else len(nodes) - 1)
                    dense = tnsum.decompose(exact, kind, ranks=ranks)
                    errors["dense"] = dense_error(s, dense, exact)
                held = {m: 1 - e**2 for m, e in errors.items()}
                times = interleaved(works, 1.0, at_least=2)
                rows.append(
                    (
                        f"{n} of {name}, rank {rank}",
                        word,
                        found["auto"].method,
                        f"{held['direct']:.4f}",
                        f"{held['auto'] / held['direct']:.5f}",
                        f"{held['dense'] / held['direct']:.5f}" if "dense" in held else "",
                        f"{found['auto'].error / errors['auto']:.4f}",
                        in_seconds(times["auto"]),
                        in_seconds(times["direct"]),
                    )
                )
                report.step(" | ".join(rows[-1]))
    report.text(
        "## Sums of trees, asked for a rank\n\nThe energy that `direct` holds; the parts of it that "
        "`auto` and the decomposition of the dense sum hold (they may hold more); reported over true "
        "error of `auto`; and the times of `auto` and `direct`."
    )
    report.table(
        ("sum", "decay", "method", "direct", "auto", "dense", "reported / true", "auto", "direct"),
        rows,
    )


if __name__ == "__main__":
    run((matrices, trees), "Asked by rank", ("tnsum", "numpy"), __doc__)
