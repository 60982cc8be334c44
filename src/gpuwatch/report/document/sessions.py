"""One or several sessions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import Read
from gpuwatch.analysis.comparison.comparison_row import (
    ALL_STEPS,
    PAID,
    STEADY,
    STEP,
    THROUGHPUT,
    TRAINING,
    name_of,
)
from gpuwatch.analysis.comparison.side_by_side import (
    BY_ARRIVAL,
    PEAK_MEMORY,
    Comparison,
    compare,
    tells_more,
)
from gpuwatch.analysis.hardware.kernels import most_time
from gpuwatch.analysis.hardware.mfu import MFU
from gpuwatch.analysis.results import ComparisonRow
from gpuwatch.analysis.samples.step_lines import far_mean, other_phase
from gpuwatch.analysis.summary.identity import (
    device_names,
    headings,
    session_title,
    sound,
    used_gpus,
)
from gpuwatch.analysis.summary.load import partly_sampled, sampled
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.analysis.summary.requested import Requested
from gpuwatch.analysis.summary.summary import DeviceSummary, SlowStep, Summary
from gpuwatch.analysis.summary.training import NAMES, lost
from gpuwatch.core import units
from gpuwatch.core.metrics import CATALOGUE, Kind
from gpuwatch.core.metrics import label as metric_label
from gpuwatch.core.models import mapping, number
from gpuwatch.core.text import clean, shell
from gpuwatch.report.document import efficiency, reasons
from gpuwatch.report.document.blocks import Document, Section, Sentence, Table
from gpuwatch.report.document.origin import started
from gpuwatch.report.document.quantities import quantity_table
from gpuwatch.session.reading.status import State

_CPU, _ENERGY = ("mean", "hw.cpu.utilization"), ("over the window", "hw.gpu.energy")
_OWN_CPU = (
    ("start-up and time", "CPU time"),
    ("start-up and time", "CPU time, user"),
    ("start-up and time", "CPU time, system"),
    ("over the window", "process.cpu.time"),
)
_OWN_MEMORY = ("maximum", "process.memory.usage")
_WITHOUT_STEPS = (*_OWN_CPU, _OWN_MEMORY, _ENERGY)
"""Rows of runs without steps alone."""
_UNSTEADY = (("steps", "step time, median"), ("steps", "step time, mean"))
_FIRST = (
    ("steps", STEADY),
    *_UNSTEADY,
    ("steps", BY_ARRIVAL),
    ("steps", PAID),
    ("steps", THROUGHPUT),
    ("steps", ALL_STEPS),
    ("start-up and time", "elapsed"),
    ("start-up and time", "profile and counters"),
    *_OWN_CPU,
    _OWN_MEMORY,
    *((TRAINING, name_of(key, STEP)) for key in NAMES),
    ("mean", "gpuwatch.flop.rate"),
    ("efficiency", MFU),
    ("mean", "hw.gpu.utilization"),
    ("mean", "hw.gpu.memory.bandwidth"),
    ("maximum", PEAK_MEMORY),
    ("mean", "hw.gpu.power"),
    ("efficiency", "energy per step"),
    _ENERGY,
    _CPU,
)
"""Groups and names of the rows of the brief table; median and mean in place of the judged step
times where a session has none."""
_OF_PEAK = ("hw.gpu.memory.usage", "process.gpu.memory.usage")
"""Metrics of which the peak of memory is read."""
_OF_EACH = {
    "hw.gpu.utilization": "utilization",
    "hw.gpu.memory.usage": "memory",
    "hw.gpu.memory.bandwidth": "bandwidth",
    "hw.gpu.power": "power",
    "hw.gpu.temperature": "temperature",
    "hw.gpu.energy": "energy",
}
"""Metrics in the table of all GPUs, and what they are called there."""


_LEAST_REST = 0.005
"""Share of a step's phases from which on the rest of it is told."""


