"""The documentation site, built as `make docs` does, opened in a browser at two widths.

It is built from copies, so that nothing is written into the tree, and nothing built before is shown.
"""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browser import CHROMIUM, DESKTOP, TELEPHONE, Page, browser_page

pytestmark = pytest.mark.large

ROOT = Path(__file__).parent.parent
# Examples and pictures must be there, or a test that counts faults finds none in nothing.
N_PAGES, N_PICTURES = 35, 50
LOOK = """(async () => {
  // Fonts differ from machine to machine: formulas are tried wider than they are here.
  document.head.append(Object.assign(document.createElement("style"),
    { textContent: "math { font-size: 130% }" }));
  const images = [...document.images];
  images.forEach(image => { image.loading = "eager" });
  await Promise.all(images.map(image => image.decode().catch(() => null)));
  const drawn = [...document.querySelectorAll("svg.tnsum")];
  const size = element => element.getBoundingClientRect();
  return {
    title: document.title,
    // Tables and code scroll by themselves; what holds them must not.
    wide: [document.documentElement, ...document.querySelectorAll("main, article")]
      .filter(one => one.scrollWidth > Math.min(one.clientWidth, innerWidth) + 1)
      .map(one => `${one.tagName} is ${one.scrollWidth} wide`),
    unseen: images.filter(image => !image.naturalWidth).map(image => image.src)
      .concat(drawn.filter(one => !size(one).width || !size(one).height).map(one => one.ariaLabel)),
    pictures: images.length + drawn.length,
  };
})()"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def built(folder: Path) -> Path:
    """The folder of the built site."""
    for name in ("docs", "examples", "benchmarks"):
        left_out = shutil.ignore_patterns("_build", "gallery", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for name in ("README.md", "CITATION.cff"):
        shutil.copy(ROOT / name, folder)
    site = folder / "site"
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "docs", str(site)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return site


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which a folder is served, on this machine alone."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def faults(page: Page, base: str, name: str, size: tuple[int, int]) -> tuple[list[str], int]:
    """What is wrong with a page at a size, and how many pictures it has."""
    page.open(base + name, size)
    seen = page.evaluate(LOOK)
    found = [*seen["wide"], *(f"{one} is not shown" for one in seen["unseen"])]
    found += [one for one in page.messages if one.startswith(("error", "warning", "assert"))]
    found += [f"asks for {url}" for url in page.requests if not url.startswith((base, "data:"))]
    if not seen["title"]:
        found.append("has no title")
    return [f"{name} at {size[0]}: {one}" for one in found], seen["pictures"]


def check_search(page: Page, base: str) -> None:
    page.open(f"{base}search.html?q=superdiagonal")
    page.wait_for("document.querySelector('#search-results .search-summary')"
                  "?.textContent.startsWith('Search finished')")  # fmt: skip
    script = "[...document.querySelectorAll('#search-results li a')].map(a => a.href)"
    found = {url.removeprefix(base).split("?")[0].split("#")[0] for url in page.evaluate(script)}
    assert {"theorem.html", "sums.html", "api/multilinear.html"} <= found
    assert [url for url in page.requests if not url.startswith(base)] == []
    assert [one for one in page.messages if one.startswith("error")] == []


def test_the_site_in_a_browser(tmp_path: Path) -> None:
    for module in (
        "sphinx",
        "latex2mathml",
        "myst_parser",
        "numpydoc",
        "pydata_sphinx_theme",
        "sphinx_gallery",
    ):
        pytest.importorskip(
            module, reason=f"no {module}: `make docs` installs what builds the site"
        )
    site = built(tmp_path)
    names = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html"))]
    names = [name for name in names if not name.startswith("_static")]
    assert len(names) >= N_PAGES
    if CHROMIUM is None:
        pytest.skip("the site is built without a warning; there is no chromium to open it in")
    with served(site) as base, browser_page(tmp_path) as page:
        found, n_pictures = [], 0
        for size in (DESKTOP, TELEPHONE):
            for name in names:
                wrong, n = faults(page, base, name, size)
                found += wrong
                n_pictures += n
        assert found == []
        assert n_pictures >= 2 * N_PICTURES
        check_search(page, base)
        # Who has built the site opens it as files.
        check_search(page, f"{site.as_uri()}/")
