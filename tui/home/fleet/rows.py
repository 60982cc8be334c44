"""The rows of the screen of machines: one for each, and one below it for each of its GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import clock_time
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.home.devices import gpu_heading, gpu_layout, gpu_rows, host_texts
from gpuwatch.tui.widgets.line import Line, fit


@dataclass(frozen=True)
class Host:
    """What is known of one machine."""

    place: str
    session: Path | None
    """What was recorded there; ``None``: nothing is here."""
    trouble: str | None
    """Why it is away."""
    age: float | None
    """Seconds since something came from it; ``None``: never."""
    snapshot: Snapshot | None
    """As of now; ``None``: not known, or not looked at."""
    alerts: tuple[str, ...] = ()
    """Its alerts when it was looked at last, also where it is out of sight now."""

    @property
    def rows(self) -> int:
        """How many rows it takes."""
        return 1 + (len(self.snapshot.gpus) if self.snapshot is not None else 0)


def matching(hosts: Sequence[Host], query: str) -> Sequence[Host]:
    """Those whose name has every word of ``query``; ``away`` stands for those that are."""
    words = query.casefold().split()
    return [host for host in hosts if all(word in _text(host) for word in words)]


def _text(host: Host) -> str:
    return f"{host.place} {'away' if host.trouble is not None else ''}".casefold()


def alerts_of(hosts: Sequence[Host]) -> list[str]:
    """The alerts of all machines, each with the machine in front."""
    return [f"{host.place}: {text}" for host in hosts for text in host.alerts]


def head_row(hosts: Sequence[Host], query: str, hidden: int, running: int, width: int) -> Line:
    """How many machines there are, are away and have no room below, and how many runs go on."""
    away = sum(host.trouble is not None for host in hosts)
    count = len(hosts)
    text = f"{count} machine{'s' * (count != 1)}" + (f", {away} away" if away else "")
    text += f", {hidden} not in sight" if hidden else ""
    text += f"  /{fit(query, 24)}" if query else ""
    row = Line(width).add(" gpuwatch ", "brand").add(text, "strong")
    right = f"▶ {running} running " if running else ""
    return row.end(right, "good") if right and len(right) < row.left else row


def heading(width: int) -> Line:
    """What stands in the columns of the GPUs."""
    return gpu_heading(gpu_layout(width, bandwidth=False, history=False), width)


def host_rows(host: Host, selected: bool, width: int) -> list[Line]:
    """The machine, and its GPUs."""
    row = Line(width).add("▸" if selected else " ", "key")
    row.add(fit(clean(host.place), max(12, width // 3)), "strong").add("  ")
    if host.trouble is not None:
        heard = f", last heard {clock_time(host.age)} ago" if host.age is not None else ""
        why = fit(f"away: {clean(host.trouble)}", max(8, row.left - len(heard)))
        return [row.add(why, "bad").add(heard)]
    if host.snapshot is None:
        return [row.add("" if host.session is not None else "is being reached ...", "muted")]
    cpu, none = host.snapshot.cpu, ["no GPU"] if not host.snapshot.gpus else []
    row.add("  ".join([*(host_texts(cpu) if cpu is not None else []), *none]))
    warnings = f"! {len(host.alerts)} warning{'s' * (len(host.alerts) > 1)} " if host.alerts else ""
    if warnings and len(warnings) < row.left:
        row.end(warnings, "warn")
    layout = gpu_layout(width, bandwidth=False, history=False)
    rows = [row]
    for gpu in host.snapshot.gpus:
        rows += gpu_rows(gpu, None, host.snapshot.processes, layout, width)
    return rows


def first_shown(hosts: Sequence[Host], selected: int, first: int, rows: int) -> int:
    """The first machine on a list of so many ``rows``, on which the selected one is whole if it
    can be; it is ``first`` where that is possible."""
    first = min(first, selected)
    while first < selected and sum(host.rows for host in hosts[first : selected + 1]) > rows:
        first += 1
    return first
