"""A user's own images: what is found, how each mode and orientation is read, and what is refused."""

import os
import struct
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image

import tnsum.datasets
from raising import check_message, check_missing, kind_of, unreached
from tnsum import NetworkError
from tnsum.datasets import ImageSet, _decoding, load_image_folder, load_images

SOURCE = Path(tnsum.datasets.__file__).parent
SIDE = 8
RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
GREY = RNG.integers(0, 256, (SIDE, SIDE), np.uint8)
DEEP = RNG.integers(0, 65536, (SIDE, SIDE), np.uint16)
ALPHA = RNG.integers(0, 256, (SIDE, SIDE), np.uint8)
CMYK = RNG.integers(0, 256, (SIDE, SIDE, 4), np.uint8)
INDEX = RNG.integers(0, 4, (SIDE, SIDE), np.uint8)
PALETTE = RNG.integers(0, 256, (4, 3), np.uint8)


def three(values: Any) -> Any:
    return np.repeat(np.asarray(values, float)[..., None], 3, axis=-1) / 255


def over_white(values: Any, alpha: Any) -> Any:
    share = np.asarray(alpha, float)[..., None] / 255
    return share * np.asarray(values, float) / 255 + 1 - share


def palette_image(**info: Any) -> Image.Image:
    image = Image.fromarray(INDEX).convert("P")
    image.putdata(INDEX.ravel().tolist())
    image.putpalette(PALETTE.ravel().tolist())
    image.info.update(info)
    return image


def with_alpha(values: Any) -> Image.Image:
    return Image.fromarray(np.dstack([values, ALPHA]))


def png_of_16_bit_colours() -> bytes:
    """Pillow does not write these."""
    wide = COLOUR.astype(">u2") * 257
    rows = b"".join(b"\0" + row.tobytes() for row in wide)
    return png(SIDE, SIDE, rows, depth=16, kind=2)


def png(width: int, height: int, rows: bytes = b"", depth: int = 8, kind: int = 2) -> bytes:
    """A PNG whose header says that it is that large, whatever data follow."""
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


# What is saved under which name, and the red, green and blue that must come out.
MODES: list[tuple[str, Image.Image | bytes, Any]] = [
    ("colour.png", Image.fromarray(COLOUR), COLOUR / 255),
    ("colour.bmp", Image.fromarray(COLOUR), COLOUR / 255),
    ("colour.ppm", Image.fromarray(COLOUR), COLOUR / 255),
    ("colour.TIFF", Image.fromarray(COLOUR), COLOUR / 255),
    ("grey.png", Image.fromarray(GREY), three(GREY)),
    ("bits.png", Image.fromarray(GREY > 127), three(255 * (GREY > 127))),
    ("palette.png", palette_image(), PALETTE[INDEX] / 255),
    ("palette.gif", palette_image(), PALETTE[INDEX] / 255),
    ("holes.png", palette_image(transparency=2),
     np.where((INDEX == 2)[..., None], 1, PALETTE[INDEX] / 255)),
    ("clear.png", with_alpha(COLOUR), over_white(COLOUR, ALPHA)),
    ("clear_grey.png", with_alpha(GREY), over_white(np.dstack([GREY] * 3), ALPHA)),
    ("cmyk.tif", Image.frombytes("CMYK", (SIDE, SIDE), CMYK.tobytes()),
     (255.0 - CMYK[..., :3]) * (255.0 - CMYK[..., 3:]) / 255**2),
    ("deep.png", Image.fromarray(DEEP), three(DEEP / 257)),
    ("deep.tif", Image.fromarray(DEEP), three(DEEP / 257)),
    ("deep.pgm", b"P5 8 8 65535\n" + DEEP.astype(">u2").tobytes(), three(DEEP / 257)),
    ("deep_colour.png", png_of_16_bit_colours(), COLOUR / 255),
]  # fmt: skip


