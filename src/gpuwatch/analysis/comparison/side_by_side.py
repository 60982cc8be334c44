"""Sessions side by side: values, ratios to the first, differences of their fingerprints.

This only describes the runs: to say which environment is faster takes several blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import STEP_TIME
from gpuwatch.analysis.comparison.comparison_row import (
    ALL_STEPS,
    PAID,
    STEADY,
    THROUGHPUT,
    Value,
    at,
    clear_ratio,
    efficiency_rows,
    found_row,
    generation_rows,
    kernel_rows,
    paid,
    row_of,
    training_rows,
    with_ratios,
)
from gpuwatch.analysis.comparison.notes import session_notes
from gpuwatch.analysis.comparison.same_work import PROGRAM, digests
from gpuwatch.analysis.hardware.energy import COUNTER
from gpuwatch.analysis.hardware.kernels import MOST, KernelRow, differing_kernels
from gpuwatch.analysis.results import EVALUATIONS, ComparisonRow, Difference, Question, Run
from gpuwatch.analysis.statistics.description import Statistic
from gpuwatch.analysis.summary.identity import baseline, used_gpus
from gpuwatch.analysis.summary.load import disturbances
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import CATALOGUE, Kind, Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.session.rows import PHASES


@dataclass(frozen=True)
class Comparison:
    """Sessions side by side."""

    sessions: tuple[Summary, ...]
    baseline: int | None
    """Index of the first session that did not fail, the denominator of the ratios."""
    rows: tuple[ComparisonRow, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    """Notes that affect the ratios."""
    kernels: tuple[KernelRow, ...] = ()
    """Kernels that ran in some sessions but not in all, the largest."""
    families: tuple[KernelRow, ...] = ()
    """Families of kernels that differ."""


BY_ARRIVAL = "step time, mean by arrival of lines"
_MEAN = "step time, mean"
"""The throughput's, of a single session: of several the verdicts judge other means."""
_IMAGE = (
    ("image", "size", "By", "environment.image_bytes", Method.MEASURED),
    ("image", "pull", "s", "environment.image_pull_seconds", Method.MEASURED),
    ("image", "build", "s", "environment.image_build_seconds", Method.MEASURED),
)
_TIMES = (
    *_IMAGE,
    *(
        ("start-up and time", name, "s", f"timing.{key}_seconds", Method.MEASURED)
        for name, key in (
            ("launch", "launch"),
            ("import", "import"),
            ("model and data", "model"),
            ("first step", "first_step"),
            ("after the last step", "ending"),
            ("elapsed", "real"),
            ("profile and counters", "profile"),
            ("CPU time", "cpu"),
            ("CPU time, user", "user"),
            ("CPU time, system", "sys"),
        )
    ),
    ("steps", "step time, median", "s", "steps.median_seconds", Method.MEASURED),
    ("steps", _MEAN, "s", "steps.mean_seconds", Method.MEASURED),
    ("steps", BY_ARRIVAL, "s", "steps.arrival_seconds", Method.MEASURED),
    ("steps", "step time, 95th percentile", "s", "steps.p95_seconds", Method.MEASURED),
    ("steps", THROUGHPUT, "{sample}/s", "steps.samples_per_second", Method.COUNTED),
    (
        *("steps", "throughput with evaluations", "{sample}/s"),
        *("steps.samples_per_second_overall", Method.COUNTED),
    ),
    ("steps", EVALUATIONS, "s", "steps.evaluation_seconds", Method.MEASURED),
    ("steps", "timed steps", "{step}", "steps.count", Method.COUNTED),
    ("steps", "token throughput", "{token}/s", "tokens_per_second", Method.COUNTED),
)
"""Group, name, unit, where a summary has it, and how it is known."""
_WORK = (
    ("work per step", "model FLOP", "FLOP", "count.flop_per_step", Method.COUNTED),
    ("work per step", "recomputed FLOP", "FLOP", "count.flop_recomputed_per_step", Method.COUNTED),
    ("work per step", "algorithmic bytes", "By", "count.bytes_per_step", Method.COUNTED),
)
_MOST_PHASES, _LONGEST_PHASE = 50, 40
_MAXIMA = """
    hw.gpu.utilization hw.gpu.memory.usage hw.gpu.memory.bandwidth hw.gpu.power hw.cpu.utilization
    process.memory.usage gpuwatch.flop.rate gpuwatch.bytes.rate
"""
PEAK_MEMORY = "peak GPU memory"
_SHOWN_ELSEWHERE = frozenset({"gpuwatch.throughput", "hw.gpu.power.average"})
"""Metrics whose mean is already another's: the steps' throughput, and the power, which the driver's
own running mean follows some seconds late."""

