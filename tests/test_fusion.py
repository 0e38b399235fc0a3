"""The estimators of tnsum.fusion, against the algorithms written out in plain loops."""

import math
import pickle
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import tnsum.fusion
from raising import check_message, unreached
from tnsum import ModeError, NetworkError, decompose_stack
from tnsum.fusion import (
    CommonIndividual,
    FactorFusion,
    Mirrored,
    MirrorKernel,
    OrientedGradients,
    TuckerConcat,
    TuckerFusion,
    _samples,
)

Array = np.ndarray[Any, Any]
ESTIMATORS = [TuckerFusion, TuckerConcat, FactorFusion, CommonIndividual]
SHAPES = [(7,), (6, 5), (6, 5, 3), (4, 3, 5, 2)]


def samples_of(shape: tuple[int, ...], n: int = 40, seed: int = 0) -> Array:
    """Samples with a common part: all directions have singular values well apart."""
    rng = np.random.default_rng(seed)
    scales = [0.6 ** np.arange(size) for size in shape]
    found = rng.standard_normal((n, *shape))
    for k, scale in enumerate(scales):
        found *= scale.reshape(*(-1 if i == k else 1 for i in range(len(shape))))
    return found + 0.5 * rng.standard_normal(shape)


def unfolded(x: Array, n: int) -> Array:
    return np.moveaxis(x, n, 0).reshape(x.shape[n], -1)


def algorithm_1(samples: Array, ranks: tuple[int, ...]) -> list[tuple[Array, Array]]:
    """The paper's Algorithm 1, sample by sample: left singular vectors and values of each mode."""
    order = samples.ndim - 1
    columns: list[list[Array]] = [[] for _ in range(order)]
    for x in samples:
        factors = [np.linalg.svd(unfolded(x, n))[0][:, : ranks[n]] for n in range(order)]
        core = x
        for n, factor in enumerate(factors):
            core = np.moveaxis(np.tensordot(factor.T, core, (1, n)), 0, n)
        eta = np.linalg.norm(core)
        for n, factor in enumerate(factors):
            columns[n].append(eta ** (1 / order) * factor)
    found = []
    for each in columns:
        vectors, values, _ = np.linalg.svd(np.concatenate(each, axis=1), full_matrices=False)
        found.append((vectors, values))
    return found


def same_space(a: Array, b: Array) -> bool:
    return bool(np.allclose(a @ a.T, b @ b.T, atol=1e-9))


