"""Which run of its study a session in the list is, in few characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gpuwatch.session.plan import PLAN, WARM_UP, Plan, PlannedRun, read


class StudyPlaces:
    """Plans are read again only where their file changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, Mapping[str, str]]] = {}

    def of(self, paths: Iterable[Path]) -> dict[Path, str]:
        """For the sessions of studies of several runs ``b2 r5``: block 2, run 5 of all.

        ``w r1``: of the warm-up block; ``r5``: of a study without blocks.
        """
        folders = dict.fromkeys(path.parent for path in paths)
        self._known = {folder: self._places(folder) for folder in folders}
        found = {}
        for path in paths:
            place = self._known[path.parent][1].get(path.name)
            if place is not None:
                found[path] = place
        return found

    def _places(self, folder: Path) -> tuple[int, Mapping[str, str]]:
        try:
            changed = (folder / PLAN).stat().st_mtime_ns
        except OSError:
            return 0, {}
        known = self._known.get(folder)
        if known is not None and known[0] == changed:
            return known
        return changed, _of_plan(read(folder))


def _of_plan(plan: Plan | None) -> dict[str, str]:
    if plan is None or len(plan.runs) < 2:
        return {}
    return {run.file: _place(run) for run in plan.runs}


def _place(run: PlannedRun) -> str:
    if run.block is None:
        return f"r{run.index}"
    block = "w" if run.block == WARM_UP else f"b{run.block}"
    return f"{block} r{run.index}"
