"""Hostile text: terminal control sequences in every text of a session."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from gpuwatch.tui.app import GpuwatchApp

from .live.test_kernels import PROFILE
from .sessions import finished

SEQUENCES = {
    "CSI": "\x1b[31;1mred\x1b[2J\x1b[10;10H",
    "OSC 8": "\x1b]8;;http://example.org\x07link\x1b]8;;\x07",
    "OSC 52": "\x1b]52;c;aGVsbG8=\x1b\\",
    "a title": "\x1b]0;owned\x07",
    "DCS": "\x1bP1$tx\x1b\\",
    "one that does not end": "\x1b]0;owned",
    "C1": "\x9b31m\x9d0;owned\x9c\x90x\x9c\x85",
    "controls": "a\x00b\x07c\x08d\x0be\x0cf\x7fg\rh\ti",
    "markup": "[bold red on blue]x[/] [link=http://x]y[/link] [@click=app.quit]z[/]",
    "bidi": "\u202eevil\u202c \u2066x\u2069 \u200f\u061c",
    "zero width": "a\u200bb\u200dc\ufeffd\u2060e\u00adf",
    "combining": "e" + "\u0301" * 500 + "\u20e3",
    "jamo": "x\u1160\u11ff\ud7b0\u115f\u3164\uffa0y",
    "wide": "你好世界こんにちは세계" * 20,
    "joined emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f466 1\ufe0f\u20e3 \u2764\ufe0f",
    "flags": "\U0001f1e9\U0001f1ea",
    "long": "x" * 100_000,
    "odd spaces": "a\u00a0b\u2003c\u3000d\u2028e\u2029f",
}
EVERYTHING = " ".join(text for name, text in SEQUENCES.items() if name != "one that does not end")
LONGEST = "y" * 10_000_000
"""Most characters of a line of the log."""

NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me", "Zl", "Zp"})
"""Unicode categories that no screen sends."""

_JOINING_OR_EMPTY = frozenset(map(chr, (*range(0x115F, 0x1200), *range(0xD7B0, 0xD7FC)))) | {
    "\u3164",
    "\uffa0",
}
"""Characters of different width on different terminals: Korean jamo and invisible letters."""


def fields(text: str, longest: str = "") -> dict[str, Any]:
    """Fields of ``Script`` with ``text`` as every text."""
    tables = json.loads(json.dumps(PROFILE).replace("ampere_sgemm", json.dumps(text)[1:-1]))
    return {
        "name": text,
        "environment": text,
        "gpus": 2,
        "pipes": True,
        "throttled": True,
        "log": [("stdout", text), ("stderr", text), ("stdout", longest or text), (text, text)],
        "events": [(20.0, text, text), (30.0, "xid", text)],
        "meta": {
            **finished(1),
            "error": {"message": text, "hint": text},
            "profile": {**tables, "tool": text, "version": text, "notes": [text]},
        },
        "alive": False,
    }


def poison(path: Path, text: str) -> Path:
    """Write ``text`` to those places of a session that ``Script`` does not set."""
    with sqlite3.connect(path) as file:
        file.execute("UPDATE device SET name = ?", (text,))
        file.execute("UPDATE channel SET source = ?, reason = ?", (text, text))
    file.close()
    return path


def not_shown(text: str) -> set[str]:
    """The characters of ``text`` that no terminal should get, or of uncertain width."""
    return {
        hex(ord(c)) for c in text if unicodedata.category(c) in NOT_SHOWN or c in _JOINING_OR_EMPTY
    }


def check_screen(app: GpuwatchApp) -> None:
    """Check that each row has the width of the screen and no hostile characters."""
    width = app.size.width
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        bad = not_shown(strip.text)
        assert not bad, f"row {y} holds {bad}: {strip.text!r}"
        assert cell_len(strip.text) == strip.cell_length == width, f"row {y}: {strip.text!r}"


WRONG: tuple[object, ...] = ("abc", b"\xff\x00", float("inf"), 1e300, 2**63 - 1, -(2**63), None, -1)
"""Values that a recorder never writes to most columns."""


def columns_of(path: Path) -> list[tuple[str, str]]:
    """Every table and column of a session."""
    with sqlite3.connect(path) as file:
        tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master ORDER BY name")]
        columns = [
            (table, str(row[1]))
            for table in tables
            if not table.startswith("sqlite_")
            for row in file.execute(f"PRAGMA table_info({table})")
        ]
    file.close()
    return columns


def spoil(path: Path, table: str, column: str, value: object, *, last: bool = False) -> bool:
    """Write ``value`` to a column of all rows, or of the last one; returns whether it could."""
    which = f" WHERE {column} = (SELECT max({column}) FROM {table})" if last else ""
    file = sqlite3.connect(path)
    try:
        with file:
            done = file.execute(f"UPDATE {table} SET {column} = ?{which}", (value,))
        return done.rowcount > 0
    except sqlite3.IntegrityError:
        return False
    finally:
        file.close()