@parametrize_with_checks([E() for E in [*ESTIMATORS, OrientedGradients]])
def test_scikit_learn_is_content(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_fusion_is_algorithm_1_written_out(shape: tuple[int, ...]) -> None:
    samples = samples_of(shape)
    # Ranks below the sizes: with equal ones all singular values are equal.
    ranks = tuple(max(1, size - 2) for size in shape)
    fusion = TuckerFusion(ranks).fit(samples)
    for n, (vectors, values) in enumerate(algorithm_1(samples, ranks)):
        k = min(len(values), len(fusion.singular_values_[n]))
        assert np.allclose(fusion.singular_values_[n][:k], values[:k], rtol=1e-10)
        assert same_space(fusion.common_factors_[n], vectors[:, : ranks[n]])
    features = samples
    for n, factor in enumerate(fusion.common_factors_):
        features = np.moveaxis(np.tensordot(factor.T, features, (1, n + 1)), 0, n + 1)
    assert np.allclose(fusion.transform(samples), features.reshape(len(samples), -1))


def test_fusion_takes_the_nodes_of_the_sum_of_networks() -> None:
    samples, ranks = samples_of((6, 5, 3)), (3, 2, 2)
    stack = decompose_stack(samples, "tucker", ranks)
    eta = np.linalg.norm(stack.arrays["core"].reshape(len(stack), -1), axis=1)
    total = stack.sum(eta)
    fusion = TuckerFusion(ranks).fit(samples)
    for n, factor in enumerate(fusion.common_factors_):
        node = total.node(f"factor{n}")
        rank = ranks[n]
        weighted = node.reshape(len(node), len(stack), rank) * (eta ** (1 / 3))[:, None]
        vectors = np.linalg.svd(weighted.reshape(len(node), -1))[0]
        assert same_space(factor, vectors[:, :rank])


def test_a_vector_is_its_own_network() -> None:
    samples = samples_of((7,))
    fusion = TuckerFusion(3).fit(samples)
    right = np.linalg.svd(samples.T)[0][:, :3]
    assert same_space(fusion.common_factors_[0], right)


@pytest.mark.parametrize("shape", SHAPES)
def test_concatenation_is_the_svd_of_all_unfoldings(shape: tuple[int, ...]) -> None:
    samples = samples_of(shape)
    concat = TuckerConcat(2).fit(samples)
    for n, factor in enumerate(concat.common_factors_):
        vectors, values, _ = np.linalg.svd(unfolded(samples, n + 1), full_matrices=False)
        assert np.allclose(concat.singular_values_[n], values)
        assert same_space(factor, vectors[:, : min(2, shape[n])])


@pytest.mark.large
def test_concatenation_is_the_hosvd_of_tensorly() -> None:
    tensorly = pytest.importorskip("tensorly")
    hosvd = pytest.importorskip("tensorly.decomposition._tucker").initialize_tucker
    samples, ranks = samples_of((6, 5, 3)), (3, 2, 2)
    _, factors = hosvd(tensorly.tensor(samples), rank=[40, *ranks], modes=range(4), random_state=0)
    for ours, theirs in zip(
        TuckerConcat(ranks).fit(samples).common_factors_, factors[1:], strict=True
    ):
        assert same_space(ours, np.asarray(theirs))


@pytest.mark.parametrize("E", [TuckerFusion, TuckerConcat])
def test_samples_in_pieces_are_the_samples_at_once(E: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = samples_of((6, 5, 3))
    whole = E(2).fit(samples)
    pieces = E(2)
    for start in range(0, 40, 7):
        pieces.partial_fit(samples[start : start + 7])
    monkeypatch.setattr(_samples, "_BLOCK", 91)
    blocks = E(2).fit(samples)
    for other in (pieces, blocks):
        assert other.n_samples_seen_ == 40
        for a, b in zip(whole.common_factors_, other.common_factors_, strict=True):
            assert np.allclose(a, b)
    refitted = pieces.fit(samples[:20])
    assert refitted.n_samples_seen_ == 20
    assert np.allclose(refitted.common_factors_[0], E(2).fit(samples[:20]).common_factors_[0])


@pytest.mark.parametrize("E", ESTIMATORS)
def test_rows_and_tensors_are_the_same_samples(E: Any) -> None:
    samples = samples_of((6, 5, 3))
    rows = samples.reshape(40, -1)
    a, b = E().fit(samples), E(sample_shape=(6, 5, 3)).fit(rows)
    assert a.sample_shape_ == b.sample_shape_ == (6, 5, 3)
    assert a.n_features_in_ == b.n_features_in_ == 90
    right = a.transform(samples)
    for found in (a.transform(rows), b.transform(rows), b.transform(samples)):
        assert np.array_equal(found, right)
    assert E().fit(rows).sample_shape_ == (90,)


@pytest.mark.parametrize("E", ESTIMATORS)
def test_single_precision_stays_single(E: Any) -> None:
    samples = samples_of((6, 5, 3))
    single = E(2).fit(samples.astype(np.float32))
    found, right = single.transform(samples.astype(np.float32)), E(2).fit_transform(samples)
    assert found.dtype == np.float32
    assert np.allclose(found, right, atol=1e-3)
    assert all(factor.dtype == np.float32 for factor in single.common_factors_)


def test_reconstructions_are_projections() -> None:
    samples = samples_of((6, 5, 3))
    fusion = TuckerFusion(2).fit(samples)
    features = fusion.transform(samples)
    back = fusion.inverse_transform(features)
    assert back.shape == samples.shape
    assert np.allclose(fusion.transform(back), features)
    assert np.allclose(np.sum((samples - back) * back, axis=(1, 2, 3)), 0)
    assert np.allclose(TuckerFusion((6, 5, 3)).fit(samples).inverse_transform(
        TuckerFusion((6, 5, 3)).fit_transform(samples)), samples)  # fmt: skip


def test_zero_samples_contribute_nothing() -> None:
    samples = samples_of((6, 5, 3))
    more = np.concatenate([samples, np.zeros((9, 6, 5, 3))])
    for weighting in ("norm", "equal"):
        a = TuckerFusion(2, weighting=weighting).fit(samples)
        b = TuckerFusion(2, weighting=weighting).fit(more)
        for x, y in zip(a.singular_values_, b.singular_values_, strict=True):
            assert np.allclose(x, y)
        for x, y in zip(a.common_factors_, b.common_factors_, strict=True):
            assert np.allclose(x, y)
    nothing = TuckerFusion(2).fit(np.zeros((4, 6, 5, 3)))
    assert not np.any(nothing.transform(samples[:1] * 0))
    assert all(np.allclose(f.T @ f, np.eye(f.shape[1])) for f in nothing.common_factors_)


def test_equal_weighting_forgets_the_norms() -> None:
    samples = samples_of((6, 5, 3))
    scales = np.random.default_rng(1).uniform(0.1, 10, 40)[:, None, None, None]
    a, b = (TuckerFusion(2, weighting="equal").fit(x) for x in (samples, samples * scales))
    for x, y in zip(a.singular_values_, b.singular_values_, strict=True):
        assert np.allclose(x, y)
    by_norm = TuckerFusion(2).fit(samples * scales)
    assert not np.allclose(a.singular_values_[0], by_norm.singular_values_[0])


def test_vectors_of_equal_singular_values_are_principal_axes() -> None:
    samples = samples_of((6, 5, 3))
    fusion = TuckerFusion(3).fit(samples)
    values = fusion.singular_values_[2]
    assert np.allclose(values, values[0], rtol=1e-12)
    networks = [x.contract() for x in decompose_stack(samples, "tucker", 3)]
    energy = sum(unfolded(x, 2) @ unfolded(x, 2).T for x in networks)
    factor = fusion.common_factors_[2]
    turned = factor.T @ energy @ factor
    assert np.allclose(turned, np.diag(np.diag(turned)), atol=1e-10 * turned[0, 0])
    assert np.all(np.diff(np.diag(turned)) < 0)
    order = np.random.default_rng(0).permutation(40)
    again = TuckerFusion(3).fit(samples[order])
    for a, b in zip(fusion.common_factors_, again.common_factors_, strict=True):
        assert np.allclose(a, b, atol=1e-9)


def test_fewer_samples_than_common_vectors_leave_a_basis() -> None:
    samples = samples_of((6, 5, 3), n=1)
    fusion = TuckerFusion(1, common_ranks=(6, 5, 3)).fit(samples)
    for size, factor in zip((6, 5, 3), fusion.common_factors_, strict=True):
        assert factor.shape == (size, size)
        assert np.allclose(factor.T @ factor, np.eye(size))
    assert np.allclose(fusion.inverse_transform(fusion.transform(samples)), samples)


def factor_features(samples: Array, factors: list[Array], power: float) -> list[Array]:
    """F_n of each sample, in a plain loop."""
    found = []
    for n, factor in enumerate(factors):
        each = []
        for x in samples:
            vectors, values, _ = np.linalg.svd(unfolded(x, n), full_matrices=False)
            powers = values**power / np.linalg.norm(values**power)
            each.append(factor.T @ vectors @ np.diag(powers) @ vectors.T @ factor)
        found.append(np.array(each))
    return found


@pytest.mark.parametrize("power", [0.75, 1.5])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_factor_features_have_the_kernel_of_their_distances(
    shape: tuple[int, ...], power: float
) -> None:
    samples, g = samples_of(shape), 1.3
    fusion = FactorFusion(ranks=2, common_ranks=3, power=power)
    features = fusion.fit_transform(samples)
    assert np.allclose(fusion.transform(samples), features)
    right = TuckerFusion(2, 3).fit(samples).common_factors_
    for a, b in zip(fusion.common_factors_, right, strict=True):
        assert np.array_equal(a, b)
    exponent = np.zeros((40, 40))
    for matrices in factor_features(samples, right, power):
        squares = np.array([[np.sum((a - b) ** 2) for a in matrices] for b in matrices])
        exponent += squares / np.mean(squares) / len(shape)
    distances = np.array([[np.sum((a - b) ** 2) for a in features] for b in features])
    assert np.allclose(np.exp(-g * distances), np.exp(-2 * g * exponent))


def test_a_power_may_be_a_number_of_numpy() -> None:
    samples = samples_of((6, 5, 3))
    for power in (np.float32(0.5), np.float64(0.5), np.int64(1)):
        found = FactorFusion(2, 3, power=power).fit_transform(samples)
        assert np.allclose(found, FactorFusion(2, 3, power=float(power)).fit_transform(samples))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mode_along_which_all_are_alike_does_not_count(dtype: str) -> None:
    grey = np.random.default_rng(0).random((30, 8, 7, 1)).astype(dtype)
    colours = np.repeat(grey, 3, axis=3)
    fusion, plain = FactorFusion(2, 4).fit(colours), FactorFusion(2, 4).fit(grey)
    assert fusion.scales_[2] == plain.scales_[2] == 0
    a, b = fusion.transform(colours), plain.transform(grey)
    accuracy = 1e-3 if dtype == "float32" else 1e-9
    assert np.allclose(a @ a.T, b @ b.T, atol=accuracy * np.max(np.abs(b @ b.T)))
    alike = FactorFusion(2, 4).fit_transform(np.repeat(colours[:1], 5, axis=0))
    assert not np.any(alike)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200])
