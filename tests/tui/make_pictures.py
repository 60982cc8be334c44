"""Record real runs on this machine and take the pictures in ``docs/images`` of them.

    python -m tests.tui.make_pictures [SESSION]

With SESSION, a saved session (of a machine with a GPU, say), ``live.svg`` and
``roofline.svg`` show that one.
The recordings need torch and a machine that does nothing else; they take about five minutes.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen

from .harness import running, screen_text, shows, until
from .picture import picture

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = (110, 34)


def gpuwatch(*arguments: str) -> str:
    """Run a command of gpuwatch and return its output."""
    command = [sys.executable, "-m", "gpuwatch", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def record(*arguments: str) -> list[Path]:
    """Record to the end; the sessions of the study."""
    out = Path(tempfile.mkdtemp(prefix="study-", dir=os.environ["HOME"]))
    flags = ("--python", sys.executable, "--quiet", "--out", str(out))
    gpuwatch("--record", *arguments, *flags)
    return sorted(out.rglob("*.gpuwatch"))


async def live(path: Path, wait: float) -> None:
    async with running(lambda: LiveScreen(path), SIZE) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        await until(pilot, lambda: screen.snapshot is not None)
        await pilot.pause(wait)
        (IMAGES / "live.svg").write_text(picture(app))
        await pilot.press("o")
        await shows(pilot, "timed steps")
        (IMAGES / "roofline.svg").write_text(picture(app))


async def home() -> None:
    async with running(HomeScreen, SIZE) as (app, pilot):
        await shows(pilot, "samples/s")
        await until(pilot, lambda: "CPU " in screen_text(app).splitlines()[0])
        await pilot.press("down", "space", "space", "up")
        await pilot.pause(2.5)
        (IMAGES / "home.svg").write_text(picture(app))


async def compare(paths: list[Path]) -> None:
    async with running(lambda: CompareScreen(paths), SIZE) as (app, pilot):
        await shows(pilot, "medians over")
        (IMAGES / "compare.svg").write_text(picture(app))


def main(arguments: list[str]) -> int:
    os.environ.update(COLORTERM="truecolor", TERM="xterm-256color", TZ="UTC")
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        os.environ["HOME"] = folder
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
            os.environ.pop(name, None)
        gpuwatch("calibrate", "--python", sys.executable)
        flags = ("--steps", "200", "--python", sys.executable)
        gpuwatch("--record", "--quiet", "sentiment-rnn", *flags)
        environments = ("--env", "bare", "--env", "bare", "--cool-down", "0s")
        asyncio.run(compare(record("mnist-cnn", "--steps", "150", "--blocks", "5", *environments)))
        gpuwatch("--record", "--quiet", "mnist-cnn", "--batch-size", "128", *flags)
        running_ = ("--steps", "3000", "--python", sys.executable)
        path = Path(gpuwatch("--record", "--detach", "mnist-cnn", *running_).splitlines()[-1])
        try:
            asyncio.run(live(Path(arguments[0]) if arguments else path, wait=45))
            asyncio.run(home())
        finally:
            gpuwatch("stop", str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
