"""The section "Soak" of docs/reliability.md."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone

from tests.faults.table import PAGE
from tests.soak.growth import MIB, Growth
from tests.soak.soak import Outcome

BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"


def markdown(outcome: Outcome) -> str:
    """Actions, leftovers, and the resources of long-running programs."""
    today = datetime.now(timezone.utc).date().isoformat()
    checks = len(next(iter(outcome.left.values())))
    lines = [
        f"{today}, Linux {platform.release()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}: {outcome.minutes:.0f} minutes, "
        f"{sum(outcome.done.values())} actions, {len(outcome.wrong)} of them failed.",
        "",
        "| done | times |",
        "| --- | --- |",
        *(f"| {name} | {outcome.done[name]} |" for name in sorted(outcome.done)),
        "",
        f"| left behind | most at one of {checks} checks | at the end |",
        "| --- | --- | --- |",
        *(
            f"| {name.replace('_', ' ')} | {max(counts)} | {counts[-1]} |"
            for name, counts in outcome.left.items()
        ),
        "",
        "| ran throughout | memory (RSS), MiB | MiB an hour (95 %) | descriptors | threads |",
        "| --- | --- | --- | --- | --- |",
        *(_row(name, each) for name, each in outcome.grown.items()),
    ]
    return "\n".join(lines)


def _row(name: str, grown: Growth) -> str:
    start, end = grown.start, grown.end
    return (
        f"| {name} | {start.rss / MIB:.1f} to {end.rss / MIB:.1f} "
        f"| {grown.slope:+.1f} ({grown.low:+.1f} to {grown.high:+.1f}) "
        f"| {start.descriptors} to {end.descriptors} | {start.threads} to {end.threads} |"
    )


def write(outcome: Outcome) -> None:
    """Put it into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{markdown(outcome)}\n{END}{after}", encoding="utf-8")