def test_huge_and_tiny_samples_are_as_others(scale: float) -> None:
    samples = samples_of((6, 5, 3))
    for E in (TuckerFusion, TuckerConcat):
        a, b = E(2).fit(samples), E(2).fit(samples * scale)
        for x, y in zip(a.common_factors_, b.common_factors_, strict=True):
            assert np.allclose(x, y, atol=1e-7)
    assert np.allclose(FactorFusion(2, 3).fit_transform(samples * scale),
                       FactorFusion(2, 3).fit_transform(samples), atol=1e-5)  # fmt: skip
    parts = CommonIndividual(2).fit(samples * scale).split(samples * scale)
    right = CommonIndividual(2).fit(samples).split(samples)
    assert np.allclose(parts.common_energy, right.common_energy)


def test_nearly_equal_singular_values_of_a_concatenation_stay_in_order() -> None:
    values = np.array([3, 1 + 3e-9, 1 + 2e-9, 1 + 1e-9, 1])
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    concat = TuckerConcat(3).fit((turn * values).T)
    factor = concat.common_factors_[0]
    # Gaps of 1e-9 resolve directions to a millionth.
    assert np.allclose(factor @ factor.T, turn[:, :3] @ turn[:, :3].T, atol=1e-5)
    noise = np.random.default_rng(0).random((400, 128, 8))
    single, double = (TuckerConcat((16, 3)).fit(noise.astype(d)) for d in ("f4", "f8"))
    kept = [np.linalg.norm(concat.transform(noise)) for concat in (single, double)]
    assert kept[0] > 0.9999 * kept[1]


