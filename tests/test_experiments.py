"""The experiment: splits, kernels, methods and statistics, each against something independent."""

import itertools
import json
import statistics
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from experiment_data import small_images
from tnsum.experiments import Settings
from tnsum.experiments._claims import (
    comparisons,
    effect_of_tuning,
    paper_comparison,
    weakest_classes,
)
from tnsum.experiments._kernels import chosen_width, predicted, predicted_with_leads, rbf
from tnsum.experiments._methods import distances, prepared
from tnsum.experiments._outcomes import MethodOutcome, Outcome, outcome_from, outcome_of
from tnsum.experiments._points import Point, points_of, summary
from tnsum.experiments._protocols import PROTOCOLS, WIDTHS, paper_numbers
from tnsum.experiments._splits import Split, divided, folds, splits_of
from tnsum.fusion import FactorFusion, TuckerConcat, TuckerFusion
from tnsum.fusion._distances import squared_distances

DATA = small_images()
KNOWN = prepared(DATA, with_factors=True)
FLAT = FunctionTransformer(lambda images: np.reshape(images, (len(images), -1)).astype(float))
SPLITS = [
    Split("paper", 0.1, 0),
    Split("paper", 0.5, 1),
    Split("tuned", 0.2, 0),
    Split("tuned", 0.6, 2),
    Split("objects", None, 1),
]


@cache
def outcome(split: Split) -> Outcome:
    return outcome_of(split, KNOWN, seed=0)


# splits


def test_settings_are_put_in_order() -> None:
    settings = Settings(("tuned", "paper", "paper"), (0.8, 0.1))
    assert (settings.protocols, settings.fractions) == (("paper", "tuned"), (0.1, 0.8))
    assert Settings("objects").protocols == ("objects",)  # type: ignore[arg-type]


def test_splits_are_all_of_the_wanted_ones() -> None:
    found = splits_of(Settings(("paper", "objects"), (0.2, 0.5), n_splits=3), DATA)
    random = [Split("paper", f, k) for k in range(3) for f in (0.2, 0.5)]
    assert found == random + [Split("objects", None, k) for k in range(4)]
    assert len({split.name for split in found}) == len(found)


@pytest.mark.parametrize("split", SPLITS, ids=lambda split: split.name)
def test_every_image_is_trained_on_or_tested(split: Split) -> None:
    train, test = divided(split, DATA, seed=0)
    assert sorted([*train, *test]) == list(range(len(DATA)))


def test_splits_of_the_paper_are_the_documented_draw() -> None:
    train, _ = divided(Split("paper", 0.25, 3), DATA, seed=7)
    order = np.random.default_rng((7, 3)).permutation(60)
    assert train.tolist() == sorted(order[:15])


@pytest.mark.parametrize("protocol", ["paper", "tuned"])
def test_smaller_training_sets_are_part_of_larger_ones(protocol: str) -> None:
    sets = [set(divided(Split(protocol, f, 1), DATA, 0)[0]) for f in (0.05, 0.2, 0.5, 0.8)]
    assert all(a < b for a, b in itertools.pairwise(sets))


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.6])
def test_tuned_splits_are_stratified_even_where_classes_are_not_alike(fraction: float) -> None:
    some = np.r_[0:7, 20:60]
    data = replace(DATA, images=DATA.images[some], labels=DATA.labels[some],
                   objects=DATA.objects[some], names=DATA.names[:47])  # fmt: skip
    train, _ = divided(Split("tuned", fraction, 0), data, 0)
    for label in range(3):
        expected = fraction * np.sum(data.labels == label)
        assert abs(np.sum(data.labels[train] == label) - expected) <= 1


def test_an_object_of_every_class_is_left_out() -> None:
    _, test = divided(Split("objects", None, 2), DATA, 0)
    assert set(DATA.objects[test]) == {2}
    assert np.bincount(DATA.labels[test]).tolist() == [5, 5, 5]


