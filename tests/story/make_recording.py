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
        recorded = (DOCS / "story.cast").read_text()
        for path in (str(home), str(DOCS.parent)):
            # Such names are of no use to anybody; those of the same length keep every column.
            plain = "/home/" + "user".ljust(len(path) - len("/home/"), "-")[: len(path) - 6]
            recorded = recorded.replace(path, plain)
        (DOCS / "story.cast").write_text(recorded)
    (DOCS / "images" / "story.svg").write_text(animate(DOCS / "story.cast"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
