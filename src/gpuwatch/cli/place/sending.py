"""Sends a study to a place: what ``--on`` does before anything runs there."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.cli.options import joining
from gpuwatch.cli.say import confirmed, say
from gpuwatch.core import paths, units
from gpuwatch.core.errors import GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.models import Problem
from gpuwatch.core.text import listed, shell, to_paste
from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.places import capsule, job_notes, load, placements, spec, working_folder
from gpuwatch.places.base import JobState, Place, Preview, Refused
from gpuwatch.places.machines import temporary_folder
from gpuwatch.places.placements import Placed
from gpuwatch.recorder.request import Request
from gpuwatch.session import placement
from gpuwatch.session.placement import Placement
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import Part
from gpuwatch.session.study.removal import removal, remove

_MOST_NAMED = 8


def send(request: Request) -> list[Placed]:
    """Create a study here for each place of ``request``, submit it there, and have it followed.
    Nothing is submitted before all places were reached.

    Raises:
        UsageError: a place is misspelt, or the working folder is too large to be sent unasked.
        NotAvailable: a place cannot be reached, or does not take it; nothing is left here.
    """
    with temporary_folder(in_memory=False) as temporary:
        archive = temporary / "gpuwatch.pyz"
        reached = [(joining.at(request, on), connected(on, archive)) for on in request.on]
        capsule.build(archive)  # takes seconds at the first time
        for _, place in reached:
            check(place)
        for each, place in reached:
            for warning in warnings(place, each.plan.parts, place.preview(each.plan.parts)):
                say(f"{each.on[0]}: {warning}")
        packed = _packed(reached, temporary / "work.tar")
        return [_send(each, place, archive, packed) for each, place in reached]


def connected(on: str, archive: Path) -> Place:
    """The place ``on``; ``archive`` is where gpuwatch will be as one file.

    Raises:
        UsageError: it is misspelt.
        NotAvailable: it cannot be reached.
    """
    place = load(spec.parse(on), archive)
    place.connect(person=somebody_is_there())
    return place


def check(place: Place) -> None:
    """Look for what is in the way at a place that is connected.

    Raises:
        NotAvailable: something is.
    """
    for problem in place.preflight():
        raise NotAvailable(problem.text, problem.hint)


def warnings(place: Place, parts: Sequence[Part], shown: Preview) -> list[str]:
    """What to know before these parts are sent: of each kind of environment that runs outside of
    the place's job, of images that the place cannot fetch, and what the place itself tells."""
    kinds = {environment.kind for part in parts for environment in part.environments}
    outside = [
        f"{kind} containers run outside of the job: its memory limit and accounting do not hold "
        "for them"
        for kind in sorted(kinds & place.kinds_outside)
    ]
    unreachable = [f"{problem.text}; {problem.hint}" for problem in only_here(shown.images)]
    return [*outside, *unreachable, *shown.notes]


def only_here(images: Sequence[str]) -> list[Problem]:
    """The problem of each image that another machine cannot fetch."""
    if not images:
        return []
    from gpuwatch.runners.docker import push

    return [problem for image in images if (problem := push.only_here(image)) is not None]


def _send(request: Request, place: Place, archive: Path, packed: Path | None) -> Placed:
    (on,) = map(place.exact, request.on)
    study = study_folder.create(request.out, request.plan)
    if not place.takes_folder:
        packed = None
    placed = placements.create(on, study, archive, work=packed is not None)
    try:
        _note(placed, JobState.STARTING)
        if packed is not None:
            place.send_folder(placed.job, packed)
        if request.out != paths.data_home():
            paths.remember_study(study.resolve())
    except BaseException:
        _throw_away(placed)
        raise
    try:
        return submit(placed, place)
    except Refused:
        _throw_away(placed)
        raise


def _throw_away(placed: Placed) -> None:
    """Remove what was never submitted."""
    placements.forget(placed)
    with contextlib.suppress(GpuwatchError):
        remove(removal(Path(placed.study), None))


