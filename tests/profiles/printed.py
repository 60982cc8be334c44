"""What nsys, ncu and nvprof print, written from tables: the forms that are read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NSYS_TITLES = {
    "cuda_gpu_kern_sum": ("Instances", "Name"),
    "cuda_api_sum": ("Num Calls", "Name"),
    "cuda_gpu_mem_time_sum": ("Count", "Operation"),
    "cuda_gpu_mem_size_sum": ("Count", "Operation"),
}


@dataclass(frozen=True)
class Row:
    """A name, its count, and total, average, median, minimum, maximum, deviation."""

    name: str
    count: int
    values: tuple[float, float, float, float, float, float]


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _share(row: Row, rows: Sequence[Row]) -> str:
    whole = sum(each.values[0] for each in rows)
    return f"{100 * row.values[0] / whole if whole else 0:.1f}"


def nsys_header(report: str, unit: str) -> list[str]:
    counted, named = NSYS_TITLES[report]
    times = [f"{each} ({unit})" for each in ("Avg", "Med", "Min", "Max", "StdDev")]
    first = [f"Total ({unit})"] if "size" in report else ["Time (%)", f"Total Time ({unit})"]
    return [*first, counted, *times, named]


def _nsys_cells(report: str, row: Row, rows: Sequence[Row]) -> list[str]:
    total, *others = (repr(value) for value in row.values)
    first = [total] if "size" in report else [_share(row, rows), total]
    return [*first, str(row.count), *others]


def nsys_csv(report: str, rows: Sequence[Row], unit: str = "ns") -> str:
    lines = [",".join(nsys_header(report, unit))]
    lines += [",".join([*_nsys_cells(report, row, rows), quoted(row.name)]) for row in rows]
    return (
        f"Processing [run.sqlite] with [/opt/nvidia/nsight-systems/2023.2.3/host-linux-x64/"
        f"reports/{report}.py]... \n" + "\n".join(lines) + "\n\n"
    )


def nsys_text(report: str, rows: Sequence[Row], unit: str = "ns") -> str:
    header = nsys_header(report, unit)
    body = [[*_nsys_cells(report, row, rows), row.name] for row in rows]
    widths = [max(len(line[at]) for line in [header, *body]) for at in range(len(header))]
    lines = [
        " "
        + "  ".join(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=False))
        + "  "
        + line[-1].ljust(widths[-1])
        for line in (header, ["-" * width for width in widths], *body)
    ]
    return (
        f"Processing [run.sqlite] with [/opt/nvidia/nsight-systems/2023.2.3/host-linux-x64/"
        f"reports/{report}.py]... \n\n ** Summary ({report}):\n\n" + "\n".join(lines) + "\n\n"
    )


def nvprof_time(nanoseconds: float) -> str:
    """Five digits and a unit, as nvprof does."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= factor:
            return f"{nanoseconds / factor:.5g}{unit}"
    return f"{nanoseconds:.5g}ns"


def nvprof_text(activities: Sequence[Row], calls: Sequence[Row] = (), pid: int = 4711) -> str:
    lines = [
        f"=={pid}== NVPROF is profiling process {pid}, command: python train.py",
        "epoch 1 of 1",
        f"=={pid}== Profiling application: python train.py",
        f"=={pid}== Profiling result:",
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name",
    ]
    for section, rows in ((" GPU activities:", activities), ("      API calls:", calls)):
        for at, row in enumerate(rows):
            total, average, _, low, high, _ = (nvprof_time(value) for value in row.values)
            lines.append(
                f"{section if at == 0 else '':16} {_share(row, rows):>6}%  {total:>8}  "
                f"{row.count:>8}  {average:>8}  {low:>8}  {high:>8}  {row.name}"
            )
    return "\n".join(lines) + "\n"


def nvprof_csv(activities: Sequence[Row], calls: Sequence[Row] = ()) -> str:
    lines = [
        "==4711== Profiling result:",
        '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"',
        ",%,ms,,us,us,us,",
    ]
    for section, rows in (("GPU activities", activities), ("API calls", calls)):
        for row in rows:
            total, average, _, low, high, _ = row.values
            lines.append(
                f'"{section}",{_share(row, rows)},{total / 1e6:.9f},{row.count},'
                f"{average / 1e3:.6f},{low / 1e3:.6f},{high / 1e3:.6f},{quoted(row.name)}"
            )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Counted:
    """A kernel, its launches, and by metric the minimum, maximum and average of one launch."""

    name: str
    launches: int
    metrics: dict[str, tuple[str, str, str]]


