"""nvprof's logs: times by their units, totals as invocations times average."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.errors import UsageError
from gpuwatch.profiles import nvprof
from gpuwatch.profiles.base import DERIVED, Report, Text
from gpuwatch.profiles.files import load
from gpuwatch.profiles.merge import merge
from tests.profiles.conftest import loaded
from tests.profiles.printed import (
    Counted,
    Row,
    dram,
    nvprof_csv,
    nvprof_metrics_csv,
    nvprof_metrics_text,
    nvprof_text,
)
from tests.profiles.test_nsys import names

times = st.floats(1, 1e10).map(lambda value: float(f"{value:.5g}"))
rows = st.builds(Row, names, st.integers(1, 10**6), times.map(lambda value: (value,) * 6))
tables = st.lists(rows, min_size=1, max_size=5, unique_by=lambda row: row.name)
whole = st.integers(0, 10**15)
counted = st.builds(
    Counted,
    names,
    st.integers(1, 10**6),
    st.fixed_dictionaries(
        {
            "flop_count_sp": whole.map(lambda value: (str(value),) * 3),
            "dram_read_transactions": whole.map(lambda value: (str(value),) * 3),
        }
    ),
)


def read(text: str) -> Report:
    found = nvprof.read(Text("f.log", text.split("\n")))
    assert found is not None
    return found


@given(tables, tables)
def test_a_summary_reads_back_as_it_was(activities: list[Row], calls: list[Row]) -> None:
    for text in (nvprof_text(activities, calls), nvprof_csv(activities, calls)):
        found = read(text).tables
        for table, rows in (("cuda_gpu_kern_sum", activities), ("cuda_api_sum", calls)):
            for entry, row in zip(found[table], rows, strict=True):
                assert (entry.name, entry.count) == (row.name, row.count)
                assert entry.total == pytest.approx(row.values[0], rel=1e-6, abs=1e-3)
                assert entry.maximum == pytest.approx(row.values[4], rel=1e-6, abs=1e-3)


@given(st.lists(counted, min_size=1, max_size=5, unique_by=lambda kernel: kernel.name))
def test_totals_are_invocations_times_average(kernels: list[Counted]) -> None:
    for text in (nvprof_metrics_text(kernels), nvprof_metrics_csv(kernels)):
        found = {kernel.name: kernel for kernel in read(text).kernels}
        assert list(found) == [kernel.name for kernel in kernels]
        for kernel in kernels:
            parts, average = (
                found[kernel.name].parts,
                {m: int(v[2]) for m, v in kernel.metrics.items()},
            )
            assert parts["sp"] == kernel.launches * average["flop_count_sp"]
            assert parts["read"] == kernel.launches * 32 * average["dram_read_transactions"]


def test_winograd_does_fewer_operations_for_more_traffic_than_implicit_gemm(samples: Path) -> None:
    """Not the sums of averages (0.475 and 1.404 GFLOP) that such logs invite to."""
    winograd, implicit = (
        merge([load(samples / f"nvprof-{name}") for name in pair]).counters
        for pair in (
            ("winograd-summary.log", "winograd-metrics.log"),
            ("implicit-gemm-summary.csv", "implicit-gemm-metrics.csv"),
        )
    )
    assert (len(winograd["kernels"]), winograd["launches"]) == (7, 43)
    assert (len(implicit["kernels"]), implicit["launches"]) == (5, 28)
    assert winograd["flop"] == pytest.approx(3.49e9)
    assert implicit["flop"] == pytest.approx(10.99e9)
    traffic = [each["dram_read_bytes"] + each["dram_write_bytes"] for each in (winograd, implicit)]
    assert traffic == [25.7e6 * 32, 9.4e6 * 32]
    assert "tensor pipes" in winograd["notes"][0]
    assert winograd["kernels"][0]["duration_ns"] == 280000


def test_copies_are_no_kernels(samples: Path) -> None:
    tables = load(samples / "nvprof-winograd-summary.log").report.tables
    assert [row.name for row in tables["cuda_gpu_mem_time_sum"]] == [
        "[CUDA memcpy HtoD]",
        "[CUDA memset]",
    ]
    assert len(tables["cuda_gpu_kern_sum"]) == 7


def test_the_log_names_device_and_command(samples: Path) -> None:
    found = load(samples / "nvprof-winograd-metrics.log").report
    assert found.devices == ("Tesla V100-SXM2-16GB",)
    assert found.command == "python train.py"


def test_the_output_of_two_processes_is_added_up() -> None:
    text = nvprof_text([Row("k", 2, (100.0, 50.0, 0, 40.0, 60.0, 0))], pid=1)
    text += nvprof_text([Row("k", 3, (300.0, 100.0, 0, 90.0, 120.0, 0))], pid=2)
    (row,) = read(text).tables["cuda_gpu_kern_sum"]
    assert (row.count, row.total, row.average) == (5, 400, 80)
    assert (row.minimum, row.maximum) == (40, 120)


def test_the_summary_of_cuda_8_has_no_column_of_types() -> None:
    text = (
        "==9== Profiling result:\n"
        "Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " 50.00%  1.7290ms         2  864.50us  800.00us  929.00us  k\n"
        "\n"
        "==9== API calls:\n"
        "Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " 90.00%  2.00000s         1  2.00000s  2.00000s  2.00000s  cudaMalloc\n"
    )
    tables = read(text).tables
    assert tables["cuda_gpu_kern_sum"][0].total == pytest.approx(1_729_000)
    assert tables["cuda_api_sum"][0].total == 2e9


def test_a_rate_is_a_total_only_with_the_time(tmp_path: Path) -> None:
    metric = {"dram_read_throughput": ("8.0000GB/s", "8.0000GB/s", "8.0000GB/s")}
    rates = loaded(tmp_path, nvprof_metrics_text([Counted("k", 4, metric)]), "rates.log")
    times = loaded(tmp_path, nvprof_text([Row("k", 4, (1000.0, 250.0, 0, 250.0, 250.0, 0))]))
    alone, timed = merge([rates]).counters, merge([rates, times]).counters
    assert alone["dram_read_bytes"] is None
    assert "a rate gives no total" in alone["notes"][0]
    assert timed["dram_read_bytes"] == pytest.approx(8 * 1024**3 * 1e-6)
    assert "throughput times time" in timed["notes"][0]


V100 = [
    ("compare", 1, ("7077968", "797.86GB/s", "47293", "5.3311GB/s"), 264.19e3),
    ("unroll", 10, ("258488517", "495.96GB/s", "49361373", "94.710GB/s"), 15.468e6),
    ("blocks", 10, ("216399830", "311.06GB/s", "108324084", "155.71GB/s"), 20.748e6),
    ("split1", 10, ("198616967", "567.54GB/s", "32938879", "94.122GB/s"), 10.416e6),
    ("split2", 10, ("103021363", "579.85GB/s", "16455829", "92.621GB/s"), 5.2851e6),
]
"""Five kernels of a public log of a Tesla V100: launches, averages, and the mean time in ns that a
summary of the same program gives."""


def test_a_time_derived_from_dram_is_the_one_that_nvprof_measured(tmp_path: Path) -> None:
    kernels = [Counted(name, launches, dram(*averages)) for name, launches, averages, _ in V100]
    for printed in (nvprof_metrics_text, nvprof_metrics_csv):
        found = merge([loaded(tmp_path, printed(kernels))])
        table = found.profile["tables"]["cuda_gpu_kern_sum"]
        of = {row[-1]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
        for name, launches, _, average in V100:
            assert of[name]["Avg (ns)"] == pytest.approx(average, rel=5e-3)
            assert of[name]["Total Time (ns)"] == pytest.approx(launches * of[name]["Avg (ns)"])
        assert sum(row["Time (%)"] for row in of.values()) == pytest.approx(100)
        assert found.profile["time_source"] == found.counters["time_source"] == DERIVED
        assert found.counters["kernels"][0]["duration_ns"] in [row[1] for row in table["rows"]]


def test_prefixes_of_a_throughput_are_powers_of_1024(tmp_path: Path) -> None:
    """Reads in GB/s and writes in MB/s, of a public log of a TITAN X: no other factor fits both."""
    (kernel,) = read(
        nvprof_metrics_text(
            [Counted("compare", 1, dram("6709218", "298.33GB/s", "18546", "844.46MB/s"))]
        )
    ).kernels
    assert kernel.parts["derived"] == pytest.approx(670_230, rel=1e-5)


@pytest.mark.parametrize(
    ("averages", "why"),
    [
        (("0", "0.00000B/s", "0", "0.00000B/s"), "no DRAM transactions were counted"),
        (("3", "91.644MB/s", "0", "0.00000B/s"), "too few DRAM transactions were counted"),
        (
            ("1000000", "100.00GB/s", "1000000", "99.000GB/s"),
            "its DRAM reads give 298 µs a launch, its writes 301 µs",
        ),
    ],
)
def test_a_time_that_cannot_be_derived_is_unknown_with_the_reason(
    tmp_path: Path, averages: tuple[str, str, str, str], why: str
) -> None:
    kernels = [
        Counted("good", 2, dram("1000000", "100.00GB/s", "500000", "50.000GB/s")),
        Counted("bad", 2, dram(*averages)),
    ]
    found = merge([loaded(tmp_path, nvprof_metrics_text(kernels))])
    good, bad = found.profile["tables"]["cuda_gpu_kern_sum"]["rows"]
    assert good[1] == pytest.approx(2 * 32e6 / (100 * 1024**3) * 1e9)
    assert (bad[-1], bad[1], good[0]) == ("bad", None, None), "nor a share of an unknown total"
    assert found.profile["notes"] == [f"no time, as {why}: bad"]


def test_what_was_rounded_to_few_digits_does_not_contradict(tmp_path: Path) -> None:
    """A V100's memset-like kernel: 30 reads against 15,769 writes, as printed."""
    averages = dram("30", "231.66MB/s", "15769", "118.92GB/s")
    (kernel,) = read(nvprof_metrics_text([Counted("fill", 1, averages)])).kernels
    assert kernel.parts["derived"] == pytest.approx(15769 * 32 / (118.92 * 1024**3) * 1e9)
    alone = {name: each for name, each in averages.items() if "write" in name}
    (kernel,) = read(nvprof_metrics_text([Counted("fill", 1, alone)])).kernels
    assert kernel.parts["derived"] == pytest.approx(3951.85, rel=1e-5)


