"""The picture in the README, drawn from the code there.

`python docs/draw_readme.py` writes it to docs/sum.svg.
"""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout
from pathlib import Path

from tnsum.drawing import to_svg

HERE = Path(__file__).parent
PICTURE = HERE / "sum.svg"


def drawn() -> str:
    """The SVG of the sum `s` that the first block of Python in the README makes."""
    block = re.search(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, object] = {}
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        exec(block[1], names)
    return to_svg(names["s"])  # type: ignore[arg-type]  # what it is, the README says


if __name__ == "__main__":
    PICTURE.write_text(drawn())
