"""Made objects: distances and pictures against formulas, and what must not change unseen."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum.datasets
from raising import check_message, unreached
from tnsum import NetworkError
from tnsum.datasets import make_objects
from tnsum.datasets._made_objects import _KINDS, _directions
from tnsum.datasets._rendering import _BACKGROUND, _HALF_WIDTH, render
from tnsum.datasets._solids import Box, Cylinder, Ellipsoid, Part, Ring, Rod, Shape, Solid, Spot

SOURCE = Path(tnsum.datasets.__file__).parent
RED, BLUE = (0.8, 0.1, 0.1), (0.1, 0.1, 0.8)
AHEAD, ABOVE, LEFT = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
CENTRE = (0.1, -0.2, 0.3)


def inside_ellipsoid(p: Any) -> Any:
    return (((p - CENTRE) / [0.5, 0.3, 0.4]) ** 2).sum(axis=1) < 1


def inside_rod(p: Any) -> Any:
    axis = np.array([0.6, 0.2, -0.5])
    along = np.clip((p - CENTRE) @ axis / (axis @ axis), 0, 1)
    return np.linalg.norm(p - CENTRE - along[:, None] * axis, axis=1) < 0.1 + 0.1 * along


def inside_box(p: Any) -> Any:
    """A small box, and the balls around its points."""
    x, y, z = np.abs(p - CENTRE).T
    outside = [np.maximum(a - h, 0) for a, h in zip((x, y, z), (0.4, 0.2, 0.3), strict=True)]
    return sum(a**2 for a in outside) < 0.1**2


def inside_cylinder(p: Any) -> Any:
    x, y, z = (p - CENTRE).T
    return (np.hypot(x, y) < 0.4 * (1 + 0.3 * z / 0.5)) & (np.abs(z) < 0.5)


def inside_wheel(p: Any) -> Any:
    x, y, z = (p - CENTRE).T
    return (np.hypot(x, z) < 0.4) & (np.abs(y) < 0.2)


def inside_ring(p: Any) -> Any:
    x, y, z = (p - CENTRE).T
    return (np.hypot(x, y) - 0.4) ** 2 + (z / 0.7) ** 2 < 0.2**2


def inside_handle(p: Any) -> Any:
    x, y, z = (p - CENTRE).T
    return (np.hypot(x, z) - 0.4) ** 2 + y**2 < 0.15**2


SHAPES: list[tuple[Shape, Callable[[Any], Any]]] = [
    (Ellipsoid(CENTRE, (0.5, 0.3, 0.4)), inside_ellipsoid),
    (Rod(CENTRE, (0.7, 0.0, -0.2), 0.1, 0.2), inside_rod),
    (Box(CENTRE, (0.5, 0.3, 0.4), 0.1), inside_box),
    (Cylinder(CENTRE, 0.4, 0.5, taper=0.3), inside_cylinder),
    (Cylinder(CENTRE, 0.4, 0.2, along=1), inside_wheel),
    (Ring(CENTRE, 0.4, 0.2, squash=0.7), inside_ring),
    (Ring(CENTRE, 0.4, 0.15, around=1), inside_handle),
]
POINTS = np.random.default_rng(0).uniform(-1.2, 1.2, (20_000, 3))


def distance(shape: Any, points: Any) -> Any:
    return shape.distance(tuple(points.T))


@pytest.mark.parametrize(("shape", "inside"), SHAPES)
def test_distances_are_negative_inside(shape: Shape, inside: Callable[[Any], Any]) -> None:
    found, expected = distance(shape, POINTS) < 0, inside(POINTS)
    assert expected.sum() > 50
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [shape for shape, _ in SHAPES])
def test_no_step_goes_through_a_surface(shape: Shape) -> None:
    """From outside, what is within 0.85 of the distance is outside too."""
    away = np.random.default_rng(1).standard_normal(POINTS.shape)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    far = distance(shape, POINTS)
    outside = far > 0
    moved = POINTS[outside] + 0.85 * far[outside, None] * away[outside]
    assert (distance(shape, moved) > 0).all()


def test_parts_are_added_cut_and_mirrored() -> None:
    ball = Ellipsoid((0.3, 0.4, 0.0), (0.3, 0.3, 0.3))
    p = POINTS
    near = {
        (sx, sy): np.linalg.norm(p - [0.3 * sx, 0.4 * sy, 0], axis=1) < 0.3
        for sx in (1, -1)
        for sy in (1, -1)
    }
    slab = np.abs(p[:, 2]) < 0.1
    flat = Box((0, 0, 0), (2, 2, 0.1), 0.0)
    both = near[1, 1] | near[1, -1]
    for parts, expected in [
        ([Part(ball, RED)], near[1, 1]),
        ([Part(ball, RED, mirrored=True)], both),
        ([Part(ball, RED, four=True)], both | near[-1, 1] | near[-1, -1]),
        ([Part(flat, RED), Part(ball, RED, mirrored=True)], both | slab),
        ([Part(ball, RED), Part(flat, RED, cuts=True)], near[1, 1] & ~slab),
    ]:
        np.testing.assert_array_equal(distance(Solid(parts), p) < 0, expected)


def test_blending_adds_where_two_parts_meet() -> None:
    balls = [Ellipsoid((x, 0, 0), (0.3, 0.3, 0.3)) for x in (-0.32, 0.32)]
    apart, grown = (Solid([Part(balls[0], RED), Part(balls[1], RED, b)]) for b in (0.0, 0.2))
    least, rounded = distance(apart, POINTS), distance(grown, POINTS)
    assert (rounded <= least + 1e-12).all()
    assert distance(grown, np.zeros((1, 3)))[0] < 0 < distance(apart, np.zeros((1, 3)))[0]
    first, second = (distance(ball, POINTS) for ball in balls)
    far = np.abs(first - second) > 0.2
    np.testing.assert_array_equal(rounded[far], least[far])


def colours(solid: Solid, *points: Any) -> Any:
    return solid.colours(tuple(np.array(points, np.float32).T)).round(3).tolist()


def test_colours_are_those_of_the_part_that_makes_the_surface() -> None:
    wall = Part(Cylinder((0, 0, 0), 0.5, 0.5), RED)
    hole = Part(Cylinder((0, 0, 0.2), 0.4, 0.5), BLUE, cuts=True)
    band = Part(Cylinder((0, 0, 0), 0.51, 0.1), (0.0, 1.0, 0.0))
    cup = Solid([wall, band, hole])
    outside, on_band, within = (0.5, 0, 0.3), (0.51, 0, 0), (0.4, 0, 0.1)
    assert colours(cup, outside, on_band, within) == [
        pytest.approx(RED), [0, 1, 0], pytest.approx(BLUE),
    ]  # fmt: skip


def test_spots_fade() -> None:
    solid = Solid([Part(Ellipsoid((0, 0, 0), (1, 1, 1)), (0, 0, 0))],
                  [Spot((1, 0, 0), 0.2, (1, 1, 1), 2.0)])  # fmt: skip
    assert colours(solid, (1, 0, 0), (1, 0, 0.2), (1, 0, 0.3), (1, 0, 0.4), (0, 0, 1)) == [
        [1, 1, 1], [1, 1, 1], [0.5, 0.5, 0.5], [0, 0, 0], [0, 0, 0],
    ]  # fmt: skip


@pytest.mark.parametrize(("direction", "right", "up"), [
    (AHEAD, (0, 1, 0), (0, 0, 1)),
    (LEFT, (-1, 0, 0), (0, 0, 1)),
    (ABOVE, (0, 1, 0), (-1, 0, 0)),
    ((0.6, 0.0, 0.8), (0, 1, 0), (-0.8, 0, 0.6)),
])  # fmt: skip
def test_a_ball_is_lit_as_the_formula_says(direction: Any, right: Any, up: Any) -> None:
    radius, size, shine = 0.7, 24, 0.3
    ball = Solid([Part(Ellipsoid(CENTRE, (radius,) * 3), RED)], shine=shine, middle=CENTRE)
    picture = render(ball, [direction], size)[0] / 255
    ticks = _HALF_WIDTH * ((np.arange(2 * size) + 0.5) / size - 1)
    v, u = (a[..., None] for a in np.meshgrid(-ticks, ticks, indexing="ij"))
    depth = radius**2 - u**2 - v**2
    normal = (u * right + v * up + np.sqrt(np.maximum(depth, 0)) * direction) / radius
    light = np.array([0.42, 0.28, 0.86])
    half_way = light + direction
    key, facing, glance = (
        np.maximum(normal @ way, 0)[..., None]
        for way in (light, np.array(direction), half_way / np.linalg.norm(half_way))
    )
    lit = RED * (0.36 + 0.56 * key + 0.30 * facing) + shine * glance**32
    dark, bright = np.array(_BACKGROUND)
    behind = bright + (dark - bright) * (v / _HALF_WIDTH + 1) / 2
    rays = np.where(depth > 0, np.clip(lit, 0, 1), behind)
    expected = rays.reshape(size, 2, size, 2, 3).mean(axis=(1, 3))
    # The surface is met to within a small distance, which matters where it is seen edge-on.
    inner, outer = (
        which.reshape(size, 2, size, 2).all(axis=(1, 3)) for which in (depth > 0.1, depth < -0.05)
    )
    assert min(inner.sum(), outer.sum()) > 100
    np.testing.assert_allclose(picture[inner], expected[inner], atol=3 / 255)
    np.testing.assert_allclose(picture[outer], expected[outer], atol=0.6 / 255)


def test_ahead_is_in_front_and_left_is_left() -> None:
    """A car seen from above drives downwards, seen from its left it drives to the left."""
    parts = [Part(Ellipsoid((0, 0, 0), (0.2, 0.2, 0.2)), RED),
             Part(Ellipsoid((0.6, 0, 0), (0.2, 0.2, 0.2)), (0.0, 0.9, 0.0)),
             Part(Ellipsoid((0, 0, 0.6), (0.2, 0.2, 0.2)), (0.9, 0.9, 0.0))]  # fmt: skip
    above, left = render(Solid(parts), [ABOVE, LEFT], 40).astype(int)
    green = [(p[..., 1] > p[..., 0] + 50) & (p[..., 1] > p[..., 2]) for p in (above, left)]
    rows, columns = (np.argwhere(mask).mean(axis=0) for mask in green)
    assert rows[0] > 25
    assert rows[1] == pytest.approx(19.5, abs=1)
    assert columns[1] < 15
    yellow = np.argwhere((left[..., 0] > 100) & (left[..., 1] > 100)).mean(axis=0)
    assert yellow[0] < 15


@pytest.fixture(scope="module")
def small() -> Any:
    return make_objects(n_objects=2, n_views=3, size=16)


def test_labels_objects_and_names(small: Any) -> None:
    assert small.classes == ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
    assert small.images.shape == (48, 16, 16, 3)
    assert small.images.dtype == np.float32
    assert 0 <= small.images.min() < small.images.max() <= 1
    assert small.labels.tolist() == [k // 6 for k in range(48)]
    assert small.objects.tolist() == [k // 3 % 2 for k in range(48)]
    assert small.labels.dtype == small.objects.dtype == np.int64
    assert small.names[:4] == (
        "apple 0, view 0",
        "apple 0, view 1",
        "apple 0, view 2",
        "apple 1, view 0",
    )
    assert small.source == "made by make_objects: 2 objects a class, 3 views, seed 0"


def by_object(data: Any) -> Any:
    n_views = len(data) // (8 * (data.objects.max() + 1))
    return data.images.reshape(8, -1, n_views, *data.images.shape[1:])


def test_an_object_stays_the_same_whatever_else_is_asked_for(small: Any) -> None:
    more = by_object(make_objects(n_objects=3, n_views=5, size=16))
    np.testing.assert_array_equal(more[:, :2, :3], by_object(small))


def test_the_seed_decides_on_the_objects(small: Any) -> None:
    np.testing.assert_array_equal(make_objects(2, 3, 16).images, small.images)
    other = make_objects(2, 3, 16, seed=1).images
    differ = np.abs(other - small.images).max(axis=(1, 2, 3))
    assert (differ > 0.1).all()


def test_every_picture_differs(small: Any) -> None:
    assert len({image.tobytes() for image in small.images}) == len(small)


def test_another_process_makes_the_same(small: Any) -> None:
    code = ("import hashlib; from tnsum.datasets import make_objects; "
            "print(hashlib.sha256(make_objects(2, 3, 16).images.tobytes()).hexdigest())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(small.images.tobytes()).hexdigest()


# The parameters were fixed before any classifier had seen a picture, and stay.
MEANS = {
    "apple": (0.3566, 0.3481, 0.5080),
    "car": (0.2465, 0.2902, 0.5619),
    "cow": (0.2712, 0.3203, 0.6164),
    "cup": (0.3039, 0.2994, 0.5582),
    "dog": (0.2846, 0.3533, 0.6746),
    "horse": (0.2599, 0.3065, 0.6027),
    "pear": (0.3100, 0.3654, 0.5740),
    "tomato": (0.3667, 0.2894, 0.4991),
}


def test_the_pictures_are_what_they_were(small: Any) -> None:
    means = small.images.reshape(8, -1, 3).mean(axis=1)
    found = {name: tuple(row) for name, row in zip(small.classes, means, strict=True)}
    assert found == {name: pytest.approx(row, abs=5e-4) for name, row in MEANS.items()}


def test_directions_spread_over_the_upper_hemisphere() -> None:
    directions = np.array(_directions(41, 0.0))
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    assert directions[:, 2].min() >= 0
    # In each eighth of the heights, and in each of the azimuths, about as many.
    heights = np.histogram(directions[:, 2], 8, (0, 1))[0]
    azimuths = np.histogram(np.arctan2(directions[:, 1], directions[:, 0]), 8, (-np.pi, np.pi))[0]
    assert heights.min() >= 3
    assert azimuths.min() >= 3
    nearest = np.sort(directions @ directions.T, axis=1)[:, -2]
    assert np.degrees(np.arccos(nearest)).min() > 5
    np.testing.assert_allclose(_directions(7, 0.0), directions[:7])


@pytest.mark.large
@pytest.mark.parametrize("name", _KINDS)
def test_objects_lie_whole_within_their_pictures(name: str) -> None:
    """Whatever is drawn: the border shows the background, the middle does not."""
    views = [*_directions(8, 0.3), AHEAD, LEFT, ABOVE]
    empty = render(Solid([Part(Ellipsoid((9, 9, 9), (0.1, 0.1, 0.1)), RED)]), [AHEAD], 32)[0]
    border = np.ones((32, 32), bool)
    border[1:-1, 1:-1] = False
    for k in range(40):
        pictures = render(_KINDS[name](np.random.default_rng([1, 2, k])), views, 32)
        np.testing.assert_array_equal(
            pictures[:, border], np.tile(empty[border], (len(views), 1, 1))
        )
        covered = (np.abs(pictures.astype(int) - empty).max(axis=-1) > 8).mean(axis=(1, 2))
        assert covered.min() > 0.04
        assert covered.max() < 0.75


@pytest.mark.large
def test_all_pictures_are_made() -> None:
    data = make_objects()
    assert data.images.shape == (3280, 32, 32, 3)
    assert np.unique(data.labels * 10 + data.objects, return_counts=True)[1].tolist() == [41] * 80
    assert len({image.tobytes() for image in data.images}) == 3280


ROWS: list[tuple[Callable[[], Any], str]] = [
    (lambda: make_objects(n_objects=0), "n_objects must be an integer of at least 1; 0 came."),
    (lambda: make_objects(n_views=1.5), "n_views must be an integer of at least 1; 1.5 came."),  # type: ignore[arg-type]
    (lambda: make_objects(size=True), "size must be an integer of at least 1; True came."),
    (lambda: make_objects(seed=-1), "seed must be an integer of at least 0; -1 came."),
]


@pytest.mark.parametrize(("call", "message"), ROWS)
def test_messages(call: Callable[[], Any], message: str) -> None:
    check_message(call, NetworkError, message)


def test_pictures_that_do_not_fit_into_memory_are_refused() -> None:
    with pytest.raises(
        NetworkError, match=r"^3280 images must fit into memory: it needs .* free\. "
    ):
        make_objects(size=100_000)


def test_every_message_is_tested() -> None:
    files = [
        SOURCE / f"{name}.py" for name in ("_made_objects", "_rendering", "_solids", "_things")
    ]
    assert unreached([*files, SOURCE / "_animals.py"], [call for call, _ in ROWS]) == []
