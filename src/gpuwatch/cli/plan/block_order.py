"""The runs of a study in order, one line per block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from string import ascii_uppercase
from textwrap import fill

from gpuwatch.core.text import clean
from gpuwatch.session.study.plan import WARM_UP, Part, Plan, PlannedRun, case_label

DONE, IMPOSSIBLE = "done", "cannot run here"
_SIGNS = {DONE: "*", IMPOSSIBLE: "!"}


def lines(plan: Plan, place: int, marks: Mapping[int, str], width: int) -> list[str]:
    """The blocks of the part at ``place``, each on one line if ``width`` columns allow it.

    Environments and cases have their names or, if these are too long, letters and numbers with a
    legend above. ``marks`` maps run indices to ``DONE`` or ``IMPOSSIBLE``.
    """
    part = plan.parts[place]
    runs = [run for run in plan.runs if run.part == place]
    blocks = [
        (_name(number), list(group)) for number, group in groupby(runs, lambda run: run.block)
    ]
    rows = [f"  {name}: {_words(part, block_runs, marks)}" for name, block_runs in blocks]
    if max(map(len, rows), default=0) <= width or len(part.environments) > len(ascii_uppercase):
        return [fill(line, width, subsequent_indent="    ") for line in rows]
    rows = [f"  {name}: {_codes(part, block_runs, marks)}" for name, block_runs in blocks]
    legend = [f"  {line}" for line in _legend(part, runs, marks)]
    return [fill(line, width, subsequent_indent="    ") for line in [*legend, *rows]]


def short(part: Part) -> tuple[str, ...]:
    """The environments of ``part`` by kind, or by label if that says more."""
    kinds = [environment.kind for environment in part.environments]
    named = not all(each.label.startswith(each.kind) for each in part.environments)
    names = (
        kinds
        if len(set(kinds)) == len(kinds) and not named
        else [environment.label for environment in part.environments]
    )
    return tuple(map(clean, names))


def _name(block: int | None) -> str:
    return {None: "once", WARM_UP: "warm-up"}.get(block, f"block {block}")


def _words(part: Part, runs: Sequence[PlannedRun], marks: Mapping[int, str]) -> str:
    """``mnist-cnn in bare, docker; gcn in docker, bare``, without a sole case or environment."""
    names = short(part)
    phrases = []
    for case, group in _by_case(part, runs):
        named = clean(case_label(part.workloads[case], part.workloads))
        signs = [f" ({marks[run.index]})" if run.index in marks else "" for run in group]
        if len(part.environments) == 1:
            phrases += [named + sign for sign in signs]
            continue
        places = [part.environments.index(run.environment) for run in group]
        environments = ", ".join(
            names[place] + sign for place, sign in zip(places, signs, strict=True)
        )
        phrases.append(f"{named} in {environments}" if len(part.workloads) > 1 else environments)
    return "; ".join(phrases)


def _codes(part: Part, runs: Sequence[PlannedRun], marks: Mapping[int, str]) -> str:
    """``1BAC 2ACB``: case 1 in environments B, A, C, then case 2 in A, C, B."""
    codes = []
    for case, group in _by_case(part, runs):
        number = str(case + 1) if len(part.workloads) > 1 else ""
        codes.append(
            number
            + "".join(
                (_letter(part, run) if len(part.environments) > 1 else "")
                + _SIGNS.get(marks.get(run.index, ""), "")
                for run in group
            )
        )
    return " ".join(codes)


def _legend(part: Part, runs: Sequence[PlannedRun], marks: Mapping[int, str]) -> list[str]:
    entries = []
    if len(part.environments) > 1:
        pairs = zip(ascii_uppercase, short(part), strict=False)
        entries.append(", ".join(f"{letter} {name}" for letter, name in pairs))
    if len(part.workloads) > 1:
        cases = [clean(case_label(case, part.workloads)) for case in part.workloads]
        entries.append("; ".join(f"{number} {case}" for number, case in enumerate(cases, 1)))
    used = {marks[run.index] for run in runs if run.index in marks}
    signs = [f"{sign} {mark}" for mark, sign in _SIGNS.items() if mark in used]
    return [*entries, ", ".join(signs)] if signs else entries


def _letter(part: Part, run: PlannedRun) -> str:
    return ascii_uppercase[part.environments.index(run.environment)]


def _by_case(part: Part, runs: Sequence[PlannedRun]) -> list[tuple[int, list[PlannedRun]]]:
    """Consecutive runs of the same case, each group with the case's place in the part."""
    key = part.workloads.index
    return [(case, list(group)) for case, group in groupby(runs, lambda run: key(run.workload))]
