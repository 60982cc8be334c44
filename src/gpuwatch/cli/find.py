"""From what the user typed to session files."""

from __future__ import annotations

import contextlib
from pathlib import Path

from gpuwatch import paths
from gpuwatch.errors import StorageError, UsageError
from gpuwatch.models import mapping
from gpuwatch.session.schema import SUFFIX


def sessions_under(folder: Path) -> list[Path]:
    """The session files in a folder of studies, or in a study, oldest first."""
    found = [*folder.glob(f"*{SUFFIX}"), *folder.glob(f"*/*{SUFFIX}")]
    return sorted(found, key=lambda path: (path.parent.name, path.name))


def live_sessions() -> list[Path]:
    """Sessions of runs that go on or were lost, wherever they are recorded to."""
    found = []
    for folder in paths.run_folders():
        try:
            path = Path((folder / "session").read_text().strip())
        except OSError:
            continue
        if path.exists():
            found.append(path)
    return found


def studies_going_on() -> list[Path]:
    """The folders of studies that a recorder goes through here, between two runs too; the newest
    last."""
    from gpuwatch.session.study import is_held

    folders = [*paths.studies_elsewhere()]
    if paths.data_home().is_dir():
        folders += [folder for folder in paths.data_home().iterdir() if folder.is_dir()]
    held = [folder.resolve() for folder in folders if is_held(folder)]
    return sorted(dict.fromkeys(held), key=lambda folder: folder.stat().st_ctime)


def orphans() -> list[tuple[str, str]]:
    """Runs that go on here although their recorder died: label, and what names the session."""
    from gpuwatch.errors import GpuwatchError
    from gpuwatch.session.reader import SessionReader
    from gpuwatch.session.status import goes_on_alone

    found = []
    for path in live_sessions():
        with contextlib.suppress(GpuwatchError), SessionReader(path) as reader:
            meta = reader.meta()
            if goes_on_alone(meta):
                session = mapping(meta.get("session"))
                found.append((str(session.get("label")), str(session.get("id") or path)))
    return found


def known_sessions() -> list[Path]:
    """Sessions in the default folder, in studies recorded with ``--out``, and of live runs."""
    found = sessions_under(paths.data_home())
    for folder in paths.studies_elsewhere():
        found += sessions_under(folder)
    return list(dict.fromkeys(path.resolve() for path in [*found, *live_sessions()]))


def session(text: str) -> Path:
    """One session: a file, a study with a single one, the start of an id, or ``last``.

    Raises:
        UsageError: there is no such session, or several.
    """
    found = sessions(text)
    if len(found) > 1:
        listed = ", ".join(str(path) for path in found[:3])
        raise UsageError(f"{text} holds {len(found)} sessions", f"name one: {listed}")
    return found[0]


def sessions(text: str) -> list[Path]:
    """All sessions that ``text`` names; see :func:`session`."""
    if not text.strip():
        raise UsageError("no session is named", "see `gpuwatch sessions`")
    path = Path(text)
    if path.is_dir():
        found = sessions_under(path)
        if not found:
            raise UsageError(f"no session in {path}", "see `gpuwatch sessions`")
        return found
    if path.exists() or path.suffix == SUFFIX or "/" in text:
        if not path.exists():
            raise StorageError(f"no such file: {path}", "see `gpuwatch sessions`")
        return [path]
    known = known_sessions()
    if text == "last":
        if not known:
            raise UsageError("no session was recorded yet", "start one: gpuwatch run mnist-cnn")
        return [max(known, key=lambda path: path.stat().st_mtime)]
    found = [
        path for path in known if _identifier(path).startswith(text) or path.parent.name == text
    ]
    if not found:
        raise UsageError(f"no session {text!r}", "see `gpuwatch sessions`")
    return found


def _identifier(path: Path) -> str:
    from gpuwatch.errors import GpuwatchError
    from gpuwatch.session.reader import SessionReader

    try:
        with SessionReader(path) as reader:
            return str((reader.meta().get("session") or {}).get("id", ""))
    except GpuwatchError:
        return ""