def sessions(
    compared: Comparison, columns: Sequence[str], notices: Sequence[str] = ()
) -> tuple[Section, ...]:
    """All that is known of the sessions, under each other and side by side.

    ``columns``: their names. ``notices`` come before the notes.
    """
    if not compared.sessions:
        told = [Sentence("", each) for each in (*notices, *compared.notes)]
        return (Section("", told, folded=False),)
    several = len(compared.sessions) > 1
    how = [_how(session) for session in compared.sessions]
    ends = list(filter(None, _ends(compared, columns)))
    lines = ends if several else ["; ".join([*ends, *how])]
    sections = [Section("", [Sentence("", line) for line in (*lines, *_given(compared))])]
    table = quantity_table(compared.rows, columns, compared.baseline)
    sections.append(Section("", (table,), closed=not several))
    for label, session in zip(columns, compared.sessions, strict=True):
        named = f"{label}: " if several else ""
        rows = [Sentence(name, text) for name, text in efficiency.efficiency_rows(session)]
        title = f"{named}{efficiency.heading(session)}"
        sections.append(Section(title, rows, closed=not several))
    for label, session in zip(columns, compared.sessions, strict=True):
        if session.ranks is not None:
            items = reasons.rank_items(label, session.ranks, session.devices)
            named = f"{label}: " if several else ""
            sections.append(Section(f"{named}{session.ranks.counted}", items))
    sections += reasons.around(compared, columns)
    if several:
        titles = [each.given.heading(session_title(each)) for each in compared.sessions]
        runs = [
            Sentence(label, f"{title}; {each}")
            for label, title, each in zip(columns, titles, how, strict=True)
        ]
        sections.append(Section("the runs", runs))
    notes = [*notices, *compared.notes, *missing_notes(compared.sessions)]
    sections.append(Section("notes", [Sentence("", note) for note in notes]))
    return tuple(replace(section, folded=False) for section in sections)


def document(compared: Comparison, title: str, notices: Sequence[str] = ()) -> Document:
    """Sessions without a study."""
    return Document(title, sections=sessions(compared, headings(compared.sessions), notices))


def short(read: Read, given: Sequence[Requested], paid: float | None, cost: str) -> Document:
    """One session in one screen: what bounds it and its main figures in two sentences, how it
    ended, more figures, what it used of what it was ``given``, what it cost, its notes; of one that
    failed its end first. ``paid``: EUR."""
    session = read.summary
    compared, of = compare([session]), session.efficiency
    (end,) = _ends(compared, [""])
    identity = ["; ".join(filter(None, (end, _how(session)))), *_given(compared)]
    error = units.give_or_take(of.energy.gpu_per_step.error)
    median = session.steps.median_seconds
    mean = far_mean(median, session.steps.mean_seconds)
    of_it = ", that of MFU" if of.mfu.value else ""
    beside = "" if mean is None else f" (mean {units.quantity(mean, 's')}{of_it})"
    first = [
        ("MFU {}", of.mfu.value, "1"),
        (f"step time {{}}, median{beside}", median, "s"),
        (f"{{}}{error} a step", of.energy.gpu_per_step.value, "J"),
    ]
    told = [text.format(units.quantity(value, unit)) for text, value, unit in first if value]
    told += [f"{units.three_figures(paid)} EUR for the run"] if paid and told else []
    figures_told = efficiency.sentence("; ".join(told))
    warning = efficiency.sentence(lost(session.training))
    outcome = [each for each in (warning, efficiency.headline(session), figures_told) if each]
    phases = {name: seconds for name, seconds in session.steps.phases.items() if seconds}
    step = sum(phases.values())
    rest = (session.steps.mean_seconds or 0.0) - step if "other" not in phases else 0.0
    if phases and rest > _LEAST_REST * step:  # what no phase covers is of the step, too
        phases["other"] = rest
        step += rest
    other = other_phase(session.run)
    parts, slowest = list[str](), session.steps.slowest
    for name, seconds in phases.items():
        share = seconds / step
        usual = slowest.shares_without.get(name, share) if slowest else share
        parts.append(f"{other if name == 'other' else name} {units.percent(share)}")
        if abs(share - usual) > max(share / 3, 0.01):
            parts[-1] += f" ({units.percent(usual)} without the slowest step)"
    busiest, verdict = most_time(session.profile), of.roofline.verdict
    if busiest and "gpuwatch kernels" not in (verdict.hint or ""):
        busiest += efficiency.hint_of(session, "; all: `gpuwatch kernels SESSION`")
    bounds = [] if efficiency.headline(session) or not sound(session) else [verdict.text]
    if of.flop_rate.value is not None and of.mfu.value is None and used_gpus(session):
        bounds.insert(0, f"{MFU} unavailable: {of.mfu.reason}")
    if verdict.hint and sound(session):
        bounds.append(f"next: {efficiency.hint_of(session, verdict.hint)}")
    shown = {row.name for row in main_rows(compared)}
    shown |= {*_OF_EACH} if _each_gpu(compared) else set()
    if PEAK_MEMORY in shown:
        shown |= {*_OF_PEAK}
    elsewhere = partly_sampled([session])  # of rows that are not here, too
    notes = [each for each in compared.notes if each not in elsewhere]
    notes += partly_sampled([session], shown)
    used = f"used: {'; '.join(each.text for each in given)}"
    lines = (
        *((outcome, identity) if sound(session) else (identity, outcome)),
        [f"phases of a step: {', '.join(parts)}"] * bool(phases)
        + _slowest(slowest)
        + [f"most time in {busiest}"] * bool(busiest),
        bounds if efficiency.efficiency_rows(session) else [],
        [used] * bool(given) + [f"cost: {cost}"] * bool(cost),
        [
            f"note: {each}"
            for each in (session.notice, read.steady.note, *notes)
            if each and each not in (session.end, lost(session.training))
        ],
    )
    before, after, *others = (Section("", [Sentence("", each) for each in of_]) for of_ in lines)
    figures = brief(compared, headings([session])).items
    tables = [each for each in figures if isinstance(each, Table)]
    sections = tuple(each for each in (before, after, Section("", tables), *others) if each.items)
    return Document(session.label, sections=sections)


