"""The cells of a study: those of its plan, or of sessions put together by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path

from gpuwatch.analysis.comparison.cells import Case, Group, Placed, Read, labels, numbered
from gpuwatch.analysis.summary.failure import command_of
from gpuwatch.analysis.summary.identity import device_names, parameter_text, training, used_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Environment, Workload, mapping
from gpuwatch.core.text import clean
from gpuwatch.session.study.label import NONE
from gpuwatch.session.study.plan import WARM_UP, Part, Plan, PlannedRun, case_label
from gpuwatch.session.study.study_folder import STUDY_ENDED, NotRun

LONGEST = 60
"""Most characters of a label."""
SET = ",set="
"""Before the first variable in an environment's label."""


def planned_cases(
    reads: Sequence[Read], plan: Plan, not_run: Sequence[NotRun], *, goes_on: bool, may_follow: bool
) -> tuple[list[Case], list[Read]]:
    """The cases of ``plan`` in its order, and the sessions that the plan does not name.

    A cell without a session has no group, and ``Case.why`` gives the reason; the first, the
    baseline, keeps its group while the study goes on. ``may_follow``: as of ``study_result``.
    """
    by_file = {Path(read.summary.path).name: read for read in reads}
    # The runs of a plan share the objects of its parts.
    runs = grouped(((run.part, id(run.workload), id(run.environment)), run) for run in plan.runs)
    missing = {each.index: each for each in not_run if each.index is not None}
    names = _case_labels(plan)
    cases = []
    for index, part in enumerate(plan.parts):
        last = max((run.block or 0 for run in plan.runs if run.part == index), default=0)
        # The judged ones, at most as many as the plan has runs.
        judged = tuple(range(WARM_UP + 1, min(last, len(plan.runs)) + 1))
        before = f"{clean(part.name, LONGEST)}: " if len(plan.parts) > 1 and part.name else ""
        for row in _rows(part, names[index], before):
            groups = []
            why: dict[str, str] = {}
            for place, cell in enumerate(row.cells):
                mine = runs.get((index, id(cell.workload), id(cell.environment)), [])
                group = _group(cell, mine, by_file, missing, may_follow)
                if group.placed or (place == 0 and goes_on and group.to_come):
                    groups.append(group)
                elif group.not_run:
                    why[cell.label] = group.not_run[0].problems[0].text
            if not any(group.placed for group in groups):
                groups = []
            cases.append(
                Case(
                    label=row.label,
                    part=index,
                    groups=tuple(groups),
                    margin=part.margin,
                    blocks=None if part.blocks is None else judged,
                    workload=row.cells[0].workload,
                    environments=tuple(cell.label for cell in row.cells),
                    why=why,
                    goes_on=goes_on,
                    compares_commands=row.compares_commands,
                )
            )
    named = {run.file for run in plan.runs}
    return cases, [read for name, read in by_file.items() if name not in named]


@dataclass(frozen=True)
class _Cell:
    """A future cell."""

    label: str
    workload: Workload
    environment: Environment
    setting: int
    """As in :class:`Group`."""


@dataclass(frozen=True)
class _Row:
    """Cells that are compared with the first."""

    label: str
    cells: tuple[_Cell, ...]
    compares_commands: bool = False


def _rows(part: Part, names: Sequence[str], before: str) -> list[_Row]:
    """The questions of ``part``, whose cases are called ``names``; ``before`` names the part.

    Each case in all environments. Where commands are compared: all commands in each environment,
    then, with several environments, each command in all.
    """
    environments = numbered(_short([each.label for each in part.environments]))
    settings = _alike([replace(each, label="") for each in part.environments])
    of_cases = [
        _Row(name, tuple(map(_Cell, environments, repeat(case), part.environments, settings)))
        for case, name in zip(part.workloads, names, strict=True)
    ]
    if not part.compares_commands or len(names) < 2:
        return of_cases
    commands = numbered([clean(case_label(each, ()), LONGEST) for each in part.workloads])
    settings = _alike([replace(each, label=None) for each in part.workloads])
    of_commands = [
        _Row(
            f"{before}commands in {label}",
            tuple(map(_Cell, commands, part.workloads, repeat(environment), settings)),
            compares_commands=True,
        )
        for environment, label in zip(part.environments, environments, strict=True)
    ]
    return [*of_commands, *of_cases] if len(environments) > 1 else of_commands