def dram(read: str, read_rate: str, write: str, write_rate: str) -> dict[str, tuple[str, str, str]]:
    """The metrics of DRAM, each with its average as minimum and maximum."""
    averages = {
        "dram_read_throughput": read_rate,
        "dram_write_throughput": write_rate,
        "dram_read_transactions": read,
        "dram_write_transactions": write,
    }
    return {metric: (each,) * 3 for metric, each in averages.items()}


DESCRIPTIONS = {
    "flop_count_sp": "Floating Point Operations(Single Precision)",
    "flop_count_dp": "Floating Point Operations(Double Precision)",
    "dram_read_transactions": "Device Memory Read Transactions",
    "dram_write_transactions": "Device Memory Write Transactions",
    "dram_read_throughput": "Device Memory Read Throughput",
    "dram_write_throughput": "Device Memory Write Throughput",
}
DEVICE = "Tesla V100-SXM2-16GB (0)"


def nvprof_metrics_text(kernels: Sequence[Counted], device: str = DEVICE) -> str:
    lines = [
        "==4712== NVPROF is profiling process 4712, command: python train.py",
        "==4712== Some kernel(s) will be replayed on device 0 in order to collect all "
        "events/metrics.",
        "==4712== Profiling application: python train.py",
        "==4712== Profiling result:",
        "==4712== Metric result:",
        f"{'Invocations':11}  {'Metric Name':>40}  {'Metric Description':>50}"
        f"  {'Min':>10}  {'Max':>10}  {'Avg':>10}",
        f'Device "{device}"',
    ]
    for kernel in kernels:
        lines.append(f"    Kernel: {kernel.name}")
        for metric, values in kernel.metrics.items():
            low, high, average = values
            lines.append(
                f"{kernel.launches:>11}  {metric:>40}  {DESCRIPTIONS.get(metric, metric):>50}"
                f"  {low:>10}  {high:>10}  {average:>10}"
            )
    return "\n".join(lines) + "\n"


def nvprof_metrics_csv(kernels: Sequence[Counted], device: str = DEVICE) -> str:
    lines = [
        "==4712== NVPROF is profiling process 4712, command: python train.py",
        "==4712== Profiling result:",
        "==4712== Metric result:",
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"',
    ]
    for kernel in kernels:
        for metric, values in kernel.metrics.items():
            said = quoted(DESCRIPTIONS.get(metric, metric))
            lines.append(
                f"{quoted(device)},{quoted(kernel.name)},{kernel.launches},{quoted(metric)},"
                f"{said},{','.join(values)}"
            )
    return "\n".join(lines) + "\n"


NCU_LAUNCH = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
]


@dataclass(frozen=True)
class Launch:
    kernel: str
    metrics: dict[str, tuple[str, str]]
    """Unit and value by metric."""


def _ncu_launch(at: int, launch: Launch) -> list[str]:
    place = ["1", "7", "(256, 1, 1)", "(80, 1, 1)", "0", "7.0"]
    return [str(at), "4713", "python3.10", "127.0.0.1", launch.kernel, *place]


def _line(fields: Sequence[str]) -> str:
    return ",".join(quoted(each) for each in fields)


def ncu_raw(launches: Sequence[Launch]) -> str:
    metrics = list(launches[0].metrics)
    units = [launches[0].metrics[each][0] for each in metrics]
    lines = [
        "==PROF== Connected to process 4713 (/usr/bin/python3.10)",
        "==PROF== Disconnected from process 4713",
        _line([*NCU_LAUNCH, *metrics]),
        _line([*[""] * len(NCU_LAUNCH), *units]),
    ]
    for at, launch in enumerate(launches):
        values = [launch.metrics[each][1] for each in metrics]
        lines.append(_line([*_ncu_launch(at, launch), *values]))
    return "\n".join(lines) + "\n"


def ncu_details(launches: Sequence[Launch]) -> str:
    titles = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    lines = ["==PROF== Connected to process 4713", _line([*NCU_LAUNCH, *titles])]
    for at, launch in enumerate(launches):
        for metric, (unit, value) in launch.metrics.items():
            section = "Command line profiler metrics"
            lines.append(_line([*_ncu_launch(at, launch), section, metric, unit, value]))
    return "\n".join(lines) + "\n"
