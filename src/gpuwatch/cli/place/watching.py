"""Watches a study at a place, until its first session or its end, and machines elsewhere."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli.place import sending, stopping
from gpuwatch.cli.place.sending import somebody_is_there
from gpuwatch.cli.say import say
from gpuwatch.cli.study_result import exit_code
from gpuwatch.core.errors import ExitCode, GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.signals import handled
from gpuwatch.core.text import to_paste
from gpuwatch.core.units import counted
from gpuwatch.places import capsule, load, placements, spec
from gpuwatch.places.base import STUDY, NeedsPerson, Place
from gpuwatch.places.machines import Machines, temporary_folder
from gpuwatch.places.placements import Placed
from gpuwatch.session import placement
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.session.study.study_folder import not_run, sessions_in

if TYPE_CHECKING:
    from gpuwatch.tui.display_options import DisplayOptions


_AT_ONCE = 16
"""Connections that are made at the same time."""


@contextmanager
def watched(places: Sequence[str]) -> Iterator[Machines]:
    """Record the machines that ``places`` name, within the block.

    Raises:
        UsageError: a place is misspelt, or names no machine.
    """
    with temporary_folder() as folder:
        archive = folder / "gpuwatch.pyz"
        loaded = [(name, load(spec.parse(name), archive)) for name in dict.fromkeys(places)]
        for name, place in loaded:
            if not place.names_machine:
                raise UsageError(
                    f"{name} names no machine", "name a host or a job: ssh=HOST, or slurm,job=ID"
                )
        capsule.build(archive)
        _connect([place for _, place in loaded])
        with Machines(loaded, folder) as machines:
            yield machines


def _connect(places: Sequence[Place]) -> None:
    """Reach the places while a person can still be asked for a password. Those that cannot be
    reached are tried again later."""
    say(f"reaching {counted(len(places), 'machine')} ...")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ask = [place for place in pool.map(_that_asks, places) if place is not None]
    for place in ask if somebody_is_there() else ():
        try:
            place.connect(person=True)
        except NotAvailable as error:
            say(f"{error}")


def _that_asks(place: Place) -> Place | None:
    """The place, if it asks for something that only a person knows."""
    try:
        place.connect(person=False)
    except NeedsPerson:
        return place
    except NotAvailable:
        return None
    return None


_LOOK_SECONDS = 0.2
_NOBODY_SECONDS = 15.0
"""How long a study may be without anybody who follows it."""


def have_followed(placed: Placed) -> None:
    """Start somebody who follows it, if nobody does, and wait for what is noted first.

    Raises:
        NotAvailable: the place cannot be reached.
    """
    if placements.follower(placed) is None:
        sending.opened(placed)  # asks for what is needed, with the user here
        sending.follow(placed)
    until = time.monotonic() + _NOBODY_SECONDS
    while (known := placement.read(Path(placed.study))) is None or not known.followed:
        if time.monotonic() > until:  # as with a full disk
            return
        time.sleep(_LOOK_SECONDS)


def waits(placed: Placed) -> bool:
    """Whether no run of this attempt has begun, and one may."""
    known = placement.read(Path(placed.study))
    if known is None or not known.going_on:
        return False
    return not sessions_in(Path(placed.study)) or _is_anew(placed)


def on_screen(
    placed: Placed, look: DisplayOptions, refresh: float, *, started: bool = False
) -> int:
    """Show how it waits for its first run, and that run; returns the exit code. ``started``: as in
    :func:`run_waiting`.

    Raises:
        GpuwatchError: its job was cut off, or could not start.
    """
    from gpuwatch.tui.app import run_waiting

    folder = Path(placed.study)
    before = sessions_in(folder) if _is_anew(placed) else []
    code = run_waiting(folder, before, started=started, look=look, refresh=refresh)
    known = placement.read(folder)
    if known is not None and not known.going_on and sessions_in(folder) == before:
        if known.state is JobState.CANCELLED:
            say(known.text)
        _tell_end(folder, known)
    return code


def first_session(placed: Placed) -> Path | None:
    """Wait for the latest session of this attempt and tell the states before it; ``None`` if the
    study is over without any.

    Raises:
        GpuwatchError: its job was cut off, or could not start.
    """
    folder = Path(placed.study)
    before = set(sessions_in(folder)) if _is_anew(placed) else set()
    watched = Watched(placed)
    try:
        going_on = True
        while going_on:
            going_on = watched.look()
            if new := [path for path in sessions_in(folder) if path not in before]:
                return new[-1]
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        attach, stop = (to_paste(word, folder.name) for word in ("attach", "stop"))
        say(f"it goes on: `{attach}` comes back, `{stop}` ends it")
        raise
    _tell_end(folder, watched.known, watched.told)
    return None


def _is_anew(placed: Placed) -> bool:
    """Whether the attempt has just begun, so that all sessions are of earlier ones."""
    known = placement.read(Path(placed.study))
    waiting = (JobState.QUEUED, JobState.STARTING)
    return known is not None and known.attempt == placed.attempt and known.state in waiting


def until_over(sent: Sequence[Placed], told: str = "") -> int:
    """Wait until all of these studies is here; returns the highest exit code. Ctrl-C or SIGTERM end
    them there; when the terminal is lost, they go on. ``told``: what is known of them already.

    Raises:
        GpuwatchError: the job of the only one was cut off or could not start, or one cannot be
            ended.
    """
    watched, stopped = [Watched(placed, told) for placed in sent], False
    with _asked_to_stop() as asked:
        while going_on := [each for each in watched if each.look()]:
            if asked and not stopped:
                stopped = True
                _stop([each.placed for each in going_on])
            time.sleep(_LOOK_SECONDS)
    code = 0
    for each in watched:
        if not sessions_in(each.folder) and not stopped:
            try:
                _tell_end(each.folder, each.known, each.told)
            except GpuwatchError as error:
                if len(watched) == 1:
                    raise
                say(f"error: {error}")
                code = max(code, error.exit_code)
        code = max(code, exit_code(each.folder))
    return ExitCode.INTERRUPTED if signal.SIGINT in asked else code


def take_over(placed: Placed) -> None:
    """Have the place record a run again whose recorder died there.

    Raises:
        NotAvailable: the place cannot be reached, or does not take it over.
    """
    command = ["attach", "--record", "--detach", STUDY]
    with sending.opened(placed).open(placed.job, command) as process:
        process.communicate()
    if process.returncode != 0:
        name = Path(placed.study).name
        raise NotAvailable(
            f"{placed.place} did not take over {name}", f"see how it is: {to_paste('attach', name)}"
        )


def _stop(going_on: Sequence[Placed]) -> None:
    """End each study, also if another one cannot be ended.

    Raises:
        NotAvailable: one of them cannot be ended.
    """
    problems: list[NotAvailable] = []
    for placed in going_on:
        say(f"stopping it on {placed.place}")
        try:
            stopping.stop(placed)
        except NotAvailable as error:
            problems.append(error)
    for problem in problems[1:]:
        say(f"error: {problem}")
    if problems:
        raise problems[0]


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """The signals that asked for an end, within the block; the second one ends this process."""
    asked: list[int] = []

    def on_signal(number: int, _: object) -> None:
        if asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked.append(number)

    with handled(on_signal, signal.SIGINT, signal.SIGTERM):
        yield asked


def _tell_end(folder: Path, known: Placement | None, told: str = "") -> None:
    """Tell why nothing ran, unless it was ``told``.

    Raises:
        GpuwatchError: the job was cut off.
        NotAvailable: it could not start.
    """
    reasons = not_run(folder)
    if known is not None and not reasons and known.state is not JobState.CANCELLED:
        reason = known.reason or known.state.value
        again = reason in told
        cut_off = known.state.cut_off and known.state is not JobState.FAILED
        error = GpuwatchError if cut_off else NotAvailable
        nothing = f"nothing ran on {known.place}"
        raise error(nothing if again else f"{nothing}: {reason}", None if again else known.hint)
    for each in reasons:
        if each.problems[0].text not in told:
            say(each.text)


class Watched:
    """A study at a place, whose changes are told and which somebody follows all the while."""

    def __init__(self, placed: Placed, told: str = "") -> None:
        self.placed, self.folder = placed, Path(placed.study)
        self.known: Placement | None = None
        """Its placement, once it is of this attempt."""
        self.told = told
        self._alone = time.monotonic()

    def look(self) -> bool:
        """Look at it once; returns whether it goes on."""
        known = placement.read(self.folder)
        self.placed = placements.read(self.placed.id) or self.placed  # it may be at its next job
        if known is not None and known.attempt == self.placed.attempt:
            self.known = known
            if known.text != self.told and known.state is not JobState.ENDED:
                self.told = known.text
                say(known.text)
                if known.hint:
                    say(known.hint)
            if not known.going_on:
                return False
        if placements.follower(self.placed) is not None:
            self._alone = time.monotonic()
        elif time.monotonic() - self._alone > _NOBODY_SECONDS:
            have_followed(self.placed)
            self._alone = time.monotonic()
        return True