def test_times_that_were_measured_go_before_those_derived(tmp_path: Path) -> None:
    averages = dram("1000000", "100.00GB/s", "500000", "50.000GB/s")
    metrics = loaded(tmp_path, nvprof_metrics_text([Counted("k", 4, averages)]), "m.log")
    times = loaded(tmp_path, nvprof_text([Row("k", 4, (1000.0, 250.0, 0, 250.0, 250.0, 0))]))
    found = merge([metrics, times])
    assert found.profile["time_source"] is None and found.counters["time_source"] is None
    assert found.profile["tables"]["cuda_gpu_kern_sum"]["rows"][0][1] == 1000
    assert found.counters["kernels"][0]["duration_ns"] == 1000


def test_an_overflow_is_unknown_and_so_is_the_sum(tmp_path: Path) -> None:
    kernels = [
        Counted("a", 1, {"flop_count_sp": ("5", "5", "5")}),
        Counted("b", 1, {"flop_count_sp": ("<OVERFLOW>",) * 3}),
    ]
    counters = merge([loaded(tmp_path, nvprof_metrics_text(kernels))]).counters
    assert counters["flop"] is None
    assert "flop: unknown for 1 of 2 kernels, 5 for the rest" in counters["notes"]


def test_sectors_of_both_halves_of_a_partition_are_one_traffic() -> None:
    text = (
        "==1== Profiling result:\n==1== Event result:\n"
        "Invocations                                Event Name         Min         Max         Avg"
        "       Total\n"
        'Device "Tesla K80 (0)"\n    Kernel: k\n'
        "          3                    fb_subp0_read_sectors          10          10          10"
        "          30\n"
        "          3                    fb_subp1_read_sectors           5           5           5"
        "          15\n"
    )
    (kernel,) = read(text).kernels
    assert kernel.parts == {"read": 45 * 32}


