"""One table per device for a study of several workloads."""

from __future__ import annotations

import html
import math
import os
from dataclasses import replace
from statistics import mean, median, stdev

import pytest
from scipy import stats

from gpuwatch.analysis.hardware.bound import UNKNOWN
from gpuwatch.analysis.measured_value import unknown
from gpuwatch.analysis.results import Cell, StudyResult
from gpuwatch.analysis.statistics.description import unavailable
from gpuwatch.analysis.study.cost import Price, cost_text, with_costs
from gpuwatch.core import units
from gpuwatch.core.models import JSON
from gpuwatch.report.document.blocks import Heading, Sentence, Table
from gpuwatch.report.document.devices import devices
from gpuwatch.report.html.page import page
from gpuwatch.report.markdown import as_markdown
from gpuwatch.report.text import terminal

A100: dict[str, JSON] = {
    "memory.total": 80 * 2**30,
    "compute.capability": "8.0",
    "driver.version": "550.54",
    "core.count": 6912,
}


def test_each_case_is_a_row_of_its_device(two_cases: StudyResult) -> None:
    heading, grid, legend = devices(two_cases).items
    assert isinstance(heading, Heading) and isinstance(grid, Table)
    assert isinstance(legend, Sentence) and "counted" in legend.text
    cells = sum(len(question.cells) for question in two_cases.questions)
    assert len(grid.rows) == cells
    assert grid.rows[0][0] == "resnet50 in bare"
    by_name = dict(zip(grid.head, grid.rows[0], strict=True))
    judged = [run.session for run in two_cases.questions[0].cells[0].judged]
    assert heading.text in {device.name for device in judged[0].devices}
    steps = [session.steps.median_seconds or 0 for session in judged]
    mean, low, high = exp_interval(steps)
    first, second = by_name["median step"].split("\n")
    assert first == units.quantity(mean, "s")
    assert second.replace("\t", " ") == units.span(low, high, "s")
    assert min(steps) < mean < max(steps) and low < mean < high
    energy = [session.efficiency.energy.gpu_per_sample.value for session in judged]
    known = [value for value in energy if value is not None]
    assert by_name["J/sample"].startswith(units.joules(exp_interval(known)[0]) if known else "—")
    assert "EUR/million" not in grid.head and "EUR" not in legend.text


def exp_interval(values: list[float]) -> tuple[float, float, float]:
    """Geometric mean with its interval, by the textbook: Student's t of the logarithms."""
    logs = [math.log(value) for value in values]
    half = stats.t.ppf(0.975, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean(logs)), math.exp(mean(logs) - half), math.exp(mean(logs) + half)


def test_two_runs_have_no_interval(two_cases: StudyResult) -> None:
    def cut(cell: Cell) -> Cell:
        kept = {id(run) for run in cell.judged[:2]}
        return replace(cell, runs=tuple(run for run in cell.runs if id(run) in kept))

    questions = tuple(
        replace(question, cells=tuple(map(cut, question.cells))) for question in two_cases.questions
    )
    grid = devices(replace(two_cases, questions=questions)).items[1]
    assert isinstance(grid, Table)
    two = [run.session.steps.median_seconds or 0 for run in questions[0].cells[0].runs]
    assert len(two) == 2
    assert grid.rows[0][1] == units.quantity(median(two), "s")


def test_what_is_unknown_has_its_reason_once(two_cases: StudyResult) -> None:
    def blind(cell: Cell) -> Cell:
        """Without energy, and without ceilings, so that neither shares nor a bound are known."""
        runs = []
        for run in cell.runs:
            of = run.session.efficiency
            verdict = replace(of.roofline.verdict, bound=UNKNOWN, text="no ceiling", hint="measure")
            of = replace(
                of,
                mfu=unknown("1", "no data sheet"),
                flop_shares=(),
                bandwidth=unknown("By/s", "no counters"),
                bandwidth_shares=(),
                bytes_shares=(),
                energy=replace(of.energy, gpu_per_sample=unknown("J", "no power")),
                roofline=replace(of.roofline, verdict=verdict),
            )
            runs.append(replace(run, session=replace(run.session, efficiency=of)))
        return replace(cell, runs=tuple(runs))

    questions = tuple(
        replace(question, cells=tuple(map(blind, question.cells)))
        for question in two_cases.questions
    )
    _, grid, *reasons, legend = devices(replace(two_cases, questions=questions)).items
    assert isinstance(grid, Table) and grid.rows[0][4:8] == ("—", "—", "—", "unknown")
    assert reasons == [
        Sentence("MFU", "no data sheet"),
        Sentence("bandwidth", "no counters"),
        Sentence("J/sample", "no power"),
        Sentence("bound by", "no ceiling", "measure"),
    ]
    assert isinstance(legend, Sentence) and "—: unknown" in legend.text
    first, *_ = questions
    in_part = replace(two_cases, questions=(first, *two_cases.questions[1:]))
    _, grid, mfu, *_ = devices(in_part).items
    assert isinstance(grid, Table)
    rows = ", ".join(row[0] for row in grid.rows if row[4] == "—")
    assert mfu == Sentence("MFU", f"{rows}: no data sheet") and rows.startswith(first.label)