def submit(placed: Placed, place: Place) -> Placed:
    """Submit what is noted, and start the process that follows it.

    Raises:
        Refused: the place does not take it.
    """
    with placements.lease(placed):
        _note(placed, JobState.STARTING)
        try:
            placed = placements.update(placed, native=place.submit(placed.job))
        except Refused:
            raise
        except NotAvailable as error:  # perhaps after it was submitted: its follower finds out
            say(f"{error.message}; it is tried again")
    follow(placed)
    return placed


def note_cancelled(placed: Placed) -> None:
    """Note that a study which was never submitted is over."""
    _note(placed, JobState.CANCELLED)
    placements.update(placed, done=True)


def _note(placed: Placed, state: JobState) -> None:
    study = Path(placed.study)
    new = Placement(placed.place, placed.attempt, state, fetched=state.over)
    try:
        placement.write(study, placement.seen_now(new, placement.read(study)))
    except OSError as error:
        raise job_notes.unwritten(study, error) from error


def again(placed: Placed) -> Placed:
    """Submit a further attempt, for the runs that are missing.

    Raises:
        NotAvailable: the place cannot be reached, or does not take it.
        UsageError: what is left of the attempt before may run, and the user starts nothing beside.
    """
    place = opened(placed)
    check(place)
    if (left := place.left(placed.job)) is not None:
        stop = to_paste("stop", Path(placed.study).name)
        say(f"{placement.elsewhere(Path(placed.study))}: {left}; `{stop}` there ends it")
        if confirmed("Start the missing runs beside it?") is False:
            raise UsageError("nothing was started", f"on that node: {stop}")
    placed = placements.new_attempt(placed)
    try:
        return submit(placed, place)
    except Refused:
        note_cancelled(placed)
        raise


def follow(placed: Placed) -> None:
    """Start a process that follows ``placed``, beyond the end of this one."""
    with open(placements.log_of(placed), "ab") as log:
        subprocess.Popen(
            [*OWN_COMMAND, "follow", placed.id],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )


def _packed(reached: Sequence[tuple[Request, Place]], target: Path) -> Path | None:
    """The working folder as a tar file, if commands of the user's own run in a copy of it."""
    takers = [request for request, place in reached if place.takes_folder]
    cases = [case for request in takers for part in request.plan.parts for case in part.workloads]
    if all(case.kind != "command" for case in cases):
        return None
    if Path.home().resolve().is_relative_to(Path.cwd()):  # with all its keys and tokens
        say("your home folder is not sent: the command runs in the one that you have there")
        return None
    folder = working_folder.find(Path.cwd())
    files, size = units.counted(len(folder.files), "file"), units.binary(folder.bytes)
    place = takers[0].on[0]
    if folder.bytes > working_folder.ASK_BYTES and not confirmed(
        f"{files} of {folder.path} ({size}) would be sent to {place}. Send them?"
    ):
        raise UsageError(
            f"{folder.path} has {size} to send to {place}",
            "start it in a smaller folder, name what is not needed in .gitignore (in a git "
            f"repository), or use one that is there: --on {shell(place + ',folder=DIR')}",
        )
    if folder.bytes > 1_000_000:
        say(f"sending {files} ({size}) of {folder.path}")
    if folder.ignored:
        say(f"not sent, as git ignores it: {listed(list(map(shell, folder.ignored)), _MOST_NAMED)}")
    working_folder.pack(folder, target)
    return target


def somebody_is_there() -> bool:
    """Whether ssh may ask: at the terminal, or by a program of the user's that it asks."""
    forced = os.environ.get("SSH_ASKPASS_REQUIRE") == "force"
    return forced or (sys.stdin.isatty() and sys.stderr.isatty())


def opened(placed: Placed) -> Place:
    """The place of ``placed``, reached with the user at the terminal.

    Raises:
        NotAvailable: it cannot be reached.
    """
    return connected(placed.place, placed.capsule)