EVERY_FORM = (
    "nvprof-winograd-metrics.log",
    "nvprof-winograd-summary.log",
    "nvprof-implicit-gemm-metrics.csv",
    "nvprof-implicit-gemm-summary.csv",
)
OWN_LINES = (
    "Train Epoch: 1 [0/512 (0%)]\tLoss: 2.301",
    "  12%|#2        | 1/8 [00:01<00:07,  1.02s/it]",
    " 50.0 percent done",
    "",
    "10 epochs to go",
    "==4799== NVPROF is profiling process 4799, command: python worker.py",
)
"""What a program, its children and their nvprof print while the first nvprof prints its table."""


@pytest.mark.parametrize("name", EVERY_FORM)
@pytest.mark.parametrize("own", OWN_LINES)
def test_no_line_of_the_program_ends_a_table(samples: Path, name: str, own: str) -> None:
    """Wherever it stands."""
    lines = (samples / name).read_text().splitlines()
    whole = read("\n".join(lines))
    last = len(lines)
    for at in range(6 if name.endswith("log") else 5, last):
        found = read("\n".join([*lines[:at], own, *lines[at:]]))
        assert (found.tables, found.kernels) == (whole.tables, whole.kernels), at
        assert found.unread == 0
        told = "1 line between the rows left out: not printed by nvprof"
        assert found.notes == (*whole.notes, *([told] if own and own[:2] != "==" else []))


