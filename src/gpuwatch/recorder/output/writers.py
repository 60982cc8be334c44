"""Whether all step lines of a run come from one training loop."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.models import JSON, mapping
from gpuwatch.recorder.output.step_lines import Report, Step


class Writers:
    """Looks at each line, and tells once why the lines cannot all be of one loop.

    Step numbers rise, each on its own in the warm-up and in the timed steps, unless the lines name
    their writer: then one writer may begin anew, but not repeat a number at once. After a crash
    another recorder continues with the ``state`` (``known``).
    """

    def __init__(self, known: Mapping[str, JSON], *, told: bool) -> None:
        """``told``: whether the reason is already in the session."""
        self._told = told
        self._writer = known.get("writer")
        self._run = known.get("run") is True
        self._last: dict[str, int] = dict(mapping(known.get("last")))

    @property
    def state(self) -> dict[str, JSON]:
        """What the next recorder must know."""
        return {"writer": self._writer, "run": self._run, "last": dict(self._last)}

    def look(self, line: Step | Report) -> str | None:
        """Why there are several writers, at the first line that shows it; else ``None``."""
        if self._told:
            return None
        reason = self._other_writer(line.writer)
        if reason is None and isinstance(line, Step):
            reason = self._falling(line)
        elif reason is None and isinstance(line, Report) and line.event == "run":
            reason = self._second_run()
        self._told = reason is not None
        return reason

    def tell(self) -> bool:
        """Whether it is to be told now that there are several; once."""
        told, self._told = self._told, True
        return not told

    def _other_writer(self, writer: str | None) -> str | None:
        before, self._writer = self._writer, writer or self._writer
        if writer is None or before is None or writer == before:
            return None
        return f"step lines of the writers {before} and {writer} are mixed: let only rank 0 print"

    def _second_run(self) -> str | None:
        before, self._run = self._run, True
        if not before:
            return None
        return (
            "there is a second `run` line: several processes report (let only rank 0 print), or "
            "several trainings (record each on its own)"
        )

    def _falling(self, step: Step) -> str | None:
        window = "warmup" if step.warmup else "timed"
        last, self._last[window] = self._last.get(window), step.step
        first = step.step - step.count + 1
        anew = step.writer is not None and step.step != last
        if last is None or first > last or anew:
            return None
        steps = f"step {first}" if step.count == 1 else f"steps {first} to {step.step}"
        return (
            f"{steps} came after step {last}: several processes print step lines (let only rank 0 "
            "print), or a loop counts its steps anew (number them on, or name their `writer`)"
        )
