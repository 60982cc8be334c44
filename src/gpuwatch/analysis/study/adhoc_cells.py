"""Cells of sessions selected by hand: grouped by case, environment, device and study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.comparison.cells import Case, Group, Placed, Read, labels
from gpuwatch.analysis.study.planned_cells import LONGEST
from gpuwatch.analysis.summary.command import command_of
from gpuwatch.analysis.summary.identity import (
    device_names,
    parameter_text,
    training,
    used_gpus,
)
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.session.study.label import NONE
from gpuwatch.session.study.plan import WARM_UP

_SHORT = 16


def grouped_cases(
    reads: Sequence[Read], margin: float, *, across_commands: bool = False
) -> list[Case]:
    """A case for each workload and set of parameters shared by several groups.

    ``across_commands``: one case for all commands, whatever they are.

    A group with unique parameters joins the first case of its workload if that has no group of its
    environment, device and study: the comparison was probably intended, and the verdict names the
    difference.
    """
    parameters = _parameters(reads)
    by_workload: dict[str, dict[str, list[Read]]] = {}
    of_commands: dict[str, list[Read]] = {}
    for read in reads:
        group = json.dumps([parameters[read.summary.path], _where(read)])
        across = across_commands and _command(read) is not None
        groups = of_commands if across else by_workload.setdefault(_workload(read), {})
        groups.setdefault(group, []).append(read)
    result = [_of_commands(list(of_commands.values()), margin)] if of_commands else []
    for of_workload in by_workload.values():
        cases = _cases(list(of_workload.values()), parameters)
        names = _case_labels([case[0][0].summary for case in cases])
        for name, case in zip(names, cases, strict=True):
            result.append(Case(name, 0, _groups(case), margin))
    return result


def _of_commands(case: list[list[Read]], margin: float) -> Case:
    """Commands against the first one, wherever they ran; none is the repetition of another."""
    groups = _groups(case, by_command=True)
    unlike = tuple(replace(group, setting=at) for at, group in enumerate(groups))
    return Case("commands", 0, unlike, margin, compares_commands=True)


def _cases(groups: list[list[Read]], parameters: Mapping[str, str]) -> list[list[list[Read]]]:
    """The ``groups`` of one workload, arranged into cases by their parameters."""
    alike: dict[str, list[list[Read]]] = {}
    for group in groups:
        alike.setdefault(parameters[group[0].summary.path], []).append(group)
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
    for read in reads:
        if read.summary.run.get("parameters"):
            known.setdefault(_flags(read), _settings(read))
    return {
        read.summary.path: _settings(read)
        if read.summary.run.get("parameters")
        else known.get(_flags(read), _settings(read))
        for read in reads
    }


def _settings(read: Read) -> str:
    return _text(training(read.summary), _command(read))


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
    firsts = [group[0].summary for group in case]
    given = [group[0].summary.given if len(group) == 1 else NONE for group in case]
    settings = _differing(firsts)
    environments = [clean(session.environment.get("label"), LONGEST) for session in firsts]
    called = [
        clean(session.workload.get("label") or command_of(session.workload), LONGEST)
        for session in firsts
    ]
    names = labels(
        [
            (
                name.heading(work if by_command else environment),
                setting,
                environment,
                clean(_device_name(session), LONGEST),
                clean(Path(session.path).parent.name, LONGEST),
                _device_id(session),
            )
            for session, name, setting, environment, work in zip(
                firsts, given, settings, environments, called, strict=True
            )
        ]
    )
    return tuple(
        Group(
            label=name,
            environment=clean(group[0].summary.environment.get("label"), LONGEST),
            placed=tuple(Placed(read, WARM_UP if read.warm_up else None) for read in group),
        )
        for name, group in zip(names, case, strict=True)
    )


def _device_name(session: Summary) -> str:
    return " + ".join(sorted(device_names(session))) or "CPU"


def _device_id(session: Summary) -> str:
    gpus = [clean(gpu.uuid or gpu.id, _SHORT) for gpu in used_gpus(session)]
    return " + ".join(gpus) or clean(mapping(session.facts.get("host")).get("host.name"), _SHORT)


def _case_labels(sessions: Sequence[Summary]) -> list[str]:
    return labels(
        [
            (clean(session.workload.get("name"), LONGEST), setting)
            for session, setting in zip(sessions, _differing(sessions), strict=True)
        ]
    )


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
    return [
        clean(" ".join(map(str, each)), LONGEST) if isinstance(each, list) else ""
        for each in commands
    ]
