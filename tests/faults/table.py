"""The table of docs/reliability.md, from what the tests of this folder saw.

``python -m tests.faults.table ROWS_FOLDER`` writes it into the page.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
HEAD = ("part", "fault", "tried", "lost", "left behind", "message")


@dataclass(frozen=True)
class Row:
    """One fault as it went: each text is of what the test measured or read, not of what it hoped.

    ``place`` orders the table: ``"recorder"``, ``"screen"``, ``"machine"``, ``"disk"``,
    ``"clock"``, ``"engine"``, ``"gpu"``, ``"workload"``, ``"folder"``.
    """

    place: str
    fault: str
    tried: int
    lost: str
    left_behind: str
    message: str


PLACES = (
    "recorder", "screen", "machine", "disk", "clock", "engine", "gpu", "workload", "folder",
)  # fmt: skip


def note(row: Row, folder: Path) -> None:
    """Keep a row for the table; each process of a parallel run writes a file of its own."""
    assert row.place in PLACES
    assert row.tried > 0
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(row)) + "\n")


def read(folder: Path) -> list[Row]:
    """All rows, those of one place together, in the order of their names."""
    rows = {
        row.fault: row
        for path in sorted(folder.glob("*.jsonl"))
        for row in (Row(**json.loads(line)) for line in path.read_text().splitlines())
    }
    return sorted(rows.values(), key=lambda row: (PLACES.index(row.place), row.fault))


def markdown(rows: list[Row]) -> str:
    """The table, with a line that says when and where it was made."""
    day = datetime.now(timezone.utc).date().isoformat()
    machine = f"{platform.system()} {platform.release().split('-')[0]}, {os.cpu_count()} cores"
    lines = [f"{day}, {machine}, Python {platform.python_version()}: {len(rows)} faults.", ""]
    cells = [HEAD, ("---",) * len(HEAD)]
    cells += [(r.place, r.fault, f"{r.tried:,}", r.lost, r.left_behind, r.message) for r in rows]
    lines += ["| " + " | ".join(_cell(text) for text in row) + " |" for row in cells]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(folder: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = markdown(read(folder))
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