def _slowest(of: SlowStep | None) -> list[str]:
    """``slowest step: 1, 259 ms, of it data 202 ms``."""
    if of is None:
        return []
    longest = sorted((took, phase) for phase, took in of.phases.items())[-1:]
    parts = [f", of it {phase} {units.quantity(took, 's')}" for took, phase in longest]
    return [f"slowest step: {of.step:,}, {units.quantity(of.seconds, 's')}{''.join(parts)}"]


def brief(compared: Comparison, columns: Sequence[str]) -> Section:
    """The outcome and the main figures of each session, in a few lines; of a single one with what
    they are of."""
    ends = [Sentence("", each) for each in _ends(compared, columns) if each]
    first = main_rows(compared)
    tables = [quantity_table(first, columns, compared.baseline, brief=True)] if first else []
    if len(compared.sessions) == 1:
        over, host = _covered(*compared.sessions), _of_host(*compared.sessions)
        tables = [
            replace(each, head=(over, *each.head[1:]), rows=(*each.rows, *host)) for each in tables
        ]
    return Section("", [*ends, *tables, *_each_gpu(compared)])


def _of_host(session: Summary) -> list[tuple[str, str, str]]:
    """Memory and load of a machine that was recorded without a workload."""
    alone = session.workload.get("kind") == "machine"
    cpus = [device for device in session.devices if alone and device.kind == "cpu"]
    return [
        (metric_label(name), _of_device(cpu, name), "measured")
        for cpu in cpus
        for name in ("hw.memory.usage", "system.cpu.load_average.1m")
    ]


def _covered(session: Summary) -> str:
    """``over 200 timed steps within 7.78 s``; empty: sampled figures are of the whole run, those
    of the steps are not."""
    if session.window.kind != "timed steps":
        return "" if session.steps.count else "over the whole run"
    steps = units.counted(session.steps.count or 0, "timed step")
    # Lines that came late leave a window that is shorter than their steps.
    own = (session.steps.count or 0) * (session.steps.mean_seconds or 0.0)
    return f"over {steps} within {units.quantity(max(own, session.window.seconds), 's')}"


def _each_gpu(compared: Comparison) -> list[Table]:
    """Of a single session a line for each GPU of a machine, or of a run on several; without columns
    that none of them has."""
    if len(compared.sessions) != 1:
        return []
    (session,) = compared.sessions
    gpus = used_gpus(session)
    if not gpus or (len(gpus) == 1 and session.workload.get("kind") != "machine"):
        return []
    columns = [("", *(clean(gpu.id, 30) for gpu in gpus))]
    columns += [(word, *(_of_device(gpu, name) for gpu in gpus)) for name, word in _OF_EACH.items()]
    known = [each for each in columns[1:] if {*each[1:]} != {units.UNKNOWN}]
    head, *rows = zip(columns[0], *known, strict=True)
    return [Table(head, tuple(rows))] if head[1:] else []


