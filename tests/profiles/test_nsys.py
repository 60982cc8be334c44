"""``nsys stats`` reports: every form that it prints or printed reads back as the table it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.errors import UsageError
from gpuwatch.profiles import nsys
from gpuwatch.profiles.base import Entry, Text
from gpuwatch.profiles.files import load
from tests.profiles.conftest import loaded
from tests.profiles.printed import NSYS_TITLES, Row, nsys_csv, nsys_text


def _in_range(values: tuple[float, ...]) -> tuple[float, ...]:
    """Total, average, median, minimum, maximum, deviation, in an order that can be."""
    low, average, median, high = sorted(values[:4])
    return (values[4], average, median, low, high, values[5])


names = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=40
).map(lambda text: f"cudaX {text}")
amounts = st.floats(0, 1e15, allow_nan=False).map(lambda value: round(value, 4))
in_range = st.tuples(*[amounts] * 6).map(_in_range)
rows = st.builds(Row, names, st.integers(0, 10**9), in_range)
tables = st.lists(rows, min_size=1, max_size=6, unique_by=lambda row: row.name)


def entries(found: list[Row], factor: float = 1) -> tuple[Entry, ...]:
    return tuple(
        Entry(row.name, row.count, *(value * factor for value in row.values)) for row in found
    )


def lines(text: str) -> Text:
    return Text("f.csv", text.split("\n"))


@given(tables, st.sampled_from(sorted(NSYS_TITLES)), st.sampled_from([nsys_csv, nsys_text]))
def test_a_table_reads_back_as_it_was(
    found: list[Row], report: str, printed: Callable[..., str]
) -> None:
    unit = "MB" if "size" in report else "ns"
    read = nsys.read(lines(printed(report, found, unit)))
    assert read is not None
    assert read.tables == {report: entries(found)}
    assert read.version == "2023.2.3"


@pytest.mark.parametrize(("unit", "factor"), [("us", 1_000), ("ms", 1_000_000)])
def test_the_unit_of_the_header_counts(unit: str, factor: int) -> None:
    found = [Row("kernel", 2, (3.0, 1.5, 1.5, 1.0, 2.0, 0.5))]
    read = nsys.read(lines(nsys_csv("cuda_gpu_kern_sum", found, unit)))
    assert read is not None
    assert read.tables["cuda_gpu_kern_sum"] == entries(found, factor)


def test_all_reports_of_one_file_are_read_and_the_others_are_left(samples: Path) -> None:
    found = load(samples / "nsys-stats.csv").report
    assert {name: len(rows) for name, rows in found.tables.items()} == {
        "cuda_api_sum": 1,
        "cuda_gpu_kern_sum": 2,
        "cuda_gpu_mem_time_sum": 1,
        "cuda_gpu_mem_size_sum": 1,
    }
    assert found.tables["cuda_gpu_mem_size_sum"][0].total == 1.806


def test_the_names_of_2021_are_understood(samples: Path) -> None:
    (first, second) = load(samples / "nsys-2021-gpukernsum.csv").report.tables["cuda_gpu_kern_sum"]
    assert first == Entry("volta_sgemm_128x64_nn", 8, 280000, 35000, None, 34000, 37000, None)
    assert second.name == "void fill<float, 4>(int, float*)"


def test_thousands_commas_of_the_text_table_are_no_columns(samples: Path) -> None:
    kernels = load(samples / "nsys-stats.txt").report.tables["cuda_gpu_kern_sum"]
    assert kernels[0].total == 280000


def test_sizes_without_a_unit_are_left_out_and_that_is_said() -> None:
    text = "Total,Operations,Average,Minimum,Maximum,Operation\n390.6,2,195.3,1,2,[CUDA memset]\n"
    found = nsys.read(lines(text))
    assert found is not None
    assert found.tables["cuda_gpu_mem_size_sum"] == (Entry("[CUDA memset]", 2, None),)
    assert "does not say their unit" in found.notes[0]


def test_one_kernel_with_several_grids_is_one_row() -> None:
    text = (
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),"
        "GridXYZ,BlockXYZ,Name\n"
        '75.0,30,3,10.0,9.0,8,13,2.0," 1 1 1","64 1 1",k\n'
        '25.0,10,1,10.0,10.0,10,10,0.0," 2 1 1","64 1 1",k\n'
    )
    found = nsys.read(lines(text))
    assert found is not None
    assert found.tables["cuda_gpu_kern_sum"] == (Entry("k", 4, 40, 10, None, 8, 13, None),)


def test_a_file_that_is_cut_off_is_refused_with_its_line(tmp_path: Path) -> None:
    text = nsys_csv("cuda_gpu_kern_sum", [Row("void a<int, 4>(int)", 2, (9.0,) * 6)])
    with pytest.raises(UsageError, match=r"profile\.csv, line 3: .*cut off.*nsys stats --report"):
        loaded(tmp_path, text[: text.index("4>")])


@pytest.mark.parametrize("printed", [nsys_csv, nsys_text])
def test_lines_that_are_no_rows_do_not_end_a_table(printed: Callable[..., str]) -> None:
    found = [Row(name, 1, (9.0,) * 6) for name in ("a", "b", "c")]
    text = printed("cuda_gpu_kern_sum", found)
    at = text.rindex("\n", 0, -2)
    for own, left_out in (
        ("epoch 1 of 1", "1 line between the rows left out: not printed by nsys"),
        ("\nepoch 1\nloss 0.3\n", "2 lines between the rows left out: not printed by nsys"),
        ("", None),
        ("WARNING: CPU context switch data was not collected", None),
    ):
        read = nsys.read(lines(f"{text[:at]}\n{own}{text[at:]}"))
        assert read is not None
        assert read.tables == {"cuda_gpu_kern_sum": entries(found)}
        assert read.notes == (() if left_out is None else (left_out,))


@pytest.mark.parametrize("printed", [nsys_csv, nsys_text])
def test_a_row_that_other_output_runs_into_is_refused(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    text = printed("cuda_gpu_kern_sum", [Row(name, 2, (9.0,) * 6) for name in ("a", "b", "c")])
    at = text.rindex("\n", 0, -2) + 1
    for own in ("loss: 0.3, ", "\nloss: 0.3, "):
        with pytest.raises(UsageError, match=r"ends early|with others under it|outside its own"):
            loaded(tmp_path, text[:at] + own + text[at:] + text[at:])


def test_the_rows_of_a_report_that_is_not_read_are_none_of_the_table_above() -> None:
    text = nsys_csv("cuda_gpu_kern_sum", [Row("a", 2, (9.0,) * 6)])
    text += "Start (ns),Duration (ns),CorrId,Name\n100,20,3,k\n"
    read = nsys.read(lines(text))
    assert read is not None
    assert [row.name for row in read.tables["cuda_gpu_kern_sum"]] == ["a"]


def test_the_same_report_twice_is_of_two_runs(tmp_path: Path) -> None:
    text = nsys_csv("cuda_gpu_kern_sum", [Row("a", 2, (9.0,) * 6)])
    with pytest.raises(UsageError, match=r"line 6: a second table cuda_gpu_kern_sum"):
        loaded(tmp_path, text + text)


def test_an_average_outside_its_own_range_is_a_number_that_was_cut(tmp_path: Path) -> None:
    text = nsys_csv("cuda_gpu_kern_sum", [Row("k", 10, (4e5, 4e4, 6e4, 5e4, 7e4, 0.0))])
    with pytest.raises(UsageError, match=r"line 3: the average of k is outside its own range"):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (Row("k", 10, (6e6, 6e4, 6e4, 5e4, 7e4, 0.0)), True),
        (Row("k", 10, (6e5, 6e4, 6e4, 5e4, 7e4, 0.0)), False),
        (Row("k", 3, (2.0, 0.7, 0.7, 0.6, 0.8, 0.0)), False),
    ],
)
def test_a_total_that_is_not_count_times_average_is_told(row: Row, wrong: bool) -> None:
    found = nsys.read(lines(nsys_csv("cuda_gpu_kern_sum", [row])))
    assert found is not None
    assert bool(found.notes) is wrong
    if wrong:
        assert "k: 10 times its average is 600000, its total 6e+06" in found.notes[0]


@pytest.mark.parametrize("value", ["-1", "nan", "1e999", "0x10", "1_000", "12,34", ""])
def test_what_is_no_number_is_no_row(tmp_path: Path, value: str) -> None:
    header = "Time (%),Total Time (ns),Instances,Name\n"
    with pytest.raises(UsageError, match="line 2"):
        loaded(tmp_path, f'{header}100.0,30,"{value}",kernel\n')
