"""`tnsum draw` and `tnsum figures`: what they write and print, and how they fail."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum
from drawn import NODES, overlaps, read
from raising import check_message, kind_of, unreached
from tnsum import NetworkError
from tnsum.cli import main
from tnsum.datasets import make_objects
from tnsum.drawing import _paper, to_svg, to_tikz
from tnsum.drawing._svg import svg_of
from tnsum.errors import UnsuitableError
from tnsum.experiments import Settings, _paper_figures, _stored, reproduce
from tnsum.experiments._paper_figures import paper_figures
from tnsum.experiments._stored import _run, stored_run

rng = np.random.default_rng(0).standard_normal
x = tnsum.tucker(rng((2, 3, 2)), [rng((4, 2)), rng((5, 3)), rng((6, 2))])
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command in a folder with some files: exit code, output, error output."""
    monkeypatch.chdir(tmp_path)
    tnsum.save("x.safetensors", x)
    tnsum.save("sum.safetensors", x - 2 * x)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return run_command


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", b"<svg"), ("a.PDF", b"%PDF"), ("a.png", b"\x89PNG"), ("a.tex", b"% Needs")],
)
def test_draw_writes_what_the_name_asks_for(run: Run, name: str, start: bytes) -> None:
    code, out, err = run("draw", "sum.safetensors", "-o", name)
    assert (code, err) == (0, "")
    assert out == (
        f"{name}: drawing of a sum of 2 networks of order 3, shape (4, 5, 6), float64, 94 parameters\n"
    )
    first = Path(name).read_bytes()
    assert first.startswith(start)
    run("draw", "sum.safetensors", "-o", name)
    assert Path(name).read_bytes() == first
    assert not list(Path().glob(".tnsum-*"))


def test_draw_writes_the_same_as_the_functions(run: Run) -> None:
    run("draw", "x.safetensors", "-o", "x.svg")
    assert Path("x.svg").read_text() == to_svg(x)
    run("draw", "x.safetensors", "-o", "x.svg", "--theme", "dark")
    assert Path("x.svg").read_text() == to_svg(x, "dark")
    run("draw", "x.safetensors", "-o", "x.tex")
    assert Path("x.tex").read_text() == to_tikz(x)


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_draw_shows_the_entries_of_a_node(run: Run, kind: str) -> None:
    code, out, err = run("draw", "sum.safetensors", "-o", f"core.{kind}", "--node", "core")
    assert (code, err) == (0, "")
    assert out.startswith(f"core.{kind}: entries of node 'core' of a sum of 2 networks")
    assert Path(f"core.{kind}").stat().st_size > 1000


def test_a_dark_picture_has_a_dark_ground(run: Run) -> None:
    from PIL import Image

    for theme, ground in (("light", (255, 255, 255)), ("dark", (0x14, 0x18, 0x1D))):
        run("draw", "x.safetensors", "-o", "x.png", "--theme", theme)
        with Image.open("x.png") as image:
            assert image.convert("RGB").getpixel((1, 1)) == ground


ERRORS = [
    (("x.safetensors", "-o", "x.gif"), 2,
     "Invalid value for '-o' / '--output': the name must end in .svg, .pdf, .png, .tex; 'x.gif' came. "
     "(See tnsum draw --help.)"),
    (("x.safetensors",), 2, "Missing option '-o' / '--output'. (See tnsum draw --help.)"),
    (("x.safetensors", "-o", "no/x.svg"), 1, "'no/x.svg' cannot be saved: No such file or directory"),
    (("x.safetensors", "-o", "x.tex", "--theme", "dark"), 2,
     "A .tex file has no theme dark. (See tnsum draw --help.)"),
    (("x.safetensors", "-o", "x.pdf", "--theme", "auto"), 2,
     "A .pdf file has no theme auto. (See tnsum draw --help.)"),
    (("x.safetensors", "-o", "x.tex", "--node", "core"), 2,
     "--node draws .svg, .pdf or .png, and has no --theme. (See tnsum draw --help.)"),
    (("x.safetensors", "-o", "x.png", "--node", "kernel"), 1,
     "A node must be one of ('core', 'factor0', 'factor1', 'factor2'); 'kernel' came."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "message"), ERRORS)
