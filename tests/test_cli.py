"""The command: what it prints, what it writes, and how it fails."""

import gzip
import io
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tnsum
from tnsum.cli import main

rng = np.random.default_rng(0).standard_normal
x = tnsum.tucker(rng((2, 3, 2)), [rng((4, 2)), rng((5, 3)), rng((6, 2))])
y = tnsum.tucker(rng((1, 3, 2)), [rng((4, 1)), rng((5, 3)), rng((6, 2))])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with some files in it."""
    monkeypatch.chdir(tmp_path)
    tnsum.save("x.safetensors", x)
    tnsum.save("y.safetensors", y)
    tnsum.save("stack.safetensors", tnsum.NetworkStack.from_networks([x, x.conj(), x]))
    tnsum.save("chain.safetensors", tnsum.chain([rng((4, 2)), rng((2, 5))]))
    Path("text.txt").write_text("These are no networks, and much too long for a header.")
    return tmp_path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command in that directory: exit code, output, error output."""

    def run_command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return run_command


# info


def test_info_shows_a_network(run: Run) -> None:
    code, out, err = run("info", "x.safetensors")
    size = os.path.getsize("x.safetensors")
    assert (code, err) == (0, "")
    assert (
        out
        == f"""\
x.safetensors: network of order 3, shape (4, 5, 6), float64, 47 parameters, {size / 1000:.1f} kB on disk

node     modes             parameters
core     r0=2, r1=3, r2=2          12
factor0  i0=4, r0=2                 8
factor1  i1=5, r1=3                15
factor2  i2=6, r2=2                12

mode  kind         size  nodes
i0    physical        4  factor0
i1    physical        5  factor1
i2    physical        6  factor2
r0    contraction     2  core, factor0
r1    contraction     3  core, factor1
r2    contraction     2  core, factor2

norm {float(tnsum.norm(x)):.6g}
"""
    )


def test_info_shows_sums_and_stacks(run: Run) -> None:
    tnsum.save("sum.safetensors", x - 2j * y)
    code, out, _ = run("info", "sum.safetensors")
    first, *_, last = out.splitlines()
    assert code == 0
    assert first.startswith(
        "sum.safetensors: sum of 2 networks of order 3, shape (4, 5, 6), complex128, "
    )
    assert last == f"norm {float(tnsum.norm(x - 2j * y)):.6g}"
    assert "core     r0=3, r1=6, r2=4          18" in out
    code, out, _ = run("info", "stack.safetensors")
    norm = f"{float(tnsum.norm(x)):.6g}"
    assert "stack of 3 networks of order 3" in out
    assert out.endswith(f"\nnorms {norm} to {norm}\n")


def test_info_without_the_norm_reads_the_header_only(run: Run) -> None:
    code, out, _ = run("info", "x.safetensors", "--no-norm")
    assert code == 0
    assert "norm" not in out