@pytest.mark.parametrize("split", SPLITS[2:], ids=lambda split: split.name)
def test_folds_hold_out_each_training_image_once(split: Split) -> None:
    train, _ = divided(split, DATA, 0)
    found = list(folds(split, DATA, train, 0))
    assert sorted(itertools.chain(*(held for _, held in found))) == list(range(len(train)))
    for fitted, held in found:
        assert sorted([*fitted, *held]) == list(range(len(train)))
        counts = np.bincount(DATA.labels[train][held], minlength=3)
        assert counts.max() - counts.min() <= 1
        if split.fraction is None:
            assert not set(DATA.objects[train][fitted]) & set(DATA.objects[train][held])


# kernels


def test_squared_distances_also_far_from_the_origin() -> None:
    rng = np.random.default_rng(0)
    rows, others = 1e4 + rng.random((7, 5)), 1e4 + rng.random((4, 5))
    expected = [[sum((a - b) ** 2) for b in others] for a in rows]
    assert np.allclose(squared_distances(rows, others), expected, rtol=1e-9)
    assert np.all(squared_distances(rows, rows).diagonal() >= 0)


def test_one_label_to_be_learned_is_given_to_everything() -> None:
    kernel = np.ones((2, 2))
    assert predicted(kernel, np.array([3, 3]), np.ones((4, 2)), 1.0).tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [2, 5], [0, 3, 7]])
def test_leads_are_the_closest_duels_of_machines_for_two(labels: list[int]) -> None:
    rng = np.random.default_rng(len(labels))
    known = np.repeat(labels, 12)
    rows = rng.standard_normal((len(labels), 3))[np.repeat(range(len(labels)), 12)]
    rows = rows + 0.7 * rng.standard_normal(rows.shape)
    new = rng.standard_normal((200, 3))
    kernel, across = (rbf(squared_distances(a, rows), 0.5) for a in (rows, new))
    found, leads = predicted_with_leads(kernel, known, across, 10.0)
    assert np.array_equal(found, predicted(kernel, known, across, 10.0))
    # One machine for each pair of labels, by itself.
    duels = {}
    for a, b in itertools.combinations(labels, 2):
        pair = np.flatnonzero((known == a) | (known == b))
        machine = SVC(C=10.0, kernel="precomputed").fit(kernel[np.ix_(pair, pair)], known[pair])
        duels[b, a] = machine.decision_function(across[:, pair])
        duels[a, b] = -duels[b, a]
    for k, label in enumerate(found):
        closest = min(duels[label, other][k] for other in labels if other != label)
        assert leads[k] == pytest.approx(closest, abs=5e-3)
    assert np.std(leads) > 0.1
    alone = predicted_with_leads(np.ones((2, 2)), np.array([3, 3]), np.ones((4, 2)), 1.0)
    assert [a.tolist() for a in alone] == [[3] * 4, [0] * 4]


