"""Turns a workload's output into rows: step lines, reports, log."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.models import JSON, Output, mapping, sequence
from gpuwatch.core.units import accuracy
from gpuwatch.core.units import loss as four_digits
from gpuwatch.recorder.output.kept_log import KeptLog, Line
from gpuwatch.recorder.output.lines import LineAssembler
from gpuwatch.recorder.output.progress_steps import ProgressSteps, Serving
from gpuwatch.recorder.output.step_lines import (
    PREFIX,
    Malformed,
    Report,
    Step,
    Writers,
    add_part,
    pack,
    parse,
)
from gpuwatch.session.rows import with_phases
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.statements import Row, event, fact, meta

_MOST_COMPLAINTS = 20
_MOST_NOT_FINITE = 20
"""How often it is told that the loss was not finite."""
_MOST_FACTS = 200
_MOST_HELD, _LONGEST_HELD = 10_000, 2_500
"""Lines, and characters of one, which hold a dictionary of Trainer's."""
_LONGEST_UUID = 80
_EPOCH_NS = 1_000_000_000
_LATE_NS = 100_000_000
"""How much later than its step a line of progress may be read."""
_AT_THE_END = (
    "all loss and accuracy came at once after the last step, and only the newest counts: a program "
    "that does not flush its output prints late (python -u, or PYTHONUNBUFFERED=1)"
)
_OF_EPOCH = ("epoch", "loss", "acc1", "acc5")
_SHARES = {"acc1": "acc@1", "acc5": "acc@5"}
"""What reports call them."""


_Taken = tuple[Sequence[Row], bool]
"""What a line tells: rows, and whether it also goes to the log."""


