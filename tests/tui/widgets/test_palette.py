"""Colours: contrast, colour blindness and terminals with few colours."""

from __future__ import annotations

from itertools import combinations

import pytest

from gpuwatch.tui.display_options import DisplayOptions, only_ascii
from gpuwatch.tui.widgets import palette

from ..vision import VISIONS, contrast, distance

THEMES = (palette.DARK, palette.LIGHT)
BY_NAME = {theme.name: theme for theme in palette.themes()}
WORDS = ("text", "strong", "muted", "brand", "key", "good", "warn", "bad", "select", "bar")
GAUGES = ("utilization", "bandwidth", "flops", "picked")
GRAPHS = (*GAUGES, "progress")
APART = 15.0
"""In L*a*b*: several times what is just seen side by side."""


def colours(theme: str, role: str) -> tuple[str, str]:
    """Foreground and background of a role."""
    style = palette.styles(BY_NAME[theme], False)[role]
    assert style.color is not None and style.bgcolor is not None
    return style.color.name, style.bgcolor.name


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", (*WORDS, *GAUGES))
def test_words_and_large_digits_have_a_contrast_of_four_and_a_half(theme: str, role: str) -> None:
    assert contrast(*colours(theme, role)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", GRAPHS)
def test_graphs_have_a_contrast_of_three(theme: str, role: str) -> None:
    assert contrast(*colours(theme, role)) >= 3.0


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("roles", [("good", "warn", "bad"), GAUGES])
def test_what_means_different_things_looks_different_to_everyone(
    theme: str, vision: str, roles: tuple[str, ...]
) -> None:
    for first, second in combinations(roles, 2):
        apart = distance(colours(theme, first)[0], colours(theme, second)[0], vision)
        assert apart >= APART, (first, second, apart)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_role_has_a_style_in_every_theme(name: str) -> None:
    theme = BY_NAME[name]
    assert set(palette.styles(theme, False)) >= set(palette.ROLES) - {"background"}
    assert not any(style.color for style in palette.styles(theme, True).values())


def test_the_terminals_own_theme_uses_its_sixteen_colours() -> None:
    for style in palette.styles(BY_NAME[palette.TERMINAL], False).values():
        assert style.color is None or (style.color.number is not None and style.color.number < 16)


@pytest.mark.parametrize(
    ("no_color", "system", "environment", "requested", "theme"),
    [
        (False, "truecolor", {}, None, palette.DARK),
        (False, "256", {"COLORFGBG": "0;15"}, None, palette.LIGHT),
        (False, "256", {"COLORFGBG": "15;default;0"}, None, palette.DARK),
        (False, "standard", {}, None, palette.TERMINAL),
        (False, "truecolor", {"COLORFGBG": "0;15"}, "dark", palette.DARK),
        (False, "truecolor", {}, "light", palette.LIGHT),
        (False, "truecolor", {}, "terminal", palette.TERMINAL),
        (True, "truecolor", {}, "light", palette.TERMINAL),
    ],
)
def test_the_theme_is_the_one_asked_for_else_one_the_terminal_can_show(
    no_color: bool, system: str, environment: dict[str, str], requested: str | None, theme: str
) -> None:
    look = DisplayOptions(theme=requested)
    assert palette.theme_for(no_color, system, environment, look.theme) == theme


@pytest.mark.parametrize(
    ("environment", "encoding", "ascii_only"),
    [
        ({"LANG": "en_US.UTF-8"}, "utf-8", False),
        ({}, "utf-8", False),
        ({"LANG": "C"}, "utf-8", False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "POSIX"}, "utf-8", True),
        ({"LANG": "de_DE.ISO-8859-1"}, "utf-8", True),
        ({"LC_ALL": "de_DE.ISO-8859-15@euro", "LANG": "en_US.UTF-8"}, "iso8859-15", True),
        ({"LC_ALL": "C.UTF-8", "LANG": "de_DE.ISO-8859-1"}, "UTF-8", False),
        ({"LANG": "xx.no-such-codec"}, "utf-8", True),
        ({}, "ascii", True),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "utf-8", True),
        ({"TERM": "vt220"}, "utf-8", True),
        ({"TERM": "xterm-256color"}, "utf-8", False),
    ],
)
def test_ascii_is_drawn_where_the_locale_or_the_terminal_knows_no_more(
    environment: dict[str, str], encoding: str, ascii_only: bool
) -> None:
    assert only_ascii(environment, encoding) is ascii_only