def test_the_chosen_width_is_that_of_plain_cross_validation() -> None:
    split = Split("tuned", 0.6, 0)
    train, _ = divided(split, DATA, 0)
    rows, labels = (
        np.reshape(DATA.images[train], (len(train), -1)).astype(float),
        DATA.labels[train],
    )
    parts = list(folds(split, DATA, train, 0))
    pairs = [np.sum((a - b) ** 2) for a in rows for b in rows]
    right = []
    for width in WIDTHS:
        machine = SVC(C=100, gamma=width / np.mean(pairs))
        hits = [machine.fit(rows[a], labels[a]).predict(rows[b]) == labels[b] for a, b in parts]
        right.append(np.sum(np.concatenate(hits)))
    best = [width for width, n in zip(WIDTHS, right, strict=True) if n == max(right)]
    found = chosen_width(squared_distances(rows, rows), labels, parts, 100)
    assert found == best[len(best) // 2]
    assert min(right) < max(right)


# methods

PAPER = {
    "SUM": lambda: make_pipeline(TuckerFusion(3), SVC(C=1, gamma=1 / 27)),
    "TKD-CONCAT": lambda: make_pipeline(TuckerConcat(3), SVC(C=1, gamma=1 / 27)),
    "SVM on pixels": lambda: make_pipeline(FLAT, SVC(C=1, gamma=1 / 108)),
}
TUNED = {
    "SUM": lambda: make_pipeline(TuckerFusion(3), StandardScaler()),
    "TKD-CONCAT": lambda: make_pipeline(TuckerConcat(3), StandardScaler()),
    "SVM on pixels": lambda: FLAT,
    "FactorFusion": lambda: FactorFusion(),
}


@pytest.mark.parametrize("method", PAPER)
@pytest.mark.parametrize("split", SPLITS[:2], ids=lambda split: split.name)
def test_the_paper_is_a_plain_pipeline(split: Split, method: str) -> None:
    train, test = divided(split, DATA, 0)
    answers = PAPER[method]().fit(DATA.images[train], DATA.labels[train]).predict(DATA.images[test])
    expected = [(k, a) for k, a in zip(test, answers, strict=True) if a != DATA.labels[k]]
    found = outcome(split)
    assert list(found.methods[method].mistakes) == expected
    assert expected
    assert found.accuracy(method) == pytest.approx(1 - len(expected) / len(test))


@pytest.mark.parametrize("method", TUNED)
@pytest.mark.parametrize("split", SPLITS[2:], ids=lambda split: split.name)
def test_tuned_methods_are_plain_transformers_and_a_machine(split: Split, method: str) -> None:
    train, test = divided(split, DATA, 0)
    transformer = TUNED[method]().fit(DATA.images[train])
    trained, tested = (
        transformer.transform(DATA.images[some]).astype(float) for some in (train, test)
    )
    found = outcome(split).methods[method]
    scale = np.mean([np.sum((a - b) ** 2) for a in trained for b in trained])
    machine = SVC(C=100, gamma=found.width / scale).fit(trained, DATA.labels[train])
    answers = machine.predict(tested)
    expected = [(k, a) for k, a in zip(test, answers, strict=True) if a != DATA.labels[k]]
    assert list(found.mistakes) == expected
    assert found.width in WIDTHS


def test_nothing_is_learned_from_tested_images() -> None:
    split = Split("tuned", 0.5, 0)
    train, test = divided(split, DATA, 0)
    images = DATA.images.copy()
    images[test] = 0.5 * images[test] + 0.5
    other = prepared(replace(DATA, images=images), with_factors=True)
    for method in PROTOCOLS["tuned"].methods:
        a, b = (distances(method, known, train, is_scaled=True).squared for known in (KNOWN, other))
        assert np.allclose(a[train], b[train], atol=1e-4 * a.max())
        assert not np.allclose(a[test], b[test], atol=1e-2 * a.max())


def test_a_training_set_without_a_class_and_one_of_one_class() -> None:
    data = small_images(n_classes=3, n_objects=1, n_views=4)
    known = prepared(data, with_factors=True)
    for protocol in ("paper", "tuned"):
        for fraction in (1 / 12, 2 / 12, 4 / 12):
            one = outcome_of(Split(protocol, fraction, 0), known, 0)
            labels = set(data.labels[divided(one.split, data, 0)[0]])
            for found in one.methods.values():
                assert {label for _, label in found.mistakes} <= labels


def test_too_many_images_are_refused_before_anything_is_computed() -> None:
    many = np.broadcast_to(np.float32(0.5), (2_000_000, 2, 2, 3))
    labels = np.zeros(2_000_000, dtype=int)
    data = replace(DATA, images=many, labels=labels, objects=labels)
    with pytest.raises(
        ValueError, match=r"^The distances of all images must fit into memory: it needs "
    ):
        prepared(data, with_factors=False)


# outcomes and points


def test_outcomes_survive_json() -> None:
    for split in SPLITS:
        values = json.loads(json.dumps(outcome(split).as_values()))
        assert outcome_from(values, split, DATA) == outcome(split)


def _outcomes(protocol: str, fraction: float, wrong: dict[str, list[int]]) -> list[Outcome]:
    """Outcomes of ten tested images, of which so many were wrong in each split."""
    n_splits = len(next(iter(wrong.values())))
    return [
        Outcome(
            Split(protocol, fraction, k),
            50,
            (4, 3, 3),
            {
                name: MethodOutcome(tuple((i, 2) for i in range(n[k])), (0.5,) * n[k], 1.0, 1.0)
                for name, n in wrong.items()
            },
        )
        for k in range(n_splits)
    ]


def test_summaries_against_the_standard_library() -> None:
    numbers = [1.0, 2.5, 4.0, 9.0]
    found = summary(np.array(numbers))
    assert found.mean == pytest.approx(statistics.mean(numbers))
    assert found.std == pytest.approx(statistics.stdev(numbers))
    assert found.error == pytest.approx(statistics.stdev(numbers) / 2)
    alone = summary(np.array([3.0]))
    assert (alone.mean, alone.sign) == (3.0, 0)
    assert np.isnan([alone.std, alone.error]).all()


@pytest.mark.parametrize(
    ("numbers", "sign"),
    [
        ([5.0, 5.0, 5.0], 1),
        ([-5.0, -5.0, -5.0], -1),
        ([0.0, 0.0], 0),
        ([1.0, 2.0], 0),
        ([1.0, 1.2, 1.1, 0.9], 1),
    ],
)
def test_what_is_firm(numbers: list[float], sign: int) -> None:
    assert summary(np.array(numbers)).sign == sign


def test_confusion_and_mistaken_images_by_counting() -> None:
    outcomes = [outcome(Split("paper", 0.1, k)) for k in range(4)]
    (point,) = points_of(outcomes)
    expected = np.zeros((3, 3), dtype=int)
    counts: dict[int, dict[int, int]] = {}
    for one in outcomes:
        taken = dict(one.methods["SUM"].mistakes)
        for k in divided(one.split, DATA, 0)[1]:
            expected[DATA.labels[k], taken.get(k, DATA.labels[k])] += 1
        for k, label in taken.items():
            counts.setdefault(k, {}).setdefault(label, 0)
            counts[k][label] += 1
    assert point.confusion("SUM", DATA.labels).tolist() == expected.tolist()
    found = point.mistaken("SUM")
    assert found == counts
    often = [sum(taken.values()) for taken in found.values()]
    assert often == sorted(often, reverse=True)
    assert len(set(often)) > 1
    # Of those that were mistaken as often, the most clearly mistaken come first.
    leads: dict[int, list[float]] = {}
    for one in outcomes:
        of_sum = one.methods["SUM"]
        for (k, _), lead in zip(of_sum.mistakes, of_sum.leads, strict=True):
            leads.setdefault(k, []).append(lead)
    keys = [(-len(leads[k]), -statistics.mean(leads[k])) for k in found]
    assert keys == sorted(keys)
    assert list(found) != sorted(found, key=lambda k: (-len(leads[k]), k))


# claims


def _point(fraction: float, wrong: dict[str, list[int]], protocol: str = "paper") -> Point:
    (point,) = points_of(_outcomes(protocol, fraction, wrong))
    return point


BETTER = {"SUM": [1, 2, 1], "TKD-CONCAT": [1, 2, 1], "SVM on pixels": [6, 7, 6]}
WORSE = {"SUM": [6, 7, 6], "TKD-CONCAT": [1, 2, 1], "SVM on pixels": [1, 2, 1]}
FIRM = (
    "Above and below: the mean of the differences, split by split, over 3 splits is more than 4.3 "
    "standard errors from zero."
)


@pytest.mark.parametrize(
    ("points", "sentences"),
    [
        (
            [_point(0.1, BETTER), _point(0.8, BETTER)],
            [
                "SUM is above SVM on pixels at all 2 fractions.",
                "SUM is not told apart from TKD-CONCAT at all 2 fractions.",
                FIRM,
            ],
        ),
        (
            [_point(0.1, WORSE), _point(0.2, BETTER), _point(0.8, BETTER)],
            [
                "SUM is above SVM on pixels at 20 % and 80 % and below SVM on pixels at 10 %.",
                "SUM is below TKD-CONCAT at 10 % and not told apart from TKD-CONCAT at 20 % and 80 %.",
                FIRM,
            ],
        ),
        (
            [_point(0.8, {name: n[:1] for name, n in BETTER.items()})],
            ["Fewer than three splits do not tell methods apart."],
        ),
    ],
)
def test_comparisons_follow_from_the_numbers(points: list[Point], sentences: list[str]) -> None:
    assert comparisons(points) == sentences


def test_the_paper_beside_ours() -> None:
    # Accuracies 90, 80 and 90 per cent: mean 86.67, standard deviation 5.77, 3.33 of the mean.
    assert paper_comparison([_point(0.1, BETTER), _point(0.8, BETTER)]) == (
        "The paper reports 92.3 % at 80 % (mean of 20 realisations); SUM has 86.7 % here (3 splits, "
        "standard deviation 5.8): 5.6 below it, 1.7 standard errors of the mean."
    )
    alone = {name: [0] for name in BETTER}
    assert paper_comparison([_point(0.8, alone)]) == (
        "The paper reports 92.3 % at 80 % (mean of 20 realisations); SUM has 100.0 % here (one split): "
        "7.7 above it."
    )
    assert paper_comparison([_point(0.1, BETTER)]) is None


def test_weakest_classes() -> None:
    labels, names = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2]), ["cow", "dog", "cup"]
    point = _point(0.8, BETTER)
    assert weakest_classes(point, "SUM", labels, names, beside_paper=False) == (
        "Classes of which SUM finds 90 % or less at 80 %: cow 66.7 %."
    )
    assert weakest_classes(point, "SVM on pixels", labels, names, beside_paper=True) == (
        "Classes of which SVM on pixels finds 90 % or less at 80 %: cow 0.0 % and dog 22.2 %. In the "
        "paper: cow, dog and horse."
    )
    perfect = _point(0.8, {name: [0, 0] for name in BETTER})
    assert weakest_classes(perfect, "SUM", labels, names, beside_paper=False) == (
        "Classes of which SUM finds 90 % or less at 80 %: none."
    )


