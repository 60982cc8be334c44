"""What goes with the differences of a question: evidence, bounds, kernels, ranks and facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.side_by_side import Comparison, environment_facts
from gpuwatch.analysis.hardware.kernels import KernelRow, short_names
from gpuwatch.analysis.ranks.ranks import RankFigures, Ranks
from gpuwatch.analysis.ranks.wording import sentences
from gpuwatch.analysis.results import Cell, Contrast, Difference, Question, Run
from gpuwatch.analysis.summary.summary import DeviceSummary
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.report.document.blocks import (
    Heading,
    HeatMap,
    Item,
    Rooflines,
    Section,
    Sentence,
    Table,
)
from gpuwatch.report.document.efficiency import headline

DIFFERENCES = "what differs around the runs"
_MOST_RANKS = 64
"""Ranks in a table; JSON has all."""
_LONGEST_DEVICE = 20
_COLUMNS: tuple[tuple[str, Callable[[RankFigures], str]], ...] = (
    ("step", lambda rank: units.milliseconds(rank.step_seconds)),
    ("own time", lambda rank: units.milliseconds(rank.own_seconds)),
    ("data wait", lambda rank: units.percent(rank.data_share)),
    ("samples/s", lambda rank: units.si(rank.samples_per_second, "")),
    ("tokens/s", lambda rank: units.si(rank.tokens_per_second, "")),
)


def evidence(question: Question, known: Collection[str] = (), *, kernels: bool = True) -> Section:
    """The evidence for each contrast, rung by rung, without texts that are ``known``; ``kernels``:
    also which kernels differ."""
    items: list[Item] = []
    base = question.cells[question.baseline].label
    for contrast in question.contrasts:
        why = contrast.explanation
        told = [
            Sentence(
                "",
                each.text,
                how=", ".join(filter(None, (each.method and each.method.value, each.source))),
            )
            for each in why.evidence
            if each.text not in known and (kernels or each.rung != "kernels")
        ]
        if why.start_up is not None and why.start_up.extra_seconds is None:
            seconds = units.quantity(why.start_up.seconds, "s")
            started = f"starting took {seconds}; the baseline's start is not known"
            told.append(Sentence("", started))
        if told:
            items += [Heading(f"{question.cells[contrast.other].label} against {base}"), *told]
    return Section("associated changes", items)


def roofline(question: Question) -> Section:
    """What bounds the run in the middle of each cell, and its place under the roofline."""
    runs = [
        (cell.label, run.session)
        for cell, run in zip(question.cells, middle_runs(question), strict=True)
        if run is not None and run.session.workload.get("kind") not in ("machine", "import")
    ]
    labels = grouped((session.efficiency.roofline.verdict.text, label) for label, session in runs)
    rooflines = [
        replace(of, label=label, points=tuple(replace(each, label=label) for each in of.points))
        for label, session in runs
        for of in (session.efficiency.roofline,)
    ]
    alone = len(question.cells) == 1 and len(question.cells[0].runs) == 1
    title = f"what bounds {'the run' if alone else 'a run in the middle of each cell'}"
    told = not alone or not all(headline(session) for _, session in runs)  # which stands above all
    items = [Sentence(", ".join(names), text) for text, names in labels.items() if told]
    return Section(title, [*items, Rooflines(tuple(rooflines))] if runs else ())


def middle_runs(question: Question) -> list[Run | None]:
    """The run of each cell nearest to its mean; the last run if none has a value."""
    return list(map(_middle_run, question.cells))


def _middle_run(cell: Cell) -> Run | None:
    known = [(run.value, run) for run in cell.judged if run.value is not None]
    if not known or (mean := cell.mean) is None:
        return cell.runs[-1] if cell.runs else None
    return min(known, key=lambda each: abs(each[0] - mean))[1]


def kernels(question: Question) -> Section:
    """Families of kernels that differ between compared cells, with kernels that ran in only one."""
    explained = [(each, each.explanation) for each in question.contrasts]
    single = _of_cells(question, [(each, why.kernels) for each, why in explained])
    families = _of_cells(question, [(each, why.families) for each, why in explained])
    table = kernel_table([cell.label for cell in question.cells], single, families)
    return Section("kernels", (table,) if families else ())


def _of_cells(
    question: Question, rows: Sequence[tuple[Contrast, Sequence[KernelRow]]]
) -> list[KernelRow]:
    """Rows of the contrasts as rows of all cells, unknown in those that no row is of."""
    placed = grouped(
        ((row.table, row.family, row.name), (contrast, row))
        for contrast, of_contrast in rows
        for row in of_contrast
    )
    made = []
    for named, of in placed.items():
        known = {}
        for contrast, row in of:
            columns = zip(row.kernels, row.launches, row.flop, row.shares, strict=True)
            known[contrast.baseline], known[contrast.other] = columns
        cells = (known.get(at, (None,) * 4) for at in range(len(question.cells)))
        kernels, launches, flop, shares = zip(*cells, strict=True)
        per_step = all(row.per_step for _, row in of)
        made.append(KernelRow(*named, kernels, launches, flop, shares, per_step))
    return made


def kernel_table(
    labels: Sequence[str], kernels: Sequence[KernelRow], families: Sequence[KernelRow]
) -> Table:
    """Each family that differs, and under it its kernels that did not run everywhere."""
    per_step = any(row.per_step for row in (*families, *kernels))
    names = short_names([clean(row.name or "", 300) for row in kernels])
    rows: list[tuple[str, ...]] = []
    for family in families:
        rows.append((family.family, *_cells(family)))
        rows += [
            (f"· {name}", *_cells(row))
            for row, name in zip(kernels, names, strict=True)
            if row.family == family.family
        ]
    title = f"kernels that differ{', per step' if per_step else ''}"
    if any(share for row in families for share in row.shares):
        title += "; % of kernel time"
    return Table((title, *labels), tuple(rows))


def around(of: Comparison, names: Sequence[str]) -> list[Section]:
    """The kernels that differ between sessions, if any do, and what differs around them."""
    kernels = [kernel_table(names, of.kernels, of.families)] if of.families else []
    differing = Section(DIFFERENCES, difference_items(of.differences, names))
    return [*(Section("kernels", (table,)) for table in kernels), differing]


def _cells(row: KernelRow) -> list[str]:
    return [_cell(row, at) for at in range(len(row.kernels))]


def _cell(row: KernelRow, at: int) -> str:
    """``3 kernels, 24 launches, 1.58 GFLOP, 51 %``, of what is known; a dash: none ran."""
    kernels, launches, flop, share = (
        values[at] for values in (row.kernels, row.launches, row.flop, row.shares)
    )
    if kernels is None:
        return units.UNKNOWN
    if kernels == 0:
        return "-"
    many, work = [], []
    if row.name is None:
        many.append(units.counted(kernels, "kernel"))
    if launches is not None:
        many.append(units.counted(launches, "launch", "launches"))
    if flop is not None:
        work.append(units.si(flop, "FLOP"))
    if share is not None:
        work.append(units.percent(share))
    return ",\t".join(", ".join(parts) for parts in (many, work) if parts) or "ran"


def ranks(question: Question) -> Section:
    """The ranks of the run in the middle of each cell; empty without ranks."""
    items: list[Item] = []
    for cell, run in zip(question.cells, middle_runs(question), strict=True):
        if run is not None and run.session.ranks is not None:
            items.append(Heading(f"{cell.label}: {run.session.ranks.counted}"))
            items += rank_items(cell.label, run.session.ranks, run.session.devices)
    return Section("ranks of a run in the middle of each cell", items)


def rank_items(label: str, of: Ranks, devices: Sequence[DeviceSummary]) -> list[Item]:
    """A row for each rank, without columns in which nothing is known; heat map and sentences."""
    ids = {device.uuid: device.id for device in devices if device.uuid}
    rows = [
        [str(rank.rank), _device_of(rank, ids)] + [text(rank) for _, text in _COLUMNS]
        for rank in of.figures[:_MOST_RANKS]
    ]
    if len(of.figures) > _MOST_RANKS:
        rows.append([f"and {len(of.figures) - _MOST_RANKS} more", *[""] * (1 + len(_COLUMNS))])
    head = ["rank", "device", *(name for name, _ in _COLUMNS)]
    known = [
        at for at in range(len(head)) if at < 2 or any(row[at] != units.UNKNOWN for row in rows)
    ]
    shown = [tuple(row[at] for at in known) for row in (head, *rows)]
    heat = [HeatMap(label, of.heat)] if of.heat is not None else []
    told = [Sentence("", each) for each in sentences(of)]
    return [Table(shown[0], tuple(shown[1:])), *heat, *told]


def _device_of(rank: RankFigures, ids: Mapping[str, str]) -> str:
    if rank.device is None:
        return units.UNKNOWN
    return ids.get(rank.device, rank.device)[:_LONGEST_DEVICE]


def facts(question: Question) -> Section:
    """What differs around the runs."""
    labels = [cell.label for cell in question.cells]
    return Section(DIFFERENCES, difference_items(differing_facts(question), labels))


def difference_items(differences: Sequence[Difference], labels: Sequence[str]) -> list[Item]:
    """A line for each fact that differs: of two ``13.0 → 12.8``, of more who has what; and one
    for each side, with the names of those that it alone has or tells."""
    partly = [each for each in differences if None in each.values and not _may_be_unset(each)]
    whole = [each for each in differences if each not in partly]
    items: list[Item] = [Heading(" → ".join(labels))] if whole and len(labels) == 2 else []
    for each in whole:
        texts = [units.fact(each.key, value) for value in each.values]
        told = " → ".join(texts)
        if len(labels) != 2:
            of_text = grouped(zip(texts, labels, strict=True))
            told = "; ".join(f"{', '.join(names)}: {text}" for text, names in of_text.items())
        items.append(Sentence(difference_name(each), told))
    known = grouped(
        (
            ", ".join(
                of for of, value in zip(labels, each.values, strict=True) if value is not None
            ),
            difference_name(each),
        )
        for each in partly
    )
    return [*items, *(Sentence(f"of {of} alone", ", ".join(names)) for of, names in known.items())]


def _may_be_unset(difference: Difference) -> bool:
    """Whether no value means that there is none, as of a variable, and not that nobody saw it."""
    return difference.scope == "environment" or difference.key.startswith("process.env.")


def difference_name(difference: Difference) -> str:
    """The fact's name, without its scope if that is redundant: ``image size``, ``host: kernel``."""
    scope, key = difference.scope, difference.key
    if scope == "environment":
        return key if key.startswith("variables.") else key.replace("_", " ")
    if scope in ("process", "host"):
        return key.removeprefix("process.").removeprefix("env.")
    return f"{scope}: {key}"


def differing_facts(question: Question) -> tuple[Difference, ...]:
    """The facts that differ between any two compared cells, with the value in every cell."""
    facts = {
        (each.scope, each.key): None
        for contrast in question.contrasts
        for each in contrast.explanation.differences
    }
    return tuple(
        Difference(scope, key, tuple(_fact(cell, scope, key) for cell in question.cells))
        for scope, key in facts
    )


def _fact(cell: Cell, scope: str, key: str) -> JSON:
    sessions = [run.session for run in cell.judged or cell.runs]
    values = [
        (
            environment_facts(each.environment)
            if scope == "environment"
            else mapping(each.facts.get(scope))
        ).get(key)
        for each in sessions
    ]
    if any(value != values[0] for value in values):
        return "differs from run to run"
    return values[0] if values else None
