"""What the home screen does with sessions and studies: by gpuwatch's own commands.

They go on when the screen is left, and no one ends another.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import Listed
from gpuwatch.core.text import clean
from gpuwatch.core.units import counted
from gpuwatch.session.study.progress import place
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui import commands
from gpuwatch.tui.home.list import Edit, items_of, label_command
from gpuwatch.tui.home.rows import HomeState
from gpuwatch.tui.home.table import started
from gpuwatch.tui.messages import LOST_QUESTION, STUDY_QUESTION, Question, stop_question
from gpuwatch.tui.processes.table import ProcessActs
from gpuwatch.tui.widgets.base_screen import WritingScreen
from gpuwatch.tui.widgets.line import fit


class HomeActs(ProcessActs, WritingScreen):
    """The keys that act; what is shown is the subclass's."""

    def __init__(self) -> None:
        super().__init__()
        self.state = HomeState()
        self._listed = Listed()
        self._acts: list[str] = []
        """What is under way, in words."""
        self._leaving = False
        self._lent: tuple[Path, ...] = ()
        """Marks that another screen set, until they have served."""

    @property
    def may_ask(self) -> bool:
        return super().may_ask and self.state.edit is None

    @abstractmethod
    def action_refresh(self) -> None:
        """Read the list again."""

    def say(self, message: str) -> None:
        """A word in the foot, in place of the path."""
        self.state = replace(self.state, message=message)
        self.paint()

    # What is under way.

    def act(self, what: str, work: Awaitable[bool]) -> None:
        """Carry out ``work``, which says whether it was done; ``what``: a word for it."""
        self._acts.append(what)
        self.say(f"{what} …")
        self.run_worker(self._carried_out(what, work), group="act")

    async def _carried_out(self, what: str, work: Awaitable[bool]) -> None:
        try:
            good = await work
        finally:
            self._acts.remove(what)
        self._leaving = self._leaving and good
        if self._leaving and self._acts:
            self._say_leaving()
        elif self._leaving:
            self.gpuwatch.leave()

    def _say_leaving(self) -> None:
        self.say(f"{self._acts[-1]}, then leaving …; once more leaves now")

    def stays(self) -> None:
        """A key was pressed that is not that of leaving."""
        self._leaving = False

    def action_leave(self) -> None:
        """Leave; while something is under way, once that is done or on the second time."""
        if self._acts and not self._leaving:
            self._leaving = True
            self._say_leaving()
        else:
            self.gpuwatch.leave()

    # Runs.

    def action_take_up(self) -> None:
        current = self.state.current
        if current is not None and not self.refused():
            self.act("taking the run up", self._take_up(current.path))

    async def _take_up(self, path: Path) -> bool:
        outcome = await commands.run("attach", "--record", "--detach", str(path), outlives=True)
        here = self.may_ask and not self._leaving
        self.say("" if outcome.good else outcome.complaint)
        if outcome.good and here:
            self.gpuwatch.open_session(path)
        else:
            self.action_refresh()
        return outcome.good

    def action_stop(self) -> None:
        current = self.state.current
        if current is None or self.refused():
            return
        if current.entry is None:
            question = STUDY_QUESTION
        elif current.lost:
            question = LOST_QUESTION
        else:
            question = stop_question(place(current.path))
        path = current.path
        question = replace(question, text=f"{question.text}\n{clean(_told(current))}")
        command = ("stop", str(path))
        self.ask(question, lambda: self.act("stopping", self._command(*command, about=path)))

    async def _command(self, *arguments: str, about: Path) -> bool:
        """Run a command of gpuwatch to its end, whatever becomes of the screen."""
        name = next(map(_told, items_of(self._listed, [about])), "")  # it may be gone then
        outcome = await commands.run(*arguments, outlives=True)
        self.say(outcome.about(about, name))
        self.action_refresh()
        return outcome.good

    @property
    def place_of_runs(self) -> str:
        """Where a new run is for, as ``--on`` takes it; empty: here."""
        return ""

    def action_new(self) -> None:
        if self.refused():
            return
        on = self.place_of_runs
        self.gpuwatch.open_new_run(on, None if on else self.state.devices)

    def action_log(self) -> None:
        """The log of the session under the cursor."""
        current = self.state.current
        if current is None or current.entry is None:
            self.say("→ shows the runs of the study: l is for one of them" if current else "")
            return
        self.gpuwatch.open_log(current.path)

    # Deletion.

    def action_delete(self) -> None:
        paths = self._asked_for()
        if paths and not self.refused():
            self.say("looking at what would go …")
            self.run_worker(self._ask_delete(paths), exclusive=True, group="ask")

    def _asked_for(self) -> tuple[Path, ...]:
        """What is marked, else what is under the cursor."""
        current = self.state.current
        return self.state.marked or (() if current is None else (current.path,))

    async def _ask_delete(self, paths: tuple[Path, ...]) -> None:
        outcome = await commands.run("delete", "--dry-run", *map(str, paths))
        if not outcome.good:
            self.say(outcome.about(paths[0]))
            return
        self.say("")
        if not self.may_ask:
            return  # whoever went on meanwhile is asked nothing
        items = items_of(self._listed, paths)
        marked, going = bool(self.state.marked), outcome.out.splitlines()
        question = delete_question(paths, items, marked=marked, going=going)
        command = ("delete", "--yes", *map(str, paths))
        self.ask(question, lambda: self.act("deleting", self._command(*command, about=paths[0])))

    # Labels.

    def action_label(self, what: str) -> None:
        """Write a name, tags or a note for the row under the cursor."""
        current = self.state.current
        if current is None or self.refused():
            return
        of = current.of
        text = {"name": of.name, "tags": " ".join(of.tags), "note": of.note}[what]
        self.write(Edit(what, text, current))

    @abstractmethod
    def write(self, edit: Edit) -> None:
        """Have a line written in the foot."""

    def labelled(self, edit: Edit) -> None:
        """Carry out what was written."""
        command = label_command(edit)
        if command is not None and edit.target is not None:
            self.act("writing it down", self._command(*command, about=edit.target.path))

    # Comparing.

    def action_compare(self) -> None:
        marked, current = list(self.state.marked), self.state.current
        if len(marked) == 1 and current is not None and current.path not in marked:
            marked.append(current.path)
        if not marked and current is not None:
            study = current.study is not None or place(current.path) is not None
            marked = [current.path] if study else []
            if marked and current.entry is not None:
                self.gpuwatch.compare_with_study(current.path)
                return
        if len(marked) == 1 and marked[0].is_dir() and (inside := sessions_in(marked[0])):
            self.gpuwatch.compare_with_study(inside[0])
            return
        if len(marked) < 2:
            self.say("mark two sessions with Space, then press c")
            return
        self.gpuwatch.compare(_sessions(marked))
        kept = tuple(path for path in self.state.marked if path not in self._lent)
        self.state = replace(self.state, marked=kept)
        self._lent = ()

    def action_export(self) -> None:
        paths = list(self._asked_for())
        if paths and not self.refused():
            self.act("writing the report", self._export(paths))

    async def _export(self, paths: list[Path]) -> bool:
        wanted = paths if len(paths) == 1 else await asyncio.to_thread(_sessions, paths)
        self.say(await commands.export_report(wanted, self.gpuwatch.writing))
        return False  # where the report is remains to be read


