"""The compare screen: sessions side by side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.errors import GpuwatchError
from gpuwatch.session.progress import unstarted
from gpuwatch.session.study import NotRun
from gpuwatch.tui.canvas import Canvas, Line
from gpuwatch.tui.head_rows import trouble_rows
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.snapshot import Trouble

if TYPE_CHECKING:
    from gpuwatch.analysis.compare import Comparison

HELP: tuple[tuple[str, str], ...] = (
    ("↑ ↓ PgUp PgDn", "scroll"),
    ("← →", "other sessions beside the baseline, where not all fit"),
    ("Esc or q", "back"),
    ("t", "colours: dark, light, the terminal's own"),
    ("?", "this page"),
)


class Compared(Message):
    """The thread is done."""

    def __init__(self, result: Comparison | Trouble) -> None:
        super().__init__()
        self.result = result


class CompareScreen(PaintedScreen):
    """Reads the sessions in a thread of its own and shows what they say."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("pagedown,space", "scroll_by(15)", show=False),
        Binding("pageup", "scroll_by(-15)", show=False),
        Binding("home", "scroll_by(-1000000)", show=False),
        Binding("end", "scroll_by(1000000)", show=False),
        Binding("right,l", "shift(1)", show=False),
        Binding("left,h", "shift(-1)", show=False),
        Binding("escape,q", "back", show=False),
    ]

    def __init__(self, paths: Sequence[Path], beside: Path | None = None) -> None:
        """``beside``: the session to stand next to the baseline where not all fit."""
        super().__init__()
        self.paths = list(paths)
        self._beside = beside
        self._not_run: list[NotRun] = []
        self.result: Comparison | Trouble | None = None
        self._row = 0
        self._column = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._compare, name="compare", daemon=True)

    def on_mount(self) -> None:
        self._thread.start()
        self.call_after_refresh(self.paint)

    def on_unmount(self) -> None:
        self._over.set()
        self._thread.join(timeout=2)

    def _compare(self) -> None:
        """In the thread: read every session, then compare."""
        from gpuwatch.analysis.compare import compare
        from gpuwatch.analysis.summary import summarise
        from gpuwatch.session.reader import SessionReader

        if len({path.parent for path in self.paths}) == 1:
            self._not_run = unstarted(self.paths[0].parent)
        summaries = []
        try:
            for path in self.paths:
                if self._over.is_set():
                    return
                with SessionReader(path) as reader:
                    summaries.append(summarise(reader))
            result: Comparison | Trouble = compare(summaries)
        except GpuwatchError as error:
            result = Trouble(error.message, error.mend)
        if not self._over.is_set():
            self.post_message(Compared(result))

    def on_compared(self, message: Compared) -> None:
        self.result = message.result
        if not isinstance(self.result, Trouble) and self._beside in self.paths:
            from gpuwatch.tui.compare_rows import others

            at = self.paths.index(self._beside)
            rest = others(self.result)
            self._column = rest.index(at) if at in rest else 0
        self.paint()

    def paint(self) -> None:
        width, height = self.app.size
        if height < 4:
            return
        title = Line(width).add(" gpuwatch ", "brand").add("compare", "strong")
        lines = [title]
        keys = [("Esc", "back")]
        if self.result is None:
            lines += [Line(width), Line(width).add(" reading the sessions …", "muted")]
        elif isinstance(self.result, Trouble):
            lines.append(Line(width))
            lines += trouble_rows(self.result, width)
        else:
            lines += self._table(self.result, title, width, height, keys)
        lines += [Line(width) for _ in range(height - 1 - len(lines))]
        lines = lines[: height - 1]
        lines.append(keys_row([*keys, ("?", "help")], width))
        self.query_one(Canvas).show(lines)

    def _table(
        self,
        compared: Comparison,
        title: Line,
        width: int,
        height: int,
        keys: list[tuple[str, str]],
    ) -> list[Line]:
        from gpuwatch.tui.compare_rows import against, body_rows, heading_rows, layout

        hidden = len(compared.sessions) - len(layout(compared, width, 0).order)
        self._column = max(0, min(self._column, hidden))
        place = layout(compared, width, self._column)
        title.add(f"  {against(compared)}", "muted")
        heading = heading_rows(compared, place)
        body = body_rows(compared, place, self._not_run)
        space = max(1, height - 2 - len(heading))
        self._row = max(0, min(self._row, len(body) - space))
        if len(body) > space:
            last = min(len(body), self._row + space)
            keys.append(("↑↓", f"scroll, {last} of {len(body)}"))
        if hidden > 0:
            keys.append(("←→", f"{hidden} more"))
        return [*heading, *body[self._row : self._row + space]]

    def action_scroll_by(self, by: int) -> None:
        self._row += by
        self.paint()

    def action_shift(self, by: int) -> None:
        self._column += by
        self.paint()

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            self.gpuwatch.leave()

    def action_help(self) -> None:
        self.gpuwatch.help(HELP)
