"""Pieces of a page: text that is made harmless, tables, figures, and a page with nothing from outside.

The page works without any script. A policy in its head forbids it to ask for anything.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence

from tnsum.topology import printable

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --quiet: #5b6672; --ground: #fff; --line: #d9dee4;
  --shade: #f4f6f8; --mark: #3572c6 }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ec; --quiet: #9aa5b1; --ground: #15191e;
  --line: #333b44; --shade: #1d2329; --mark: #7fb0f0 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.25rem 1rem 4rem; max-width: 62rem; color: var(--ink);
  background: var(--ground); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0 1rem }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem }
p, ul { max-width: 46rem } li { margin: .25rem 0 }
.note { padding: .75rem 1rem; background: var(--shade); border-left: 4px solid var(--mark) }
.quiet, figcaption, caption { color: var(--quiet); font-size: .875rem }
.scroll { overflow-x: auto; margin: 1.5rem 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9375rem }
caption { text-align: left; padding-bottom: .5rem; max-width: 46rem }
th, td { padding: .3rem .75rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line);
  overflow-wrap: normal }
th:first-child, td:first-child { text-align: left } th { font-weight: 600 }
thead th { vertical-align: bottom } tbody th, td { vertical-align: baseline }
td small { color: var(--quiet); white-space: nowrap } td b, td span { white-space: nowrap }
.figures { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)) }
figure { margin: 0; min-width: 0 }
figure svg { display: block; width: 100%; height: auto; max-width: 32rem }
.images { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)) }
.images img { width: 5rem; height: 5rem; image-rendering: pixelated; display: block }
.images figcaption { font-size: .75rem; line-height: 1.35 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem } dt { color: var(--quiet) }
dd { margin: 0; min-width: 0 }
@media (max-width: 30rem) { table { font-size: .75rem } th, td { padding-right: .4rem }
  td small { display: block } }
"""


# Where a name of several words in one may be divided.
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")


def escaped(text: str) -> str:
    """Text from anywhere, harmless in a page."""
    return html.escape(printable(text.encode("utf-8", "backslashreplace").decode("utf-8")))


def prose(text: str) -> str:
    """The same for sentences, in which a number and its % stay in one line."""
    return escaped(text).replace(" %", "&nbsp;%")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML already; the first of a row is its head.

    Where a column is narrow, names of several words in one, as FactorFusion, are hyphenated.
    """
    lines = [f'<div class="scroll"><table><caption>{caption}</caption>', "<thead><tr>"]
    lines += [f'<th scope="col">{_JOINT.sub("&shy;", cell)}</th>' for cell in head]
    lines.append("</tr></thead><tbody>")
    for first, *others in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def items(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    return "\n".join(["<ul>", *(f"<li>{prose(sentence)}</li>" for sentence in sentences), "</ul>"])


def figure(svg: str, caption: str) -> str:
    """A figure with words below it, which are HTML already."""
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def image(png: bytes, alternative: str, caption: str) -> str:
    """A small picture with words below it; both texts are HTML already."""
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{alternative}" width="80" height="80">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page, out of its parts."""
    body = "\n".join(parts)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{escaped(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escaped(title)}</h1>
{body}
</main>
</body>
</html>
"""
