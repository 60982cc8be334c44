"""The page of kernel differences between two runs; a thread reads their profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.reading import Post, Reading, ReadingFailed
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.live.head_rows import trouble_rows
from gpuwatch.tui.widgets.page import PageScreen, Row

if TYPE_CHECKING:
    from gpuwatch.tui.compare.kernel_difference_rows import Side


@dataclass(frozen=True)
class Pair:
    """Two runs whose profiles are compared, the baseline first."""

    labels: tuple[str, str]
    paths: tuple[Path, Path]
    sentences: tuple[str, ...] = ()
    """Evidence about kernels from the explanation of the change."""


class ProfilesRead(Message):
    """All profiles are read."""

    def __init__(self, sides: dict[Path, Side]) -> None:
        super().__init__()
        self.sides = sides


class KernelDifferencesScreen(PageScreen):
    """Shows the kernels of two runs, with the time and launches in each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "close", "back", show=False),
        Binding("right", "pair(1)", "next pair", tooltip="another one against its baseline"),
        Binding("left", "pair(-1)", "pair before", show=False),
    ]

    def __init__(self, pairs: Sequence[Pair]) -> None:
        super().__init__("compare: kernels", self._page_rows)
        self._pairs = list(pairs)
        self._pair = 0
        self._sides: dict[Path, Side] | None = None
        self._trouble: Trouble | None = None
        self._reading = Reading("kernel-pairs", self, self._look)

    def on_mount(self) -> None:
        super().on_mount()
        self._reading.start()

    def on_unmount(self) -> None:
        self._reading.leave()

    def _look(self, post: Post) -> None:
        """In the thread: read the profile of each run."""
        from gpuwatch.analysis.hardware.profile import profile_of, why_none
        from gpuwatch.tui.compare.kernel_difference_rows import Side

        sides = {}
        for path in dict.fromkeys(path for pair in self._pairs for path in pair.paths):
            try:
                with SessionReader(path) as reader:
                    meta = reader.meta()
                sides[path] = Side("", profile_of(meta), why_none(meta))
            except GpuwatchError as error:
                sides[path] = Side("", None, (error.message, error.hint))
        post(ProfilesRead(sides))

    def on_profiles_read(self, message: ProfilesRead) -> None:
        self._sides = message.sides
        self.paint()

    def on_reading_failed(self, message: ReadingFailed) -> None:
        self._trouble = message.trouble
        self.paint()

    def _page_rows(self, width: int) -> Sequence[Row]:
        from dataclasses import replace

        from gpuwatch.tui.compare.kernel_difference_rows import kernel_difference_rows

        if not self._pairs:
            return [((" there is one run alone: its kernels are on K of its replay", "text"),)]
        if self._trouble is not None:
            return [tuple(line.spans()) for line in trouble_rows(self._trouble, width)]
        if self._sides is None:
            return [((" reading the profiles …", "muted"),)]
        pair = self._pairs[self._pair]
        first, second = (
            replace(self._sides[path], label=label)
            for label, path in zip(pair.labels, pair.paths, strict=True)
        )
        rows = kernel_difference_rows((first, second), pair.sentences, width)
        if len(self._pairs) > 1:
            place = f"   {self._pair + 1} of {len(self._pairs)}, "
            rows[0] = (*rows[0], (place, "muted"), ("←→", "key"), (" for the others", "muted"))
        return rows

    def action_pair(self, by: int) -> None:
        if self._pairs:
            self._pair = (self._pair + by) % len(self._pairs)
        self.action_scroll_by(-1_000_000)