# Facts that differ between any two runs without meaning anything.
_INCIDENTAL = frozenset({"gpu.unavailable", "gpu.hint", "host.boot.id"})
_SHOWN_AS_ROWS = frozenset({"label", "kind", *(where.partition(".")[2] for *_, where, _ in _IMAGE)})


def compare(sessions: Sequence[Summary]) -> Comparison:
    """Compare any number of sessions with the first that did not fail."""
    times = [each for each in _TIMES if each[1] != _MEAN or len(sessions) == 1]
    rows = [*_rows(times, sessions), *training_rows(sessions)]
    reported = (name for session in sessions for name in session.steps.phases)
    rows += [
        row_of("phases, mean", clean(name, _LONGEST_PHASE), "s", sessions, _phase(name))
        for name in list(dict.fromkeys((*PHASES, *reported)))[:_MOST_PHASES]
    ]
    sampled = ("phases, mean", "sampled steps", "{step}", "steps.sampled_count", Method.COUNTED)
    rows += [*_rows([sampled], sessions), *generation_rows(sessions)]
    rows += [row_of("ranks", name, unit, sessions, value) for name, unit, value in _RANKS]
    rows += [*_rows(_WORK, sessions), *kernel_rows(sessions), *efficiency_rows(sessions)]
    kernels, families = differing_kernels(
        [(session.profile, session.counters) for session in sessions]
    )
    names = list(CATALOGUE)
    rows += _metric_rows("mean", names, sessions, lambda s: s.mean, counters=False)
    totals = _metric_rows("over the window", names, sessions, lambda s: s.max, counters=True)
    errors = tuple(session.efficiency.energy.gpu.error for session in sessions)
    rows += [replace(e, errors=errors) if e.name.startswith(COUNTER) else e for e in totals]
    rows += _metric_rows("maximum", _MAXIMA.split(), sessions, lambda s: s.max, counters=False)
    # What the runs' own processes held, unlike the memory in use on their GPUs.
    held = [session.peak_gpu_memory for session in sessions]
    rows.append(found_row("maximum", PEAK_MEMORY, "By", held, at_most=True))
    return Comparison(
        sessions=tuple(sessions),
        baseline=baseline(sessions),
        rows=tuple(
            with_ratios(row, sessions)
            for row in rows
            if any(value is not None for value in row.values)
        ),
        differences=differences(sessions),
        notes=(
            *(note for session in sessions for note in session_notes(session)),
            *disturbances(sessions),
        ),
        kernels=kernels[:MOST],
        families=families,
    )


def _rows(
    table: Iterable[tuple[str, str, str, str, Method]], sessions: Sequence[Summary]
) -> Iterator[ComparisonRow]:
    for group, name, unit, where, method in table:
        how = _cpu_time_method if name.startswith("CPU time") else method
        yield row_of(group, name, unit, sessions, at(where), how)


def _cpu_time_method(session: Summary) -> Method:
    return Method.BOUND if session.timing.cpu_is_bound else Method.MEASURED


def _phase(name: str) -> Value:
    return lambda session: session.steps.phases.get(name)


def _own_time(session: Summary) -> float | None:
    ranks = session.ranks
    own = [] if ranks is None else [each.own_seconds for each in ranks.figures]
    return max((seconds for seconds in own if seconds is not None), default=None)


_RANKS: tuple[tuple[str, str, Value], ...] = (
    ("own time of the slowest rank", "s", _own_time),
    ("imbalance", "1", at("ranks.imbalance")),
)


