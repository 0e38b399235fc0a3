"""The notebook of examples, executed: its outputs hold the pictures."""

import sys
from pathlib import Path

import pytest

from drawn import read

pytestmark = pytest.mark.large

NOTEBOOK = Path(__file__).parent.parent / "examples" / "drawing.ipynb"


@pytest.mark.filterwarnings("default")
def test_the_notebook_shows_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # A kernel of this very interpreter, whatever others are installed for the user.
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (kernel / "kernel.json").write_text(
        f'{{"argv": {command}, "display_name": "Python 3", "language": "python"}}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = {cell.id: [dict(o.get("data", {})) for o in cell.get("outputs", [])]
               for cell in notebook.cells}  # fmt: skip
    for name in ("network", "sum", "stack"):
        (shown,) = outputs[name]
        picture = read(shown["text/html"])
        assert picture.nodes
        assert read(shown["image/svg+xml"]) == picture
    assert len(read(outputs["sum"][0]["text/html"]).blocks) == 8
    for name in ("entries", "matplotlib"):
        assert any("image/png" in data for data in outputs[name])