def write(path: Path, content: Image.Image | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content.save(path)
    return path


@pytest.mark.parametrize(("name", "content", "expected"), MODES, ids=[row[0] for row in MODES])
def test_every_mode_comes_as_colours(
    tmp_path: Path, name: str, content: Image.Image | bytes, expected: Any
) -> None:
    images, names = load_images([write(tmp_path / name, content)], size=SIDE)
    assert images.dtype == np.float32
    assert names == ((tmp_path / name).as_posix(),)
    np.testing.assert_allclose(images[0], expected, atol=1.01 / 255)
    if "deep" not in name and "c" not in name[:1]:
        np.testing.assert_allclose(images[0], expected, atol=1e-6)


# How the stored image must be turned for each orientation that a camera may note.
TURNS: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("extension", ["png", "tif", "webp"])
def test_orientation_is_followed(tmp_path: Path, orientation: int, extension: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned.{extension}"
    Image.fromarray(COLOUR).save(path, exif=exif, lossless=True)
    images, _ = load_images([path], size=SIDE)
    np.testing.assert_allclose(images[0], TURNS[orientation](COLOUR) / 255, atol=1e-6)


def test_box_averages_areas(tmp_path: Path) -> None:
    path = write(tmp_path / "a.png", Image.fromarray(COLOUR))
    images, _ = load_images([path], size=2)
    # Pillow rounds after the rows and again after the columns.
    means = COLOUR.reshape(2, 4, 2, 4, 3).mean(axis=(1, 3)) / 255
    np.testing.assert_allclose(images[0], means, atol=1.01 / 255)


@pytest.mark.parametrize("shape", [(4, 10), (10, 4), (4, 9), (1, 7)])
def test_the_centre_of_an_image_is_taken(tmp_path: Path, shape: tuple[int, int]) -> None:
    values = RNG.integers(0, 256, (*shape, 3), np.uint8)
    side = min(shape)
    top, left = ((n - side) // 2 for n in shape)
    images, _ = load_images([write(tmp_path / "a.png", Image.fromarray(values))], size=side)
    expected = values[top : top + side, left : left + side] / 255
    np.testing.assert_allclose(images[0], expected, atol=1e-6)


@pytest.mark.parametrize("resample", ["nearest", "bilinear", "hamming", "bicubic", "lanczos"])
def test_other_filters_are_those_of_pillow(tmp_path: Path, resample: str) -> None:
    image = Image.fromarray(COLOUR)
    expected = np.asarray(image.resize((3, 3), Image.Resampling[resample.upper()])) / 255
    images, _ = load_images([write(tmp_path / "a.png", image)], size=3, resample=resample)
    np.testing.assert_allclose(images[0], expected, atol=1e-6)


def grey(level: int, side: int = 4) -> Image.Image:
    return Image.new("L", (side, side), level)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes, with all that may lie about."""
    root = tmp_path / "fruits"
    for name, level in [
        ("b/2.png", 51), ("b/10.PNG", 102), ("b/deep/er/1.jpg", 153), ("a/x.gif", 204), ("a/y.png", 255),
    ]:  # fmt: skip
        write(root / name, grey(level))
    for name in ("a/.hidden.png", ".git/z.png", "a/.cache/z.png", ".DS_Store"):
        write(root / name, b"no image")
    return root


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a/notes.txt"], "1 file was left out, the first is 'a/notes.txt'"),
        (["b/deep/2.heic", "b/1.HEIC"], "2 files were left out, the first is 'b/1.HEIC'"),
        (["top.png", "a/\x1b.txt"], "2 files were left out, the first is 'top.png'"),
        (["a/\x1b.txt"], "1 file was left out, the first is 'a/\\x1b.txt'"),
    ],
)
def test_what_is_left_out_is_told(folder: Path, names: list[str], told: str) -> None:
    for name in names:
        write(folder / name, b"no image")
    read = ", ".join(_decoding.EXTENSIONS)
    with pytest.warns(UserWarning, match="left out") as warned:
        data = load_image_folder(folder, size=2)
    assert [str(one.message) for one in warned] == [
        f"{told}: what is read ends in {read}, and lies in the folder of a class."
    ]
    assert warned[0].filename == __file__
    assert len(data) == 5
    below = [name for name in names if "/" in name]
    if below:
        with pytest.warns(UserWarning, match="left out") as warned:
            images, _ = load_images([folder / "a", folder / "b"], size=2)
        text = str(warned[0].message).replace(f"{folder.as_posix()}/", "")
        assert text.startswith(f"{len(below)} file")
        assert text.endswith(f": what is read ends in {read}.")
        assert len(images) == 5


def test_a_file_that_is_named_is_read_whatever_its_extension(folder: Path) -> None:
    (folder / "a/x.gif").rename(folder / "a/x.txt")
    assert len(load_images([folder / "a/x.txt"])[0]) == 1


OBJECTS = {
    "folders": (["a/2/x.png", "a/2/y.png", "a/10/x.png", "b/2/deep/x.png"], [0, 1, 1, 0]),
    "one of them beside the folders": (["a/2/x.png", "a/2/y.png", "a/x.png", "b/2/x.png"], [0, 1, 2, 0]),
    "names": (["a/cup-3-066-153.png", "a/cup-3-066-207.png", "a/cup4-066-153.png", "b/cow1-000-000.jpg"],
              [0, 0, 1, 0]),
    "one of other names": (["a/cup3-066-153.png", "a/cup3-066-207.png", "b/1-2.png", "b/cow1-00-00.png"],
                           [0, 1, 0, 1]),
}  # fmt: skip


@pytest.mark.parametrize("case", OBJECTS)
def test_folders_or_names_tell_objects_apart(case: str, tmp_path: Path) -> None:
    names, objects = OBJECTS[case]
    for name in names:
        write(tmp_path / name, grey(0))
    data = load_image_folder(tmp_path, size=1)
    assert sorted(data.names) == sorted(names)
    assert data.objects.tolist() == objects
    assert data.objects.dtype == np.int64


def test_a_folder_is_read_in_order_of_names(folder: Path) -> None:
    data = load_image_folder(folder, size=2)
    assert isinstance(data, ImageSet)
    assert data.classes == ("a", "b")
    assert data.names == ("a/x.gif", "a/y.png", "b/10.PNG", "b/2.png", "b/deep/er/1.jpg")
    assert data.labels.tolist() == [0, 0, 1, 1, 1]
    assert data.objects.tolist() == [0, 1, 0, 1, 2]
    assert data.labels.dtype == data.objects.dtype == np.int64
    expected = np.array([204, 255, 102, 51, 153]) / 255
    np.testing.assert_allclose(
        data.images, np.tile(expected[:, None, None, None], (2, 2, 3)), atol=1e-6
    )
    assert repr(data) == ("ImageSet of 5 images of 2 x 2, 2 classes: images in the folder 'fruits'")


def test_one_class_can_be_loaded(tmp_path: Path) -> None:
    write(tmp_path / "only" / "1.png", grey(0))
    assert load_image_folder(tmp_path).classes == ("only",)


def test_files_and_folders_without_classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    odd = write(folder / "odd.name", grey(0).convert("RGB").resize((1, 1)).tobytes())
    odd.write_bytes((folder / "b" / "2.png").read_bytes())
    images, names = load_images(["odd.name", Path("b"), "a/x.gif", "a/x.gif"], size=1)
    assert names == ("odd.name", "b/10.PNG", "b/2.png", "b/deep/er/1.jpg", "a/x.gif", "a/x.gif")
    expected = np.array([51, 102, 51, 153, 204, 204]) / 255
    np.testing.assert_allclose(images[:, 0, 0, 1], expected, atol=1e-6)


def test_links_that_lead_back_are_harmless(folder: Path) -> None:
    (folder / "back").symlink_to(folder, target_is_directory=True)
    (folder / "above").symlink_to(folder.parent, target_is_directory=True)
    (folder / "a" / "loop").symlink_to(folder / "a", target_is_directory=True)
    (folder / "a" / "self.png").symlink_to(folder / "a" / "self.png")
    (folder / "c").symlink_to(folder / "b", target_is_directory=True)
    data = load_image_folder(folder)
    assert data.classes == ("a", "b", "c")
    assert np.bincount(data.labels).tolist() == [2, 3, 3]


def test_a_pipe_is_left_alone(folder: Path) -> None:
    os.mkfifo(folder / "a" / "pipe.png")
    assert len(load_image_folder(folder)) == 5


def test_names_that_are_no_text_can_be_stored(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    write(tmp_path / name / f"{name}.png", grey(0))
    data = load_image_folder(tmp_path)
    assert data.classes == ("caf\\xe9",)
    assert data.names == ("caf\\xe9/caf\\xe9.png",)


def test_pillow_is_asked_for_only_to_read(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.png", grey(0))
    check_missing("pillow", "PIL.Image", lambda: load_image_folder(tmp_path))
    with patch.dict(sys.modules, {"PIL": None, "PIL.Image": None}):
        assert len(tnsum.datasets.make_objects(1, 1, 4)) == 8


def damaged(path: Path) -> list[str]:
    """Files that cannot be read, each with what must be said of it."""
    whole = png(SIDE, SIDE, b"".join(b"\0" + row.tobytes() for row in COLOUR))
    none = "it is none of BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP, or its header is broken"
    rows: list[tuple[str, Image.Image | bytes, str]] = [
        ("bomb1.png", png(8001, 8000), "it has 8001 x 8000 pixels; at most 64 million are read"),
        ("bomb2.png", png(10_000, 10_000), "it has 10000 x 10000 pixels; at most 64 million are read"),
        ("bomb3.png", png(30_000, 30_000),
         "it has more pixels than Pillow opens; at most 64 million are read"),
        ("cut.png", whole[:-60], "image file is truncated"),
        ("empty.png", b"", none),
        ("float.tif", Image.fromarray(GREY.astype(np.float32)),
         "it is of mode F; 8 or 16 bits a channel are read"),
        ("long.tif", Image.fromarray(GREY.astype(np.int32)),
         "it is of mode I; 8 or 16 bits a channel are read"),
        ("script.png", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", none),
        ("text.png", b"no image", none),
    ]  # fmt: skip
    for name, content, _ in rows:
        write(path / name, content)
    return [f"{name!r} ({reason})" for name, _, reason in rows]


@pytest.mark.parametrize("k", range(9))
def test_a_damaged_file_is_named_with_the_reason(tmp_path: Path, k: int) -> None:
    said = damaged(tmp_path)[k]
    name = said.split("'")[1]
    with pytest.raises(NetworkError) as raised:
        load_images([tmp_path / name])
    told = str(raised.value).replace(f"{tmp_path.as_posix()}/", "")
    assert told.startswith(f"Every image file must be readable; 1 of 1 is not: {said[:-1]}")
    assert told.endswith("). Mend them, or take them away.")
    assert "\n" not in told


def test_all_damaged_files_are_told_at_once(folder: Path) -> None:
    said = damaged(folder / "b")
    with pytest.raises(NetworkError) as raised:
        load_image_folder(folder)
    told = str(raised.value)
    assert told.startswith(
        "Every image file must be readable; 9 of 14 are not: 'b/bomb1.png' (it has"
    )
    assert told.endswith(" and 4 more. Mend them, or take them away.")
    assert all(name.split("'")[1] in told for name in said[:5])


def test_cut_anywhere_an_image_is_refused_or_read(tmp_path: Path) -> None:
    """No error but ours, wherever the file ends and whichever byte is wrong."""
    path = tmp_path / "a.png"
    n_read = n_refused = 0
    for kind in ("JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP"):
        Image.fromarray(COLOUR).save(path, kind)
        whole = path.read_bytes()
        for k in range(0, len(whole), max(1, len(whole) // 60)):
            for content in (whole[:k], whole[:k] + bytes([whole[k] ^ 0xFF]) + whole[k + 1 :]):
                path.write_bytes(content)
                try:
                    load_images([path], size=2)
                    n_read += 1
                except NetworkError:
                    n_refused += 1
    assert min(n_read, n_refused) > 100


def rows(tmp_path: Path) -> list[tuple[Callable[[], Any], str]]:
    """Calls that are refused, and the whole text of why."""
    root = tmp_path
    image = write(root / "a" / "1.png", grey(0))
    (root / "empty").mkdir()
    write(root / "flat" / "1.png", grey(0))
    write(root / "hollow" / "ok" / "1.png", grey(0))
    (root / "hollow" / "no\x1bne").mkdir()
    (root / "hollow" / "nothing").mkdir()
    for name in (b"a\xff", b"a\\xff"):
        write(Path(os.fsdecode(os.fsencode(root / "alike") + b"/" + name)) / "1.png", grey(0))
    extensions = ".bmp, .gif, .jpeg, .jpg, .pbm, .pgm, .png, .pnm, .ppm, .tif, .tiff, .webp"
    classes = "path must be a folder that holds one for each class; "
    return [
        (lambda: load_image_folder(root / "alike"),
         f"Folders in {str(root / 'alike')!r} must have different names; two read 'a\\\\xff', one of "
         "which is no UTF-8. Rename one of them."),
        (lambda: load_image_folder(root / "gone"), f"{classes}{str(root / 'gone')!r} does not exist."),
        (lambda: load_image_folder(image), f"{classes}{str(image)!r} is a file."),
        (lambda: load_image_folder(root / "empty"),
         f"{str(root / 'empty')!r} must hold a folder for each class; it holds no images and no folder. "
         "Put the images of each class into a folder named after it."),
        (lambda: load_image_folder(root / "flat"),
         f"{str(root / 'flat')!r} must hold a folder for each class; it holds 1 image and no folder. "
         "Put the images of each class into a folder named after it."),
        (lambda: load_image_folder(root / "hollow"),
         f"Each folder in {str(root / 'hollow')!r} must hold images of one class; there are none in "
         f"'no\\x1bne', 'nothing'. Add images ({extensions}), or take the folder away."),
        (lambda: load_image_folder(root / "hollow" / "ok" / ".."),
         f"Each folder in {str(root / 'hollow' / 'ok' / '..')!r} must hold images of one class; there "
         f"are none in 'no\\x1bne', 'nothing'. Add images ({extensions}), or take the folder away."),
        (lambda: load_images([image], size=0), "size must be an integer of at least 1; 0 came."),
        (lambda: load_images([image], size=2.5),  # type: ignore[arg-type]
         "size must be an integer of at least 1; 2.5 came."),
        (lambda: load_images([image], resample="cubic"),
         "resample must be one of ('box', 'nearest', 'bilinear', 'hamming', 'bicubic', 'lanczos'); "
         "'cubic' came."),
        (lambda: load_images(str(image)),
         f"paths must be a sequence of at least one path; {str(image)!r} came."),
        (lambda: load_images([]), "paths must be a sequence of at least one path; [] came."),
        (lambda: load_images([image, root / "gone.png"]),
         f"Each path must be an image or a folder of images; {str(root / 'gone.png')!r} does not "
         "exist."),
        (lambda: load_images([root / "empty"]),
         f"Each path must be an image or a folder of images; {str(root / 'empty')!r} holds none "
         f"({extensions})."),
        (lambda: load_images(["/dev/null"]),
         "Every image file must be readable; 1 of 1 is not: '/dev/null' (it is not a file). Mend them, "
         "or take them away."),
    ]  # fmt: skip


def test_messages(tmp_path: Path) -> None:
    for call, message in rows(tmp_path):
        check_message(call, kind_of(message), message)


def test_images_that_do_not_fit_into_memory_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "1.png", grey(0))
    with pytest.raises(NetworkError, match=r"^1 images must fit into memory: it needs 10\.9 TiB, "):
        load_images([path], size=10**6)


def test_every_message_is_tested(tmp_path: Path) -> None:
    damaged(tmp_path / "damaged")
    calls = [call for call, _ in rows(tmp_path)]
    # The errors of single files are caught and told together, so they are asked for one by one.
    paths = [*(tmp_path / "damaged").iterdir(), Path("/dev/null")]
    calls += [partial(_decoding._decoded, path, lambda image: None) for path in paths]

    def load_without_pillow() -> None:
        with patch.dict(sys.modules, {"PIL.Image": None}):
            load_images([tmp_path / "a"])

    files = [SOURCE / f"{name}.py" for name in ("_decoding", "_image_files", "_image_folder")]
    assert unreached(files, [*calls, load_without_pillow]) == []