def test_errors_are_one_line(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    assert run("draw", *arguments) == (code, "", f"Error: {message}\n")


def test_what_cannot_be_drawn_is_refused_and_an_older_picture_stays(run: Run) -> None:
    accumulator = tnsum.SumAccumulator(x.topology, x.shape, max_rank=2)
    tnsum.save("a.safetensors", accumulator)
    Path("a.svg").write_text("older")
    code, _, err = run("draw", "a.safetensors", "-o", "a.svg")
    assert code == 1
    assert err.endswith("Topology or Compression; SumAccumulator came.\n")
    assert Path("a.svg").read_text() == "older"


# the paper's diagrams


def test_building_blocks_stand_anticlockwise() -> None:
    picture = read(svg_of(_paper.building_blocks()))
    places = {item.text: item.centre for item in picture.texts}
    assert places["scalar"][0] < places["third-order tensor"][0]
    assert places["scalar"][1] < places["vector"][1]
    assert places["vector"][0] < places["matrix"][0]
    assert places["third-order tensor"][1] < places["matrix"][1]
    assert sorted(line.title for line in picture.lines) == [
        *["physical mode I"] * 3, *["physical mode J"] * 2, "physical mode K"
    ]  # fmt: skip


def test_two_networks_have_the_orders_and_colours_of_the_paper() -> None:
    left, places = _paper.honeycomb()
    right, circles = _paper.mera()
    assert (left.order, right.order) == (16, 32)
    assert {len(left.nodes[name]) for name in left.contraction_nodes} == {3}
    assert {len(right.nodes[name]) for name in right.contraction_nodes} == {3, 4}
    assert (set(places), set(circles)) == (set(left.nodes), set(right.nodes))
    picture = read(svg_of(_paper.two_networks()))
    counts = {role: len(picture.of_role(role)) for role in (*NODES, "physical-line")}
    fourth = [name for name in right.contraction_nodes if len(right.nodes[name]) == 4]
    assert counts["fourth-order-node"] == len(fourth)
    assert counts["physical-node"] == 16 + 16
    assert counts["physical-line"] == 16 + 32
    assert overlaps(picture) == []


def test_sums_of_the_paper_show_the_names_of_both_summands() -> None:
    chain = read(svg_of(_paper.matrix_chain_sum()))
    blocks = [text.text for text in chain.texts if text.title.startswith("block")]
    assert blocks == ["A1", "B1", "A2", "B2", "A3", "B3", "A4", "B4"]
    assert "C2: R1=5, R2=5; 2 blocks superdiagonal" in chain.titles
    assert "C4: R3=5, J=5; 2 blocks side by side" in chain.titles
    tucker = read(svg_of(_paper.tucker_sum()))
    assert "Gz: R1=5, R2=5, R3=5; 2 blocks superdiagonal" in tucker.titles
    for picture in (chain, tucker):
        assert overlaps(picture) == []


# all figures


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    images = make_objects(n_objects=2, n_views=4, size=8)
    reproduce(images, folder, Settings(fractions=(0.25, 0.5), n_splits=2))
    return folder


NAMES = [
    "figure1-building-blocks", "figure2-networks", "figure3-matrix-chain-sum", "figure4-tucker-sum",
    "figure5-confusion", "figure6-accuracy", "figure6-difference",
]  # fmt: skip


def test_all_figures_are_in_one_folder(run: Run, finished: Path) -> None:
    code, out, err = run("figures", "paper", "--results", str(finished))
    assert (code, err) == (0, "")
    assert [line.split(".svg")[0] for line in out.splitlines()[:7]] == [f"paper/{n}" for n in NAMES]
    assert out.endswith("\n\nPage: paper/index.html\n")
    page = Path("paper/index.html").read_text()
    for name in NAMES:
        svg = Path(f"paper/{name}.svg").read_text()
        ET.fromstring(svg)
        assert Path(f"paper/{name}.pdf").read_bytes().startswith(b"%PDF")
    assert page.count("<svg") == 7
    assert "http:" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    # What is not of the paper's images says so, in the figure, its caption and the page.
    for name in NAMES[4:]:
        assert "64 images that are not ETH-80, 2 splits" in Path(f"paper/{name}.svg").read_text()
    assert page.count("not of ETH-80 but made by make_objects: 2 objects a class, 4 views") == 6


@pytest.mark.large
def test_without_results_a_small_experiment_is_run(run: Run) -> None:
    code, out, err = run("figures", "paper")
    assert code == 0
    assert out.startswith(
        "No --results were given: a small experiment on objects made by a program, not ETH-80\n"
    )
    assert "15 of 15: paper, 80 % trained on" in err
    assert Path("paper/experiment/report.html").exists()
    assert "480 images, not of ETH-80" in out


def test_figures_of_eth80_say_so(finished: Path, tmp_path: Path) -> None:
    values = json.loads((finished / "results.json").read_text())
    values["data"] |= {"is_eth80": True, "source": "ETH-80"}
    (tmp_path / "results.json").write_text(json.dumps(values))
    assert stored_run(tmp_path).data == "64 images of ETH-80; 2 splits"
    assert stored_run(tmp_path).heading == "64 images of ETH-80, 2 splits"


def test_a_stored_run_is_the_run(finished: Path) -> None:
    stored = stored_run(finished)
    images = make_objects(n_objects=2, n_views=4, size=8)
    done = reproduce(images, finished, Settings(fractions=(0.25, 0.5), n_splits=2))
    for mine, point in zip(stored.points, done.points("paper"), strict=True):
        assert mine.fraction == point.fraction
        assert mine.methods == point.methods
        for method in point.methods:
            assert mine.accuracy(method) == point.accuracy(method)
            assert np.array_equal(mine.confusions[method], point.confusion(method, images.labels))


CHANGES: list[Callable[[Any], Any]] = [
    lambda v: v["data"].pop("classes"),
    lambda v: v["data"].update(classes=[1, 2]),
    lambda v: v["data"].update(classes=["a"]),
    lambda v: v["data"].update(is_eth80="yes"),
    lambda v: v["protocols"].pop("paper"),
    lambda v: v["protocols"]["paper"].update(points=[]),
    lambda v: v["protocols"]["paper"]["points"][0].update(fraction=2),
    lambda v: v["protocols"]["paper"]["points"][0].update(fraction="1e999"),
    lambda v: v["protocols"]["paper"]["points"][0]["methods"].pop("SUM"),
    lambda v: v["protocols"]["paper"]["points"][0]["methods"]["SUM"].update(accuracies=[1, "<b>"]),
    lambda v: v["protocols"]["paper"]["points"][0]["methods"]["SUM"].update(accuracies=[101]),
    lambda v: v["protocols"]["paper"]["points"][0]["methods"]["SUM"].update(accuracies=[]),
    lambda v: v["protocols"]["paper"]["points"][0]["methods"]["SUM"].update(confusion=[[1, 2]]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_results_that_are_not_right_are_refused(
    finished: Path, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    values = json.loads((finished / "results.json").read_text())
    change(values)
    (tmp_path / "results.json").write_text(json.dumps(values))
    advice = (
        r"must hold the results of `tnsum reproduce` with the protocol paper; it does not \(\w+\)\. "
        r"Run it again, into another folder\.$"
    )
    with pytest.raises(NetworkError, match=advice):
        stored_run(tmp_path)


def test_every_fault_of_results_is_tested(finished: Path, tmp_path: Path) -> None:
    def changed(change: Callable[[Any], Any]) -> Any:
        values = json.loads((finished / "results.json").read_text())
        change(values)
        return values

    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    calls: list[Callable[[], Any]] = [lambda c=c: _run(changed(c)) for c in CHANGES]
    calls += [lambda folder=folder: stored_run(folder) for folder in (tmp_path, tmp_path / "empty")]
    calls += [lambda: paper_figures(tmp_path, finished)]
    files = [Path(str(module.__file__)) for module in (_stored, _paper_figures)]
    assert unreached(files, calls) == []


def test_hostile_words_in_results_reach_no_page(finished: Path, tmp_path: Path) -> None:
    values = json.loads((finished / "results.json").read_text())
    values["data"]["source"] = "<script>\x1b[31m" + "x" * 1000
    values["data"]["classes"][0] = "</svg><script>alert(1)</script>"
    (tmp_path / "results.json").write_text(json.dumps(values))
    paper_figures(tmp_path / "out", tmp_path)
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "x" * 101 not in page


def test_a_folder_without_results_is_refused(run: Run, tmp_path: Path) -> None:
    message = (
        f"{tmp_path} must be the folder of a finished `tnsum reproduce`; it holds no results.json. Run "
        f"it, or give another folder."
    )
    check_message(lambda: stored_run(tmp_path), kind_of(message), message)
    assert run("figures", "out", "--results", str(tmp_path)) == (2, "", f"Error: {message}\n")
    assert not Path("out").exists()


def test_a_folder_that_cannot_be_written_to_is_refused(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    check_message(
        lambda: paper_figures(tmp_path / "taken", finished),
        NetworkError,
        f"'{tmp_path}/taken/{NAMES[0]}.svg' cannot be saved: File exists",
    )


def test_a_folder_of_somebody_elses_is_refused_and_stays_as_it_is(
    finished: Path, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("mine")
    for results in (finished, None):
        check_message(
            lambda results=results: paper_figures(tmp_path, results),  # type: ignore[misc]
            UnsuitableError,
            f"{tmp_path} must be new, empty, or of earlier figures; it holds other files, such as "
            f"index.html. Give another folder.",
        )
    assert (tmp_path / "index.html").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_figures_are_drawn_again_into_their_folder(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    paper_figures(folder, finished)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "notes.txt").write_text("mine")
    paper_figures(folder, finished)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        **before, "notes.txt": b"mine"
    }  # fmt: skip
