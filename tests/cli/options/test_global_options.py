"""Options of a screen may stand before the command."""

from __future__ import annotations

from gpuwatch.cli.dispatch import HOME, VALUED, command_at, parser_of


def test_the_command_is_found_behind_options_and_their_values() -> None:
    for text, found in (
        ("run x", "run"),
        ("--plain run x", "run"),
        ("--theme dark --plain run x", "run"),
        ("--theme=dark replay run", "replay"),
        ("--int 2 attach", "attach"),
    ):
        words = text.split()
        assert words[command_at(words)] == found
    for text in ("", "--plain", "--theme", "--interval 2"):
        assert command_at(text.split()) == len(text.split())


def test_the_options_with_a_value_are_those_of_the_home_screen() -> None:
    taking = {
        flag
        for action in parser_of(HOME).arguments
        if action.nargs != 0
        for flag in action.option_strings
    }
    assert taking == {*VALUED}