def test_info_gives_json(run: Run) -> None:
    code, out, _ = run("info", "x.safetensors", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["kind"] == "network"
    assert found["shape"] == [4, 5, 6]
    assert found["parameters"] == 47
    assert found["norm"] == float(tnsum.norm(x))
    assert found["nodes"][0] == {"name": "core", "modes": ["r0", "r1", "r2"], "parameters": 12}
    mode = {"name": "r1", "size": 3, "physical": False, "nodes": ["core", "factor1"]}
    assert mode in found["modes"]
    norms = json.loads(run("info", "stack.safetensors", "--json")[1])["norm"]
    assert norms == [pytest.approx(found["norm"])] * 3
    assert "norm" not in json.loads(run("info", "x.safetensors", "--json", "--no-norm")[1])


def test_info_gives_json_without_infinities(run: Run) -> None:
    tnsum.save("huge.safetensors", tnsum.chain([np.full((2, 2), 1e200)] * 2))
    assert json.loads(run("info", "huge.safetensors", "--json")[1])["norm"] is None
    assert run("info", "huge.safetensors")[1].endswith("norm inf\n")


def test_info_cuts_long_tables_short(run: Run) -> None:
    tnsum.save("long.safetensors", tnsum.cp([rng((2, 3)) for _ in range(50)]))
    out = run("info", "long.safetensors")[1]
    assert out.count("... and 10 more; --all shows them") == 1
    assert out.count("... and 11 more; --all shows them") == 1
    assert "factor40" not in out
    out = run("info", "long.safetensors", "--all")[1]
    assert "factor49  i49=2, r=3" in out
    holders = "factor0, factor1, factor2, factor3, factor4, factor5, ... 50 in all"
    assert f"r     contraction     3  {holders}" in out


def test_info_gives_json_where_the_norm_fits_into_no_memory(run: Run) -> None:
    names = {k: [f"r{min(k, m)}_{max(k, m)}" for m in range(60) if m != k] for k in range(60)}
    nodes = {f"n{k}": (np.ones((1,) * 59), held) for k, held in names.items()}
    nodes["n0"] = (np.ones((2,) + (1,) * 58), names[0])
    nodes["n1"] = (np.ones((2,) + (1,) * 58), names[1])
    tnsum.save("x.safetensors", tnsum.Network(nodes, ()))
    code, out, _ = run("info", "x.safetensors", "--json")
    assert code == 0
    assert "norm" in json.loads(out)


def test_info_computes_no_norms_of_very_long_stacks(run: Run) -> None:
    topology = tnsum.Topology({"A": ("i",)})
    tnsum.save("s.safetensors", tnsum.NetworkStack(topology, {"A": np.ones((1001, 4))}))
    out = run("info", "s.safetensors")[1]
    assert out.endswith("norms: not computed of more than 1000 networks; --json does\n")


def test_info_shows_the_rest_where_the_norm_fits_into_no_memory(run: Run) -> None:
    names = {k: [f"r{min(k, m)}_{max(k, m)}" for m in range(14) if m != k] for k in range(14)}
    nodes = {f"n{k}": (np.ones((2,) * 13), held) for k, held in names.items()}
    tnsum.save("dense.safetensors", tnsum.Network(nodes, ()))
    code, out, _ = run("info", "dense.safetensors")
    assert code == 0
    assert "norm" in out.splitlines()[-1]


def test_names_from_a_file_do_not_reach_the_terminal_as_they_are(run: Run) -> None:
    evil = x.rename(nodes={"core": "\x1b[31mred\x07"}, modes={"i0": "[bold]:smile:\n"})
    tnsum.save("evil.safetensors", evil)
    code, out, _ = run("info", "evil.safetensors")
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\\x1b[31mred\\x07" in out
    assert "[bold]:smile:\\n" in out
    assert json.loads(run("info", "evil.safetensors", "--json")[1])["nodes"][0]["name"][0] == "\x1b"


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.ones(3))
    return file.getvalue()


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("notes.txt", "text")
    return file.getvalue()


def saved(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (2, 2)).save(file, kind)
    return file.getvalue()


PREDICT = " Its class is told by `tnsum predict MODEL some`."
NUMPY = " numpy.load reads it, tnsum.decompose makes a network of an array."
KINDS: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (bytes, "is empty."),
    "PNG": (lambda: saved("PNG"), f"seems to be a PNG image.{PREDICT}"),
    "JPEG": (lambda: saved("JPEG"), f"seems to be a JPEG image.{PREDICT}"),
    "GIF": (lambda: saved("GIF"), f"seems to be a GIF image.{PREDICT}"),
    "TIFF": (lambda: saved("TIFF"), f"seems to be a TIFF image.{PREDICT}"),
    "WebP": (lambda: saved("WEBP"), f"seems to be a WebP image.{PREDICT}"),
    "npz": (npz, f"seems to be an npz file of NumPy.{NUMPY}"),
    "npy": (lambda: b"\x93NUMPY\x01\x00", f"seems to be an npy file of NumPy.{NUMPY}"),
    "zip": (zipped, "seems to be a zip archive."),
    "pickle": (lambda: pickle.dumps([1.0] * 9, 4),
               "seems to be a pickle of Python. tnsum reads none: it may run any program."),
    "gzip": (lambda: gzip.compress(b"text"), "seems to be a gzip archive."),
    "JSON": (lambda: b' {"a": [1, 2]}', "seems to be JSON."),
    "a list": (lambda: b"[1]", "seems to be JSON."),
    "a page": (lambda: b"<!DOCTYPE html>\n<p>", "seems to be a page for a browser. Open it in one."),
    "SVG": (lambda: b'<?xml version="1.0"?><svg/>', "seems to be an SVG image."),
    "text": (lambda: ("\u6838 " * 400).encode(), "seems to be text."),
    "a table": (lambda: b"image,class\r\na.png,cow\r\n", "seems to be text."),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS)