def _short(labels: Sequence[object]) -> list[str]:
    """``A=1`` of ``bare,set=A=1``, where all have the same before it."""
    whole = list(map(clean, labels))
    parted = [label.partition(SET) for label in whole]
    apart = len({front for front, _, _ in parted}) > 1 or not all(rest for _, _, rest in parted)
    told = whole if apart or len(whole) < 2 else [rest for _, _, rest in parted]
    return [clean(each, LONGEST) for each in told]


def _alike(items: Sequence[object]) -> list[int]:
    """For each item the place of the first that equals it."""
    return [items.index(each) for each in items]


def _group(
    cell: _Cell,
    runs: Sequence[PlannedRun],
    by_file: dict[str, Read],
    missing: dict[int, NotRun],
    may_follow: bool,
) -> Group:
    without = [run for run in runs if run.file not in by_file]
    absent = [run for run in without if run.index in missing]
    tried = [run for run in absent if not had_no_turn(missing[run.index])]
    judged = [run for run in tried if run.block != WARM_UP]
    later = [run for run in without if run.index not in missing]
    return Group(
        label=cell.label,
        environment=clean(cell.environment.label, LONGEST),
        placed=tuple(Placed(by_file[run.file], run.block) for run in runs if run.file in by_file),
        not_run=tuple(missing[run.index] for run in absent),
        absent=tuple(run.block for run in judged),
        in_part=sum(missing[run.index].in_part for run in judged),
        to_come=tuple(run.block for run in later if may_follow and run.block != WARM_UP),
        setting=cell.setting,
    )


def had_no_turn(of: NotRun) -> bool:
    """Whether the study ended before the run started, so that the run itself did not fail."""
    return any(problem.code == STUDY_ENDED for problem in of.problems)


def _case_labels(plan: Plan) -> list[list[str]]:
    """Unique labels by part and case, with the part's name in front where needed."""
    labels = [
        [clean(case_label(each, part.workloads), LONGEST) for each in part.workloads]
        for part in plan.parts
    ]
    flat = [name for names in labels for name in names]
    if len(set(flat)) < len(flat):
        labels = [
            [f"{clean(part.name, LONGEST)}: {name}" if part.name else name for name in names]
            for part, names in zip(plan.parts, labels, strict=True)
        ]
    unlike = iter(numbered([name for names in labels for name in names]))
    return [[next(unlike) for _ in names] for names in labels]


_SHORT = 16
FEW = 4
"""Most sessions of one cell that are compared with the first of them, as whoever selects a few by
hand asks for; of more the cell is described."""


def grouped_cases(reads: Sequence[Read], margin: float, *, across_commands: bool) -> list[Case]:
    """A case for each workload and set of parameters shared by several groups.

    ``across_commands``: one case for all commands, whatever they are.

    A group with unique parameters joins the first case of its workload if that has no group of its
    environment, device and study: the comparison was probably intended, and the verdict names the
    difference. A few sessions that are all of one group, or of several programs, are groups of
    their own: all of them stand side by side.
    """
    parameters = _parameters(reads)
    keys = {
        read.summary.path: _text(_workload(read), parameters[read.summary.path], _where(read))
        for read in reads
    }
    few = len(reads) <= FEW and not any(read.warm_up for read in reads)
    apart = few and (len(set(keys.values())) == 1 or len(set(map(_workload, reads))) > 1)
    by_workload: dict[str, dict[str, list[Read]]] = {}
    of_commands: dict[str, list[Read]] = {}
    for read in reads:
        path = read.summary.path
        across = across_commands and _command(read) is not None
        groups = of_commands if across else by_workload.setdefault(_workload(read), {})
        groups.setdefault(path if apart else keys[path], []).append(read)
    result = []
    if of_commands:
        # Against the first one, wherever they ran; none is the repetition of another.
        commands = _groups(list(of_commands.values()), by_command=True)
        unlike = tuple(replace(group, setting=at) for at, group in enumerate(commands))
        label = "commands" if len(unlike) > 1 else unlike[0].label
        result.append(Case(label, 0, unlike, margin, compares_commands=True))
    for of_workload in by_workload.values():
        cases = _cases(list(of_workload.values()), parameters)
        firsts = [case[0][0].summary for case in cases]
        names = [clean(session.workload.get("name"), LONGEST) for session in firsts]
        told = labels([*zip(names, _differing(firsts), strict=True)], keep_first=True)
        for label, case in zip(told, cases, strict=True):
            result.append(Case(label, 0, _groups(case), margin))
    return result


