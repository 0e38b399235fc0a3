"""Code in a text that is a public name, such as `tnsum.compress`, becomes a link to the reference."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

# Names of `tnsum.fusion` and `tnsum.interop` are clear without the module.
_CLEAR = re.compile(r"[A-Z]\w+|\w*(from|to)_\w+")
# What is public in two places stands in the reference once.
_ELSEWHERE = {"tnsum.draw": "tnsum.drawing.draw"}


def link_names(app: Sphinx, document: nodes.document, page: str) -> None:
    known = app.env.domains.python_domain.objects
    for code in [*document.findall(nodes.literal)]:
        name = code.astext()
        found = _full_name(name, [*known])
        inside = isinstance(code.parent, nodes.reference | nodes.title)
        if found is None or inside or known[found].docname == page:
            continue
        entry = known[found]
        uri = f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"
        code.replace_self(nodes.reference("", "", code.deepcopy(), internal=True, refuri=uri))


def _full_name(name: str, known: list[str]) -> str | None:
    name = _ELSEWHERE.get(name, name)
    if name in known:
        return name
    if not _CLEAR.fullmatch(name):
        return None
    ends = [one for one in known if re.fullmatch(rf"tnsum\.([a-z]+\.)?{name}", one)]
    return ends[0] if len(ends) == 1 else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
