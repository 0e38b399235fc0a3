"""The package as a whole: public names, direction of imports, what importing loads, the docs."""

import ast
import doctest
import importlib
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tnsum

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tnsum"

# From the layout in CONTRIBUTING: a module imports, at module level, only from lines above it.
LAYOUT = re.search(r"```\n(errors\.py.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
assert LAYOUT is not None
FILES = [line.split()[0] for line in LAYOUT[1].splitlines()]
MODULES = [name.removesuffix(".py") for name in FILES if not name.endswith("/")]
FOLDERS = {module.split("/")[0] for module in MODULES if "/" in module}


def module_level_imports(path: Path) -> list[str]:
    """The tnsum modules that a file imports outside functions and type checking."""
    found = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tnsum"):
            parent = str(node.module).split(".")[1:]
            names = [[*parent, alias.name] for alias in node.names]
            found += ["/".join(name) for name in names]
        elif isinstance(node, ast.Import):
            imported = [alias.name.split(".") for alias in node.names]
            found += ["/".join(name[1:]) for name in imported if name[0] == "tnsum"]
    return found


def is_allowed(imported: str, above: list[str]) -> bool:
    """Whether an import names a module above, or something in one."""
    folders = [module.rpartition("/")[0] for module in above]
    return any(
        imported in names or imported.rpartition("/")[0] in names for names in (above, folders)
    )


def test_layout_lists_every_module() -> None:
    files = [p.relative_to(SOURCE).with_suffix("") for p in SOURCE.rglob("*.py")]
    assert sorted(MODULES) == sorted(str(p) for p in files if p.name != "__init__")


@pytest.mark.parametrize("module", MODULES)
def test_modules_import_only_from_lines_above(module: str) -> None:
    above = MODULES[: MODULES.index(module)]
    imports = module_level_imports(SOURCE / f"{module}.py")
    assert [name for name in imports if not is_allowed(name, above)] == []


def test_only_one_module_asks_for_an_array_namespace() -> None:
    askers = [p.stem for p in SOURCE.rglob("*.py") if "array_api_compat" in p.read_text()]
    assert askers == ["_arrays"]


def test_public_names_exist_and_are_documented() -> None:
    assert sorted(tnsum.__all__) == tnsum.__all__
    for name in tnsum.__all__:
        assert getattr(tnsum, name).__doc__, name
    for module in (tnsum.drawing, tnsum.interop, tnsum.multilinear):
        assert sorted(module.__all__) == module.__all__
        for name in module.__all__:
            assert getattr(module, name).__doc__, name


def test_all_public_names_of_the_package_are_listed() -> None:
    modules = {*MODULES, *FOLDERS, "annotations"}
    public = {name for name in vars(tnsum) if not name.startswith("_")} - modules
    assert public | {"drawing", "interop", "multilinear"} == set(tnsum.__all__)


def run(code: str, folder: Path | None = None) -> str:
    """The output of a fresh interpreter."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_loads_no_heavy_library() -> None:
    heavy = ["sklearn", "scipy", "matplotlib", "PIL", "torch", "jax", "dask", "cotengra", "cupy"]
    heavy += ["quimb", "tensorly", "hottbox", "xarray", "networkx", "click", "rich", "safetensors"]
    assert run(f"import sys, tnsum; print([m for m in {heavy} if m in sys.modules])") == "[]\n"


def test_adding_and_measuring_load_no_heavy_library() -> None:
    code = """
import sys, numpy as np, tnsum
x = tnsum.chain([np.ones((2, 3)), np.ones((3, 2))])
tnsum.norm(x + x), tnsum.inner(x, x), (x + x).contract(), (x + x).to_network()
print([m for m in ["sklearn", "scipy", "matplotlib", "torch", "jax", "dask"] if m in sys.modules])
"""
    assert run(code) == "[]\n"


def examples_in(file: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", file.read_text(), re.DOTALL)


PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "networks", "sums", "fusion", "large-data", "storage", "drawing"))]  # fmt: skip
# Executed by other tests, which hold them against more than what they print.
ELSEWHERE = ["docs/compression.md", "docs/format.md", "docs/side-by-side.md"]
NEEDS_OTHERS = "docs/interop.md"


def test_every_page_with_code_is_executed() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {str(p.relative_to(ROOT)) for p in pages if examples_in(p)}
    assert named == {*PAGES, *ELSEWHERE, NEEDS_OTHERS}


@pytest.mark.large
def test_examples_with_other_libraries_print_what_they_say(tmp_path: Path) -> None:
    for module in ("quimb", "torch", "jax"):
        pytest.importorskip(module, exc_type=ImportError)
    test_examples_print_what_they_say(NEEDS_OTHERS, tmp_path)


@pytest.mark.parametrize("name", PAGES)
def test_examples_print_what_they_say(name: str, tmp_path: Path) -> None:
    code = "\n".join(examples_in(ROOT / name))
    expected = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert run(code, tmp_path).rstrip().splitlines() == expected


def test_readme_names_files_that_exist() -> None:
    for name in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / name).exists(), name


def test_readme_shows_the_sum_of_its_example() -> None:
    """`python docs/draw_readme.py` draws it anew."""
    names = runpy.run_path(str(ROOT / "docs" / "draw_readme.py"))
    assert names["PICTURE"].read_text() == names["drawn"]()


def test_reference_lists_every_public_name() -> None:
    listed: set[str] = set()
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        text = page.read_text()
        for module in re.findall(r"currentmodule:: (\S+)", text):
            entries = re.findall(
                r"^\.\. auto(?:class|function|exception):: (\w+)", text, re.MULTILINE
            )
            shown = re.search(r"autosummary::\n   :nosignatures:\n\n((?:   \w+\n)+)", text)
            assert shown is None or sorted(shown[1].split()) == sorted(entries), page.name
            listed |= {f"{module}.{name}" for name in entries}
    modules = ["", "datasets", "drawing", "experiments", "fusion", "interop", "multilinear"]
    public = set()
    for module in modules:
        found = importlib.import_module(".".join(["tnsum", module]).rstrip("."))
        public |= {f"{found.__name__}.{name}" for name in found.__all__}
    # `tnsum.draw` stands with its module; modules have pages of their own.
    public -= {"tnsum.draw", *(f"tnsum.{module}" for module in modules)}
    assert listed == public


def test_citation_names_this_version() -> None:
    assert f"\nversion: {tnsum.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_tour_finds_all_sums_right() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "tour.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("All sums are right.\n")


def test_the_guide_to_compression_runs() -> None:
    guide = ROOT / "docs" / "compression.md"
    result = doctest.testfile(str(guide), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_oldest_versions_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = dict(
        re.fullmatch(r"([\w-]+)>=([\d.]+)", each).groups()
        for each in [*project["dependencies"], *extras["fusion"], *extras["test"]]
        if not each.startswith("tnsum")
    )
    lines = (ROOT / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    # Others need these: scikit-learn and matplotlib.
    assert pinned.keys() - stated.keys() == {"scipy", "pyparsing"}
    assert stated.keys() <= pinned.keys()
    for name, version in stated.items():
        assert f"{pinned[name]}.".startswith(f"{version}."), name
    minor = project["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {minor}" in project["classifiers"]
