"""compress at length: a thousand random sums of every kind; torch and JAX are in test_compression."""

from typing import Any

import numpy as np
import pytest

from compression_cases import FAMILIES, decaying, operator_train, random_sum, train, true_error
from tnsum import NetworkStack, add, compress, tensor_train

pytestmark = pytest.mark.large


def test_the_estimate_is_exceeded_in_two_of_a_thousand_and_within_four_times_the_error() -> None:
    exceeded, ratios, n = [], [], 0
    for family in FAMILIES:
        for seed in range(10_000, 10_170):
            x, how, _ = random_sum(family, seed)
            c = compress(x, method="sketch", **how)
            error = true_error(x, c.network)
            n += 1
            if error > c.error * (1 + 1e-6):
                exceeded.append((family, seed, how, error, c.error))
            if error > 1e-11:
                ratios.append(c.error / error)
    assert n > 1000
    assert len(exceeded) <= 2, exceeded
    assert len(ratios) > n / 2
    assert np.quantile(ratios, 0.95) <= 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bound_is_never_exceeded(family: str) -> None:
    for seed in range(20_000, 20_150):
        x, how, _ = random_sum(family, seed)
        c = compress(x, method="direct", **how)
        error = true_error(x, c.network)
        assert error <= c.error * (1 + 1e-6)
        assert "max_rank" in how or error <= how["tolerance"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_many_terms_of_order_50(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for nodes, size in ((train(50), 4), (operator_train(20), 2)):
        terms = [decaying(nodes, size, 3, lambda k: 0.3**k, rng, dtype) for _ in range(100)]
        x = NetworkStack.from_networks(terms).sum(0.7 ** np.arange(100.0))
        c = compress(x, 1e-3)
        assert c.method == "sketch"
        assert true_error(x, c.network) <= min(1e-3, c.error)
        best = compress(x, 1e-3, method="direct")
        pairs = [(rank, best.ranks[mode]) for mode, rank in c.ranks.items()]
        assert all(rank <= 1.02 * least + 1 for rank, least in pairs)


@pytest.mark.parametrize("how", [{"tolerance": 0.5}, {"tolerance": 0.1}, {"max_rank": 10}])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_slowly_falling_product_states_of_order_400(how: dict[str, Any], seed: int) -> None:
    rng = np.random.default_rng(400)
    vectors = rng.standard_normal((60, 400, 4))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    terms = [tensor_train([v[None, :, None] for v in term]) for term in vectors]
    x = add(*terms, weights=[1.15**-k for k in range(60)])
    c = compress(x, method="sketch", seed=seed, **how)
    error = true_error(x, c.network)
    assert error <= c.error <= 1.1 * error
    if "max_rank" in how:
        # These product states are all but orthogonal.
        assert error < 1.1 * 1.15**-10
    else:
        assert c.error <= how["tolerance"]
