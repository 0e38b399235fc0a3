"""ETH-80 in each layout it is passed around in, complete or not, and the data themselves if there."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

import tnsum.datasets
from raising import check_message, kind_of, unreached
from tnsum import NetworkError
from tnsum.datasets import _eth80, _eth80_archive, load_eth80

SOURCE = Path(tnsum.datasets.__file__).parent
DATA = Path(os.environ.get("TNSUM_ETH80", Path(__file__).parent.parent.parent / "shared" / "eth80"))
needs_data = pytest.mark.skipif(
    not (DATA / "eth80_32.npz").exists(),
    reason="needs ETH-80: set TNSUM_ETH80 to a folder that holds eth80_32.npz",
)
CLASSES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
CARS = (1, 2, 3, 5, 6, 7, 9, 11, 12, 14)
ORIGINAL, NUMBERED = "{kind}{number}/{name}.png", "{label}/{rank}/{name}.png"


def views() -> Iterator[tuple[int, int]]:
    """Polar angle and azimuth of the 41 directions, as the data set's page lists them."""
    yield 0, 0
    for polar in (22, 45, 68):
        yield from ((polar, azimuth) for azimuth in (0, 90, 180, 270))
    yield from ((35, azimuth) for azimuth in (45, 135, 225, 315))
    yield from ((66, azimuth) for azimuth in (27, 63, 117, 153, 207, 243, 297, 333))
    yield from ((90, int(k * 22.5 + (k % 4 == 3) * 0.5)) for k in range(16))


def expected() -> list[tuple[str, int, int]]:
    """The name, class and object of every image, in the order that is promised."""
    rows = []
    for label, kind in enumerate(CLASSES):
        for rank, number in enumerate(CARS if kind == "car" else range(1, 11)):
            names = sorted(f"{kind}{number}-{polar:03}-{azimuth:03}" for polar, azimuth in views())
            rows += [(name, label, rank) for name in names]
    return rows


def colour(label: int, rank: int, position: int) -> tuple[int, int, int]:
    """A colour that tells an image from all others."""
    return 20 * label, 20 * rank, 6 * position


def write_images(root: Path, layout: str) -> None:
    for position, (name, label, rank) in enumerate(expected()):
        kind = CLASSES[label]
        number = name.split("-")[0].removeprefix(kind)
        values = {
            "kind": kind,
            "number": number,
            "label": label + 1,
            "rank": rank + 1,
            "name": name,
        }
        path = root / layout.format(**values)
        if position % 41 == 0:
            (path.parent / "maps").mkdir(parents=True)
            # A mask under the name it has, and under that of its image.
            for mask in (f"{name}-map.png", path.name):
                Image.new("1", (2, 2)).save(path.parent / "maps" / mask)
        # Formats are told by content, and this one is quickly written.
        path.write_bytes(b"P6 2 2 255\n" + 4 * bytes(colour(label, rank, position % 41)))


