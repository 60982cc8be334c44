"""What the home screen does with sessions and studies: by gpuwatch's own commands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from gpuwatch.session.progress import place
from gpuwatch.session.status import State
from gpuwatch.session.study import sessions_in
from gpuwatch.tui import commands
from gpuwatch.tui.home_edit import Edit
from gpuwatch.tui.home_list import GOING_ON, Item
from gpuwatch.tui.home_rows import HomeState
from gpuwatch.tui.look import READ_ONLY
from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.words import LOST_QUESTION, STUDY_QUESTION, stop_question

_STOPPABLE = GOING_ON | {State.LOST.value}
_MOST_NAMED = 2


@dataclass(frozen=True)
class Question:
    """What waits for a yes."""

    act: str
    """``stop`` or ``delete``."""
    paths: tuple[Path, ...]


class HomeActs(PaintedScreen):
    """The keys that act; what is shown is the subclass's."""

    def __init__(self) -> None:
        super().__init__()
        self.state = HomeState()
        self.question: Question | None = None

    def action_refresh(self) -> None:
        raise NotImplementedError

    def say(self, message: str) -> None:
        """A word in the foot, in place of the path."""
        self.state = replace(self.state, message=message)
        self.paint()

    def _refused(self) -> bool:
        """Whether keys may not act; it is said then."""
        if self.gpuwatch.look.read_only:
            self.say(READ_ONLY)
        return self.gpuwatch.look.read_only

    # Runs.

    def action_take_up(self) -> None:
        current = self.state.current
        if current is None or current.entry is None or current.entry.status != State.LOST.value:
            self.say("only a run whose recorder died can be taken up")
        elif not self._refused():
            self.say("taking the run up …")
            self.run_worker(self._take_up(current.path), exclusive=True, group="act")

    async def _take_up(self, path: Path) -> None:
        outcome = await commands.run("attach", "--record", "--detach", str(path))
        if outcome.good:
            self.say("")
            self.gpuwatch.open_session(path)
        else:
            self.say(outcome.complaint)
            self.action_refresh()

    def action_stop(self) -> None:
        current = self.state.current
        if current is None or not stoppable(current):
            self.say("the run is over already")
            return
        if self._refused():
            return
        self.question = Question("stop", (current.path,))
        if current.entry is None:
            self.say(STUDY_QUESTION)
        elif current.entry.status == State.LOST.value:
            self.say(LOST_QUESTION)
        else:
            self.say(stop_question(place(current.path)))

    async def _stop(self, path: Path) -> None:
        outcome = await commands.run("stop", str(path))
        self.say(outcome.about(path))
        self.action_refresh()

    def action_new(self) -> None:
        if self._refused():
            return
        from gpuwatch.tui.new_run import NewRunScreen

        self.app.push_screen(NewRunScreen(), self._started)

    def _started(self, path: Path | None) -> None:
        if path is not None:
            self.gpuwatch.open_session(path)

    # Deletion.

    def action_delete(self) -> None:
        paths = self._asked_for()
        if paths and not self._refused():
            self.say("looking at what would go …")
            self.run_worker(self._ask_delete(paths), exclusive=True, group="act")

    def _asked_for(self) -> tuple[Path, ...]:
        """What is marked, else what is under the cursor."""
        current = self.state.current
        return self.state.marked or (() if current is None else (current.path,))

    async def _ask_delete(self, paths: tuple[Path, ...]) -> None:
        outcome = await commands.run("delete", "--dry-run", *map(str, paths))
        if not outcome.good:
            self.say(outcome.about(paths[0]))
            return
        lines = outcome.out.splitlines()
        told = "; ".join(lines[:_MOST_NAMED])
        if len(lines) > _MOST_NAMED:
            told = f"{len(lines)} folders: {told}; ..."
        self.question = Question("delete", paths)
        self.say(f"Delete {told}?")

    async def _delete(self, paths: tuple[Path, ...]) -> None:
        outcome = await commands.run("delete", "--yes", *map(str, paths))
        self.say(outcome.about(paths[0]))
        self.action_refresh()

    def action_answer(self, yes: bool) -> None:
        question, self.question = self.question, None
        if question is None or not yes:
            return
        if question.act == "stop":
            self.say("ending the run …")
            self.run_worker(self._stop(question.paths[0]), exclusive=True, group="act")
        else:
            self.say("deleting …")
            self.run_worker(self._delete(question.paths), exclusive=True, group="act")

    # Labels.

    def action_label(self, what: str) -> None:
        """Write a name, tags or a note for the row under the cursor."""
        current = self.state.current
        if current is None or self._refused():
            return
        of = current.entry or current.study
        assert of is not None
        text = {"name": of.name, "tags": " ".join(of.tags), "note": of.note}[what]
        self.state = replace(self.state, edit=Edit.of(what, text), message="")
        self.paint()

    def labelled(self, edit: Edit) -> None:
        """Carry out what was written."""
        current = self.state.current
        command = None if current is None else label_command(current, edit)
        if command is not None:
            self.run_worker(self._label(command), exclusive=True, group="act")

    async def _label(self, command: tuple[str, ...]) -> None:
        outcome = await commands.run(*command)
        self.say(outcome.word if outcome.good else outcome.complaint)
        self.action_refresh()

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
        if len(marked) == 1 and marked[0].is_dir():
            inside = sessions_in(marked[0])
            if inside:
                self.gpuwatch.compare_with_study(inside[0])
                return
        if len(marked) < 2:
            self.say("mark two sessions with Space, then press c")
            return
        self.gpuwatch.compare(_sessions(marked))

    def action_export(self) -> None:
        paths = list(self._asked_for())
        if paths and not self._refused():
            self.say("writing the report …")
            self.run_worker(self._export(paths), exclusive=True, group="act")

    async def _export(self, paths: list[Path]) -> None:
        from gpuwatch.tui.exporting import export_report

        wanted = paths if len(paths) == 1 else await asyncio.to_thread(_sessions, paths)
        self.say(await export_report(wanted))

    def action_processes(self) -> None:
        from gpuwatch.tui.process_page import MachineProcessScreen

        self.app.push_screen(MachineProcessScreen(self.state.devices))


def stoppable(item: Item) -> bool:
    """Whether something of it may go on."""
    return item.goes_on or (item.entry is not None and item.entry.status in _STOPPABLE)


def label_command(item: Item, edit: Edit) -> tuple[str, ...] | None:
    """The command that writes a label; ``None``: nothing changes."""
    of = item.entry or item.study
    assert of is not None
    path, text = str(item.path), edit.text.strip()
    if edit.what == "name":
        return None if text == of.name else ("rename", path, "--", text)
    if edit.what == "note":
        return None if text == of.note else ("note", path, "--", text)
    wanted = [tag.removeprefix("+") for tag in text.split()]
    changes = [f"+{tag}" for tag in wanted if tag not in of.tags]
    changes += [f"-{tag}" for tag in of.tags if tag not in wanted]
    return ("tag", path, *changes) if changes else None


def _sessions(paths: list[Path]) -> list[Path]:
    """Sessions, for a study's folder all of its own."""
    listed = [each for path in paths for each in (sessions_in(path) if path.is_dir() else [path])]
    return list(dict.fromkeys(listed))