def _sessions(paths: list[Path]) -> list[Path]:
    """Sessions, for a study's folder all of its own."""
    listed = [each for path in paths for each in (sessions_in(path) if path.is_dir() else [path])]
    return list(dict.fromkeys(listed))


_MOST_NAMED = 4
_LONGEST_NAME = 40


def delete_question(
    paths: Sequence[Path], items: Sequence[Item], *, marked: bool, going: Sequence[str]
) -> Question:
    """Asks by what the list calls it, and says what goes.

    ``items`` are those of ``paths`` that are listed; ``marked``: it is not the row under the cursor
    that is asked about. ``going``: a line for each folder, as ``gpuwatch delete`` tells it.
    """
    known = {item.path: item for item in items}
    names = [
        _told(known[path]) if path in known else clean(f"{path.parent.name}/{path.name}")
        for path in paths
    ]
    what = "; ".join(_some(names))
    if marked:
        what = f"the marked {what}" if len(paths) == 1 else f"{len(paths)} marked: {what}"
    text = "\n".join([f"Delete {what}?", *map(clean, _some(going))])
    return Question(text, "Delete", "Cancel")


def _told(item: Item) -> str:
    """``best (gcn) in docker, started 11-20 22:54``; of a study how many runs it has."""
    if item.entry is not None:
        ran = item.entry.command_label or item.entry.workload or "unknown"
        where = f"in {item.entry.environment}"
    else:
        ran = item.ran
        where = f"study of {counted(len(item.every), 'run')}"
    name = f"{fit(item.of.name, _LONGEST_NAME)} ({ran})" if item.of.name else ran
    start = item.first_start
    return f"{name} {where}" + (f", started {started(start)}" if start else "")


def _some(texts: Sequence[str]) -> list[str]:
    shown, more = texts[:_MOST_NAMED], len(texts) - _MOST_NAMED
    return [*shown, *([f"{more} more"] if more > 0 else [])]