def test_the_effect_of_tuning_is_said_only_where_it_holds() -> None:
    tuned = _point(
        0.8, {**{name: [1, 1, 1] for name in BETTER}, "FactorFusion": [0, 0, 0]}, "tuned"
    )
    found = effect_of_tuning([_point(0.8, BETTER)], [tuned])
    assert found == [
        "At 80 %, choosing the kernel width (and C, and scaling) takes SUM from 86.7 to 90.0 %, "
        "TKD-CONCAT from 86.7 to 90.0 % and SVM on pixels from 36.7 to 90.0 %.",
        "The lead of SUM over SVM on pixels there is +50.0 with the paper's kernel width and +0.0 with "
        "a chosen one.",
        "So most of that lead is owed to a kernel width that does not suit pixels.",
    ]
    same = _point(0.8, {**BETTER, "FactorFusion": [0, 0, 0]}, "tuned")
    assert len(effect_of_tuning([_point(0.8, BETTER)], [same])) == 2
    assert effect_of_tuning([], [tuned]) == effect_of_tuning([_point(0.8, BETTER)], []) == []


def test_the_paper_is_quoted_right() -> None:
    paper = paper_numbers()
    assert (paper["accuracy"], paper["training_fraction"], paper["realisations"]) == (92.3, 0.8, 20)
    assert paper["classes_below_bound"] == ["cow", "dog", "horse"]


def test_kernels_are_those_of_scikit_learn() -> None:
    rows = np.random.default_rng(1).random((6, 3))
    expected = [[np.exp(-0.7 * np.sum((a - b) ** 2)) for b in rows] for a in rows]
    assert np.allclose(rbf(squared_distances(rows, rows), 0.7), expected)
