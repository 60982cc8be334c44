"""Find the session files that the user's words name."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError, StorageError, UsageError
from gpuwatch.core.models import mapping
from gpuwatch.core.text import shell, to_paste
from gpuwatch.session.placement import PLACEMENT, Placement
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import goes_on_alone
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.label import Label
from gpuwatch.session.study.labels import read
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.plan import read as read_plan
from gpuwatch.session.study.short_name import id_of, short_name

_MOST = 12
"""Sessions that an error lists at most."""


def sessions_under(folder: Path) -> list[Path]:
    """The session files in a study or a folder of studies, oldest first."""
    inside = _entries(folder)
    inside += [entry for each in inside for entry in _entries(each.path)]
    sessions_ = [Path(entry.path) for entry in inside if entry.name.endswith(SUFFIX)]
    return sorted(sessions_, key=lambda path: (path.parent.name, path.name))


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """The entries of a folder; empty if it is none, or cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def resolved(paths_: Iterable[Path]) -> list[Path]:
    """Absolute paths without symlinks, each once."""
    return list(dict.fromkeys(Path(os.path.realpath(path)) for path in paths_))


def live_sessions() -> list[Path]:
    """Sessions of running or lost runs, wherever they are recorded."""
    sessions_ = map(paths.session_of, paths.run_folders())
    return [path for path in sessions_ if path is not None and os.path.exists(path)]


def studies_going_on() -> list[Path]:
    """The folders of studies that a recorder here is working on, also between two runs; newest
    last."""
    from gpuwatch.session.study.study_folder import is_held

    held = [folder.resolve() for folder in _folders() if is_held(folder)]
    return sorted(dict.fromkeys(held), key=lambda folder: folder.stat().st_ctime)


def waiting_studies() -> list[Path]:
    """The folders of studies at places that have no session yet, or never got one."""
    return [
        folder.resolve()
        for folder in _folders()
        if os.path.exists(folder / PLACEMENT) and not sessions_under(folder)
    ]


def _folders() -> list[Path]:
    """The folders of all studies, and what else is in the default one."""
    inside = _entries(paths.data_home())
    return [*paths.studies_elsewhere(), *(Path(entry.path) for entry in inside)]


def orphans() -> Iterator[tuple[str, str]]:
    """Runs still going here whose recorder died: (label, session id or path)."""
    for path in live_sessions():
        with contextlib.suppress(GpuwatchError), SessionReader(path) as reader:
            meta = reader.meta()
            if goes_on_alone(meta):
                session = mapping(meta.get("session"))
                yield str(session.get("label")), str(session.get("id") or path)


def known_sessions() -> list[Path]:
    """Sessions in the default folder, of studies recorded with ``--out``, and of live runs."""
    folders = (paths.data_home(), *paths.studies_elsewhere())
    saved = [path for folder in folders for path in sessions_under(folder)]
    return resolved([*saved, *live_sessions()])


def session(text: str) -> Path:
    """One session: a file, a study with a single session, a name, the start of an id, or ``last``.

    Raises:
        UsageError: no session matches, or several do.
    """
    sessions_ = sessions(text)
    if len(sessions_) == 1:
        return sessions_[0]
    _check_one(text, sessions_)
    raise UsageError(
        f"{text} holds {len(sessions_)} sessions",
        f"{to_paste('compare', text)}, or name one: {short_name(sessions_[0])}",
    )


def last_run(text: str) -> Path:
    """One session, of a study of several runs the last; raises as :func:`session`."""
    sessions_ = sessions(text)
    _check_one(text, sessions_)
    return max(sessions_, key=lambda path: path.name)


def _check_one(
    text: str, sessions_: Sequence[Path], waiting: Sequence[tuple[Path, Placement]] = ()
) -> None:
    """Raise ``UsageError`` if the sessions, with studies without any, are of several folders."""
    if len({path.parent for path in sessions_}) + len(waiting) < 2:
        return
    from gpuwatch.analysis.summary.listing import started_here
    from gpuwatch.cli.selection.session_index import listed

    rows, ones = listed(sessions_).sessions, dict[Path, str]()
    ids = Counter(row.id for row in rows)
    for row in rows:  # newest first; a file that was copied has the id of the other
        one, folder = row.path, row.path.parent
        if (folder.name == text or _is_named(folder, text)) and not _whole(folder)[1]:
            one = folder
        own = row.id[:8] if one != folder and row.id and ids[row.id] == 1 else shell(one)
        ones[one] = f"{own} ({started_here(row.started) or row.status})"
    ones |= {folder: f"{shell(folder)} ({known.state.value})" for folder, known in waiting}
    some = [*ones.values()][:_MOST] + ["..."] * (len(ones) > _MOST)
    raise UsageError(f"{text} may be any of {len(ones)}", f"name one: {', '.join(some)}")


def sessions(text: str) -> list[Path]:
    """All sessions of the one study or run that ``text`` names, or that have a tag (``tag:fast``);
    see :func:`session`."""
    if not text.strip():
        raise UsageError("no session is named", "see `gpuwatch sessions`")
    path = Path(text)
    if inside := sessions_under(path):
        return inside
    if path.suffix == SUFFIX or "/" in text:
        return _by_path(path)
    known = known_sessions()
    if text == "last":
        if not known:
            raise UsageError("no session was recorded yet", "start one: gpuwatch run mnist-cnn")
        from gpuwatch.cli.selection.session_index import listed

        return [listed(known).sessions[0].path]
    sessions_ = _labelled(text, known) or [
        path for path in known if id_of(path).startswith(text) or path.parent.name == text
    ]
    if not sessions_:
        if os.path.exists(text):
            return _by_path(Path(text))
        begin = [path.parent for path in known if path.parent.name.startswith(text)]
        if _labelled(f"tag:{text}", known):
            also = f"; did you mean tag:{text}?"
        else:  # names of studies end with the time
            also = f"; did you mean {max(begin).name}?" if begin else ""
        raise _nothing(text, f"no session {text!r}{also}")
    if not text.startswith("tag:"):
        _check_one(text, sessions_)
    return sessions_


