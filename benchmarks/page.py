"""What the tables of benchmarks/RESULTS.md share: their form, their place, the machine's name."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).with_name("RESULTS.md")


def marks(name: str) -> tuple[str, str]:
    """What stands before and behind the part of the page with this name."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put ``text`` into its part of the page."""
    begin, end = marks(name)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}\n{text.rstrip()}\n{end}{after}", encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, without a line end."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def processor() -> str:
    """The name that this machine's processor gives itself."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