@pytest.fixture(scope="module", params=[ORIGINAL, NUMBERED], ids=["original", "numbered"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("eth80")
    write_images(root, request.param)
    return root


def check(data: Any) -> None:
    names, labels, ranks = zip(*expected(), strict=True)
    assert tuple(Path(name).stem for name in data.names) == names
    assert data.classes == CLASSES
    assert data.labels.tolist() == list(labels)
    assert data.objects.tolist() == list(ranks)
    assert data.images.shape[1:] == (1, 1, 3)
    assert data.images.dtype == np.float32
    colours = [colour(*row[1:], k % 41) for k, row in enumerate(expected())]
    np.testing.assert_allclose(data.images[:, 0, 0], np.array(colours) / 255, atol=1e-6)
    assert repr(data) == "ImageSet of 3280 images of 1 x 1, 8 classes: ETH-80"


def test_both_layouts_come_in_the_same_order(folder: Path) -> None:
    check(load_eth80(folder, size=1))


def test_what_is_missing_is_named(folder: Path) -> None:
    lost = [f for f in sorted(folder.rglob("*.png")) if f.parent.name != "maps"][100:107]
    for file in lost:
        file.rename(file.with_suffix(".gone"))
    names = sorted((f.stem for f in lost), key=[row[0] for row in expected()].index)
    try:
        check_message(
            lambda: load_eth80(folder, size=1), NetworkError,
            f"All 3280 images of ETH-80 must be in {str(folder)!r}; 7 are missing: "
            f"{', '.join(map(repr, names[:5]))} and 2 more. "
            "In Python, load_eth80(..., complete=False) goes without them.",
        )  # fmt: skip
    finally:
        for file in lost:
            file.with_suffix(".gone").rename(file)


def arrays() -> dict[str, Any]:
    """What a prepared file holds, in an order of its own."""
    rows = expected()
    order = np.random.default_rng(0).permutation(len(rows))
    classes = CLASSES[::-1]
    colours = np.array([colour(*row[1:], k % 41) for k, row in enumerate(rows)], np.uint8)
    parts = [name.split("-") for name, _, _ in rows]
    numbers = [int(first.lstrip("abcdefghijklmnopqrstuvwxyz")) for first, _, _ in parts]
    return {
        "images": colours[order, None, None],
        "labels": np.array([7 - label for _, label, _ in rows], np.uint8)[order],
        "objects": np.array(numbers, np.uint8)[order],
        "views": np.array([(int(a), int(b)) for _, a, b in parts], np.uint16)[order],
        "classes": np.array(classes),
    }


def saved(path: Path, **changed: Any) -> Path:
    values = {name: value for name, value in {**arrays(), **changed}.items() if value is not None}
    np.savez_compressed(path, **values)
    return path


def test_a_prepared_file_in_any_order(tmp_path: Path) -> None:
    check(load_eth80(saved(tmp_path / "any.npz"), size=1))


def test_a_folder_with_a_prepared_file_of_that_size(tmp_path: Path) -> None:
    saved(tmp_path / "eth80_1.npz")
    (tmp_path / "eth80_32.npz").write_bytes(b"not opened")
    check(load_eth80(tmp_path, size=1))


def test_objects_of_a_part_keep_their_ranks(tmp_path: Path) -> None:
    for name in ("car14-090-338", "car5-000-000", "cow1-000-000", "car4-000-000"):
        Image.new("RGB", (3, 3)).save(tmp_path / f"{name}.png")
    data = load_eth80(tmp_path, complete=False)
    assert data.names == ("car5-000-000.png", "car14-090-338.png", "cow1-000-000.png")
    assert data.source == "ETH-80, 3 of its 3280 images"
    assert data.labels.tolist() == [1, 1, 2]
    assert data.objects.tolist() == [3, 9, 0]
    assert data.classes == CLASSES


def rows(root: Path) -> list[tuple[Callable[[], Any], str]]:
    """Calls that are refused, and the whole text of why."""
    (root / "empty").mkdir()
    for copy in ("one", "two"):
        (root / "twice" / copy).mkdir(parents=True)
        Image.new("RGB", (2, 2)).save(root / "twice" / copy / "cup1-000-000.png")
    (root / "wide").mkdir()
    Image.new("RGB", (640, 480)).save(root / "wide" / "cup1-000-000.png")
    right = arrays()
    twice = {name: np.concatenate([v[:5], v[:1]]) for name, v in right.items() if name != "classes"}

    def refused(what: str, **changed: Any) -> tuple[Callable[[], Any], str]:
        path = saved(root / f"{len(list(root.iterdir()))}.npz", **changed)
        return lambda: load_eth80(
            path, size=1
        ), f"{str(path)!r} must be an npz file of ETH-80: {what}."

    text = root / "text.npz"
    text.write_text("no zip file")
    twice_path = saved(root / "twice.npz", **twice)
    polar, azimuth = right["views"][0]
    kind = CLASSES[::-1][right["labels"][0]]
    first = f"{kind}{right['objects'][0]}-{polar:03}-{azimuth:03}"
    return [
        (lambda: load_eth80(root / "gone"),
         f"path must be the folder of ETH-80, or an npz file of it; {str(root / 'gone')!r} does not "
         "exist."),
        (lambda: load_eth80("/dev/null"),
         "path must be the folder of ETH-80, or an npz file of it; '/dev/null' is neither."),
        (lambda: load_eth80(root / "empty"),
         f"There must be images of ETH-80 in {str(root / 'empty')!r}, named as 'apple1-000-000.png'; "
         "there are none."),
        (lambda: load_eth80(root / "twice"),
         f"Each image of ETH-80 must be there once; 'cup1-000-000' is there twice in "
         f"{str(root / 'twice')!r}: 'one/cup1-000-000.png' and 'two/cup1-000-000.png'. Name the folder "
         "of one copy."),
        (lambda: load_eth80(twice_path, size=1),
         f"Each image of ETH-80 must be there once; {first!r} is there twice in "
         f"{str(twice_path)!r}: 'image 0' and 'image 5'. Name the folder of one copy."),
        (lambda: load_eth80(root / "wide", complete=False),
         "Every image file must be readable; 1 of 1 is not: 'cup1-000-000.png' (it has 640 x 480 "
         "pixels; those of ETH-80 are square). Mend them, or take them away."),
        (lambda: load_eth80(text),
         f"{str(text)!r} must be an npz file of ETH-80: it cannot be read (File is not a zip file)."),
        (lambda: load_eth80(text, size=0), "size must be an integer of at least 1; 0 came."),
        refused("there is no array 'views' in it", views=None),
        refused("its images are of 2 x 2 pixels; size=1 came. Ask for size=2, or name the folder of the "
                "original images", images=np.zeros((3280, 2, 2, 3), np.uint8)),
        refused("'images' must be uint8 of shape (n, 1, 1, 3); float32 of shape (3280, 1, 1, 3) came",
                images=right["images"].astype(np.float32)),
        refused("'images' must be uint8 of shape (n, 1, 1, 3); uint8 of shape (3280, 1, 2, 3) came",
                images=np.zeros((3280, 1, 2, 3), np.uint8)),
        refused("'images' must be uint8 of shape (n, 1, 1, 3); uint8 of shape () came",
                images=np.uint8(0)),
        refused("'images' must be uint8 of shape (n, 1, 1, 3); uint8 of shape (0, 1, 1, 3) came",
                images=right["images"][:0]),
        refused("it may hold 3280 images; 3281 came", images=np.zeros((3281, 1, 1, 3), np.uint8)),
        refused("'labels' must be integers of shape (3280,); float64 of shape (3280,) came",
                labels=right["labels"] / 1),
        refused("'objects' must be integers of shape (3280,); uint8 of shape (3279,) came",
                objects=right["objects"][1:]),
        refused("'views' must be integers of shape (3280, 2); uint16 of shape (3280,) came",
                views=right["views"][:, 0]),
        refused("'classes' must be text of shape (8,); <U6 of shape (9,) came",
                classes=np.array([*CLASSES, "plum"])),
        refused("'classes' must be text of shape (8,); <U5000 of shape (8,) came",
                classes=right["classes"].astype("<U5000")),
        refused("'classes' must be text of shape (8,); [('\\x1b[31m', '<i8')] of shape (8,) came",
                classes=np.zeros(8, [("\x1b[31m", np.int64)])),
        refused("'classes' must be text of shape (8,); object of shape (8,) came",
                classes=right["classes"].astype(object)),
        refused("'labels' must be positions in 'classes', from 0 to 7; they go from 1 to 8",
                labels=right["labels"] + 1),
    ]  # fmt: skip


def test_messages(tmp_path: Path) -> None:
    for call, message in rows(tmp_path):
        check_message(call, kind_of(message), message)


def test_every_message_is_tested(tmp_path: Path) -> None:
    calls = [call for call, _ in rows(tmp_path)]
    (tmp_path / "part").mkdir()
    Image.new("RGB", (2, 2)).save(tmp_path / "part" / "cup1-000-000.png")
    calls.append(lambda: load_eth80(tmp_path / "part"))
    # The reasons why one file is refused are caught and told with its name, so they are asked for by
    # themselves.
    calls.append(lambda: _eth80._check_square(Image.new("RGB", (2, 3))))
    archives = [ZipFile(path) for path in tmp_path.glob("*.npz") if path.name != "text.npz"]
    calls += [partial(_eth80_archive._read, archive, 1) for archive in archives]
    assert unreached([SOURCE / "_eth80.py", SOURCE / "_eth80_archive.py"], calls) == []
    for archive in archives:
        archive.close()


def test_a_header_that_asks_for_too_much_costs_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path / "bomb.npz", images=None, views=None)
    with ZipFile(path, "a") as archive:
        for name, shape in (("images", (3280, 1, 1, 3)), ("views", (2**40, 2))):
            with archive.open(f"{name}.npy", "w") as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
    check_message(
        lambda: load_eth80(path, size=1), NetworkError,
        f"{str(path)!r} must be an npz file of ETH-80: 'views' must be integers of shape (3280, 2); "
        f"uint8 of shape ({2**40}, 2) came.",
    )  # fmt: skip


def test_cut_anywhere_a_prepared_file_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "eth80.npz")
    whole = path.read_bytes()
    n_refused = 0
    for k in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:k])
        with pytest.raises(
            NetworkError, match=r"must be an npz file of ETH-80: it cannot be read \("
        ):
            load_eth80(path, size=1)
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 0x55]) + whole[k + 1 :])
        try:
            load_eth80(path, size=1)
        except NetworkError:
            n_refused += 1
    # Some bytes of a zip file mean nothing.
    assert n_refused > 30


@needs_data
def test_the_data_set_is_complete() -> None:
    data = load_eth80(DATA)
    assert data.images.shape == (3280, 32, 32, 3)
    assert [Path(name).stem for name in data.names] == [row[0] for row in expected()]
    assert np.unique(data.labels * 10 + data.objects, return_counts=True)[1].tolist() == [41] * 80
    with np.load(DATA / "eth80_32.npz", allow_pickle=False) as stored:
        np.testing.assert_array_equal(np.rint(data.images * 255), stored["images"])


@needs_data
def test_original_files_average_to_the_prepared_ones() -> None:
    folder = DATA / "sample"
    if not folder.is_dir():
        pytest.skip("needs some original files of ETH-80 in the folder 'sample'")
    data = load_eth80(folder, complete=False)
    whole = load_eth80(DATA)
    position = {name: k for k, name in enumerate(whole.names)}
    same = [position[Path(name).name] for name in data.names]
    np.testing.assert_array_equal(data.labels, whole.labels[same])
    np.testing.assert_array_equal(data.objects, whole.objects[same])
    np.testing.assert_allclose(data.images, whole.images[same], atol=2.01 / 255)
