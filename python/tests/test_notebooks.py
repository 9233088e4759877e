"""The notebooks run from top to bottom."""

import json
import pathlib

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.glob("*.ipynb"))])
def test_a_notebook_runs(name, tmp_path):
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    said = json.dumps([cell.get("outputs", []) for cell in notebook.cells])
    assert "image/png" in said and "text/html" in said