def _metric_rows(
    group: str,
    names: Sequence[str],
    sessions: Sequence[Summary],
    value: Callable[[Statistic], float | None],
    *,
    counters: bool,
) -> list[ComparisonRow]:
    rows = []
    gpus = sorted({gpu.id for session in sessions for gpu in used_gpus(session)})
    for name in names:
        metric = CATALOGUE[name]
        if (metric.kind is Kind.COUNTER) is not counters or name in _SHOWN_ELSEWHERE:
            continue
        if name.startswith("hw.gpu.") and len(gpus) > 1:
            # Pooled figures of several GPUs would be true of none.
            for gpu in gpus:
                of_gpu = [{each.id: each for each in used_gpus(session)} for session in sessions]
                found = [each[gpu].metrics.get(name) if gpu in each else None for each in of_gpu]
                named = f"{name} {gpu}"
                rows.append(found_row(group, named, metric.unit, found, value))
            continue
        found = [session.metrics[name] for session in sessions]
        most = not (counters and any(each and each.coverage for each in found))
        rows.append(found_row(group, name, metric.unit, found, value, at_most=most))
    return rows


def environment_facts(environment: Mapping[str, JSON]) -> dict[str, JSON]:
    """The facts of an environment, each of its variables as one: ``variables.OMP_NUM_THREADS``."""
    variables = mapping(environment.get("variables"))
    return {
        **{key: value for key, value in environment.items() if key != "variables"},
        **{f"variables.{name}": value for name, value in variables.items()},
    }


def differences(sessions: Sequence[Summary]) -> tuple[Difference, ...]:
    """Meaningful differences of fingerprints and environments."""
    fingerprints = [
        {**session.facts, "environment": environment_facts(session.environment)}
        for session in sessions
    ]
    keys = {
        (scope, key)
        for scopes in fingerprints
        for scope, facts in scopes.items()
        for key in facts
        if key not in _INCIDENTAL | _SHOWN_AS_ROWS
    }
    differing = []
    for scope, key in sorted(keys):
        values = tuple(mapping(scopes.get(scope)).get(key) for scopes in fingerprints)
        # The same content under another name is the same program.
        told = [*map(digests, sessions)] if key == PROGRAM else values
        if any(each != told[0] for each in told):
            differing.append(Difference(scope, key, values))
    return tuple(differing)


def judged_rows(sessions: Sequence[Summary], runs: Sequence[Run]) -> list[ComparisonRow]:
    """The rows of the values that verdicts judge: the steady step time, the time per step over all
    steady steps, and the throughput by the latter."""
    steady = {run.session.path: run.value for run in runs}
    totals = {run.session.path: run.total for run in runs}
    return [
        row_of("steps", STEADY, "s", sessions, lambda session: steady.get(session.path)),
        row_of("steps", ALL_STEPS, "s", sessions, lambda session: totals.get(session.path)),
        row_of(
            *("steps", PAID, "{sample}/s", sessions),
            *(lambda session: paid(session, totals.get(session.path)), Method.COUNTED),
        ),
    ]


def with_judged(
    compared: Comparison, questions: Sequence[Question], bases: Mapping[int, int]
) -> Comparison:
    """``compared`` with ratios to ``bases``, and the :func:`judged_rows`: that of the throughput in
    place of that over all timed steps where no run has this alone, and each is steady for half of
    its steps or more.

    Args:
        bases: index of each session with a ratio, and that of its baseline.
    """
    sessions = compared.sessions
    runs = [
        run
        for question in questions
        if question.metric == STEP_TIME and question.contrasts
        for cell in question.cells
        for run in cell.runs
    ]
    judged = judged_rows(sessions, runs)
    judged = [row for row in judged if any(value is not None for value in row.values)]
    first = next((at for at, row in enumerate(compared.rows) if row.group == "steps"), 0)
    rows = [*compared.rows[:first], *judged, *compared.rows[first:]]
    rate = next((row for row in judged if row.name == PAID), None)
    if rate is not None and not any(run.steady.small for run in runs):
        rows = [row for row in rows if row.name != THROUGHPUT or tells_more(row, rate)]

    def against(row: ComparisonRow) -> ComparisonRow:
        places = range(len(sessions))
        ratios = (
            clear_ratio(row, sessions, bases[at], at) if at in bases else None for at in places
        )
        return replace(row, ratios=tuple(ratios))

    return replace(compared, rows=tuple(map(against, rows)))


def tells_more(row: ComparisonRow, than: ComparisonRow) -> bool:
    """Whether it has the value of a session of which the other has none."""
    pairs = zip(row.values, than.values, strict=True)
    return any(value is not None and other is None for value, other in pairs)
