"""Which process of a list is selected, and which rows of it are shown."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.tui.feed.processes import ProcessNow


class Selection:
    """One process of a list: it stays selected where the order changes, and is always shown."""

    def __init__(self) -> None:
        self.processes: Sequence[ProcessNow] = ()
        """As they are listed."""
        self.first = 0
        """Place of the first one that is shown."""
        self._pid: int | None = None
        """Of the selected process; ``None``: the first one."""

    @property
    def process(self) -> ProcessNow | None:
        """The selected one; ``None``: there is none at all."""
        return self.processes[self.at] if self.processes else None

    @property
    def at(self) -> int:
        """Its place in the list."""
        pids = [process.pid for process in self.processes]
        return pids.index(self._pid) if self._pid in pids else 0

    def select(self, at: int) -> None:
        """Select the process at this place, or the nearest one that there is."""
        if self.processes:
            self._pid = self.processes[max(0, min(len(self.processes) - 1, at))].pid

    def scroll(self, rows: int) -> None:
        """Choose the first of so many rows: as before where the selected one is among them."""
        last = len(self.processes) - rows
        self.first = max(0, min(self.first, last, self.at), self.at - rows + 1)
