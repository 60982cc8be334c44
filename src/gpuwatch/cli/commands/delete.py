"""Delete sessions or whole studies, after asking.

Only files that gpuwatch wrote are removed, and the folder if it is then empty. A run that is still
going on is never deleted.
"""

from __future__ import annotations

import argparse
import os
import socket
from pathlib import Path

from gpuwatch.cli.place.lookup import sent
from gpuwatch.cli.say import confirmed, say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import clean, shell, to_paste
from gpuwatch.places import load, placements, spec
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE
from gpuwatch.session.study.plan import read
from gpuwatch.session.study.removal import Removal, removal, remove


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="+", metavar="SESSION|STUDY")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be deleted, delete nothing"
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    targets = [_target(text) for text in arguments.session]
    whole = dict.fromkeys(folder for folder, file in targets if not file)
    names = grouped((folder, file) for folder, file in targets if file and folder not in whole)
    removals = [removal(folder, None) for folder in whole]
    removals += [removal(folder, files) for folder, files in names.items()]
    for removal_ in removals:
        _check(removal_)
    # Before anything is removed, because names are deleted with what they name.
    descriptions = [described(removal_) for removal_ in removals]
    if arguments.dry_run:
        print("\n".join(descriptions))
        return 0
    if not arguments.yes:
        answer = confirmed("\n".join([*descriptions, "Delete?"]))
        if answer is None:
            raise UsageError(f"this would delete {'; '.join(descriptions)}", "add --yes to delete")
        if not answer:
            say("nothing was deleted")
            return 0
    for removal_, text in zip(removals, descriptions, strict=True):
        remove(removal_)
        say(f"deleted {text}")
        if removal_.whole and (sent_ := placements.of_study(removal_.folder)) is not None:
            if not load(spec.parse(sent_.place), sent_.capsule).shares_files:
                say(f"its copy on {sent_.place} stays there")
            placements.forget(sent_)
        if not removal_.whole and removal_.ours:
            say(f"its summary is not updated; rewrite it: {to_paste('report', removal_.folder)}")
    return 0


def described(what: Removal) -> str:
    """``study "name" (FOLDER): 24 sessions, 12.3 MiB``, or the names of its sessions; and the files
    that are kept."""
    size, many = units.binary(what.bytes), len(what.sessions)
    known = labels.read(what.folder)

    def named(key: str, text: str) -> str:
        name = known.get(key, NONE).name
        return f'"{name}" ({text})' if name else text

    if what.whole and what.ours:
        folder, key = session_lookup.target(str(what.folder))
        text = f"study {named(key, folder.name)}: {units.counted(many, 'session')}, {size}"
    else:
        sessions = ", ".join(named(name, name) for name in what.sessions)
        text = f"{sessions} of {named('', what.folder.name)}: {size}"
    if what.kept:
        others = ", ".join(what.kept[:3]) + (", ..." if len(what.kept) > 3 else "")
        text += f"; kept, not gpuwatch's: {others}"
    return clean(text)


def _target(text: str) -> tuple[Path, str]:
    """The study's folder and the session's file, or ``""`` for a whole study of several runs."""
    path = Path(text)
    if os.path.islink(path):
        raise UsageError(f"{text} is a link", f"name its target: {shell(path.resolve())}")
    inside = session_lookup.resolved(session_lookup.sessions_under(path))
    if inside and not session_lookup.is_study(path):
        studies = list(dict.fromkeys(path_.parent for path_ in inside))
        hint = f"name a study in it: {shell(studies[0])}"
        if len(studies) == 1:
            hint = f"the one in it: {to_paste('delete', studies[0])}"
        raise UsageError(f"{text} is not a study", hint)
    return session_lookup.target(text)


def _check(what: Removal) -> None:
    """Refuse to delete what is still going on.

    Raises:
        UsageError: one of its runs or its study is going on, or nothing there is gpuwatch's.
    """
    from gpuwatch.recorder.run_folder import folders_of
    from gpuwatch.session.reading.reader import known_meta
    from gpuwatch.session.reading.status import goes_on_alone, process_id, status
    from gpuwatch.session.study.study_folder import is_held

    if not what.files:
        raise UsageError(f"nothing in {what.folder} is gpuwatch's", "see `gpuwatch sessions`")
    if is_held(what.folder):
        stop = f"stop it first: {to_paste('stop', what.folder)}"
        raise UsageError(f"{what.folder} is still running", stop)
    placed = sent(what.folder)
    if placed is not None and not placed.done:
        raise UsageError(
            f"{what.folder} is not over on {placed.place}",
            f"stop it first: {to_paste('stop', what.folder)}",
        )
    plan = read(what.folder)
    if plan is not None and plan.settings.host not in ("", socket.gethostname()):
        begun = {*what.sessions, *(plan.runs[index - 1].file for index in plan.problems)}
        if any(run.file not in begun for run in plan.runs):
            raise _elsewhere(what.folder, plan.settings.host)
    for name in what.sessions:
        path = what.folder / name
        if (meta := known_meta(path)) is None:
            continue  # an unreadable session is not running
        recorder = process_id(meta.get("recorder"))
        over = "result" in meta or "closed" in meta
        if recorder is not None and recorder.alive() is None and not over:
            raise _elsewhere(path, recorder.place)
        if status(meta, path).live or goes_on_alone(meta):
            stop = f"stop it first: {to_paste('stop', path)}"
            if not folders_of(path):
                stop = f"if it is not: rm {shell(path)}"
                raise UsageError(f"{path} says that it is still running", stop)
            raise UsageError(f"{path} is still running", stop)


def _elsewhere(what: Path, place: str) -> UsageError:
    return UsageError(
        f"{what} was recorded on {place}: whether it is still running cannot be checked on "
        f"{socket.gethostname()}",
        f"delete it there; if that machine is gone for good: rm -r {shell(what)}",
    )