def test_info_says_what_another_file_seems_to_be(case: str, run: Run) -> None:
    content, told = KINDS[case]
    Path("some").write_bytes(content())
    line = f"Error: 'some' must hold networks, a classifier or results of a run; it {told}\n"
    assert run("info", "some") == (1, "", line)


@pytest.mark.parametrize("start", [b"\x1f\x8b", b"\xff\xd8\xff"])
def test_info_takes_no_safetensors_file_for_another(start: bytes, run: Run) -> None:
    """Its first bytes are the length of its header, which may look like another format."""
    Path("some").write_bytes(start.ljust(8, b"\0") + b'{"a": 1}')
    assert run("info", "some")[2].startswith(
        "Error: 'some' cannot be loaded: its header should have "
    )
    # A header of that length would be absurd.
    Path("some").write_bytes(start.ljust(8, b"\1") + b'{"a": 1}')
    assert " it seems to be a" in run("info", "some")[2]


def test_info_of_unknown_bytes_and_of_what_was_cut(run: Run) -> None:
    for content in (bytes(range(128, 256)), Path("x.safetensors").read_bytes()[:-3], b"\x00" * 20):
        Path("some").write_bytes(content)
        code, out, err = run("info", "some")
        assert (code, out) == (1, "")
        assert err.startswith("Error: 'some' cannot be loaded: ")


def test_info_does_not_wait_for_a_pipe(run: Run) -> None:
    os.mkfifo("pipe")
    line = "Error: 'pipe' cannot be loaded: it is a directory or a device, not a file\n"
    assert run("info", "pipe") == (1, "", line)


# add


def test_add_writes_the_weighted_sum(run: Run) -> None:
    weights = "--weights", "-1, 2.5,1/4,2+1j,3"
    files = ("x.safetensors", "y.safetensors") * 2 + ("stack.safetensors",)
    code, out, err = run("add", *files, *weights, "-o", "sum.safetensors")
    assert (code, err) == (0, "")
    assert out.startswith(
        "sum.safetensors: sum of 7 networks of order 3, shape (4, 5, 6), complex128"
    )
    s = tnsum.load("sum.safetensors")
    assert isinstance(s, tnsum.NetworkSum)
    np.testing.assert_array_equal(s.weights, [-1, 2.5, 0.25, 2 + 1j, 3, 3, 3])
    expected = (9.25 - 1) * x.contract() + (4.5 + 1j) * y.contract()
    np.testing.assert_allclose(s.contract(), expected, rtol=1e-12)


def test_add_without_weights_and_onto_one_of_its_files(run: Run) -> None:
    assert run("add", "x.safetensors", "y.safetensors", "--output", "x.safetensors")[0] == 0
    s = tnsum.load("x.safetensors")
    np.testing.assert_allclose(s.contract(), x.contract() + y.contract(), rtol=1e-12)


def test_add_writes_explicit_blocks_when_asked(run: Run) -> None:
    code, out, _ = run("add", "x.safetensors", "y.safetensors", "--explicit", "-o", "z.safetensors")
    z = tnsum.load("z.safetensors")
    assert code == 0
    assert "z.safetensors: network of order 3" in out
    assert isinstance(z, tnsum.Network)
    np.testing.assert_array_equal(z.arrays["core"], (x + y).node("core"))


