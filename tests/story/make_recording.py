"""Play the story with a network on this machine and keep it in ``docs``.

    python -m tests.story.make_recording

It needs torch, tmux and a machine that does nothing else; it takes about two minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .animation import animate
from .story import play, terminal, variables

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS, ROWS = 100, 30


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        folder = Path(name)
        home = folder / "home"
        home.mkdir()
        programs = Path(sys.executable).parent
        environment = {**variables(home, programs), "VIRTUAL_ENV": str(programs.parent)}
        with terminal(folder, environment, COLUMNS, ROWS) as shown:
            shown.type("cd; clear\r")
            play(shown, ["mnist-cnn", "--steps", "5000"], ["mnist-cnn", "--steps", "200"])
            shown.save(DOCS / "story.cast", "gpuwatch: start, watch, leave, compare, export")
        # The folder's name is of no use to anybody; one of the same length keeps every column.
        plain = "/home/" + "user".ljust(len(str(home)) - len("/home/"), "-")
        recorded = (DOCS / "story.cast").read_text()
        (DOCS / "story.cast").write_text(recorded.replace(str(home), plain))
    (DOCS / "images" / "story.svg").write_text(animate(DOCS / "story.cast"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
