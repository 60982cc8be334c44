"""From pieces of bytes to lines, whatever a program prints."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.recorder.output.lines import LONGEST_LINE, STANDING_NS, LineAssembler

PREFIX = b":::GPUWATCH "
SECOND = STANDING_NS


def test_lines_do_not_depend_on_how_the_pipe_cut_them() -> None:
    whole = "première\nзвук\nlast".encode()
    for cut in range(len(whole)):
        lines = LineAssembler(PREFIX)
        found = lines.feed(whole[:cut], 0) + lines.feed(whole[cut:], 0) + lines.finish()
        assert found == ["première", "звук", "last"]


def test_a_carriage_return_overwrites() -> None:
    lines = LineAssembler(PREFIX)
    assert lines.feed(b" 10%\r 20%\r100%\ndone\r\n", 0) == ["100%", "done"]


def test_a_progress_bar_gives_its_newest_line_each_second() -> None:
    lines = LineAssembler(PREFIX)
    found = [lines.feed(f"\r{at}%".encode(), at * SECOND // 4) for at in range(10)]
    # At 1 s 3 % is overwritten, at 2 s 7 %.
    assert [each for each in found if each] == [["3%"], ["7%"]]
    assert lines.feed(b"\r100%\r\n", 10 * SECOND // 4) == ["100%"]


def test_an_unfinished_line_is_given_once_after_a_second() -> None:
    lines = LineAssembler(PREFIX)
    assert lines.feed(b"\rloading", 0) == []
    assert lines.standing(SECOND - 1) == []
    assert lines.standing(SECOND) == ["loading"]
    assert lines.standing(9 * SECOND) == []
    assert lines.feed(b" done\n\nnext\n", 9 * SECOND) == [" done", "", "next"]


def test_the_end_of_a_line_that_was_given_is_no_empty_line() -> None:
    for end in (b"\n", b"\r\n"):
        lines = LineAssembler(PREFIX)
        assert lines.feed(b"100%\r", 0) == []
        assert lines.standing(SECOND) == ["100%"]
        assert lines.feed(end + b"next\n", 2 * SECOND) == ["next"]
        assert lines.feed(b"part", 3 * SECOND) == []
        assert lines.standing(4 * SECOND) == ["part"]
        assert lines.finish() == []


def test_half_a_step_line_waits_for_its_end() -> None:
    step = b':::GPUWATCH {"event": "step", "step": 1}'
    for cut in (1, 5, 20):
        lines = LineAssembler(PREFIX)
        assert lines.feed(b"10%\r" + step[:cut], 0) == []
        assert lines.standing(5 * SECOND) == []
        assert lines.feed(step[cut:] + b"\n", 5 * SECOND) == [step.decode()]


def test_what_was_given_of_a_line_is_known_to_the_next_recorder() -> None:
    first = LineAssembler(PREFIX)
    first.feed(b"loading", 0)
    assert first.standing(SECOND) == ["loading"]
    second = LineAssembler(PREFIX, first.pending, given=first.given)
    assert second.feed(b"\nnext\n", 2 * SECOND) == ["next"]


def test_a_progress_bar_without_newlines_does_not_grow() -> None:
    lines = LineAssembler(PREFIX)
    for at in range(10_000):
        assert lines.feed(f"\r{at} of 10000".encode(), 0) == []
    assert len(lines.pending) < 50
    assert lines.finish() == ["9999 of 10000"]


def test_a_line_without_end_is_cut_into_pieces() -> None:
    lines = LineAssembler(PREFIX)
    found = lines.feed(b"x" * (3 * LONGEST_LINE + 5), 0)
    assert [len(piece) for piece in found] == [LONGEST_LINE] * 3
    assert lines.finish() == ["xxxxx"]


def test_binary_garbage_becomes_text() -> None:
    lines = LineAssembler(PREFIX)
    assert lines.feed(bytes(range(256)) + b"\n", 0)
    assert "\x00" not in "".join(lines.feed(b"a\x00b\n", 0))


def test_the_unfinished_line_survives_a_change_of_recorder() -> None:
    first = LineAssembler(PREFIX)
    first.feed(b"half a li", 0)
    second = LineAssembler(PREFIX, first.pending)
    assert second.feed(b"ne\n", 0) == ["half a line"]


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_plain_bytes_are_never_lost(pieces: list[bytes]) -> None:
    clean = [piece.replace(b"\r", b"").replace(b"\x00", b"") for piece in pieces]
    lines = LineAssembler(PREFIX)
    found = [line for piece in clean for line in lines.feed(piece, 0)] + lines.finish()
    expected = b"".join(clean).decode("utf-8", "replace").split("\n")
    if expected[-1] == "":
        expected.pop()
    assert found == expected
