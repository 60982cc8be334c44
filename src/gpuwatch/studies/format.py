"""The keys of a study file and their meanings (docs/studies.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, LABEL, Workload
from gpuwatch.core.shell_line import words
from gpuwatch.core.text import to_paste
from gpuwatch.studies import parameters
from gpuwatch.studies.parameters import MOST_CASES
from gpuwatch.studies.table import Table, parse, read
from gpuwatch.workloads import options


@dataclass(frozen=True)
class StudyPart:
    """Cases and environments that are compared with each other."""

    name: str
    workloads: tuple[Workload, ...]
    """Cases of gpuwatch's own workloads, one per set of parameters."""
    command: tuple[str, ...]
    """The user's command, as a further case; empty without one."""
    commands: Mapping[str, tuple[str, ...]]
    """Commands to compare, by label, instead of other cases."""
    environments: tuple[str, ...]
    """Values for ``--env``."""
    blocks: int | None = None
    """``None`` means the study's own."""
    sweep: Mapping[str, tuple[JSON, ...]] = field(default_factory=dict)
    """Swept parameters, by the workload's flag."""


@dataclass(frozen=True)
class Study:
    """A preset, or the study in a user's file."""

    name: str
    """The name used on the command line: the preset's or the file's."""
    parts: tuple[StudyPart, ...]
    preset: str | None = None
    """The name, of a preset."""
    title: str | None = None
    question: str | None = None
    afterwards: str | None = None
    """The next thing to do, printed after all runs."""
    blocks: int | None = None
    """``None``, without ``quick`` or ``rigorous``, means one run each."""
    quick: bool = False
    rigorous: bool = False
    margin: str | None = None
    """Value for ``--margin``."""
    cool_down: str | None = None
    """Value for ``--cool-down``."""
    order_seed: int | None = None
    on: tuple[str, ...] = ()
    """The places that record it, as ``--on`` takes them; empty: this machine."""


def with_parameters(study: Study, given: Mapping[str, JSON]) -> Study:
    """``study`` with the parameters ``given`` in every workload of gpuwatch's own.

    Raises:
        UsageError: a part sweeps one of them, they contradict a part's own, two cases become the
            same, or the study has no such workload.
    """
    if not given:
        return study
    if not any(part.workloads for part in study.parts):
        own = [name for name in given if name != "profile"]  # which the hook does in commands
        if not own:
            return study
        flag = parameters.flag(own[0])
        raise UsageError(
            f"{flag} is a flag of gpuwatch's own workloads, and {study.name} has none",
            f"leave {flag} out",
        )
    for part in study.parts:
        swept = [name for name in given if name in part.sweep]
        if swept:
            raise UsageError(
                f"{parameters.flag(swept[0])} is swept by part {part.name!r} of {study.name}",
                f"leave it out, or change a copy: {to_paste('study --show', study.name)}",
            )
    changed = []
    for part in study.parts:
        place = f"{study.name}, part {part.name!r}"
        points = [(workload.word, {**workload.parameters, **given}) for workload in part.workloads]
        workloads = parameters.workloads(points, place, swept=bool(part.sweep))
        parameters.refuse_twins(workloads, place)
        changed.append(replace(part, workloads=workloads))
    return replace(study, parts=tuple(changed))


MOST_BLOCKS = 1_000
_SHORT, _LONG = 120, 2_000
"""Maximum characters of a name or title, and of a longer text."""
_ENVIRONMENTS = 'environments = ["bare", "docker"]'
_WORKLOADS = 'workloads = ["mnist-cnn"]'
_OF_A_PART = ("name", "workloads", "command", "commands", "environments", "sweep")
_OF_A_STUDY = "title question afterwards quick rigorous margin cool_down order_seed on part"


def load(path: Path) -> Study:
    """Read the study in a file.

    Raises:
        UsageError: it is not a valid study file; names the wrong key and a correct example.
        StorageError: it cannot be read.
    """
    return study_of(read(path), str(path))


