"""``--ascii``: only ASCII in the same cells, still readable."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.widgets.ascii import to_ascii
from gpuwatch.tui.widgets.canvas import with_words
from gpuwatch.tui.widgets.line import Line
from tests.terminal import Pty, surroundings

from ..conftest import ROOT
from ..harness import live, screen_text, shows
from ..sessions import finished

Make = Callable[..., Path]
GPUWATCH = [sys.executable, "-m", "gpuwatch"]


def glyphs(path: Path) -> set[str]:
    """The characters outside ASCII in the strings of a module, without its docstrings."""
    glyphs: set[str] = set()
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            glyphs |= {c for c in node.value if not c.isascii()}
    return glyphs


def test_every_glyph_of_the_screens_has_a_mark_of_its_own_in_ascii() -> None:
    for path in [*(ROOT / "tui").rglob("*.py"), ROOT / "src" / "gpuwatch" / "core" / "units.py"]:
        if path.name not in ("ascii.py", "changes.py"):  # tables of characters
            missing = sorted(c for c in glyphs(path) if c.isprintable() and c != to_ascii(c) == "?")
            assert not missing, f"{path.name}: {missing}"


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize(
    ("environment", "option"),
    [({}, ["--ascii"]), ({"LC_ALL": "de_DE.ISO-8859-1"}, []), ({"TERM": "linux"}, [])],
    ids=["option", "locale", "terminal"],
)
def test_no_byte_above_127_reaches_the_terminal(
    session: Make, tmp_path: Path, environment: dict[str, str], option: list[str]
) -> None:
    home = surroundings(HOME=str(tmp_path), **environment)
    with closing(Pty([*GPUWATCH, *option], (100, 30), home)) as screen:
        screen.wait("new run")
        home = "No run was recorded yet"
        for key, text in (
            ("n", "start a run"),
            ("\x1b", home),
            ("?", "all keys of this screen"),
            ("\x1b", home),
            ("\x10", "Search"),
        ):
            start = len(screen.sent)
            screen.type(key)
            screen.wait(text, start=start)
        screen.type("\x03")
        screen.end()
    assert screen.sent.isascii()


def test_the_compare_screen_is_ascii_too(session: Make) -> None:
    paths = [str(session(f"0{n}", meta=finished(), alive=False, start=100 * n)) for n in (1, 2)]
    with closing(Pty([*GPUWATCH, "compare", "--ascii", *paths], (100, 30))) as screen:
        screen.taken_over("step time, typical")
        screen.type("q")
        assert screen.end() == 0
    assert screen.sent.isascii()


def worded(*spans: tuple[str, str], width: int = 80) -> str:
    line = Line(width)
    for text, role in spans:
        line.add(text, role)
    return to_ascii("".join(text for text, _ in with_words(line).spans()))


def test_arrow_keys_have_names_and_a_click_still_presses_them() -> None:
    line = Line(40).add(" ").add("←", "key", press="left").add("→", "key", press="right")
    line.add(" time  ").add("g", "key", press="g").add(" shows all")
    worded_line = with_words(line)
    text = "".join(part for part, _ in worded_line.spans())
    assert text.rstrip() == " Left/Right time  g shows all"
    pressed = {key: text[start:end] for start, end, key in reversed(worded_line.presses())}
    assert pressed == {"left": "Left", "right": "/Right", "g": "g"}


def test_words_keep_the_columns_of_a_row() -> None:
    before = worded((" ≥3 of them        12", "text"))
    assert before == " >=3 of them       12"
    assert worded(("memory     ≤838 GB/s  100%|", "text")) == "memory    <=838 GB/s  100%|"
    assert worded(("┗━┛≤ ┗━┛", "bandwidth")) == "+=+<=+=+"
    assert (
        worded((" ↑ ↓ PgUp PgDn      ", "key"), ("scroll", "text")) == " Up Down PgUp PgDn  scroll"
    )
    assert worded((" PCIe ↑1 GB/s", "text")) == " PCIe ^1 GB/s"
    assert worded((" → ", "key"), ("do that", "text")) == " > do that"


async def test_the_screens_say_them_where_ascii_is_asked_for(session: Make) -> None:
    path = session(memory_busy=True, known_card=True, count=False)
    async with live(path, (120, 40), look=DisplayOptions(ascii=True)) as (app, pilot):
        await pilot.press("i", shows="<=1.34 TB/s  bound")
        await pilot.press("escape", "left", shows="Left earlier  end latest")
        row = screen_text(app).splitlines()[-1]
        await pilot.click(offset=(row.index("end latest"), 39))
        await shows(pilot, "s stop")