# failing

MISUSE = {
    "no file": (["info"], "Missing argument 'FILE'. (See tnsum info --help.)"),
    "a file that does not exist": (
        ["info", "no.safetensors"],
        "Invalid value for 'FILE': Path 'no.safetensors' does not exist. (See tnsum info --help.)",
    ),
    "a directory": (
        ["info", "."],
        "Invalid value for 'FILE': '.' is a folder; name a file in it. (See tnsum info --help.)",
    ),
    "no such command": (["frobnicate"], "No such command 'frobnicate'. (See tnsum --help.)"),
    "no such option": (
        ["info", "x.safetensors", "--colour"],
        "No such option '--colour'. (See tnsum info --help.)",
    ),
    "no output": (["add", "x.safetensors"], "Missing option '-o' / '--output'. (See tnsum add --help.)"),
    "nothing to add": (["add", "-o", "z"], "Missing argument 'FILES...'. (See tnsum add --help.)"),
    "too few weights": (
        ["add", "x.safetensors", "y.safetensors", "--weights", "1", "-o", "z"],
        "Invalid value for --weights: there must be one for each file: 2 files and 1 weights came. "
        "(See tnsum add --help.)",
    ),
    "no number": (
        ["add", "x.safetensors", "--weights", "one", "-o", "z"],
        "Invalid value for '--weights': 'one' is no finite number; write for instance 1,-2.5,1/3,2+1j. "
        "(See tnsum add --help.)",
    ),
    "too large": (
        ["add", "x.safetensors", "--weights", "1e100000000", "-o", "z"],
        "Invalid value for '--weights': '1e100000000' is no finite number; write for instance "
        "1,-2.5,1/3,2+1j. (See tnsum add --help.)",
    ),
    "not finite": (
        ["add", "x.safetensors", "y.safetensors", "--weights", "1,nan", "-o", "z"],
        "Invalid value for '--weights': 'nan' is no finite number; write for instance "
        "1,-2.5,1/3,2+1j. (See tnsum add --help.)",
    ),
    "division by zero": (
        ["add", "x.safetensors", "--weights", "1/0", "-o", "z"],
        "Invalid value for '--weights': '1/0' is no finite number; write for instance "
        "1,-2.5,1/3,2+1j. (See tnsum add --help.)",
    ),
}  # fmt: skip