def test_factor_features_of_a_zero_sample_are_zero() -> None:
    samples = samples_of((6, 5, 3))
    fusion = FactorFusion(2, 3).fit(samples)
    assert not np.any(fusion.transform(np.zeros((1, 6, 5, 3))))
    assert np.all(np.isfinite(FactorFusion(2, 3).fit_transform(samples[:1])))


def test_common_and_individual_parts_are_orthogonal_and_add_up() -> None:
    samples = np.concatenate([samples_of((6, 5, 3)), np.zeros((1, 6, 5, 3))])
    split = CommonIndividual(2).fit(samples)
    parts = split.split(samples)
    assert np.allclose(parts.common + parts.individual, samples)
    assert np.allclose(np.sum(parts.common * parts.individual, axis=(1, 2, 3)), 0)
    total = np.sum(samples[:-1] ** 2, axis=(1, 2, 3))
    assert np.allclose(
        parts.common_energy[:-1], np.sum(parts.common[:-1] ** 2, axis=(1, 2, 3)) / total
    )
    assert np.allclose(parts.common_energy[:-1] + parts.individual_energy[:-1], 1)
    assert parts.common_energy[-1] == parts.individual_energy[-1] == 0
    assert np.array_equal(split.transform(samples), parts.individual.reshape(41, -1))


