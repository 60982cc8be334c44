"""Colours by role, for a dark, a light and the terminal's own theme.

State is never told by colour alone: every role that means something goes with a word or a mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rich.style import Style
from textual.theme import Theme

DARK, LIGHT, TERMINAL = "gpuwatch-dark", "gpuwatch-light", "ansi-dark"
ORDER = (DARK, LIGHT, TERMINAL)

_DARK = {
    "background": "#10151c",
    "text": "#d4dbe4",
    "strong": "bold #f2f5f9",
    "muted": "#7f8b99",
    "faint": "#3a4552",
    "brand": "bold #7cc7ff",
    "key": "bold #7cc7ff",
    "good": "#6fd08c",
    "warn": "#f0c05a",
    "bad": "bold #ff7a7a",
    "utilization": "#57c7a3",
    "bandwidth": "#6ea8fe",
    "flops": "#c792ea",
    "utilization-fill": "#256b57",
    "bandwidth-fill": "#2c4f86",
    "flops-fill": "#5b3f6d",
    "progress": "#7cc7ff",
    "select": "#f2f5f9 on #24425f",
    "bar": "#d4dbe4 on #1a222c",
}
_LIGHT = {
    "background": "#fbfcfd",
    "text": "#24303c",
    "strong": "bold #0b1219",
    "muted": "#66727f",
    "faint": "#c3ccd5",
    "brand": "bold #0b61a4",
    "key": "bold #0b61a4",
    "good": "#1d7a3e",
    "warn": "#8a5a00",
    "bad": "bold #b3202c",
    "utilization": "#0f8a67",
    "bandwidth": "#2a63c8",
    "flops": "#8238b5",
    "utilization-fill": "#9fdcc9",
    "bandwidth-fill": "#b3cdf5",
    "flops-fill": "#dcbdf0",
    "progress": "#0b61a4",
    "select": "#0b1219 on #cfe3f7",
    "bar": "#24303c on #e9eef3",
}
_TERMINAL = {
    "text": "",
    "strong": "bold",
    "muted": "",
    "faint": "dim",
    "brand": "bold cyan",
    "key": "bold cyan",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "utilization": "green",
    "bandwidth": "blue",
    "flops": "magenta",
    "utilization-fill": "green",
    "bandwidth-fill": "blue",
    "flops-fill": "magenta",
    "progress": "cyan",
    "select": "reverse",
    "bar": "",
}
_PLAIN = {
    "text": "",
    "strong": "bold",
    "faint": "dim",
    "brand": "bold",
    "key": "bold",
    "bad": "bold",
    "select": "reverse",
}
"""With NO_COLOR: weight and inversion only."""

ROLES = tuple(_DARK)


def themes() -> tuple[Theme, Theme]:
    """The dark and the light theme for Textual's own widgets."""
    return _theme(DARK, _DARK, dark=True), _theme(LIGHT, _LIGHT, dark=False)


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


@lru_cache(maxsize=8)
def styles(theme: str, no_color: bool) -> Mapping[str, Style]:
    """Rich styles by role for Textual's theme of that name."""
    if no_color:
        return {role: Style.parse(_PLAIN.get(role, "")) for role in ROLES}
    colours = {DARK: _DARK, LIGHT: _LIGHT}.get(theme)
    if colours is None:
        return {role: Style.parse(_TERMINAL.get(role, "")) for role in ROLES}
    base = Style(bgcolor=colours["background"])
    return {
        role: base + Style.parse(text) for role, text in colours.items() if role != "background"
    } | {"background": base}
