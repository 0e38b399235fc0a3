"""The directive `picture`: what an expression gives, drawn by tnsum when the site is built.

The Python of the page above it, included files too, is executed first; so a picture shows what the
reader has just read, and cannot be older than the code.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import chdir, redirect_stdout

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tnsum.drawing import to_svg


class Picture(SphinxDirective):
    """`picture` with an expression in the names that the code above defines."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        document = self.state.document
        code = "\n".join(
            block.astext()
            for block in document.findall(nodes.literal_block)
            if block.get("language") == "python"
        )
        names: dict[str, object] = {}
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                exec(code, names)
            svg = to_svg(eval(self.arguments[0], names))
        return [nodes.raw("", f'<div class="picture">{svg}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
