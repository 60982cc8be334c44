"""Reads a session incrementally and makes snapshots of it.

A session of a million samples opens quickly: single ones are read of its newest minutes only.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuwatch.analysis.hardware.bound import UNKNOWN
from gpuwatch.analysis.hardware.profile import why_none
from gpuwatch.analysis.samples.step_lines import NO_STEPS_YET
from gpuwatch.analysis.samples.window import spent
from gpuwatch.analysis.summary.failure import command_of, failure_of, reason_of
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import LONGEST_INTERVAL, SHORTEST_INTERVAL, mapping, number
from gpuwatch.core.paths import open_regular
from gpuwatch.core.processes import parents
from gpuwatch.core.text import clean, cut
from gpuwatch.core.units import NS, percent
from gpuwatch.session.placement import elsewhere
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.reading.status import BAD, State, Status
from gpuwatch.session.rows import ChannelRow, DeviceRow, EventRow, LogRow, Processes
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE
from gpuwatch.session.study.study_folder import GAVE_UP, RECORDER_LOG
from gpuwatch.tui.feed.alerts import ALERT_EVENTS, paused, stalled, uses_no_gpu
from gpuwatch.tui.feed.busiest import Busiest
from gpuwatch.tui.feed.checks import CPU_SHARED, HISTORY, Checks
from gpuwatch.tui.feed.gauges import (
    LOSS,
    Earlier,
    Period,
    Sources,
    algorithmic_bytes,
    earlier_of,
    gauges_of,
    metrics_of,
    panels_of,
    period_of,
    picked_of,
)
from gpuwatch.tui.feed.log_lines import Count, count_up, fold
from gpuwatch.tui.feed.parts import parts_of, startup_phase, text
from gpuwatch.tui.feed.processes import (
    LiveProcesses,
    ProcessNow,
    as_sampled,
    processes_of,
    runs_here,
    shown_command,
)
from gpuwatch.tui.feed.ranks import RankFeed
from gpuwatch.tui.feed.samples import (
    NOTHING,
    RECENT_NS,
    Buckets,
    History,
    RateSeries,
    Series,
    Ticks,
    Window,
    window,
)
from gpuwatch.tui.feed.snapshot import (
    TIMED,
    Alert,
    DeviceNow,
    Reading,
    Replay,
    Search,
    Snapshot,
    Trouble,
    View,
    Work,
)
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.feed.study import CurrentStudy

_FIRST_METRICS = (
    *("hw.gpu.utilization", "hw.gpu.memory.bandwidth", "hw.gpu.memory.busy"),
    *HISTORY,
)
"""Metrics whose buckets are read together."""
_MAX_LOG_LINES = 400
"""Log lines kept for the screen."""
_BURST_NS = NS // 10
"""Lines within it were printed at once."""
_MAX_EVENTS = 2000
_MAX_SILENCE_SECONDS = 5.0
_MOST_SAID = 1 << 16
"""Bytes at the end of a recorder's log that are read."""
_LONGEST_GIVEN = 30
"""Characters of the name that a run was given."""
_LEAST_CORES, _LONGEST_NAME = 0.2, 200
"""Least use of a program that is named, and characters of its command."""
_BOUND_NS = 5 * NS
"""How often it is said anew what bounds a run that goes on."""
_ADVANCE_NS = 30 * NS
"""Longest step forward that reads on; for a longer one a new collector is faster."""
_MIN_STEPS_NS = 60 * NS
"""Least time before the moment for which step lines are read one by one."""


