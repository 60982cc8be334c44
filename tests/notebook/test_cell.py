"""A cell of a hosted notebook: a real Jupyter kernel, which has no terminal of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

STEPS = (
    "import time\n"
    "for i in range(4):\n"
    '    print(\':::GPUWATCH {"event": "step", "step": %d, "seconds": 0.2}\' % i, flush=True)\n'
    "    time.sleep(0.2)\n"
)

Cell = Callable[[str], str]


@pytest.fixture
def cell(tmp_path: Path, programs: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    """Runs a cell and returns what stands below it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(STEPS)
    manager, client = start_new_kernel(kernel_name="python3")

    def run(code: str) -> str:
        shown: list[str] = []
        client.execute_interactive(
            code, timeout=120, output_hook=lambda m: shown.append(str(m["content"].get("text", "")))
        )
        return "".join(shown)

    try:
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("command", ["--record", "run"])
def test_a_cell_prints_lines_and_leaves_session_and_summary(
    cell: Cell, tmp_path: Path, command: str
) -> None:
    gpuwatch = f"{sys.executable} -m gpuwatch"
    shown = cell(f"!{gpuwatch} {command} --out study -- {sys.executable} train.py")
    assert "\x1b[?1049h" not in shown, "a full screen in a cell"
    assert "recording to" in shown and "finished" in shown
    assert cell("print(_exit_code)").strip() == "0"
    (folder,) = (tmp_path / "study").iterdir()
    assert {"01-bare.gpuwatch", "summary.md", "summary.html"} <= {
        path.name for path in folder.iterdir()
    }
    assert "step" in cell(f"!{gpuwatch} show {folder}/01-bare.gpuwatch")