def _cases(groups: list[list[Read]], parameters: Mapping[str, str]) -> list[list[list[Read]]]:
    """The ``groups`` of one workload, arranged into cases by their parameters."""
    alike = grouped((parameters[group[0].summary.path], group) for group in groups)
    several = [case for case in alike.values() if len(case) > 1]
    if not several:
        return [groups]
    first = several[0]
    rest = []
    for (group,) in [case for case in alike.values() if len(case) == 1]:
        if _where(group[0]) in [_where(each[0]) for each in first]:
            rest.append([group])
        else:
            first.append(group)
    order = [group[0].summary.path for group in groups]
    return sorted([*several, *rest], key=lambda case: order.index(case[0][0].summary.path))


def _parameters(reads: Sequence[Read]) -> dict[str, str]:
    """Settings of each session, by path; a run that died before reporting them has those of another
    run with the same flags."""
    known: dict[str, str] = {}
    settings = {read.summary.path: _text(training(read.summary), _command(read)) for read in reads}
    for read in reads:
        if read.summary.run.get("parameters"):
            known.setdefault(_flags(read), settings[read.summary.path])
    for read in reads:
        if not read.summary.run.get("parameters"):
            path = read.summary.path
            settings[path] = known.get(_flags(read), settings[path])
    return settings


def _flags(read: Read) -> str:
    return _text(_workload(read), read.summary.workload.get("parameters"), _command(read))


def _command(read: Read) -> JSON:
    workload = read.summary.workload
    return workload.get("arguments") if workload.get("kind") == "command" else None


def _workload(read: Read) -> str:
    return _text(read.summary.workload.get("name"), read.summary.workload.get("kind"))


def _where(read: Read) -> str:
    """Key of a session's environment, device and study."""
    session = read.summary
    gpus = sorted(str(gpu.uuid or gpu.name) for gpu in used_gpus(session))
    cpu = next((each.name for each in session.devices if each.kind == "cpu"), None)
    host = mapping(session.facts.get("host")).get("host.name")
    folder = str(Path(session.path).parent)
    return _text(session.environment.get("label"), gpus, None if gpus else [cpu, host], folder)


def _text(*values: JSON) -> str:
    return json.dumps(values, sort_keys=True, default=str)


def _groups(case: list[list[Read]], *, by_command: bool = False) -> tuple[Group, ...]:
    """The groups of a case; ``by_command``: called by their commands, else by environment."""
    settings = _differing([group[0].summary for group in case])
    environments = _short([group[0].summary.environment.get("label") for group in case])
    candidates = [
        _names_of_group(*each, by_command=by_command)
        for each in zip(case, settings, environments, strict=True)
    ]
    return tuple(
        Group(
            label=name,
            environment=clean(group[0].summary.environment.get("label"), LONGEST),
            placed=tuple(Placed(read, WARM_UP if read.warm_up else None) for read in group),
        )
        for name, group in zip(labels(candidates), case, strict=True)
    )


def _names_of_group(
    group: Sequence[Read], setting: str, environment: str, *, by_command: bool
) -> tuple[str, ...]:
    """What may tell a group from others, the preferred first."""
    session = group[0].summary
    path = Path(session.path)
    given = session.given if len(group) == 1 else NONE
    gpus = " + ".join(clean(gpu.uuid or gpu.id)[:_SHORT] for gpu in used_gpus(session))
    return (
        given.heading(_called(session) if by_command else environment),
        setting,
        environment,
        clean(" + ".join(sorted(device_names(session))) or "CPU", LONGEST),
        clean(path.parent.name, LONGEST),
        gpus or clean(mapping(session.facts.get("host")).get("host.name"), _SHORT),
        clean(path.stem, LONGEST),
    )


def _called(session: Summary) -> str:
    return clean(session.workload.get("label") or command_of(session.workload), LONGEST)


def _differing(sessions: Sequence[Summary]) -> list[str]:
    """For each session the settings that differ, such as ``batch size 64``."""
    settings = [training(session) for session in sessions]
    keys = [
        key
        for key in sorted({key for each in settings for key in each})
        if len({str(each.get(key)) for each in settings}) > 1
    ]
    texts = [
        ", ".join(f"{key.replace('_', ' ')} {parameter_text(each.get(key))}" for key in keys)
        for each in settings
    ]
    if any(texts):
        return [clean(each, LONGEST) for each in texts]
    commands = [session.workload.get("arguments") for session in sessions]
    whole = [
        clean(" ".join(map(str, each)), LONGEST) if isinstance(each, list) else ""
        for each in commands
    ]
    short = list(map(_called, sessions))
    # They may differ in the folder or the interpreter alone.
    return short if len(set(short)) >= len(set(whole)) else whole
