"""Steps or scores from the progress lines of a program that prints no step lines."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.recorder.output.step_lines import Malformed, Step, step_of
from gpuwatch.recorder.output.writers import Writers
from gpuwatch.recorder.progress import formats
from gpuwatch.recorder.progress.base import Progress, ProgressLines

_LONGEST = 300


class ProgressSteps:
    """Finds the format of a program's progress lines by the first line that one of them reads.

    The first step is a warm-up: its time includes what is done once. After a crash another recorder
    continues with the ``state`` (``known``).
    """

    def __init__(self, known: Mapping[str, JSON], *, told: bool) -> None:
        """``told``: whether the session says already that several processes print."""
        name, last = known.get("format"), known.get("last")
        self._name = name if isinstance(name, str) else None
        self._last = last if isinstance(last, int) else None
        self._over = known.get("over") is True
        self._formats: dict[str, ProgressLines] | None = None
        self.numbered = True
        """Whether the last line that was read tells its step's number."""
        self.writers = Writers(mapping(known.get("writers")), told=told)

    @property
    def state(self) -> dict[str, JSON]:
        """What the next recorder must know."""
        return {
            "format": self._name,
            "last": self._last,
            "over": self._over,
            "writers": self.writers.state,
        }

    def end(self) -> None:
        """Read no more lines: the program reports its steps itself."""
        self._over = True

    def read(self, line: str, *, numbered: bool) -> tuple[Step | None, bool]:
        """The step of a line, and whether the line is the first of its format.

        ``numbered``: leave out lines that tell no step's number; otherwise they count on.
        """
        if self._over:
            return None, False
        if self._formats is None:
            self._formats = dict(formats())
            if self._name is not None:
                self._formats = {
                    name: each for name, each in self._formats.items() if name == self._name
                }
        for name, each in list(self._formats.items()):
            try:
                progress = each.read(line)
                if progress is None or (numbered and progress.step is None):
                    continue
                step, self.numbered = self._step(progress), progress.step is not None
            except Malformed:
                return None, False
            except Exception:  # another package's: without it
                del self._formats[name]
                continue
            first = self._name is None
            self._name, self._last, self._formats = name, step.step, {name: each}
            return step, first
        return None, False

    @property
    def source(self) -> str:
        """Which lines they are, and what a line tells; once one was read."""
        ((name, found),) = (self._formats or {}).items()
        program, figures = (clean(text, _LONGEST) for text in (found.program, found.figures))
        return f"from the progress lines of {program} ({name}): {figures}"

    def _step(self, progress: Progress) -> Step:
        """A line is about one step; without a time it counts those since the line before."""
        last = self._last
        step = progress.step if progress.step is not None else (last or 0) + 1
        rise = step - last if last is not None and step > last else 1
        body: dict[str, JSON] = {
            "step": step,
            "count": 1 if progress.seconds is not None else rise,
            "seconds": progress.seconds,
            "loss": progress.loss,
            "acc1": progress.acc1,
            "acc5": progress.acc5,
            "phases": dict(progress.phases),
            "warmup": self._name is None,
        }
        return step_of(body)
