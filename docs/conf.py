"""How Sphinx builds the site: `make docs`. Nothing in it asks the network for anything."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import tnsum

project = "tnsum"
author = "the tnsum authors"
copyright = author
release = version = tnsum.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "api_links",
    "mathml",
    "picture",
]
# Blocks that name no language are commands and their output.
highlight_language = "text"
exclude_patterns = ["_build", "_extensions", "gallery/*.ipynb", "gallery/*.json"]
# A name in a docstring becomes a link where there is such a name, and code otherwise.
default_role = "py:obj"

autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
# scikit-learn gives these to every estimator, with links to its own pages.
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_predict_request, set_score_request"
}
autosummary_generate = False
python_maximum_signature_line_length = 90
numpydoc_show_class_members = False
# Beside a page a method stands below its class: its own name is enough.
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    # It prints only: `make reproduce` runs it.
    "ignore_pattern": r"tour\.py$",
    # An example that fails, fails the site; and one runs again whenever the site is built.
    "abort_on_example_error": True,
    "run_stale_examples": True,
    "within_subsection_order": "gallery_order.NewcomersOrder",
    "download_all_examples": False,
    # Networks as pictures; no names of matplotlib's objects.
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"tnsum {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["files.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_favicon = "_static/icon.svg"
html_logo = "_static/icon.svg"
html_context = {"default_mode": "auto"}
# Pages that stand alone have no section to navigate in.
html_sidebars: dict[str, list[str]] = {
    name: [] for name in ("index", "theorem", "side-by-side", "benchmarks", "cite")
}
html_theme_options = {
    "logo": {"text": "tnsum"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    # The tables of one page need all the room there is.
    "secondary_sidebar_items": {"**": ["page-toc"], "side-by-side": []},
}


def without_signature(*about: object) -> tuple[str, str] | None:
    """Nothing behind the name of a class that nobody calls: a sum is made by adding."""
    return ("", "") if about[3] is tnsum.NetworkSum else None


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", without_signature)
