"""Colours by role, for a dark and a light theme and the terminal's own colours.

Colour is never the only sign of a state: there is always a word or a mark as well. The contrast
is at least 4.5 for text and 3 for graphs. Good, warning and bad, and the three gauges, differ for
people with any kind of colour blindness. ``faint`` is for decoration.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rich.style import Style
from textual.theme import Theme

from gpuwatch.tui.display_options import THEMES

DARK, LIGHT, TERMINAL = "gpuwatch-dark", "gpuwatch-light", "gpuwatch-terminal"
ORDER = (DARK, LIGHT, TERMINAL)
BY_NAME = dict(zip(THEMES, ORDER, strict=True))
"""The theme for each name that ``--theme`` takes."""

VERDICTS = {
    "same": ("=", "text"),
    "slower": ("▲", "bad"),
    "faster": ("▼", "good"),
    "small": ("≈", "text"),
    "can't tell": ("?", "text"),
    "invalid": ("✗", "text"),
    "described": ("·", "text"),
}
"""A mark and a colour role for each verdict, as on the compare screen."""

_COLOURS = {
    "background": ("#10151c", "#fbfcfd", "", ""),
    "text": ("#d4dbe4", "#24303c", "", ""),
    "strong": ("bold #f2f5f9", "bold #0b1219", "bold", "bold"),
    "muted": ("#8b97a5", "#5b6773", "", ""),
    "faint": ("#3f4b59", "#bac4ce", "dim", "dim"),
    "brand": ("bold #7cc7ff", "bold #0b61a4", "bold cyan", "bold"),
    "key": ("bold #7cc7ff", "bold #0b61a4", "bold cyan", "bold"),
    "good": ("#5ad1a0", "#0f7a56", "green", ""),
    "warn": ("#f2c14e", "#8f6400", "yellow", ""),
    "bad": ("bold #ff7b72", "bold #9c1030", "bold red", "bold"),
    "utilization": ("#43bd9b", "#046e54", "green", ""),
    "bandwidth": ("#5b93ea", "#2456c9", "bright_blue", ""),
    "flops": ("#d98e3f", "#a34a00", "magenta", ""),
    "picked": ("#dba0cf", "#6a1a66", "cyan", ""),
    "progress": ("#7cc7ff", "#0b61a4", "cyan", ""),
    "select": ("#f2f5f9 on #24425f", "#0b1219 on #cfe3f7", "reverse", "reverse"),
    "bar": ("#d4dbe4 on #1a222c", "#24303c on #e9eef3", "", ""),
}
"""By role the colours on dark, on light, of the terminal's own, and with NO_COLOR, where there are
bold, dim and reverse only."""
_DARK, _LIGHT, _TERMINAL, _PLAIN = (
    dict(zip(_COLOURS, column, strict=True)) for column in zip(*_COLOURS.values(), strict=True)
)

ROLES = tuple(_COLOURS)


def theme_for(
    no_color: bool, colours: str, environment: Mapping[str, str], requested: str | None = None
) -> str:
    """Textual's name of the ``requested`` theme, else of the best one for the terminal.

    A terminal with few colours keeps its own; else dark, or light if ``COLORFGBG`` says so.
    """
    if no_color:
        return TERMINAL
    if requested is not None:
        return BY_NAME[requested]
    if colours not in ("truecolor", "256"):
        return TERMINAL
    # Set by some terminals to "foreground;background"; 7 and 15 are whites.
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in ("7", "15") else DARK


def themes() -> tuple[Theme, Theme, Theme]:
    """Our themes for Textual's own widgets."""
    return _theme(DARK, _DARK, dark=True), _theme(LIGHT, _LIGHT, dark=False), _terminal_theme()


def _terminal_theme() -> Theme:
    """Nothing in it needs to know whether the terminal is dark or light."""
    default = (
        "ansi-foreground", "ansi-background", "border-blurred",
        "scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active",
    )  # fmt: skip
    return Theme(
        name=TERMINAL,
        primary="ansi_cyan",
        secondary="ansi_blue",
        accent="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        ansi=True,
        variables={
            **dict.fromkeys(default, "ansi_default"),
            "block-cursor-foreground": "ansi_black",
            "block-cursor-background": "ansi_cyan",
            "border": "ansi_cyan",
            "footer-key-foreground": "ansi_cyan",
            **dict.fromkeys(("scrollbar", "scrollbar-hover", "scrollbar-active"), "ansi_cyan"),
        },
    )


def _theme(name: str, colours: Mapping[str, str], dark: bool) -> Theme:
    def plain(role: str) -> str:
        return colours[role].split()[-1]

    return Theme(
        name=name,
        primary=plain("progress"),
        secondary=plain("bandwidth"),
        accent=plain("progress"),
        warning=plain("warn"),
        error=plain("bad"),
        success=plain("good"),
        foreground=plain("text"),
        background=plain("background"),
        surface=plain("background"),
        panel=plain("bar"),
        dark=dark,
        variables={"block-cursor-text-style": "bold"},
    )


def styles(theme: Theme, no_color: bool) -> Mapping[str, Style]:
    """Rich styles by role, in one of our themes."""
    return _styles("" if no_color else theme.name, theme.ansi)


@cache
def _styles(name: str, ansi: bool) -> Mapping[str, Style]:
    if not name:
        return {role: Style.parse(_PLAIN[role]) for role in ROLES}
    if ansi:
        return {role: Style.parse(_TERMINAL[role]) for role in ROLES}
    colours = {DARK: _DARK, LIGHT: _LIGHT}[name]
    base = Style(bgcolor=colours["background"])
    return {
        role: base + Style.parse(text) for role, text in colours.items() if role != "background"
    } | {"background": base}