def machine_figures(session: Summary) -> list[dict[str, str]]:
    """The means of a recorded machine, by name and value: those of its GPUs, then the others."""
    compared = compare([session])
    told = [
        (f"{gpu} {word}", value)
        for table in _each_gpu(compared)
        for gpu, *values in table.rows
        for word, value in zip(table.head[1:], values, strict=True)
    ]
    rows = main_rows(compared)
    told += [(metric_label(row.name), units.quantity(row.values[0], row.unit)) for row in rows]
    known = [each for each in told if each[1] != units.UNKNOWN]
    return [{"name": name, "value": value, "how": "measured"} for name, value in known]


def _of_device(device: DeviceSummary, name: str) -> str:
    """The mean, of energy the total; memory of all that there is."""
    if (of := device.metrics.get(name)) is None:
        return units.UNKNOWN
    value = of.max if CATALOGUE[name].kind is Kind.COUNTER else of.mean
    if value is not None and of.unit == "By":
        return units.memory_usage(value, number(device.attributes.get("memory.total")))
    return units.quantity(value, of.unit)


def main_rows(compared: Comparison) -> list[ComparisonRow]:
    """The rows of the main figures."""
    by_name = {(row.group, row.name): row for row in compared.rows}
    left_out = {at for at in _WITHOUT_STEPS if any(e.steps.count for e in compared.sessions)}
    if _each_gpu(compared):
        left_out |= {at for at in _FIRST if at[1] in _OF_EACH}
    shown = {
        at: by_name[at]
        for at in _FIRST
        if at in by_name.keys() - left_out and any(sampled(e, at[1]) for e in compared.sessions)
    }
    if _OWN_CPU[0] in shown:
        shown.pop(_OWN_CPU[-1], None)
    if any(at in shown for at in _OWN_CPU):  # that of the machine would be read as the run's
        shown.pop(_CPU, None)
    steady = shown.get(("steps", STEADY))
    # A run that failed or was never steady has no typical step. Where only one has, what all have
    # is told instead.
    alone = steady is not None and sum(value is not None for value in steady.values) == 1
    if steady and alone and any(at in shown and tells_more(shown[at], steady) for at in _UNSTEADY):
        steady = None
        for name in (STEADY, ALL_STEPS, *([PAID] if ("steps", THROUGHPUT) in shown else [])):
            shown.pop(("steps", name), None)
    for at in _UNSTEADY:
        if steady and at in shown and not tells_more(shown[at], steady):
            del shown[at]
    if ("steps", PAID) in shown:  # else a verdict on it would have no figure
        shown.pop(("steps", ALL_STEPS), None)
    return list(shown.values())


def _ends(compared: Comparison, columns: Sequence[str]) -> list[str]:
    """How each run ended; of several runs empty for one that finished."""
    ends = []
    for column, session in zip(columns, compared.sessions, strict=True):
        title = session.given.heading(session_title(session))
        if len(columns) > 1:
            title = "" if session.status.state is State.FINISHED else column
        ends.append(f"{title}: {session.end}" if title else "")
    return ends


def _how(session: Summary) -> str:
    """When, where and by what a session was recorded."""
    gpus = [f"{gpu.id} {gpu.name}" for gpu in used_gpus(session)]
    device = ", ".join(gpus or device_names(session))
    ranks = "" if session.ranks is None else session.ranks.counted
    parts = (started(session), session.place, device, ranks, _what(session), session.path)
    return clean("; ".join(filter(None, parts)), 600)


def _given(compared: Comparison) -> list[str]:
    """Tags and note of a single session, one per line; empty for several sessions."""
    if len(compared.sessions) != 1:
        return []
    given = compared.sessions[0].given
    tags = [f"tags: {', '.join(given.tags)}"] if given.tags else []
    return [*tags, *(f"note: {line}" for line in given.note.splitlines() if line.strip())]


def _what(session: Summary) -> str:
    """The command, or the settings of one of gpuwatch's own workloads."""
    arguments = session.workload.get("arguments")
    if session.workload.get("kind") == "command" and isinstance(arguments, list):
        return " ".join(shell(str(each)) for each in arguments)[:200]
    run, data = session.run, mapping(session.run.get("data"))
    settings = (
        f"batch {run['batch_size']}" if run.get("batch_size") else "",
        str(run.get("dtype") or ""),
        f"on {run['device']}" if run.get("device") else "",
        f"{data['kind']} data" if data.get("kind") else "",
    )
    return ", ".join(part for part in settings if part)
