"""Take the pictures in ``docs/images`` on this machine: best on one with a GPU.

    python -m tests.tui.make_pictures STUDIES STUDY COMMAND...

STUDIES is a folder of recorded studies: the home screen shows them, and STUDY, one of them, is
compared. COMMAND is recorded meanwhile, for the live screen; it should run for a minute.
"""

from __future__ import annotations

import asyncio
import os
import shutil
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
        await shows(pilot, "faster")
        (IMAGES / "compare.svg").write_text(picture(app))


def main(arguments: list[str]) -> int:
    studies, study, *command = arguments
    os.environ.update(COLORTERM="truecolor", TERM="xterm-256color", TZ="UTC")
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        os.environ["HOME"] = folder
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
            os.environ.pop(name, None)
        data = Path(folder, ".local/share/gpuwatch")
        shutil.copytree(studies, data / "studies")
        gpuwatch("calibrate", "--python", sys.executable)
        asyncio.run(compare(sorted((data / "studies" / study).rglob("*.gpuwatch"))))
        path = Path(gpuwatch("--record", "--detach", "--", *command).splitlines()[-1])
        try:
            asyncio.run(live(path, wait=20))
            asyncio.run(home())
        finally:
            gpuwatch("stop", str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
