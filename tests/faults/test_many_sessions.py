"""A folder of a thousand sessions, with what is none among them: listed, opened, compared."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gpuwatch.session import schema
from tests.conftest import Cli
from tests.terminal import Pty

from .table import Row

_DATA = Path(__file__).parents[1] / "data" / "kept-0.1.0" / "study"
_PER_STUDY = 10


def test_a_thousand_sessions_and_garbage_among_them_are_listed_opened_and_compared(
    cli: Cli, tmp_path: Path, times: Callable[[int, int], int], note_fault: Callable[[Row], None]
) -> None:
    count = times(150, 1_000)
    home = cli.home / ".local/share/gpuwatch/studies"
    good = _sessions(home, count)
    garbage = _garbage(home / "study-0000")
    before = _files(home)

    listed = _listed(cli)
    assert _listed(cli) == listed, "what is remembered is told as what was read"
    status = {row["path"]: row["status"] for row in listed}
    assert {path for path in status if status[path] == "finished"} == {str(each) for each in good}
    unreadable = {path for path in status if status[path] == "unreadable"}
    assert unreadable == {str(each) for each in garbage}
    assert cli("sessions", "--runs").stdout.count("finished") == count

    screen = Pty(cli.argv(), environment=cli.env)
    try:
        screen.wait("train.py", 60)
        screen.type("q")
        assert screen.end() == 0
    finally:
        screen.close()

    assert ": finished" in cli("show", good[-1]).stdout
    compared = json.loads(cli("compare", good[0], good[-1], "--format", "json").stdout)
    assert len(compared["sessions"]) == 2
    study = home / "study-0000"
    result = json.loads(cli("report", study, "--format", "json").stdout)
    assert len(result["sessions"]) == _PER_STUDY
    left_out = [note for note in result["notes"] if "is left out" in note]
    named = [each for each in garbage if each.is_file() and not each.is_symlink()]
    assert {each.name for each in named} <= {note.split()[0] for note in left_out}
    assert _files(home) == before

    said = listed[[row["path"] for row in listed].index(str(garbage[0]))]["status_text"]
    said = str(said).replace(str(home), "FOLDER")
    note_fault(
        Row(
            "folder",
            f"{count:,} sessions, and {len(garbage)} files that are not sessions",
            1,
            "nothing: all are listed, shown and compared",
            "nothing: no file changed",
            f"`unreadable`: {said}",
        )
    )


def _sessions(home: Path, count: int) -> list[Path]:
    found = []
    for n in range(count):
        folder = home / f"study-{n // _PER_STUDY:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{n % _PER_STUDY + 1:02d}-bare.gpuwatch"
        shutil.copy(_DATA / f"0{n % 2 + 1}-bare-{n % 2 + 1}.gpuwatch", path)
        found.append(path)
    return found


def _garbage(folder: Path) -> list[Path]:
    """Empty, text, cut short, of a newer gpuwatch, another database, a pipe."""
    whole = (_DATA / "01-bare-1.gpuwatch").read_bytes()
    files = {
        "90-empty": b"",
        "91-text": b"no session at all\n" * 100,
        "92-cut": whole[:5000],
        "93-header": whole[:100] + os.urandom(50_000),
    }
    found = []
    for name, data in files.items():
        found.append(folder / f"{name}.gpuwatch")
        found[-1].write_bytes(data)
    newer, other, pipe = (folder / f"{n}.gpuwatch" for n in ("94-newer", "95-other", "96-pipe"))
    shutil.copy(_DATA / "01-bare-1.gpuwatch", newer)
    with sqlite3.connect(newer) as db:
        db.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (a)")
    os.mkfifo(pipe)
    return [*found, newer, other, pipe]


def _listed(cli: Cli) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(cli("sessions", "--format", "json").stdout)[
        "sessions"
    ]
    return found


def _files(home: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in home.rglob("*")
        if not path.is_dir()
    }
