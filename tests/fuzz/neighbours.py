"""Mutations of what lies under the name of a session, and beside it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import raw, schemas

_LONGEST_NAME = 255
"""Bytes of a file's name."""


def mutate(rng: random.Random, path: Path, canary: Path) -> tuple[Path, str]:
    """Change the file, or what lies beside it; returns the file's path by now, and how.

    ``canary``: a file that must stay as it is.
    """
    how = rng.choice(_ALL)
    return how(rng, path, canary), how.__name__.strip("_")


def _name(rng: random.Random, path: Path, canary: Path) -> Path:
    names = (
        b"a\nb.gpuwatch", b"\x1b[31mred.gpuwatch", b"\xff\xfe.gpuwatch", b"a?mode=rwc.gpuwatch",
        b"%00.gpuwatch", b"#x.gpuwatch", b"[red]x.gpuwatch", b"<script>x.gpuwatch",
        "\u202eevil.gpuwatch".encode(), b".gpuwatch", b"--help.gpuwatch", b"-.gpuwatch",
        b"'; DROP TABLE log; --.gpuwatch", b"a" * 240 + b".gpuwatch", b"=cmd|x.gpuwatch",
    )  # fmt: skip
    new = path.parent / os.fsdecode(rng.choice(names))
    journal = Path(f"{path}-journal")
    if journal.exists() and len(os.fsencode(new.name)) + len("-journal") <= _LONGEST_NAME:
        journal.rename(f"{new}-journal")
    return path.rename(new)


def _directory(rng: random.Random, path: Path, canary: Path) -> Path:
    path.unlink()
    path.mkdir()
    return path


def _fifo(rng: random.Random, path: Path, canary: Path) -> Path:
    path.unlink()
    os.mkfifo(path)
    return path


def _link(rng: random.Random, path: Path, canary: Path) -> Path:
    kept = path.rename(path.with_name("kept"))
    odd = ("/dev/zero", "/dev/null", "/dev/tty", "/proc/self/mem", "/etc/passwd", ".", "nowhere")
    targets = (kept, kept, canary, path, *odd)
    path.symlink_to(rng.choice(targets))
    return path


def _beside(rng: random.Random, path: Path, canary: Path) -> Path:
    """Something odd in place of one of the files that SQLite looks for."""
    other = Path(f"{path}{rng.choice(('-journal', '-wal', '-shm', '-journal'))}")
    other.unlink(missing_ok=True)
    kind = rng.randrange(6)
    if kind == 0:
        os.mkfifo(other)
    elif kind == 1:
        other.symlink_to(rng.choice(("/dev/zero", canary, path, "/dev/tty", other)))
    elif kind == 2:
        other.mkdir()
    elif kind == 3:
        shutil.copy(path, other)
    elif kind == 4:
        other.write_bytes(rng.randbytes(rng.choice((1, 512, 5000))))
    else:
        other.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + rng.randbytes(600))
    if rng.random() < 0.5 and not other.is_symlink():  # it is written through
        raw.mutate(rng, path)
    return path


def _removes_another(rng: random.Random, path: Path, canary: Path) -> Path:
    """A journal that is rolled back, and names a file that SQLite removes afterwards."""
    _hot(path)
    with Path(f"{path}-journal").open("ab") as journal:
        journal.write(raw.super_journal(canary))
    return path


def _grows(rng: random.Random, path: Path, canary: Path) -> Path:
    """A journal that says that the file was huge."""
    _hot(path)
    journal = Path(f"{path}-journal")
    data = bytearray(journal.read_bytes())
    data[16:20] = rng.choice((2**31 - 1, 2**28, 2**20)).to_bytes(4, "big")
    journal.write_bytes(data)
    return path


def _hot(path: Path) -> None:
    """Give the file a journal as of a writer that was killed, unless it has one."""
    if Path(f"{path}-journal").exists():
        return
    source = path.with_name("source")
    shutil.copy(path, source)
    writer = sqlite3.connect(source, isolation_level=None)
    writer.execute("PRAGMA cache_size=1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE tick SET t = t + 1")
    writer.execute("UPDATE log SET text = text || 'x'")
    for n in range(10_000, 10_300):
        writer.execute("INSERT INTO log VALUES (?, 0, 'stdout', ?)", (n, "z" * 300))
    shutil.copy(source, path)
    shutil.copy(f"{source}-journal", f"{path}-journal")
    writer.execute("ROLLBACK")
    writer.close()
    source.unlink()


def _log_ahead(rng: random.Random, path: Path, canary: Path) -> Path:
    """A write-ahead log that puts other pages, and another schema, over the file's."""
    source = path.with_name("source")
    shutil.copy(path, source)
    kept = path.read_bytes()
    writer = sqlite3.connect(source, isolation_level=None)
    with contextlib.suppress(sqlite3.Error):  # of a file that is torn already
        writer.execute("PRAGMA journal_mode=WAL")
        more = f"CREATE VIEW more AS {schemas.ENDLESS}"
        writer.execute(more if rng.random() < 0.5 else "DELETE FROM log")
        shutil.copy(f"{source}-wal", f"{path}-wal")
    if rng.random() < 0.5:
        shutil.copy(source, path)
    else:
        path.write_bytes(kept)
    writer.close()
    source.unlink()
    return path


def _sparse(rng: random.Random, path: Path, canary: Path) -> Path:
    """A small file that claims a huge length."""
    os.truncate(path, rng.choice((1 << 30, 1 << 36)))
    if rng.random() < 0.7:
        with path.open("r+b") as file:
            file.seek(rng.randrange(100, 60_000))
            file.write(rng.randbytes(40))
    return path


def _empty(rng: random.Random, path: Path, canary: Path) -> Path:
    path.write_bytes(rng.choice((b"", b"SQLite format 3\x00", rng.randbytes(200))))
    return path


_ALL: tuple[Callable[[random.Random, Path, Path], Path], ...] = (
    *(_name, _name, _directory, _fifo, _link, _link, _beside, _beside, _beside),
    *(_removes_another, _grows, _log_ahead, _log_ahead, _sparse, _empty),
)
