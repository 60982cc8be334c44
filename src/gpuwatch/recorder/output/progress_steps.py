"""Steps, scores and rates from lines of programs that print no step lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.recorder.output.step_lines import Malformed, Step, Writers, step_of
from gpuwatch.recorder.progress import Progress, ProgressLines, formats
from gpuwatch.session.writing.statements import Row, meta

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
        self._before = int(known.get("before") or 0)
        """Steps before the first epoch of the training that was read."""
        self._over = known.get("over") is True
        self._formats: dict[str, ProgressLines] | None = None
        self.fell = ""
        """Why no more lines are read, once a number fell, until it is told."""
        self.writers = Writers(mapping(known.get("writers")), told=told)

    @property
    def state(self) -> dict[str, JSON]:
        """What the next recorder must know."""
        return {
            "format": self._name,
            "last": self._last,
            "before": self._before,
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
            self._formats = {name: each for name, each in formats() if self._name in (None, name)}
        for name, each in list(self._formats.items()):
            try:
                progress = each.read(line)
                if progress is None or (numbered and progress.step is None):
                    continue
                number, last = progress.step, self._last
                if not each.program and number is not None and last is not None and number <= last:
                    if number < last:  # else it tells more about the same step
                        self.end()
                        self.fell = (
                            f"no further steps are read from lines: step {number} came after step "
                            f"{last}, so the program counts anew, or several print"
                        )
                    return None, False
                step = self._step(progress)
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
        whose = f"in the format of {program} ({name}), where " if program else ""
        return f"from lines {whose}{figures}"

    @property
    def untimed(self) -> str:
        """Why its lines tell no step's time; empty: they do."""
        ((_, found),) = (self._formats or {}).items()
        return clean(found.untimed, _LONGEST)

    def _step(self, progress: Progress) -> Step:
        """A line is about one step; without a time it counts those since the line before."""
        if self._name is None or progress.before < self._before:  # a second training
            self._before = progress.before
        last = self._last
        step = (last or 0) + 1 if progress.step is None else progress.step - self._before
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


_ENGINE_LINE = re.compile(
    r"(?:Engine (\d{1,6}): )?Avg prompt throughput: (\d{1,12}\.\d) tokens/s, "
    r"Avg generation throughput: (\d{1,12}\.\d) tokens/s, Running: (\d{1,9}) reqs"
)
_MOST_ENGINES = 1024
_KEYS = ("prompt_tokens_per_second", "generated_tokens_per_second", "running_requests")


class Serving:
    """The means of all lines that vLLM prints of its work every ten seconds, for each engine.

    ``Engine 000: Avg prompt throughput: 61.4 tokens/s, Avg generation throughput: 513.9 tokens/s,
    Running: 8 reqs, Waiting: 0 reqs, ...``: means over the seconds before, no step. Lines without
    any tokens are of a server that waits for requests, and newer versions leave them out. After a
    crash another recorder continues with ``state``.
    """

    def __init__(self, known: Mapping[str, JSON]) -> None:
        self.state: dict[str, JSON] = dict(known)
        """By engine: lines with tokens, and the sums of their figures."""

    def read(self, t: int, line: str) -> list[Row]:
        """Rows of a line, session time ``t`` (ns); empty for any other text."""
        match = _ENGINE_LINE.search(line) if "Avg prompt throughput: " in line else None
        if match is None:
            return []
        engine, *figures = match.groups(default="")
        if engine not in self.state and len(self.state) == _MOST_ENGINES:
            return []
        values = [1.0, *map(float, figures)]
        if not any(values[1:3]):
            return []
        before = mapping(self.state.get(engine)).get("sums") or [0.0] * len(values)
        self.state[engine] = {"sums": [sum(pair) for pair in zip(before, values, strict=True)]}
        sums = [mapping(each)["sums"] for each in self.state.values()]
        told = {key: sum(of[at] / of[0] for of in sums) for at, key in enumerate(_KEYS, 1)}
        return [meta("generation", {"lines": sum(of[0] for of in sums), **told, "t": t})]
