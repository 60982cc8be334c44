"""Take the pictures in ``docs/images``: ``python -m tests.tui.make_pictures STUDY``.

Home, live and roofline show the recorded GPU of ``gpuwatch demo``; STUDY, a folder, is compared.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from gpuwatch.core.units import NS
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.home.screen import RECORDING, DemoScreen
from gpuwatch.tui.live.screen import LiveScreen

from .harness import on_top, running, shows, until
from .picture import picture

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = (110, 34)


async def live(path: Path) -> None:
    start = View(at=40 * NS, playing=True)
    async with running(lambda: LiveScreen(path, start=start), SIZE) as (app, pilot):
        screen = on_top(app, LiveScreen)
        await until(pilot, lambda: screen.snapshot is not None)
        await pilot.pause(3)
        (IMAGES / "live.svg").write_text(picture(app))
        await pilot.press("o", shows="measured")
        (IMAGES / "roofline.svg").write_text(picture(app))


async def home(path: Path) -> None:
    async with running(lambda: DemoScreen(path, refresh=0.5), SIZE) as (app, pilot):
        await shows(pilot, "recorded")
        await pilot.pause(25)
        (IMAGES / "home.svg").write_text(picture(app))


async def compare(paths: list[Path]) -> None:
    async with running(lambda: CompareScreen(paths), SIZE) as (app, pilot):
        await shows(pilot, "faster")
        (IMAGES / "compare.svg").write_text(picture(app))


def main(study: Path) -> None:
    os.environ.update(COLORTERM="truecolor", TERM="xterm-256color", TZ="UTC")
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        os.environ.update(HOME=folder, XDG_DATA_HOME=f"{folder}/data", XDG_STATE_HOME=folder)
        recording = Path(folder, "data/gpuwatch/studies/demo/01-bare.gpuwatch")
        recording.parent.mkdir(parents=True)
        shutil.copyfile(RECORDING, recording)
        recording.chmod(0o400)
        asyncio.run(compare(sorted(study.glob("*.gpuwatch"))))
        asyncio.run(live(recording))
        asyncio.run(home(recording))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