def test_a_run_that_used_a_gpu_lacks_its_energy_and_not_that_of_the_cpu(
    two_cases: StudyResult,
) -> None:
    """Whether or not the program told its device; a missing throughput has its reason, too."""

    def untold(cell: Cell, *, samples: bool) -> Cell:
        runs = []
        for run in cell.runs:
            of, steps, metrics = run.session.efficiency, run.session.steps, run.session.metrics
            energy = replace(
                of.energy,
                gpu_per_sample=unknown("J", "no power"),
                cpu_per_sample=unknown("J", "no RAPL"),
            )
            if not samples:
                steps = replace(steps, samples_per_second=None)
                rate = unavailable("{sample}/s", "", "no samples")
                metrics = {**metrics, "gpuwatch.throughput": rate}
            session = replace(
                run.session,
                run={},
                efficiency=replace(of, energy=energy),
                steps=steps,
                metrics=metrics,
            )
            runs.append(replace(run, session=session))
        return replace(cell, runs=tuple(runs))

    def reasons(*, samples: bool) -> list[object]:
        questions = tuple(
            replace(each, cells=tuple(untold(cell, samples=samples) for cell in each.cells))
            for each in two_cases.questions
        )
        _, _, *told, _ = devices(replace(two_cases, questions=questions)).items
        return told

    assert reasons(samples=True) == [Sentence("J/sample", "no power")]
    assert reasons(samples=False) == [Sentence("throughput, J/sample", "no samples")]


def test_with_a_price_each_sample_has_its_cost(two_cases: StudyResult) -> None:
    paths = frozenset(os.path.realpath(session.path) for session in two_cases.sessions)
    priced = with_costs(two_cases, [Price(3.2, paths)])
    grid = devices(priced).items[1]
    assert isinstance(grid, Table)
    costs = [cell.cost for question in priced.questions for cell in question.cells]
    known = [None if cost is None else cost.per_million for cost in costs]
    assert any(value is not None for value in known)
    (cell, *_) = priced.questions[0].cells
    assert cell.cost is not None and cell.cost.kwh_per_million is not None
    watts, seconds, samples = 310.0, cell.mean or 0.0, 64
    kwh = watts * seconds / samples * 1e6 / 3.6e6
    assert cell.cost.kwh_per_million == pytest.approx(kwh, rel=0.01)
    assert "kWh for them (0.673 to 0.679, measured: integral of power" in cost_text(cell.cost)
    for row, value in zip(grid.rows, known, strict=True):
        shown, *interval = row[-1].split("\n")
        assert shown == ("—" if value is None else units.significant(value))
        assert bool(interval) is (value is not None)
    unpaid = [item for item in devices(priced).items if getattr(item, "word", "") == "EUR/million"]
    assert len(unpaid) == (None in known)
    legend = devices(priced).items[-1]
    assert isinstance(legend, Sentence)
    assert "EUR/million: the price of an hour" in legend.text


def test_text_markdown_and_page_have_the_same_figures(two_cases: StudyResult) -> None:
    shown = terminal(two_cases, columns=200)
    assert "\ndevices\n" in shown
    grid = devices(two_cases).items[1]
    assert isinstance(grid, Table)
    written = page(two_cases, [])
    assert '<section id="devices"' in written and 'href="#devices"' in written
    for place in (
        shown,
        html.unescape(written).replace("\N{NO-BREAK SPACE}", " "),
        as_markdown(two_cases),
    ):
        for row in (grid.head, *grid.rows):
            for cell in row:
                assert all(part in place for part in cell.replace("\t", "\n").split("\n")), cell


def test_one_workload_has_none(result: StudyResult) -> None:
    assert 'id="devices"' not in page(result, [])
    assert devices(result).items == ()
    assert devices(replace(result, questions=())).items == ()


def test_one_workload_on_two_devices_has_a_table_of_each(result: StudyResult) -> None:
    (question,) = result.questions
    first, second = question.cells[:2]
    runs = tuple(
        replace(
            run,
            session=replace(
                run.session,
                devices=[
                    replace(each, name="NVIDIA A100-SXM4-80GB", attributes=A100)
                    for each in run.session.devices
                ],
            ),
        )
        for run in second.runs
    )
    across = replace(question, cells=(first, replace(second, runs=runs)))
    shown = devices(replace(result, questions=(across,))).items
    one, two = (item.text for item in shown if isinstance(item, Heading))
    assert two == "NVIDIA A100-SXM4-80GB"
    specified = shown[0]
    assert isinstance(specified, Table) and specified.head[0] == "device"
    assert [row[0] for row in specified.rows] == [one, two]
    by_name = dict(zip(specified.head, specified.rows[1], strict=True))
    known = ("80.0 GiB", "2.04 TB/s", "8.0", "550.54")
    names = ("memory", "bandwidth", "compute capability", "driver")
    assert tuple(by_name[name] for name in names) == known
    times = shown[2]
    assert isinstance(times, Table) and times.head == ("time in kernels", one, two)
    assert {row[0]: row[1:] for row in times.rows} == {
        "Winograd convolution": ("150 ms,\t60 %", "-"),
        "implicit GEMM convolution": ("-", "150 ms,\t60 %"),
        "other": ("100 ms,\t40 %", "100 ms,\t40 %"),
    }
