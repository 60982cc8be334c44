"""Executes the runs of a plan: rest, run, note the end, rewrite the summary."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.errors import ExitCode, GpuwatchError, NotAvailable, StorageError
from gpuwatch.core.models import Problem
from gpuwatch.core.text import to_paste
from gpuwatch.recorder.control import Stop, Stopped, stopping_signals, summarise
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.request import ResolvedPlan
from gpuwatch.recorder.single_run import record_one
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.estimate import Timing, about, timing
from gpuwatch.session.study.outcomes import End, end_of, given_up
from gpuwatch.session.study.plan import PlannedRun, labels
from gpuwatch.session.study.progress import place_words, seconds_to_go
from gpuwatch.session.writing.write_hints import write_hint

SLOW_SUMMARY = 3.0
"""Seconds: if a summary took longer, the next one waits for the end of the block. Each one reads
all sessions, so in a long study summaries could take longer than the runs."""


def unavailable(problems: Sequence[Problem]) -> NotAvailable:
    """The first problem as an error."""
    return NotAvailable(problems[0].text, problems[0].hint)


class StudyRun:
    """Executes the remaining runs of a study."""

    def __init__(self, resolved: ResolvedPlan, folder: Path, observer: Observer) -> None:
        self._resolved, self._folder, self._observer = resolved, folder, observer
        self._plan = resolved.request.plan
        self._labels = labels(self._plan.runs)
        self._stop = Stop()
        self._ends: dict[int, End] = {}
        self._timings: list[Timing] = []
        self._before: Timing | None = None
        """Timing of the last run by this recorder."""
        self._given_up: set[int] = set()
        self._summary_is_old = False
        self._summary_took = 0.0
        self._no_room: str | None = None
        """Why a session could not be saved, which ends the study."""

    def execute(self) -> ExitCode:
        """Execute the missing runs in order, except those that cannot start.

        After a failed run the others go on, unless its session could not be saved. Returns the
        highest exit code.

        Raises:
            StorageError: the session of the only run of the plan cannot be written.
            GpuwatchError: the only run of the plan could not be started.
        """
        problems = self._resolved.problems
        waiting = {run.index for run in self._resolved.todo}
        for run in self._plan.runs:
            if run.index not in waiting:
                self._note_end(run)
        self._give_up()
        code, rested = ExitCode.DONE, True
        block: tuple[int, int | None] | None = None
        with stopping_signals(self._stop):
            for run in self._resolved.todo:
                if self._stop.why is not None or self._no_room is not None:
                    break
                if self._summary_took > SLOW_SUMMARY and block != (run.part, run.block):
                    self._summarise()
                block = run.part, run.block
                if run_problems := problems.get(run.index):
                    code = max(code, self._skip(run, run_problems))
                if run_problems or run.index in self._given_up:
                    continue
                if not rested and not self._stop.rest(self._plan.parts[run.part].cool_down):
                    break
                rested = False
                self._announce(run)
                code = max(code, self._one(run))
                self._give_up()
                if self._summary_took <= SLOW_SUMMARY and self._no_room is None:
                    self._summarise()
            self._end()
        return ExitCode.INTERRUPTED if self._stop.number == signal.SIGINT else code

    def _one(self, run: PlannedRun) -> ExitCode:
        """Execute one run; the summary is outdated then."""
        path = self._folder / run.file
        try:
            code = record_one(self._resolved, run, self._folder, self._stop, self._observer)
        except Stopped:
            reason = f"it was stopped before it began ({self._stop.why})"
            problems = [
                Problem(study_folder.STUDY_ENDED, reason, to_paste("resume", self._folder.name))
            ]
            study_folder.note(self._folder, {run.index: problems})
            return ExitCode.DONE
        except StorageError as error:
            if len(self._plan.runs) == 1:
                raise
            self._no_room = error.message
            return ExitCode.RUN_FAILED
        except GpuwatchError as error:
            problems = [Problem("not-started", error.message, error.hint)]
            if not os.path.exists(path):
                study_folder.note(self._folder, {run.index: problems})
            if len(self._plan.runs) == 1:
                self._observer.summary_written(summarise(self._folder, self._observer.message))
                raise
            code = self._skip(run, problems)
        if self._stop.unsaved is not None and "locked" not in self._stop.unsaved:
            self._no_room = self._stop.unsaved
        self._note_end(run, started=True)
        if self._ends.get(run.index) is End.OUT_OF_MEMORY and self._plan.parts[run.part].sweep:
            code = ExitCode.DONE  # a sweep is meant to find the memory limit
        self._summary_is_old = True
        return code

    def _summarise(self) -> None:
        """Rewrite the summary if it is outdated."""
        if not self._summary_is_old or self._plan.of_machine:
            return
        begun = time.monotonic()
        self._observer.summary_written(summarise(self._folder, self._observer.message))
        self._summary_took = time.monotonic() - begun
        self._summary_is_old = False

    def _note_end(self, run: PlannedRun, *, started: bool = False) -> None:
        """Note how a run ended and how long it took."""
        path = self._folder / run.file
        if not os.path.exists(path):
            if started:
                self._ends[run.index] = End.FAILED
            return
        with contextlib.suppress(GpuwatchError):
            if (end := end_of(path)) is not None:
                self._ends[run.index] = end
        if (found := timing(path)) is not None:
            self._timings.append(found)
            self._before = found if started else self._before

    def _give_up(self) -> None:
        """Find the runs not worth starting; note them in the plan and tell the user."""
        problems = {
            index: [problem]
            for index, problem in given_up(self._plan, self._ends).items()
            if index not in self._given_up
            and not os.path.exists(self._folder / self._plan.runs[index - 1].file)
        }
        self._given_up |= problems.keys()
        study_folder.note(self._folder, problems)
        self._summary_is_old |= bool(problems)
        for (problem,) in problems.values():
            self._observer.message_once(f"{problem.text}: not started again")

    def _skip(self, run: PlannedRun, problems: Sequence[Problem]) -> ExitCode:
        self._summary_is_old = True
        error = unavailable(problems)
        self._observer.message_once(f"{self._labels[run.index - 1]}: {error}")
        return error.exit_code

    def _announce(self, run: PlannedRun) -> None:
        if len(self._plan.runs) == 1:
            return
        to_come = [
            planned
            for planned in self._plan.runs[run.index - 1 :]
            if planned.index not in self._given_up
            and planned.index not in self._resolved.problems
            and not os.path.exists(self._folder / planned.file)
        ]
        pause = None if self._before is None else time.time() - self._before.end
        left = seconds_to_go(to_come, self._timings, pause)
        tail = "" if left is None else f"; {about(left)} left"
        blocks = self._plan.parts[run.part].blocks
        where = place_words(run.index, len(self._plan.runs), run.block, blocks)
        self._observer.next_run(f"{where}: {self._labels[run.index - 1]}{tail}")

    def _end(self) -> None:
        """After the last run or a stop: note the runs without a turn, write the summary."""
        if (self._stop.why or self._no_room) and len(self._plan.runs) > 1:
            text = f"the study was ended before its turn ({self._stop.why or self._no_room})"
            hint = to_paste("resume", self._folder.name)
            if self._no_room is not None:
                hint = f"{write_hint(self._folder)}, then {hint}"
                self._observer.message(f"{self._no_room}: the study ends here; {hint}")
            study_folder.note_rest(self._folder, Problem(study_folder.STUDY_ENDED, text, hint))
            self._summary_is_old = True
        self._summarise()
