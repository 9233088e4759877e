"""The notebooks run from top to bottom, and can be stopped."""

import json
import pathlib
import queue
import time

import pytest
from test_run import ENDLESS, SLACK

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
start_new_kernel = pytest.importorskip("jupyter_client.manager").start_new_kernel
FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.glob("*.ipynb"))])
def test_a_notebook_runs(name, tmp_path):
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    said = json.dumps([cell.get("outputs", []) for cell in notebook.cells])
    assert "image/png" in said and "text/html" in said


def test_a_notebook_s_stop_ends_a_run_and_leaves_the_kernel_alive():
    manager, client = start_new_kernel()
    try:

        def reply(code, interrupt_after=None):
            told = []
            message = client.execute(code)
            started = time.monotonic()
            while True:
                if interrupt_after is not None and time.monotonic() - started > interrupt_after:
                    manager.interrupt_kernel()
                    started, interrupt_after = time.monotonic(), None
                try:
                    found = client.get_iopub_msg(timeout=0.1)
                except queue.Empty:
                    assert time.monotonic() - started < 30
                    continue
                if found["parent_header"].get("msg_id") != message:
                    continue
                told.append(found)
                if found["msg_type"] == "status" and found["content"]["execution_state"] == "idle":
                    return told, time.monotonic() - started

        reply("import incast")
        told, took = reply(f"incast.run({ENDLESS!r})", interrupt_after=2)
        errors = [it["content"]["ename"] for it in told if it["msg_type"] == "error"]
        assert errors == ["KeyboardInterrupt"] and took < 1 + SLACK
        shown = [it["content"]["data"]["text/plain"] for it in told if it["msg_type"] == "update_display_data"]
        assert any("packet-hops/s" in text for text in shown) and shown[-1] == ""
        told, _ = reply("6 * 7")
        assert "42" in json.dumps([it["content"] for it in told])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