@pytest.mark.parametrize("name", EVERY_FORM)
@pytest.mark.parametrize("after", ["", "\n"], ids=["at its beginning", "across two lines"])
def test_a_row_that_other_output_runs_into_leaves_no_total(
    samples: Path, tmp_path: Path, name: str, after: str
) -> None:
    lines = (samples / name).read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "dgemm" in line or "sgemm" in line) + 1
    metrics = "metrics" in name
    cut = 36 if after else 0
    lines[at] = f"{lines[at][:cut]}Loss: 2.301{after}{lines[at][cut:]}"
    found = merge([loaded(tmp_path, "".join(lines), name)])
    assert re.search("[12] rows? could not be read", found.profile["notes"][-1 - metrics])
    assert all(table["rows_left_out"] for table in found.profile["tables"].values())
    for table in found.profile["tables"].values():
        assert {row[0] for row in table["rows"]} == {None}, "a share of an unknown total"
    if metrics:
        totals = ("flop", "dram_read_bytes", "dram_write_bytes", "launches")
        assert [found.counters[each] for each in totals] == [None] * 4
        assert "so no total is known; the known part: " in found.counters["notes"][0]


def test_a_kernel_whose_name_is_lost_is_not_counted_as_the_one_before(samples: Path) -> None:
    text = (samples / "nvprof-winograd-metrics.log").read_text()
    for lost in ("Loss: 2.301    Kernel: volta_sgemm_128x64_nn", "Loss: 2.301"):
        found = read(text.replace("    Kernel: volta_sgemm_128x64_nn", lost))
        flop = [kernel.parts["sp"] / kernel.launches for kernel in found.kernels]
        assert flop == [17.5e6, 60e6, 120e6, 60e6, 17.5e6, 0]
        assert found.unread == 3


def test_a_kernel_without_a_row_is_one_that_was_not_read(samples: Path) -> None:
    text = (samples / "nvprof-winograd-metrics.log").read_text()
    assert read(text[: text.index("\n", text.rindex("    Kernel: "))]).unread == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (nvprof_text([Row("k", 2, (90.0,) * 6)])[:-8], "line 6: a row that ends early"),
        (
            nvprof_metrics_text([Counted("k", 2, {"flop_count_sp": ("1234", "1234", "12")})]),
            "outside its own range",
        ),
        (
            nvprof_metrics_csv([Counted("k", 2, {"flop_count_sp": ("7", "7", "7")})])[:-3],
            "ends early",
        ),
        ('"Start","Duration","Grid X"\n,ms,\n1,2,3\n', "trace of single launches is not read"),
        (
            nvprof_metrics_text([Counted("k", 2, {"sm_efficiency": ("7%", "7%", "7%")})]),
            "none of the metrics flop_count_sp",
        ),
    ],
)
def test_what_cannot_be_trusted_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        loaded(tmp_path, text)