FAILURE = {
    "no network": (
        ["info", "text.txt"],
        "'text.txt' must hold networks, a classifier or results of a run; it seems to be text.",
    ),
    "another topology": (
        ["add", "x.safetensors", "chain.safetensors", "-o", "z"],
        None,
    ),
    "no folder": (
        ["add", "x.safetensors", "-o", "no/z"],
        "'no/z' cannot be saved: No such file or directory",
    ),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_one_line_and_exit_code_2(case: str, run: Run) -> None:
    arguments, message = MISUSE[case]
    code, out, err = run(*arguments)
    # In the words of older versions of click.
    err = err.replace("No such option: --colour (", "No such option '--colour'. (")
    assert (code, out, err) == (2, "", f"Error: {message}\n")
    assert not Path("z").exists()


@pytest.mark.parametrize("case", FAILURE)
def test_failure_is_one_line_and_exit_code_1(case: str, run: Run) -> None:
    arguments, message = FAILURE[case]
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert message is None or err == f"Error: {message}\n"
    assert not Path("z").exists()
    assert sorted(p.name for p in Path().glob(".*")) == []


def test_unexpected_errors_are_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise RuntimeError("two\nlines \x1b[31m")

    monkeypatch.setattr("tnsum.cli.info.load", broken)
    line = "Error: RuntimeError: two lines \\x1b[31m (--debug shows where.)\n"
    assert run("info", "x.safetensors") == (1, "", line)


def test_stopping_is_exit_code_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tnsum.cli.info.load", stopped)
    code, _, err = run("info", "x.safetensors")
    assert (code, err) == (130, "Stopped.\n")


@pytest.mark.parametrize(
    "arguments", [["--debug", "info", "text.txt"], ["info", "text.txt", "--debug"]]
)
def test_debug_shows_the_traceback(arguments: list[str], folder: Path) -> None:
    with pytest.raises(tnsum.NetworkError):
        main(arguments)


def test_the_command_without_arguments_shows_its_help(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (2, "")
    assert "Usage: tnsum [OPTIONS] COMMAND" in out


@pytest.mark.parametrize("arguments", [["--help"], ["info", "-h"], ["add", "--help"]])
def test_help_has_examples(arguments: list[str], run: Run) -> None:
    code, out, _ = run(*arguments)
    assert code == 0
    assert "Examples:\n    tnsum " in out


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"tnsum, version {tnsum.__version__}\n", "")


# as a program

PROGRAM = [str(Path(sys.executable).parent / "tnsum")]


def test_the_installed_program_runs(folder: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "info", "x.safetensors"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("x.safetensors: network of order 3")
    done = subprocess.run([*PROGRAM, "info", "no"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    done = subprocess.run(
        [*PROGRAM, "info", "text.txt", "--debug"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_the_program_survives_a_reader_that_goes(folder: Path) -> None:
    tnsum.save("long.safetensors", tnsum.cp([rng((2, 3)) for _ in range(3000)]))
    command = f"{PROGRAM[0]} info long.safetensors --all --no-norm | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("long.safetensors: network of order 3000")
    assert done.stderr == ""


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")


@FULL
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        (["info", "x.safetensors"], ""),
        (["info", "x.safetensors", "--json"], "1"),
        (["add", "x.safetensors", "y.safetensors", "-o", "z"], ""),
        (["info", "--help"], "1"),
        ([], ""),
    ],
)
def test_a_full_output_is_told_in_one_line(
    arguments: list[str], unbuffered: str, folder: Path
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    line = "Error: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, line)


def test_errors_of_the_system_name_the_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> None:
        raise PermissionError(13, "Permission denied", "some/fi\x1ble")

    monkeypatch.setattr("tnsum.cli.info.load", refused)
    line = "Error: 'some/fi\\x1ble': Permission denied. (--debug shows where.)\n"
    assert run("info", "x.safetensors") == (1, "", line)


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warning(file: str) -> tnsum.Network:
        warnings.warn("two\nlines \x1b[31m", stacklevel=1)
        return x

    monkeypatch.setattr("tnsum.cli.info.load", warning)
    shown = warnings.showwarning
    code, _, err = run("info", "x.safetensors")
    assert (code, err) == (0, "Warning: two lines \\x1b[31m\n")
    assert warnings.showwarning is shown


def test_exit_codes_are_in_the_help(run: Run) -> None:
    out = run("--help")[1]
    for code in (0, 1, 2, 130):
        assert re.search(rf"^    {code} +\w", out, re.MULTILINE)


def test_names_are_printed_in_any_encoding_and_without_an_output(folder: Path) -> None:
    tnsum.save("names.safetensors", x.rename(nodes={"core": "\u6838"}))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [*PROGRAM, "info", "names.safetensors"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "\\u6838" in done.stdout
    closed = f"{PROGRAM[0]} add x.safetensors y.safetensors -o z.safetensors >&-"
    subprocess.run(closed, shell=True, check=True)
    assert isinstance(tnsum.load("z.safetensors"), tnsum.NetworkSum)


def test_the_module_is_the_program(folder: Path) -> None:
    command = [sys.executable, "-m", "tnsum", "info", "x.safetensors", "--no-norm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("x.safetensors: network of order 3")


def test_a_terminal_gets_a_table_that_fits(folder: Path) -> None:
    pytest.importorskip("pty")
    script = f"import pty; pty.spawn({[*PROGRAM, 'info', 'x.safetensors']!r})"
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert "───" in done.stdout
    assert "factor2" in done.stdout