def edges(image: Array, n: int) -> Array:
    """The channels of one image, pixel by pixel."""
    height, width, _ = image.shape
    found = np.zeros((height, width, n))
    for i in range(height):
        for j in range(width):
            down = (
                (image[i + 1, j] - image[i - 1, j]) / 2 if 0 < i < height - 1 else 0 * image[i, j]
            )
            right = (
                (image[i, j + 1] - image[i, j - 1]) / 2 if 0 < j < width - 1 else 0 * image[i, j]
            )
            k = max(range(image.shape[2]), key=lambda c: np.hypot(down[c], right[c]))
            angle = math.atan2(down[k], right[k]) % math.pi * n / math.pi
            whole = int(angle)
            strength = math.hypot(down[k], right[k])
            found[i, j, whole % n] += strength * (1 - angle + whole)
            found[i, j, (whole + 1) % n] += strength * (angle - whole)
    padded = np.pad(np.sqrt(found), ((1, 1), (1, 1), (0, 0)), mode="edge")
    weights = np.array([1, 2, 1]) / 4
    return sum(
        weights[a] * weights[b] * padded[a : a + height, b : b + width]
        for a in range(3)
        for b in range(3)
    )


@pytest.mark.parametrize("n", [1, 2, 8])
def test_oriented_gradients_are_those_of_each_pixel(n: int) -> None:
    images = np.random.default_rng(0).random((3, 7, 6, 3))
    found = OrientedGradients(n).fit_transform(images)
    assert found.shape == (3, 7, 6, n)
    assert np.allclose(found, [edges(image, n) for image in images])
    rows = OrientedGradients(n, sample_shape=(7, 6, 3)).fit_transform(images.reshape(3, -1))
    assert np.array_equal(rows, found)
    assert OrientedGradients(n).fit_transform(images.astype(np.float32)).dtype == np.float32


def test_a_mirrored_sample_has_the_same_kernel() -> None:
    images = np.random.default_rng(0).random((9, 6, 5, 3))
    mirrored = Mirrored(FactorFusion(2, 3)).fit(images)
    features, flipped = mirrored.transform(images), mirrored.transform(images[:, :, ::-1])
    kernel = MirrorKernel(0.7)
    found = kernel(features, features)
    assert np.allclose(kernel(features, flipped), found)
    plain = FactorFusion(2, 3).fit(images)
    both = [plain.transform(images), plain.transform(images[:, :, ::-1])]
    right = np.mean(
        [
            [[[math.exp(-0.7 * np.sum((x - y) ** 2)) for y in b] for x in a] for a in both]
            for b in both
        ],
        axis=(0, 1),
    )
    assert np.allclose(found, right)
    assert np.linalg.eigvalsh(found)[0] > -1e-12


def labelled() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    patterns = rng.standard_normal((3, 6, 5, 3))
    labels = np.arange(60) % 3
    return patterns[labels] + 0.5 * rng.standard_normal((60, 6, 5, 3)), labels