class Intake:
    """Consumes a run's output in order.

    After a crash another recorder continues with the session's ``meta`` (``known``) and ``log``.
    """

    def __init__(
        self, base_ns: int, known: Mapping[str, JSON] | None = None, log: KeptLog | None = None
    ) -> None:
        known = known or {}
        cursor = mapping(known.get("cursor"))
        pending, given = mapping(cursor.get("pending")), cursor.get("given") or ()
        self._base_ns = base_ns
        prefix = PREFIX.encode()
        self._lines = {
            stream: LineAssembler(
                prefix, pending.get(stream, "").encode("latin-1"), given=stream in given
            )
            for stream in ("stdout", "stderr")
        }
        self._log = log or KeptLog()
        self._complaints = 0
        self._lost = self._lost_reported = 0
        self._last_epoch = -_EPOCH_NS
        self._not_finite: tuple[int, int] | None = None
        """The first and the last step whose loss is not finite, while the newest one is not."""
        self._told_not_finite = 0
        self._run: dict[str, JSON] = dict(known.get("run") or {})
        self._profile: dict[str, JSON] = dict(known.get("profile") or {})
        self._late_epoch: list[Row] = []
        self._writers = Writers(mapping(cursor.get("writers")), told="several_writers" in known)
        self._progress = ProgressSteps(
            mapping(cursor.get("progress")), told="several_writers" in known
        )
        self._serving = Serving(mapping(cursor.get("serving")))
        self._step_ends = known.get("step_ends")
        self._before: Step | None = None
        self.own_steps = cursor.get("own_steps") is True
        """Whether the program printed step lines itself."""
        self.hooked = cursor.get("hooked") is True
        """Whether what the hook reports counts, and the program's own step lines are only log."""
        self._held_lines: deque[tuple[int, str]] | None = None
        """Lines that wait until it is known whether the hook tells the steps: then only their loss
        and accuracy count; ``None``: none wait."""
        self._scores: list[tuple[int, Step]] | None = [] if cursor.get("scores") else None
        """Loss and accuracy of progress lines, for the hook's next step; ``None``: no hook's steps
        are known."""
        self._placed = self._scores is not None
        """Whether a step has any of them, or may have."""
        self._own_loss = False
        """Whether the newest step of the hook tells its loss itself."""
        self.versions: Mapping[str, JSON] = {}
        """Versions of torch and other libraries, once the workload has reported them."""
        self.error = mapping(known.get("error")) or None
        """The error that the workload reported, if any."""
        self._hooked_gpus: set[str] = set()
        self.started = "started" in known
        """Whether the workload has sent a report or a step."""
        self.last_step: int | None = None
        """The last step that was reported to this recorder."""

    @property
    def state(self) -> dict[str, JSON]:
        """The unfinished lines, for the session's cursor."""
        return {
            "pending": {
                name: assembler.pending.decode("latin-1") for name, assembler in self._lines.items()
            },
            "given": [name for name, assembler in self._lines.items() if assembler.given],
            "writers": self._writers.state,
            "own_steps": self.own_steps,
            "hooked": self.hooked,
            "scores": self._scores is not None,
            "progress": self._progress.state,
            "serving": self._serving.state,
        }

    @property
    def planned_steps(self) -> int | None:
        """How many steps the run is going to take, if it told."""
        total = self._run.get("total_steps")
        return total if isinstance(total, int) else None

    @property
    def device_uuids(self) -> Sequence[str]:
        """UUIDs of the GPUs that the workload, or the hook in one of its processes, reports."""
        told = [str(uuid) for uuid in sequence(self._run.get("device_uuid"))]
        return [*told, *(uuid for uuid in self._hooked_gpus if uuid not in told)]

    def hooked_gpus(self, uuids: JSON) -> None:
        """Take the UUIDs of GPUs on which the hook found work of its process."""
        for uuid in sequence(uuids):
            if isinstance(uuid, str) and len(self._hooked_gpus) < _MOST_FACTS:
                self._hooked_gpus.add(uuid[:_LONGEST_UUID])

    @property
    def device_type(self) -> str | None:
        """``cpu`` or ``cuda``, if the workload reports it."""
        device = self._run.get("device")
        return str(device).partition(":")[0] if device else None

    def take(self, outputs: Sequence[Output]) -> list[Row]:
        rows: list[Row] = []
        log: list[Line] = []
        for output in outputs:
            t = output.t - self._base_ns
            if output.lost:
                before, self._lost = self._lost, self._lost + output.lost
                # An event for the first and for each power of ten: a flood loses data all the time.
                if not before or len(str(before)) != len(str(self._lost)):
                    rows += self._report_lost(t)
                # The next bytes do not continue the unfinished lines: never join them.
                log += [
                    (t, name, line)
                    for name, assembler in self._lines.items()
                    for line in assembler.finish()
                ]
            for line in self._lines[output.stream].feed(output.data, t):
                told, logged = self._line(t, output.stream, line)
                rows.extend(told)
                if logged:
                    log.append((t, output.stream, line))
            _, start, bar = output.data.rstrip(b" ").rpartition(b"\r")
            if start and bar.endswith(b"]") and self._scores is not None:
                # A bar gets its end with the next one: of a killed program's last there is none.
                rows += self._log_line(t, bar.decode(errors="replace"))
        return rows + self._log.take(log)

    def standing(self, t: int) -> list[Row]:
        """Rows for unfinished lines that have not grown for a while, at session time ``t`` (ns).

        Each is given once.
        """
        lines = [
            (name, line)
            for name, assembler in self._lines.items()
            for line in assembler.standing(t)
        ]
        return [row for stream, line in lines for row in self._log.add(t, stream, line)]

    def finish(self, t: int, *, killed: bool = False) -> list[Row]:
        """Rows for the last lines, at the end of the run, session time ``t`` (ns); ``killed``: it
        was ended in the middle of a step."""
        rows: list[Row] = []
        for stream, lines in self._lines.items():
            for line in lines.finish():
                told, logged = self._line(t, stream, line)
                rows += [*told, *(self._log.add(t, stream, line) if logged else ())]
        rows += self._report_lost(t) if self._lost != self._lost_reported else ()
        if self._scores and self.hooked:
            (first, _), (last, step) = self._scores[0], self._scores[-1]
            keys = _OF_EPOCH[1 + self._own_loss :]
            found = {key: values[-1] for key in keys if (values := getattr(step, key))}
            late = {key: each if math.isfinite(each) else None for key, each in found.items()}
            rows.append(meta("after_steps", {**late, "t": last}))
            if len(self._scores) > 1 and first == last and not (killed or self._placed):
                rows.append(event(t, "progress-lines", _AT_THE_END))
        return [*rows, *self._late_epoch]

    def _line(self, t: int, stream: str, line: str) -> _Taken:
        if stream == "stdout" and line.startswith(PREFIX):
            try:
                parsed = parse(line)
            except Malformed as error:
                return self._complain(t, f"malformed step line: {error}"), True
            if isinstance(parsed, Step) or parsed.event == "run":
                self.own_steps = True
            if self.hooked:
                return (), True
            if isinstance(parsed, Step):
                self._progress.end()
                return [*self._step(t, parsed), *self._look(t, parsed)], False
            if parsed.known:
                if parsed.event == "run":
                    self._progress.end()
                complaints = [
                    row
                    for problem in parsed.wrong
                    for row in self._complain(t, f"{parsed.event}: {problem}: unknown")
                ]
                rows = [*self._report(t, parsed), *self._look(t, parsed), *complaints]
                return rows, bool(complaints)
        return self._log_line(t, line), True

    def _log_line(self, t: int, line: str) -> list[Row]:
        """Rows of a line for the log, if it tells a program's progress: its step or scores."""
        if rows := self._serving.read(t, line):
            return rows
        if self._held_lines is None:
            return self._progress_line(t, line)
        if len(line) <= _LONGEST_HELD:  # else it tells no progress
            self._held_lines.append((t, line))
        return []

    def _progress_line(self, t: int, line: str) -> list[Row]:
        step, first = self._progress.read(line, numbered=self._scores is None)
        if step is None:
            why, self._progress.fell = self._progress.fell, ""
            return [event(t, "progress-lines", why)] if why else []
        if self._scores is not None:
            return self._score(t, step, first=first)
        rows = [*self._step(t, step), *self._look(t, step, self._progress.writers)]
        if first:
            rows.append(event(t, "progress-lines", f"steps are {self._progress.source}"))
            if untimed := self._progress.untimed:
                rows.append(meta("untimed", untimed))
        return rows

    def _score(self, t: int, step: Step, *, first: bool) -> list[Row]:
        """Keep what a line tells for the step of the hook during which it was read."""
        assert self._scores is not None
        if (reason := self._progress.writers.look(step)) is not None:
            self._progress.end()
            self._scores.clear()
            return [event(t, "progress-lines", f"no further loss or accuracy is read: {reason}")]
        self._scores.append((t, step))
        what = "the loss is" if step.acc1 is None else "loss and accuracy are"
        text = f"{what} {self._progress.source}; a late one is a few steps off"
        return [event(t, "progress-lines", text)] if first else []

    def hold_progress(self) -> None:
        """Wait with progress lines: a hooked process may tell better steps."""
        self._held_lines = deque(self._held_lines or (), _MOST_HELD)

    def take_scores(self) -> list[Row]:
        """Of progress lines only loss and accuracy count: a hooked process tells its steps."""
        self._scores = self._scores or []
        return self.release_progress()

    def release_progress(self) -> list[Row]:
        """Rows of the lines that waited."""
        held, self._held_lines = self._held_lines or (), None
        return [row for t, line in held for row in self._progress_line(t, line)]

    def reported(self, t: int, line: Step | Report, *, late_ns: float | None = None) -> list[Row]:
        """Rows of what a hooked process reports; ``late_ns``: how much later than a step what it
        printed may be read, where that is known."""
        if isinstance(line, Step):
            if late_ns is None:  # a program prints after a step, while the next one runs
                late_ns = max(_LATE_NS, line.seconds[-1] * 1e9 if line.seconds else 0)
            return self._step(t, self._scored(t, line, late_ns))
        return self._report(t, line) if line.known else []

    def _scored(self, t: int, step: Step, late_ns: float) -> Step:
        """A line of the hook, its last step with the newest scores that were read by then."""
        end = t if step.monotonic_ns is None else step.monotonic_ns - self._base_ns
        due = [printed for at, printed in self._scores or () if at <= end + late_ns]
        self._own_loss = step.loss is not None
        if self._scores is None or not due:
            return step
        del self._scores[: len(due)]
        self._placed = True
        last = due[-1]
        losses = step.loss or _spread([each.loss[-1] for each in due if each.loss], step.count)
        return replace(step, loss=losses, acc1=last.acc1, acc5=last.acc5)

    def several(self, t: int, reason: str) -> list[Row]:
        """Rows that say, once, that the steps are not those of one training loop."""
        return _several(t, reason) if self._writers.tell() else []

    def _report_lost(self, t: int) -> list[Row]:
        self._lost_reported = self._lost
        text = f"{self._lost} bytes of output were dropped so far, before they could be recorded"
        return [event(t, "output-lost", text)]

    def _look(self, t: int, line: Step | Report, writers: Writers | None = None) -> list[Row]:
        """Rows that say so once the lines turn out to be of several writers."""
        reason = (writers or self._writers).look(line)
        return [] if reason is None else _several(t, reason)

    def _ended(self, t: int, step: Step) -> tuple[int, tuple[float, ...] | None, list[Row]]:
        """When a line's last step ended, the seconds of each step, and rows that say who told.

        The workload's own clock counts; without it, the line ends when it arrived at ``t``. Two
        ends of neighbouring steps that the workload told are a step time, two arrivals are not.
        """
        before, seconds = self._before, step.seconds
        told = step.monotonic_ns is not None and 0 <= step.monotonic_ns - self._base_ns <= t
        self._before = step if told else None
        if told and step.monotonic_ns is not None:
            t = step.monotonic_ns - self._base_ns
            if seconds is None and before is not None and _neighbours(before, step):
                seconds = _between(before, step)
        ends = "told" if told and self._step_ends in (None, "told") else "arrived"
        changed, self._step_ends = ends != self._step_ends, ends
        return t, seconds, [meta("step_ends", ends)] if changed else []

    def _look_at_loss(self, t: int, step: Step) -> list[Row]:
        """An event once the loss is finite again; that it is not yet, its last value tells."""
        rows: list[Row] = []
        losses = step.loss or ()
        for at, loss in enumerate(losses, step.step + 1 - len(losses)):
            if not math.isfinite(loss):
                self._not_finite = (self._not_finite or (at,))[0], at
            elif self._not_finite is not None:
                (first, last), self._not_finite = self._not_finite, None
                self._told_not_finite += 1
                if self._told_not_finite <= _MOST_NOT_FINITE:
                    steps = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
                    more = self._told_not_finite == _MOST_NOT_FINITE
                    end = "; later ones are not told" if more else ""
                    rows.append(event(t, "loss", f"the loss was not finite at {steps}{end}"))
        return rows

    def _step(self, t: int, step: Step) -> list[Row]:
        t, seconds, rows = self._ended(t, step)
        rows += self._look_at_loss(t, step)
        self.started = True
        self.last_step = step.step
        if step.total_steps is not None and step.total_steps != self._run.get("total_steps"):
            self._run = {**self._run, "total_steps": step.total_steps}
            rows.append(meta("run", self._run))
        values = (
            t,
            step.step,
            step.count,
            int(step.warmup),
            step.samples,
            *map(pack, (seconds, step.loss, step.acc1, step.acc5)),
            statements.phases_text(step.phases, step.count, with_phases([step])),
            json.dumps(step.partial) if step.partial else None,
            step.flop,
            step.bytes,
        )
        return [*rows, statements.step(*values)]

    def _report(self, t: int, report: Report) -> list[Row]:
        body = {key: value for key, value in report.body.items() if key != "event"}
        if report.event == "versions":
            self.versions = body
            facts = list(body.items())[:_MOST_FACTS]
            return [
                *(fact("workload", key, value) for key, value in facts),
                meta("waiting", {"for": "model", "t": t}),  # torch is imported
            ]
        if report.event == "epoch":
            return self._epoch(t, body)
        if report.event == "profile":
            self._profile = add_part(self._profile, {**body, "t": t})
            return [meta("profile", self._profile)]
        self.started = True
        rows = [meta(report.event, {**body, "t": t})]
        if report.event == "run":
            self._run = {**body, "t": t}
        elif report.event == "error":
            self.error = body
            rows.append(event(t, "error", str(body.get("message", ""))[:2000]))
        return rows

    def _epoch(self, t: int, body: Mapping[str, JSON]) -> list[Row]:
        """Rows for an epoch: an event and its figures. At most one a second, plus the last epoch:
        small data gives many epochs."""
        figures = (_told(key, value) for key, value in body.items() if key != "epoch")
        text = ", ".join([f"epoch {body.get('epoch', '')}".rstrip(), *figures])
        rows = [
            event(t, "epoch", text[:500]),
            meta("epoch", {**{key: body[key] for key in _OF_EPOCH if key in body}, "t": t}),
        ]
        if t - self._last_epoch < _EPOCH_NS:
            self._late_epoch = rows
            return []
        self._last_epoch, self._late_epoch = t, []
        return rows

    def _complain(self, t: int, text: str) -> list[Row]:
        self._complaints += 1
        if self._complaints > _MOST_COMPLAINTS:
            return []
        if self._complaints == _MOST_COMPLAINTS:
            text += " (further ones are not reported)"
        return [event(t, "malformed-step", text[:500])]


