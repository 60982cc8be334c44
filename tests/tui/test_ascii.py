"""``--ascii``: nothing else reaches the terminal, in the same places, and it can be read."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from gpuwatch.text import clean
from gpuwatch.tui.ascii import known, to_ascii
from gpuwatch.tui.gauge_rows import DIGITS
from gpuwatch.tui.graph import bar
from tests.terminal import Pty, surroundings

from .conftest import ROOT
from .hostile import EVERYTHING
from .sessions import finished

Make = Callable[..., Path]
GPUWATCH = [sys.executable, "-m", "gpuwatch"]


def glyphs(path: Path) -> set[str]:
    """What is not ASCII in the strings of a module, without its docstrings."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            found |= {c for c in node.value if not c.isascii()}
    return found


def test_every_glyph_of_the_screens_has_a_mark_of_its_own_in_ascii() -> None:
    for path in [*(ROOT / "tui").glob("*.py"), ROOT / "src" / "gpuwatch" / "units.py"]:
        if path.name not in ("ascii.py", "canvas.py"):  # tables of characters
            missing = sorted(c for c in glyphs(path) if c.isprintable() and not known(c))
            assert not missing, f"{path.name}: {missing}"


def test_text_keeps_its_width() -> None:
    for text in (clean(EVERYTHING), "你好 x", "é ü ß", "▁▂▃▄▅▆▇█ ━━╸── 62 °C … 5 µs"):
        shown = to_ascii(text)
        assert shown.isascii() and cell_len(shown) == cell_len(text)


def test_no_two_digits_look_alike() -> None:
    drawn = {digit: to_ascii("".join(rows)) for digit, rows in DIGITS.items() if digit.isdigit()}
    assert len(drawn) == 10 and len(set(drawn.values())) == 10


def test_a_bar_and_a_history_keep_their_form() -> None:
    filled, empty = map(to_ascii, bar(0.5, 10))
    assert set(filled) == {"="} and set(empty) == {"-"}
    empty, unknown = to_ascii("".join(bar(0.0, 10))), to_ascii("".join(bar(None, 10)))
    assert empty != unknown
    heights = to_ascii(" ▁▂▃▄▅▆▇█")
    assert len(set(heights)) == 9


@pytest.mark.parametrize(
    ("environment", "option"),
    [({}, ["--ascii"]), ({"LC_ALL": "de_DE.ISO-8859-1"}, []), ({"TERM": "linux"}, [])],
    ids=["asked for", "the locale", "the terminal"],
)
def test_no_byte_above_127_reaches_the_terminal(
    session: Make, tmp_path: Path, environment: dict[str, str], option: list[str]
) -> None:
    home = surroundings(HOME=str(tmp_path), **environment)
    screen = Pty([*GPUWATCH, *option], (100, 30), home)
    try:
        screen.wait("new run")
        for key in ("n", "\x1b", "?", "\x1b", "\x10"):
            screen.type(key)
            assert screen.read(10)
            screen.quiet(0.5)
        screen.type("\x03")
        screen.end()
    finally:
        screen.close()
    assert screen.sent.isascii()


def test_the_compare_screen_is_ascii_too(session: Make) -> None:
    paths = [str(session(f"0{n}", meta=finished(), alive=False, start=100 * n)) for n in (1, 2)]
    screen = Pty([*GPUWATCH, "compare", "--ascii", *paths], (100, 30))
    try:
        screen.wait("step time, median")
        screen.quiet()
        screen.type("q")
        assert screen.end() == 0
    finally:
        screen.close()
    assert screen.sent.isascii()