def study_of(text: str, name: str) -> Study:
    """The study in the ``text`` of a file; ``name`` is its name in errors.

    Raises:
        UsageError: as for `load`.
    """
    table = parse(text, name)
    common = _parameters(table)
    parts = tuple(_part(part, place, common) for place, part in enumerate(table.tables("part"), 1))
    study = Study(
        name=name,
        parts=parts,
        title=table.text("title", _SHORT),
        question=table.text("question", _LONG),
        afterwards=table.text("afterwards", _LONG),
        blocks=table.integer("blocks", 1, MOST_BLOCKS),
        quick=table.switch("quick"),
        rigorous=table.switch("rigorous"),
        margin=table.quantity("margin", 'margin = "1%"'),
        cool_down=table.quantity("cool_down", 'cool_down = "2s"'),
        order_seed=table.integer("order_seed", 0, options.LARGEST_SEED),
        on=table.texts("on", 'on = ["ssh=a100", "ssh=l4"]'),
    )
    table.done(_OF_A_PART, "it belongs in a [[part]]")
    if not parts:
        raise table.refuse("there is no part", f"write [[part]], and below it {_WORKLOADS}")
    if (study.blocks is not None) + study.quick + study.rigorous > 1:
        raise table.refuse("blocks, quick and rigorous exclude each other", "keep one of them")
    names = [part.name for part in parts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise table.refuse(f"two parts are named {twice!r}", "name them differently")
    if common and not any(part.workloads for part in parts):
        raise table.refuse(
            "parameters are for gpuwatch's own workloads, and this study has none",
            "write the flags of a command into it",
        )
    return study


def _part(table: Table, place: int, common: Mapping[str, JSON]) -> StudyPart:
    name = table.text("name", _SHORT) or f"part {place}"
    command = _command(table)
    commands = _commands(table)
    given = {**common, **_parameters(table)}
    sweep = _sweep(table, given)
    workloads = _workloads(table, given, sweep)
    if commands and (workloads or command):
        other = "workloads" if workloads else "command"
        raise table.refuse(
            f"commands are compared with each other, and {other} cannot be a label",
            f"write a [[part]] of its own with {other}",
        )
    if not workloads and not command and not commands:
        raise table.refuse("it has nothing to run", f'write {_WORKLOADS} or command = "..."')
    if sweep and (command or commands):
        raise table.refuse(
            "a sweep varies the parameters of gpuwatch's own workloads, not of a command",
            "write a [[part]] with its own command for each value",
        )
    parameters.refuse_twins(workloads, table.where)
    environments = table.texts("environments", _ENVIRONMENTS)
    part = StudyPart(
        name=name,
        workloads=workloads,
        command=command,
        commands=commands,
        environments=environments or ("bare",),
        blocks=table.integer("blocks", 1, MOST_BLOCKS),
        sweep=sweep,
    )
    table.done(_OF_A_STUDY.split(), "it belongs above the first [[part]], for the whole study")
    return part


def _parameters(table: Table) -> dict[str, JSON]:
    items = table.items("parameters")
    where = f"{table.where}, parameters"
    return {name: parameters.checked(name, value, where) for name, value in items.items()}


def _command(table: Table) -> tuple[str, ...]:
    """The user's command: a list, or one text that is split like in a shell."""
    value = table.value("command")
    example = 'command = "python train.py"'
    if not isinstance(value, str):
        return table.texts("command", example)
    return _words(table, value, "command", "command")


def _words(table: Table, line: str, name: str, key: str) -> tuple[str, ...]:
    """The words of the command ``line``, which errors call ``name``, at ``key``."""
    try:
        return words(line, name, lambda right: f"{key} = {json.dumps(right)}")
    except UsageError as error:
        raise UsageError(f"{table.where}: {error.message}", error.hint) from None


def _commands(table: Table) -> dict[str, tuple[str, ...]]:
    """The commands to compare, by label."""
    example = 'commands = { a = "python train.py", b = "python train.py --amp" }'
    found = {}
    for label, value in table.items("commands").items():
        if not LABEL.fullmatch(label):
            raise table.refuse(
                f"invalid label {label!r} in commands",
                "begin with a small letter; then small letters, digits and . _ - may follow",
            )
        if not isinstance(value, str):
            raise table.refuse(
                f"command {label} must be a string, not {value!r}", f"write {example}"
            )
        found[label] = _words(table, value, f"command {label}", json.dumps(label))
    return found


def _sweep(table: Table, given: Mapping[str, JSON]) -> dict[str, tuple[JSON, ...]]:
    where = f"{table.where}, sweep"
    axes = {}
    for name, values in table.items("sweep").items():
        if not isinstance(values, list) or len(values) < 2:
            raise UsageError(
                f"{where}: {name} must be a list of two or more values, not {values!r}",
                f"write {name} = [16, 32], or one value under parameters",
            )
        if name in given:
            raise UsageError(
                f"{where}: {name} is among the parameters as well", "give it in one place"
            )
        axes[name] = parameters.axis(name, values, where)
    parameters.check_size(axes, where)
    return axes


def _workloads(
    table: Table, common: Mapping[str, JSON], sweep: Mapping[str, tuple[JSON, ...]]
) -> tuple[Workload, ...]:
    """A case for each workload (a name, or a table with parameters) and point of the sweep."""
    value = table.value("workloads")
    if value is None:
        return ()
    listed = [value] if isinstance(value, (str, dict)) else value
    if not isinstance(listed, list) or not listed:
        raise table.refuse("workloads must be a list that is not empty", f"write {_WORKLOADS}")
    cases: list[Workload] = []
    for place, entry in enumerate(listed, 1):
        own: dict[str, JSON] = {}
        where = f"{table.where}, workload {place}"
        if isinstance(entry, dict):
            inner = Table(entry, where)
            name, own = inner.text("name", _SHORT), _parameters(inner)
            inner.done()
        else:
            name = entry if isinstance(entry, str) else None
        if name is None:
            raise UsageError(
                f"{where} has no name",
                'write "mnist-cnn" or { name = "mnist-cnn", parameters = { steps = 100 } }',
            )
        swept = next((key for key in own if key in sweep), None)
        if swept:
            raise UsageError(
                f"{where}: {swept} is already in the part's sweep", "give it in one place"
            )
        cases += parameters.cases(name, {**common, **own}, sweep, where)
        if len(cases) > MOST_CASES:
            raise table.refuse(f"more than {MOST_CASES:,} cases", "leave some out")
    return tuple(cases)