def _several(t: int, reason: str) -> list[Row]:
    return [meta("several_writers", {"text": reason, "t": t}), event(t, "several-writers", reason)]


def _spread(told: Sequence[float], count: int) -> tuple[float, ...] | None:
    """The last loss that was told during ``count`` steps; where one of several is not finite, one
    for each step, as if told evenly, so that neither it nor the last is left out."""
    if len(told) < 2 or all(map(math.isfinite, told)):
        return tuple(told[-1:]) or None
    each = [told[k * len(told) // count : -(-(k + 1) * len(told) // count)] for k in range(count)]
    return tuple(next((x for x in some if not math.isfinite(x)), some[-1]) for some in each)


def _neighbours(before: Step, step: Step) -> bool:
    """Whether ``step`` is the one step after those of ``before``."""
    return step.count == 1 and step.step == before.step + 1 and step.warmup is before.warmup


def _between(before: Step, step: Step) -> tuple[float, ...] | None:
    """Seconds between the ends that both lines tell, without an evaluation; ``None`` unless they
    rise."""
    taken = ((step.monotonic_ns or 0) - (before.monotonic_ns or 0)) / 1e9
    taken -= step.phases.get("evaluation", 0.0)
    return (taken,) if taken > 0 else None


def _told(key: str, value: JSON) -> str:
    if key in _SHARES and isinstance(value, float) and 0 <= value <= 1:
        return f"{_SHARES[key]} {accuracy(value)}"
    return f"{key} {four_digits(value) if isinstance(value, float) else value}"
