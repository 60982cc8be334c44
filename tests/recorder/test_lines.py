"""From pieces of bytes to lines, whatever a program prints."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.recorder.lines import LONGEST_LINE, LineAssembler

PREFIX = b":::GPUWATCH "


def test_lines_do_not_depend_on_how_the_pipe_cut_them() -> None:
    whole = "première\nзвук\nlast".encode()
    for cut in range(len(whole)):
        lines = LineAssembler(PREFIX)
        found = lines.feed(whole[:cut]) + lines.feed(whole[cut:]) + lines.finish()
        assert found == ["première", "звук", "last"]


def test_a_carriage_return_overwrites() -> None:
    lines = LineAssembler(PREFIX)
    assert lines.feed(b" 10%\r 20%\r100%\ndone\r\n") == ["100%", "done"]


def test_a_progress_bar_without_newlines_does_not_grow() -> None:
    lines = LineAssembler(PREFIX)
    for at in range(10_000):
        assert lines.feed(f"\r{at} of 10000".encode()) == []
    assert len(lines.pending) < 50
    assert lines.finish() == ["9999 of 10000"]


def test_a_line_without_end_is_cut_into_pieces() -> None:
    lines = LineAssembler(PREFIX)
    found = lines.feed(b"x" * (3 * LONGEST_LINE + 5))
    assert [len(piece) for piece in found] == [LONGEST_LINE] * 3
    assert lines.finish() == ["xxxxx"]


def test_binary_garbage_becomes_text() -> None:
    lines = LineAssembler(PREFIX)
    assert lines.feed(bytes(range(256)) + b"\n")
    assert "\x00" not in "".join(lines.feed(b"a\x00b\n"))


def test_the_unfinished_line_survives_a_change_of_recorder() -> None:
    first = LineAssembler(PREFIX)
    first.feed(b"half a li")
    second = LineAssembler(PREFIX, first.pending)
    assert second.feed(b"ne\n") == ["half a line"]


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_plain_bytes_are_never_lost(pieces: list[bytes]) -> None:
    clean = [piece.replace(b"\r", b"").replace(b"\x00", b"") for piece in pieces]
    lines = LineAssembler(PREFIX)
    found = [line for piece in clean for line in lines.feed(piece)] + lines.finish()
    expected = b"".join(clean).decode("utf-8", "replace").split("\n")
    if expected[-1] == "":
        expected.pop()
    assert found == expected
