"""Tables that are never wider than what they are for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.report.document.blocks import Document, Section, Table
from gpuwatch.report.tables import table
from gpuwatch.report.text import as_text, parts

CELL = st.text("abc 1.", max_size=30)


def fitted(
    head: list[str], rows: list[list[str]], columns: int, *, kept: tuple[int, ...] = ()
) -> str:
    made = Table(tuple(head), tuple(map(tuple, rows)), kept)
    return as_text(Document("", sections=(Section("", (made,)),)), columns).rstrip("\n")


def widest(text: str) -> int:
    return max(map(len, text.split("\n")))


def test_a_table_that_fits_is_the_plain_one() -> None:
    head, rows = ["", "bare", "docker"], [["steps", "20", "20"], ["  median", "1 ms", "2 ms"]]
    assert fitted(head, rows, 80) == table(head, rows)


def test_columns_without_room_stand_in_a_table_below_with_the_names_again() -> None:
    head = ["", *(f"env{n}" for n in range(8))]
    text = fitted(head, [["step time", *(f"{n}00.00 ms x1.002" for n in range(8))]], 60)
    pages = text.split("\n\n")
    assert len(pages) == 4 and widest(text) <= 60
    assert all("step time" in page for page in pages)
    assert [name for page in pages for name in page.split("\n")[0].split()] == head[1:]


def test_the_last_column_is_in_every_table_where_it_belongs_to_all() -> None:
    head = ["", *(f"env{n}" for n in range(6)), "method"]
    row = ["step time", *["1234567890 ms"] * 6, "measured"]
    pages = fitted(head, [row], 60, kept=(7,)).split("\n\n")
    assert len(pages) > 1 and all(page.endswith("measured") for page in pages)


def test_a_long_name_has_a_line_of_its_own_and_loses_nothing() -> None:
    name = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_nt_align4>"
    text = fitted(["kernel", "bare", "docker"], [[name, "60 %", "-"]], 60)
    assert name.replace(" ", "") in "".join(text.split()) and widest(text) <= 60
    assert text.split("\n")[-1].split() == ["60", "%", "-"]


def test_a_tab_breaks_where_there_is_no_room_and_is_a_space_where_there_is() -> None:
    rows = [["FLOP", *["3.98 TFLOP/s\tx0.969"] * 3]]
    assert "3.98 TFLOP/s x0.969" in fitted(["", "a", "b", "c"], rows, 80)
    narrow = fitted(["", "a", "b", "c"], rows, 60)
    assert "\n\n" not in narrow and "x0.969" in narrow.split("\n")[2] and widest(narrow) <= 60


def test_a_row_is_broken_as_a_whole_so_that_what_is_alike_stands_in_one_line() -> None:
    long, short = "3.98 TFLOP/s\t+10.9 % worse", "1 ms\t+1 %"
    text = fitted(["", "a", "b"], [["FLOP", long, short]], 40)
    assert [line.split()[:2] for line in text.split("\n")[1:]] == [["FLOP", "3.98"], ["+10.9", "%"]]
    assert text.split("\n")[2].endswith("+1 %")


def test_an_interval_stands_beside_its_value_where_there_is_room() -> None:
    rows = [["FLOP", "1 ms", "2.00 TFLOP/s\t+100 %\n(+90 to +110)"]]
    assert "2.00 TFLOP/s +100 % (+90 to +110)" in fitted(["", "a", "b"], rows, 80)
    assert fitted(["", "a", "b"], rows, 40).split("\n")[2].strip() == "(+90 to +110)"


def test_nothing_is_broken_for_one_long_name() -> None:
    values = ["3.98 TFLOP/s\t+10.9 % worse"] * 2
    text = fitted(["", "a", "b"], [["short", *values], ["x" * 28, *values]], 70)
    assert text.count("TFLOP/s +10.9 % worse") == 4 and widest(text) <= 70


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(CELL, min_size=n, max_size=n),
            st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=5),
        )
    ),
    st.integers(40, 120),
)
def test_no_line_is_wider_than_asked(of: tuple[list[str], list[list[str]]], columns: int) -> None:
    head, rows = of
    assert widest(fitted(head, rows, columns)) <= columns


def test_a_cell_that_breaks_keeps_its_colour_where_the_word_stands() -> None:
    made = Table(
        ("", "A", "B"),
        (("throughput", "12,668 samples/s", "11,517 samples/s\t×0.909 worse"),),
        marks={(0, 2): "worse"},
    )
    shown = parts(Document("", sections=(Section("", (made,)),)), 40)
    spans = [span for part in shown for row in part.body for span in row]
    found = [text.strip() for text, role in spans if role == "bad"]
    assert found == ["11,517 samples/s", "×0.909 worse"]