@pytest.mark.parametrize("E", ESTIMATORS)
def test_pipelines_searches_and_clones_take_tensors(E: Any) -> None:
    X, y = labelled()
    pipeline = make_pipeline(E(ranks=2), StandardScaler(), SVC())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    name = E.__name__.lower()
    search = GridSearchCV(pipeline, {f"{name}__ranks": [1, (2, 2, 2)], "svc__C": [1, 10]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.9
    copy = clone(search.best_estimator_)
    assert not hasattr(copy[0], "common_factors_")
    assert np.array_equal(copy.fit(X, y).predict(X), search.predict(X))


@pytest.mark.parametrize("E", ESTIMATORS)
def test_feature_names_and_output_as_a_table(E: Any) -> None:
    pandas = pytest.importorskip("pandas")
    samples = samples_of((4, 3, 2))
    estimator = E(2).set_output(transform="pandas").fit(samples)
    table = estimator.transform(samples)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == list(estimator.get_feature_names_out())
    assert table.columns[0] == f"{E.__name__.lower()}0"
    assert np.array_equal(table.to_numpy(), E(2).fit(samples).transform(samples))
    if hasattr(estimator, "inverse_transform"):
        assert estimator.inverse_transform(table).shape == samples.shape


def test_mirrored_features_have_names() -> None:
    pandas = pytest.importorskip("pandas")
    samples = samples_of((4, 3, 2))
    mirrored = Mirrored(TuckerFusion(2)).fit(samples)
    names = [f"tuckerfusion{k}" for k in range(8)]
    assert list(mirrored.get_feature_names_out()) == [*names, *(f"mirrored_{n}" for n in names)]
    plain = mirrored.transform(samples)
    table = mirrored.set_output(transform="pandas").transform(samples)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == list(mirrored.get_feature_names_out())
    assert np.array_equal(table.to_numpy(), plain)
    with pytest.raises(NotFittedError):
        Mirrored(TuckerFusion(2)).get_feature_names_out()


def learned(estimator: Any) -> dict[str, Any]:
    """All that an estimator holds, arrays as bytes."""
    return {name: pickle.dumps(value) for name, value in sorted(vars(estimator).items())}


@pytest.mark.parametrize("E", [*ESTIMATORS, OrientedGradients])
def test_a_fit_that_fails_leaves_what_was_there(E: Any) -> None:
    samples, others = samples_of((6, 5, 3)), samples_of((4, 7, 2))
    new, old = E(2), E(2).fit(samples)
    for estimator in (new, old):
        before = learned(estimator)
        with pytest.raises(ValueError, match="NaN"):
            estimator.fit(np.full((3, 4, 3, 2), np.nan))
        assert learned(estimator) == before
        estimator.set_params(sample_shape=(4, 2, 7))
        with pytest.raises(NetworkError, match=r"^Samples must have sample_shape"):
            estimator.fit(others)
        assert learned(estimator.set_params(sample_shape=None)) == before
        if E is OrientedGradients:
            continue
        with pytest.raises(ModeError):
            estimator.set_params(ranks=(9, 9, 9)).fit(others)
        assert learned(estimator.set_params(ranks=2)) == before
    assert np.array_equal(old.transform(samples), E(2).fit(samples).transform(samples))
    assert not hasattr(new, "n_features_in_")


@pytest.mark.parametrize("E", [TuckerFusion, TuckerConcat])
def test_a_part_that_fails_on_its_way_is_forgotten(E: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = samples_of((6, 5, 3))
    estimator = E(2).fit(samples[:20])
    before = learned(estimator)
    monkeypatch.setattr(_samples, "_BLOCK", 450)
    original, calls = E._add, []

    def failing(self: Any, some: Array) -> None:
        original(self, some)
        calls.append(len(some))
        if len(calls) == 2:
            raise MemoryError

    monkeypatch.setattr(E, "_add", failing)
    with pytest.raises(MemoryError):
        estimator.partial_fit(samples[20:])
    assert learned(estimator) == before
    estimator.partial_fit(samples[20:])
    whole = E(2).fit(samples)
    assert estimator.n_samples_seen_ == 40
    for a, b in zip(whole.common_factors_, estimator.common_factors_, strict=True):
        assert np.allclose(a, b)


@pytest.mark.parametrize("E", [TuckerFusion, TuckerConcat])
def test_memory_does_not_grow_with_the_samples(E: Any) -> None:
    import tracemalloc

    peaks = []
    for n in (3000, 12000):
        samples = np.random.default_rng(0).random((n, 16, 16, 3))
        tracemalloc.start()
        E(3).fit(samples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.05 * peaks[0]


X3, X1 = samples_of((4, 3, 2), n=5), samples_of((4,), n=5)
fitted = TuckerFusion(2).fit(X3)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: TuckerFusion((2, 2)).fit(X3), ModeError,
     "ranks must be one integer, or one for each of the 3 modes of samples of shape (4, 3, 2); 2 came."),
    (lambda: TuckerFusion((2, 4, 2)).fit(X3), ModeError,
     "ranks must be at most the sizes (4, 3, 2) of the modes; (2, 4, 2) came. A single integer is "
     "lowered to each size."),
    (lambda: TuckerFusion(2, common_ranks=(5, 1, 1)).fit(X3), ModeError,
     "common_ranks must be at most the sizes (4, 3, 2) of the modes; (5, 1, 1) came. A single integer "
     "is lowered to each size."),
    (lambda: TuckerFusion(0).fit(X3), ModeError, "ranks must be positive integers; 0 came."),
    (lambda: TuckerFusion("3").fit(X3), ModeError, "ranks must be positive integers; '3' came."),
    (lambda: TuckerConcat((2.5, 1, 1)).fit(X3), ModeError,
     "ranks must be positive integers; 2.5 came."),
    (lambda: TuckerFusion(True).fit(X3), ModeError, "ranks must be positive integers; True came."),
    (lambda: TuckerFusion(weighting="best").fit(X3), NetworkError,
     "weighting must be one of ('norm', 'equal'); 'best' came."),
    (lambda: TuckerFusion(decomposition="svd").fit(X3), NetworkError,
     "decomposition must be one of ('hosvd', 'sequential', 'hooi'); 'svd' came."),
    (lambda: FactorFusion(power=0).fit(X3), NetworkError, "power must be a positive number; 0 came."),
    (lambda: FactorFusion(power=math.nan).fit(X3), NetworkError,
     "power must be a positive number; nan came."),
    (lambda: FactorFusion(power=True).fit(X3), NetworkError,
     "power must be a positive number; True came."),
    (lambda: FactorFusion(power="1").fit(X3), NetworkError,
     "power must be a positive number; '1' came."),
    (lambda: TuckerFusion(sample_shape=(3, 3)).fit(X3), NetworkError,
     "Samples must have sample_shape (3, 3); those of shape (4, 3, 2) came."),
    (lambda: TuckerFusion(sample_shape=(3, 3)).fit(X1), NetworkError,
     "Samples must have as many numbers as sample_shape (3, 3), 9; 4 came."),
    (lambda: TuckerFusion(sample_shape=(3, -3)).fit(X1), NetworkError,
     "sample_shape must be positive integers; (3, -3) came."),
    (lambda: fitted.transform(np.ones((2, 3, 4, 2))), NetworkError,
     "Samples must have the shape (4, 3, 2) of those that were fitted; (3, 4, 2) came."),
    (lambda: OrientedGradients(0).fit(X3), NetworkError,
     "n_orientations must be an integer of at least 1; 0 came."),
    (lambda: Mirrored(TuckerFusion(2)).fit(X3).transform(X1), NetworkError,
     "axis must be one of the axes 1 to 1 of samples of shape (4,); 2 came. Images must come as "
     "tensors, not as rows."),
    (lambda: fitted.inverse_transform(np.ones((2, 3))), NetworkError,
     "Features must have the shape (number of samples, 8) that transform gives; (2, 3) came."),
    (lambda: TuckerFusion().fit(np.full((3, 4, 3, 2), np.nan)), ValueError,
     "Input X contains NaN."),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_say_what_is_wrong(number: int) -> None:
    call, error, message = ERRORS[number]
    if error is ValueError:
        with pytest.raises(ValueError, match=message):
            call()
        return
    check_message(call, error, message)


def test_every_error_is_in_the_table() -> None:
    names = ("_samples", "_common_factors", "_tucker_fusion", "_tucker_concat", "_factor_fusion",
             "_common_individual", "_concatenation", "_projection", "_oriented_gradients",
             "_mirror")  # fmt: skip
    files = [Path(tnsum.fusion.__file__).parent / f"{name}.py" for name in names]
    assert not unreached(files, [call for call, *_ in ERRORS])


@pytest.mark.parametrize(("E", "bad"), list(product(ESTIMATORS, [np.inf, np.nan])))
def test_entries_must_be_finite(E: Any, bad: float) -> None:
    samples = samples_of((4, 3, 2))
    samples[3, 1, 1, 1] = bad
    with pytest.raises(ValueError, match="contains"):
        E().fit(samples)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        E().fit(np.zeros((0, 4, 3, 2)))