class Collector:
    """Reads one session incrementally; used in the feed's thread."""

    def __init__(
        self,
        reader: SessionReader,
        now_ns: Callable[[], int] = time.time_ns,
        *,
        current: Collector | None = None,
        back_ns: int = RECENT_NS,
        busiest: Busiest | None = None,
    ) -> None:
        """``current``: for an earlier moment, the collector of the present, with the data that
        does not depend on the moment. ``back_ns``: time before the newest step line for which
        step lines are read one by one.
        """
        self.reader = reader
        self._now_ns = now_ns
        self._current = current
        self.meta: Mapping[str, Any] = reader.meta()
        given = labels.read(reader.path.parent).get(reader.path.name, NONE).name
        self._given: str = cut(given, _LONGEST_GIVEN) if current is None else current._given
        self._channels: tuple[ChannelRow, ...] = ()
        self._by_device: defaultdict[str, list[ChannelRow]] = defaultdict(list)
        self._constant: dict[int, Reading] = {}
        """Readings of unavailable channels by id, until a channel changes."""
        self._devices: tuple[DeviceRow, ...] = ()
        self._log: dict[int | str, LogRow] = {}
        self._counts: dict[int, Count] = {}
        self._printed_at: deque[int] = deque(maxlen=_MAX_LOG_LINES)
        self._quiet = 0
        """Longest time between two lines, in nanoseconds."""
        self._last_log = reader.last_log() - _MAX_LOG_LINES
        self._events: deque[EventRow] = deque(maxlen=_MAX_EVENTS)
        self._last_event = reader.last_event() - _MAX_EVENTS
        self._scales: dict[tuple[str, str | None], float] = {}
        self._steps: Steps = Steps(reader, current._steps if current else None, back_ns)
        self._study: CurrentStudy = current._study if current else CurrentStudy(reader.path)
        seconds = number(self.meta.get("interval_seconds"))
        valid = seconds is not None and SHORTEST_INTERVAL <= seconds <= LONGEST_INTERVAL
        self._interval = seconds if seconds is not None and valid else 1.0
        buckets = current._ticks.buckets if current else Buckets(reader)
        self._ticks: Ticks = Ticks(reader, self._interval, buckets)
        self._series: dict[tuple[str, str], History] = {}
        self._ranks: RankFeed = RankFeed(reader, current._ranks if current else None)
        self._no_gpu = reader.facts().get("host", {}).get("gpu.unavailable")
        self._processes = Processes((), ())
        self._live_processes = LiveProcesses()
        self._busiest = busiest or Busiest()
        self._checks = Checks(reader, self._series, self._steps)
        self._checks.events.add(reader.events_of(ALERT_EVENTS, self._last_event))
        self._all_read = False
        """Whether older step lines are read, so that the rest may be."""
        self._means: dict[tuple[int, int, int], float | None] = {}
        """Of a run that is over: means, and peaks of memory, by channel, start and end."""
        self._files: Iterator[Earlier | Search] = iter(())
        self._earlier: Earlier | Search | None = None
        """``None``: it was not asked for."""
        self._bound_at: tuple[object, str] = None, ""
        """When it was over, and what bounded it."""
        self._read_channels()
        buckets.together = self._first_channels()

    def _first_channels(self) -> list[int]:
        """Ids of the channels that the first snapshot of a whole session needs."""
        used = {row.id for row in self._devices if row.used is not False}
        known = [row for row in self._channels if row.sampled_as is not Method.UNAVAILABLE]
        return [row.id for row in known if row.metric in _FIRST_METRICS and row.device in used]

    def update(self) -> None:
        """Read new records."""
        self.meta = self.reader.meta()
        self._read_channels()
        self._ticks.update([channel.id for channel in self._channels])
        self._steps.update(self.meta)
        self._ranks.update()
        self._checks.update(self.meta, self._devices)
        while lines := self.reader.log(self._last_log):
            fold(self._log, lines)
            for line in lines:
                count_up(self._counts, line)
                since = line.t - (self._printed_at or [line.t])[-1]
                self._quiet = max(self._quiet, since)
                if not self._printed_at or since >= _BURST_NS:
                    self._printed_at.append(line.t)
            self._last_log = lines[-1].n
        for key in [*self._log][:-_MAX_LOG_LINES]:
            del self._log[key]
        while events := self.reader.events(self._last_event):
            self._events.extend(events)
            self._last_event = events[-1].n
            self._checks.events.add(events)
        self._processes = self.reader.processes()
        if self._current is None and self._study.place is not None:
            self._study.update(live=self.reader.status(self.meta).live)

    def backfill(self) -> bool:
        """Read one more chunk of older step lines, or open a file that may be of the earlier run;
        returns whether there may be more."""
        if self._earlier is Search.GOES_ON:
            self._earlier = next(self._files, Search.IN_VAIN)
            return True
        steps = self._steps.backfill()
        more = self._ranks.backfill() or steps
        if not more and not self._all_read:
            self._all_read = True
            self._ticks.buckets.together = [channel.id for channel in self._channels]
        return more

    def _read_channels(self) -> None:
        self._devices = self.reader.devices()
        channels = self.reader.channels()
        if channels is self._channels:
            return
        self._channels = channels
        self._by_device, self._constant = defaultdict(list), {}
        for channel in channels:
            self._by_device[channel.device].append(channel)
            if channel.method is Method.UNAVAILABLE:
                reason = channel.reason or "no reason given"
                self._constant[channel.id] = Reading(
                    None, channel.method, reason, channel.source, channel.sampled_as
                )
            key = channel.device, channel.metric
            if key not in self._series and channel.sampled_as is not Method.UNAVAILABLE:
                kind = RateSeries if channel.kind == "counter" else Series
                self._series[key] = kind(self._ticks, channel.id)

    # The snapshot.

    def snapshot(self, view: View) -> Snapshot:
        path = self.reader.path
        state = self._status()
        t = self._now(state)
        kind = text(self.meta, "workload", "kind")
        present, timed = self._current or self, (self._current or self)._steps.timed
        shown = window(t, view.seconds or None, view.columns, ended=not state.live)
        least = 2 * self._interval * NS
        has_timed = timed[1] - timed[0] > least
        if view.seconds == TIMED and has_timed and t >= timed[0]:
            shown = Window(*timed, view.columns)
        elif self._current is not None and not view.seconds:
            shown = Window(0, max(present.end, NS), view.columns)
        span = present._steps.span
        period = period_of(shown, timed if has_timed else None, t, span, least)
        if view.earlier and not present._earlier:
            present._earlier = Search.GOES_ON
            present._files = earlier_of(self.reader.path, self.meta)
        earlier = present._earlier if view.earlier else None
        over = period if not state.live and self._all_read and kind != "import" else None
        if over is not None and self._current is None:
            self._steps.finish(self.meta)
        answers = state.live and state.state is not State.UNKNOWN  # else the last is not of now
        devices = tuple(
            DeviceNow(
                row,
                {
                    each.metric: self._reading(each, over, live=answers)
                    for each in self._by_device[row.id]
                },
            )
            for row in self._devices
        )
        used = [device.row.used for device in devices if device.row.kind == "gpu"]
        off_gpus = kind != "machine" and uses_no_gpu(self._devices)
        selected = _select(devices, view.device, off_gpus=off_gpus)
        sources = Sources(
            device=next((d for d in devices if d.row.id == selected), None),
            devices=self._devices,
            series=self._series,
            steps=self._steps,
            ceilings=self._checks.ceilings,
            meta=self.meta,
            live=state.live,
            t=t,
            window=shown,
            period=period,
            earlier=earlier,
            scales=self._scales,
        )
        environment, name = (
            text(self.meta, of, "label") or text(self.meta, of, key)
            for of, key in (("environment", "kind"), ("workload", "name"))
        )
        workload = mapping(self.meta.get("workload"))
        ran = "" if workload.get("label") or kind == "machine" else clean(name)
        count = self._printed(t)
        work = None if kind == "machine" else self._steps.work(self.meta, state.live, t, count)
        if count is not None and work is not None and work.step is not None:
            reached = count.done == count.total and not count.epoch
            count = None if work.total is not None or reached else count
        place = self._study.place
        if place is not None and self._current is not None:
            place = replace(place, seconds_left=None)  # known for the present only
        moment = None
        if self._current is not None:
            now, end = present._status(), present.end
            moment = Replay(t, end, now, present._seconds(now, end))
        began = number(mapping(self.meta.get("clock")).get("unix_ns"))
        processes = processes_of(self._processes, environment, t, ended=not state.live, began=began)
        run = next((each for each in devices if each.row.kind == "workload"), None)
        if state.live and run is not None:
            use = run.value("process.cpu.time"), run.value("process.memory.usage")
            processes = as_sampled(processes, *use)
        if state.live and self._current is None:
            processes = self._live_processes.find(processes, self.meta)
            if kind == "machine" and not used and runs_here(self.meta):
                processes = self._busiest.find(t)
        unused = bool(used) and not any(used)
        phase = startup_phase(self.meta, state, t, stepped=self._steps.any, cuda=unused)
        known = "" if phase.startswith(NO_STEPS_YET) else phase
        phase = phase if count is None else known
        alerts = self._checks.warnings(devices, t, live=state.live, processes=processes)
        shared = any(alert.kind == CPU_SHARED for alert in alerts)
        if shared and state.live and self._current is None and runs_here(self.meta):
            others = self._others(processes, t)
            alerts = tuple(_named(each, others) for each in alerts)
            pids = {each.pid for each in processes}
            processes = (*processes, *(each for each in others if each.pid not in pids))
        if state.warning:
            alerts = (Alert("disk", "", state.warning), *alerts)
        elif work is not None and not (state.live and known):
            alerts = (*alerts, *self._stalled(work, t, live=state.live))
        if lost := self._steps.lost:
            alerts = (Alert("loss", "", lost), *alerts)
        metric = view.metric or (LOSS if self._steps.losses.seen and view.gauges else None)
        with_metrics = view.gauges and kind != "import"
        metrics = tuple(metrics_of(devices, selected, self._steps)) if with_metrics else ()
        return Snapshot(
            path=str(path),
            name=": ".join(filter(None, (self._given, name or path.stem))),
            arguments=command_of(workload).partition(ran)[2] if ran else "",
            environment=environment,
            elsewhere=elsewhere(path.parent),
            status=state,
            machine_only=kind == "machine",
            imported=kind == "import",
            t=t,
            seconds=self._seconds(state, t),
            devices=devices,
            selected=selected,
            off_gpus=off_gpus,
            gauges=gauges_of(sources) if view.gauges else (),
            window=shown,
            work=work,
            log=tuple(self._log.values()),
            printed=count,
            event=self._event(),
            no_gpu=None if self._no_gpu is None else str(self._no_gpu),
            phase=phase,
            parts=tuple(parts_of(self.meta, self._steps, t)),
            means="" if over is None else over.text,
            timed=has_timed,
            trouble=trouble(self.reader, self.meta, state),
            notice=self.reader.notice,
            silent_seconds=self._silent(state),
            algorithmic=algorithmic_bytes(sources),
            alerts=alerts,
            processes=processes,
            bound=self._bound(t, over, live=state.live),
            roofline=self._checks.rooflines(t) if view.roofline and kind != "machine" else None,
            counters=present._checks.counters,
            profile=present._checks.profile,
            no_profile=why_none(present.meta),
            place=place,
            tally=self._study.tally,
            picked=None if metric is None else picked_of(metric, devices, sources),
            metrics=metrics,
            earlier=earlier.compared(self._steps.newest_timed()[::-1])
            if isinstance(earlier, Earlier)
            else earlier,
            shares=self._steps.shares(self.meta),
            ranks=self._ranks.now(shown, t, self._devices, self._series, self._processes),
            # The other runs and the comparison are known for the present only.
            study=None if self._current else self._study.strip,
            panels=panels_of(sources, devices, alerts) if view.grid else (),
            upcoming=None if self._current else self._study.upcoming(live=state.live),
            events=tuple((self._current or self)._events),
            replay=moment,
            view=view,
        )

    def _others(self, processes: Sequence[ProcessNow], t: int) -> list[ProcessNow]:
        """Those beside the run that use much of the CPU, the busiest first."""
        above, own = parents(), {each.pid for each in processes if each.owned}
        others = []
        for other in self._busiest.find(t):
            pid = other.pid
            while pid and pid not in own:
                pid = above.get(pid, 0)
            if not pid and (other.cores or 0.0) >= _LEAST_CORES:
                others.append(other)
        return others

    def _stalled(self, work: Work, t: int, *, live: bool) -> list[Alert]:
        """That a live run has had no step for long, or no output where it tells no steps; of one
        that is over the longest such pause."""
        if not live:
            return [] if work.step is None else paused(self._steps.recent)
        if not self._steps.any:
            return stalled("output", self._printed_at, t, longest=self._quiet)
        if work.step is not None and work.step == work.total:
            return []
        rows, longest = self._steps.recent, self._steps.longest_pause
        since = rows[-1].step - rows[0].step
        return stalled("step", [row.t for row in rows], t, work.step_seconds, longest, since)

    def _event(self) -> EventRow | None:
        """The last event; where steps or a loss come from stands with them on ``i``."""
        whence = ("steps are", "the loss is", "loss and accuracy are")
        for event in reversed(self._events):
            if event.kind != "progress-lines" or not event.text.startswith(whence):
                return event
        return None

    def _printed(self, t: int) -> Count | None:
        """Of the counts that the program prints and that go on the largest of a named epoch, else
        of a round, else the one that ends last; else the newest."""

        def order(each: Count) -> tuple[bool, bool, int, float, int]:
            left, goes_on = each.seconds_left(t), not each.is_old(t)
            total = each.total if each.epoch and goes_on else 0
            named = each.epoch.startswith("epoch")
            return goes_on, named, total, -1.0 if left is None else left, each.t

        known = (each for each in self._counts.values() if each.rises >= 2 or each.rounds > 1)
        return max(known, key=order, default=None)

    def _bound(self, t: int, over: Period | None, *, live: bool) -> str:
        """The sentence of ``gpuwatch show`` on what bounds the run that was over at ``t`` (ns); of
        one that goes on then what bounds its last minute, anew every five seconds."""
        silent = live and self._steps.silence(t)
        if not (live or over) or not self._steps.timed_start or silent:
            return ""
        moment = (live, t // _BOUND_NS if live else t)
        if self._bound_at[0] != moment:
            found = self._checks.rooflines(t)
            verdict = found.minute.verdict if live else found.steady.verdict
            start, end = self._steps.timed
            when = "so far" if end - start < 60 * NS else "in the last minute"
            told = f"{when} {verdict.text}" if live else verdict.text
            if verdict.bound == UNKNOWN:  # while it goes on that may be so for seconds
                told = "" if live else told.replace(" what bounds the run", "", 1)
            self._bound_at = moment, told
        return self._bound_at[1]

    @property
    def end(self) -> int:
        """Session time of the newest record in nanoseconds."""
        return self._now(self._status())

    def _status(self) -> Status:
        state = self.reader.status(self.meta)
        if state.state is State.LOST:
            # The recorder may have written its result and ended since the meta data were read.
            self.meta = self.reader.meta()
            state = self.reader.status(self.meta)
        return state

    def _seconds(self, state: Status, t: int) -> float:
        """Session time ``t`` (ns); of a run that is over how long it took."""
        took = None if state.live else spent(self.meta, "real_seconds")
        return t / NS if took is None else round(took)

    def _now(self, state: Status) -> int:
        """Session time of the newest record in nanoseconds."""
        if isinstance(self.reader, PastReader):
            return max(1, self.reader.t_ns)
        ended = number(mapping(self.meta.get("result")).get("t"))
        last = max(self._ticks.newest, self._steps.newest, 1)
        if not state.live and ended is not None:
            return int(max(self._ticks.newest, 1, min(ended, last + 3600 * NS)))
        return last

    def _reading(self, channel: ChannelRow, over: Period | None, *, live: bool) -> Reading:
        """The newest value; of a run that is over the mean ``over`` a period, once all is read,
        and of memory the most."""
        if channel.id in self._constant:
            return self._constant[channel.id]
        counted = channel.unit.startswith("{") and channel.unit != "{thread}"  # of the load
        if over is not None and not counted:
            key, of = (channel.id, over.start, over.end), (channel.device, channel.metric)
            # The mean of a level says neither what was needed nor what was left.
            level = channel.unit == "By" and channel.kind == "gauge"
            if key not in self._means and level:
                found = self.reader.highest(channel.metric, [channel.device], *key[1:])
                self._means[key] = found.get(channel.device)
            elif key not in self._means:
                self._means[key] = self._series.get(of, NOTHING).mean(*key[1:])
            value = self._means[key]
            peak = level and value is not None
            return Reading(value, channel.method, channel.reason, channel.source, peak=peak)
        counter = channel.kind == "counter"
        sample = self._ticks.rate(channel.id) if counter else self._ticks.latest(channel.id)
        # Slow metrics are sampled less often than every tick; an older value is outdated.
        fresh = sample and self._ticks.newest - sample[0] <= max(2.5, 3 * self._interval) * NS
        value = sample[1] if sample and fresh and (live or counted) else None
        return Reading(value, channel.method, channel.reason, channel.source)

    def _silent(self, state: Status) -> float | None:
        """Seconds without a new record in a live session; ``None``: not unusually long."""
        start = number(mapping(self.meta.get("clock")).get("unix_ns"))
        if not state.live or isinstance(self.reader, PastReader) or start is None:
            return None
        silent = (self._now_ns() - start - max(self._ticks.newest, self._steps.newest)) / NS
        return silent if silent > max(_MAX_SILENCE_SECONDS, 4 * self._interval) else None


def _named(alert: Alert, others: Sequence[ProcessNow]) -> Alert:
    """A warning of other programs on the CPU with the one of ``others`` that uses most."""
    if alert.kind != CPU_SHARED or not others:
        return alert
    name, use = clean(shown_command(others[0]), _LONGEST_NAME), percent(others[0].cores)
    text = f"{alert.text}; now most by PID {others[0].pid}, {use} of a core: {name}"
    return replace(alert, text=text)


def _select(devices: Sequence[DeviceNow], wanted: str | None, *, off_gpus: bool) -> str | None:
    """Id of the device that the gauges show: ``wanted`` if it exists, else the run's first."""
    gpus = [device.row.id for device in devices if device.row.kind == "gpu"]
    if wanted in gpus:
        return wanted
    used = [device.row.id for device in devices if device.row.kind == "gpu" and device.row.used]
    cpus = [device.row.id for device in devices if device.row.kind == "cpu"]
    return next(iter([*cpus, *gpus] if off_gpus else [*used, *gpus, *cpus]), None)


def trouble(reader: SessionReader, meta: Mapping[str, Any], state: Status) -> Trouble | None:
    """Why the run failed: the workload's error, else the reason as lists have it, else the status;
    ``None``: it did not fail."""
    error = mapping(meta.get("error"))
    if error.get("message"):
        hint = error.get("hint")
        return Trouble(str(error["message"]), str(hint) if hint else None)
    if state.state is State.LOST and (said := _said_by_recorder(reader.path)):
        return Trouble(said)
    if state.state in BAD:
        reason = reason_of(reader, meta, state)
        passed_on = failure_of(meta, state, reason, printed=False)
        return Trouble(failure_of(meta, state, reason) or state.text, passed_on=passed_on)
    return None


def _said_by_recorder(path: Path) -> str:
    """Why a recorder gave up, by its log, such as that the disk is full; else empty."""
    try:
        log = open_regular(path.parent / RECORDER_LOG, links=False)
    except OSError:
        return ""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(log).st_size - _MOST_SAID))
        lines = file.read(_MOST_SAID).decode(errors="replace").splitlines()
    told = (line.partition(GAVE_UP)[2] for line in reversed(lines))
    return next((clean(text, _MOST_SAID) for text in told if f"/{path.name}:" in text), "")


class PastView:
    """Gives a collector for any moment; used in the feed's thread."""

    def __init__(self, current: Collector) -> None:
        self.present = current
        self._past: tuple[PastReader, Collector] | None = None
        self._back_ns = 0
        """``back_ns`` of the kept collector."""

    def at(self, t: int | None, seconds: int | None = None) -> Collector:
        """The collector for session time ``t`` in nanoseconds (``None``: now) and a history of
        ``seconds``."""
        if t is None:
            self._past = None
            return self.present
        end = self.present.end
        t = max(0, min(t, end))
        # How far back the history needs single step lines.
        steps_ns = round(seconds * 1.2 * NS) if seconds is not None else end * (end <= RECENT_NS)
        back_ns = max(_MIN_STEPS_NS, steps_ns)
        if (
            self._past is None
            or back_ns > self._back_ns
            or not 0 <= t - self._past[0].t_ns <= _ADVANCE_NS
        ):
            self._past = None
            reader = PastReader(self.present.reader, t)
            collector = Collector(reader, current=self.present, back_ns=back_ns)
            collector.update()
            self._past, self._back_ns = (reader, collector), back_ns
        elif t > self._past[0].t_ns:
            self._past[0].advance(t)
            self._past[1].update()
        return self._past[1]