def _by_path(path: Path) -> list[Path]:
    """The session file at ``path``."""
    if os.path.isdir(path):
        raise _nothing(str(path), f"no session in {path}")
    try:
        path.stat()
    except OSError as error:
        gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
        reason = "no such file" if gone else f"cannot read ({error.strerror})"
        raise StorageError(f"{reason}: {path}", "see `gpuwatch sessions`") from error
    return [path]


def _labelled(text: str, known: Iterable[Path]) -> list[Path]:
    """The sessions with this name or tag, and those of studies with it."""
    matches = []
    labels: dict[Path, dict[str, Label]] = {}
    tag = text.removeprefix("tag:") if text.startswith("tag:") else None
    for path in known:
        if path.parent not in labels:
            labels[path.parent] = read(path.parent)
        for label in (labels[path.parent].get(key) for key in (path.name, "")):
            if label and (label.name == text if tag is None else tag in label.tags):
                matches.append(path)
                break
    return matches


def without_session(text: str) -> tuple[Path, Placement] | None:
    """The folder of the study at a place that ``text`` names and of which no session is here, with
    what is known of its job.

    Raises:
        UsageError: several studies, or a session, have the name.
    """
    if is_folder := os.path.isdir(text):
        named = [] if sessions_under(Path(text)) else [Path(text)]
    else:
        waiting = resolved(waiting_studies())
        named = [each for each in waiting if each.name == text or _is_named(each, text)]
    found = [(each, placed) for each in named if (placed := read_placement(each)) is not None]
    if found and not is_folder:
        known = known_sessions()
        of_studies = [path for path in known if path.parent.name == text]
        _check_one(text, _labelled(text, known) or of_studies, found)
    return found[0] if found else None


def path_of(text: str) -> Path:
    """``text`` as a path; of the name of a study without a session its folder."""
    found = without_session(text)
    return Path(text) if found is None else found[0]


def _nothing(text: str, message: str) -> UsageError:
    """The error for a study or name without a session."""
    if (found := without_session(text)) is None:
        return UsageError(message, "see `gpuwatch sessions`")
    folder, placement = found
    if placement.in_part is None or placement.going_on:
        return UsageError(
            f"{folder.name} has no session: {placement.text}",
            f"what is known: {to_paste('show', folder.name)}",
        )
    return UsageError(
        f"{folder.name} was fetched in part: its samples are gone, and no verdict is made without",
        f"what is known: {to_paste('show', folder.name)}; "
        f"repeat it: {to_paste('resume', folder.name)}",
    )


def is_study(folder: Path) -> bool:
    """Whether a folder is a study: it has sessions or a plan in it."""
    inside = {entry.name for entry in _entries(folder)}
    return PLAN in inside or any(name.endswith(SUFFIX) for name in inside)


def target(text: str) -> tuple[Path, str]:
    """The study's folder and the session's file name, or ``""`` for a whole study of several runs.

    Raises:
        UsageError, StorageError: no session or study matches, or several do.
    """
    path = path_of(text)
    if is_study(path):
        return _whole(path.resolve())
    if sessions_under(path):
        raise UsageError(f"{text} is not a study: it has no session", "see `gpuwatch sessions`")
    sessions_ = sessions(text)
    folders = list(dict.fromkeys(path.parent for path in sessions_))
    if len(folders) == 1 and (folders[0].name == text or _is_named(folders[0], text)):
        return _whole(folders[0].resolve())
    only = session(text)
    return only.parent.resolve(), only.name


def called(folder: Path, key: str) -> str:
    """The name shown for a :func:`target`: that of the study, or of one of its sessions; the path
    of what no list has."""
    if folder not in resolved(_folders()):
        return f"{folder / key} (in no list: only its path finds it)"
    return folder.name if not key or _whole(folder)[1] else key


def _whole(folder: Path) -> tuple[Path, str]:
    """The target for a study; for a single run its session, as lists show one row for both."""
    inside = [entry.name for entry in _entries(folder) if entry.name.endswith(SUFFIX)]
    if len(inside) != 1 or ((plan := read_plan(folder)) is not None and len(plan.runs) > 1):
        return folder, ""
    return folder, inside[0]


def _is_named(folder: Path, text: str) -> bool:
    """Also of a study that waits, whose session is not there yet."""
    return any(
        label.name == text and not (key and (folder / key).exists())
        for key, label in read(folder).items()
    )


def refuse_taken(name: str, of: tuple[Path, str] | None, several: str) -> None:
    """Raise ``UsageError`` if ``name`` stands for something but the :func:`target` ``of``, which
    gets it; ``several`` is the hint for a label that several share."""
    if not name:
        return
    known = known_sessions()
    for path in known:  # three characters begin an id by chance
        if path.parent.name == name or (len(name) > 3 and id_of(path).startswith(name)):
            raise UsageError(
                f"{name!r} is the id of a session or its folder: {path}", "choose another name"
            )
    waiting = waiting_studies()
    for folder in resolved([*(path.parent for path in known), *waiting]):
        for key, label in read(folder).items():
            if label.name != name or not (folder in waiting or (folder / key).exists()):
                continue
            at, file = (folder, key) if key else _whole(folder)
            if (at, file) != of:
                raise UsageError(
                    f"{name!r} is the name of {at / file}, and a name is of one",
                    f"free it: {to_paste('rename', at / file, '')}; {several}",
                )
