"""Records one run, from its launch (or where a dead recorder left it) to its end."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from gpuwatch import __version__
from gpuwatch.core.errors import GpuwatchError, StorageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Result, RunState, mapping
from gpuwatch.core.processes import boot_id, identify, when_ended
from gpuwatch.core.units import clock_time
from gpuwatch.own_command import CAPSULE
from gpuwatch.recorder import run_folder
from gpuwatch.recorder.ceilings import RunCeilings
from gpuwatch.recorder.hook.channel import Channel
from gpuwatch.recorder.hook.reports import Before, HookReports
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.kept_log import KeptLog
from gpuwatch.recorder.sampling import Clocks, Sampler, changes, described, read_clocks
from gpuwatch.recorder.sources import (
    DCGM_HOST,
    Opening,
    ProcessFacts,
    Sources,
    added,
    telemetry_rows,
)
from gpuwatch.runners import guarded
from gpuwatch.runners.base import Run, Runner
from gpuwatch.session import schema
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.writing.statements import Row, event, fact, meta
from gpuwatch.session.writing.store import Durability, SessionStore
from gpuwatch.session.writing.write_hints import write_hint
from gpuwatch.session.writing.writer import COMMIT_SECONDS, MACHINE_COMMIT_SECONDS, SessionWriter

CATCH_UP_SECONDS = 0.3
"""Longest time to read output in one go while more is waiting."""
HOOK_CHANNEL = "hook"
"""Folder in a run's folder into which its processes report."""
_MUCH = 1 << 20
"""Bytes of output after which the next read comes soon."""


@dataclass(frozen=True)
class Launch:
    """How a workload is started."""

    runner: Runner
    spec: LaunchSpec
    prepared: Prepared
    folder: Path
    """The run's own."""


@dataclass(frozen=True)
class Outcome:
    """How a recording ended, for the command line."""

    path: Path
    result: Result | None
    """``None`` for a recording of the machine alone."""
    error: Mapping[str, JSON] | None
    stopped: str | None
    unsaved: str | None
    """Why the end of the session could not be written."""
    missing: str | None = None
    """If later output is missing: until when it is known, and why."""


class Recording:
    """One session being written. Made by :func:`begin` or :func:`resume`; :meth:`run` blocks."""

    def __init__(
        self,
        path: Path,
        store: SessionStore,
        sources: Sources,
        known: Mapping[str, JSON],
        *,
        interval: float,
        run: Run | None,
        state: RunState | None,
        intake: Intake,
        hook: HookReports | None,
        on_trouble: Callable[[str], None],
        commit_seconds: float = COMMIT_SECONDS,
    ) -> None:
        """``known``: the session's meta."""
        self.path = path
        base_ns = int(known["clock"]["monotonic_ns"])
        self._hook = hook
        self._sources = sources
        self._base_ns = base_ns
        self._run = run
        self._intake = intake
        self._ceilings = RunCeilings(sources.devices, known)
        self._wake: SimpleQueue[None] = SimpleQueue()
        """Wakes the sampler. A signal handler may put into it; setting an event could wait for ever
        for a lock that the interrupted code holds."""
        self._result: Result | None = None
        self._state = state
        """The state of the run in the file."""
        self._over = False
        self._stopped: str | None = None
        self._asked = threading.Lock()
        """Acquired by the first stop request."""
        self._often = False
        """Whether to poll often: the end of the run is near, or not signalled."""
        columns = store.channels()
        self._writer = SessionWriter(
            store,
            len(columns),
            base_ns=base_ns,
            pump=self._pump,
            # Without a workload there is no output to read, so no wake-up between samples.
            pump_seconds=None if run is None else COMMIT_SECONDS,
            commit_seconds=commit_seconds,
            on_trouble=on_trouble,
        )
        self._sampler = Sampler(sources.all, interval, base_ns)
        self._sampler.columns(columns)
        for tick in store.open_ticks():
            self._writer.restore(*tick)
        self._image = mapping(known.get("environment")).get("image")
        self._process_facts = ProcessFacts(sources, container=self._image is not None)
        self._clocks = Clocks(read_clocks())
        sources.watch(run.pids() if run is not None else ())
        if run is not None:
            holder = process_id(run.handle().get("holder"))
            if holder is None or not when_ended(holder, self._end):
                self._often = True

    @property
    def reached(self) -> str:
        """How far it is: ``2:00, step 120 of 500``."""
        seconds = (time.monotonic_ns() - self._base_ns) / 1e9
        text, step = clock_time(seconds), self._intake.last_step
        planned = self._intake.planned_steps
        if step is not None:
            text += f", step {step:,}" + (f" of {planned:,}" if planned else "")
        return text

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """End the workload, and with it the recording. Safe in a signal handler.

        ``at_once``: a repeated request cuts the workload's grace period short.
        """
        self._stopped = self._stopped or why
        first = self._asked.acquire(blocking=False)
        if self._run is None:
            self._over = True
        elif first or at_once:
            self._run.stop()
        self._wake.put(None)

    def _end(self) -> None:
        """The holder of the workload has ended: read the rest of its output soon."""
        self._often = True
        self._writer.look()

    def note(self, rows: Sequence[Row]) -> None:
        """Write rows before the recording runs; at once if the file is writable."""
        self._writer.put(*rows)
        self._writer.commit()

    def run(self) -> Outcome:
        """Sample and write until the workload has ended or :meth:`stop` was called."""
        self._writer.start()
        self._sampler.run(self._writer, self._wake, lambda: self._over)
        t = time.monotonic_ns() - self._base_ns
        if self._hook is not None:
            self._writer.put(*self._hook.finish(t))
        killed = self._result is not None and self._result.signal is not None
        self._writer.put(*self._intake.finish(t, killed=killed))
        self._writer.put(*self._sources.used_rows(self._intake, over=True))
        if self._run is not None:
            self._writer.put(*self._result_rows(t))
        self._writer.put(meta("closed", {"t": t}))
        self._sources.close()
        safe = self._writer.close()
        if safe and self._run is not None and self._result and not self._result.lost:
            self._run.forget()
        return Outcome(
            self.path,
            self._result,
            self._intake.error,
            self._stopped,
            None if safe else self._writer.trouble,
            self._missing(),
        )

    def _missing(self) -> str | None:
        """As ``missing`` of :class:`Outcome`."""
        result = self._result
        if result is None or result.output_until is None:
            return None
        until = (result.output_until - self._base_ns) / 1e9
        return f"its output is known only up to {until:.1f} s: {result.text}"

    def _pump(self) -> Callable[[], None] | None:
        """Take in what the workload wrote; runs in the writing thread."""
        clocks = read_clocks()
        self._writer.put(*self._clocks.look(clocks.monotonic - self._base_ns, clocks))
        run = self._run
        if run is None:
            self._writer.put(*self._ceilings.rows(self._intake))
            self._writer.put(*self._sources.processes.rows(time.monotonic_ns() - self._base_ns))
            return None
        result = run.result()
        self._note_state(run.state())
        cursor: str | None = None
        taken = 0
        until = time.monotonic() + CATCH_UP_SECONDS
        while outputs := run.read():
            cursor = run.cursor()
            taken += sum(len(output.data) for output in outputs)
            self._writer.put(*self._intake.take(outputs))
            self._writer.put(meta("cursor", {"at": cursor, **self._intake.state}))
            if time.monotonic() > until:
                break
        if not outputs and (standing := self._intake.standing(time.monotonic_ns() - self._base_ns)):
            self._writer.put(*standing)
            self._writer.put(meta("cursor", {"at": run.cursor(), **self._intake.state}))
        if self._hook is not None and not self._over:
            self._writer.put(*self._hook.look(time.monotonic_ns() - self._base_ns))
        self._writer.put(*self._ceilings.rows(self._intake))
        self._writer.put(*self._sources.processes.rows(time.monotonic_ns() - self._base_ns))
        self._writer.put(*self._sources.used_rows(self._intake))
        self._writer.put(*self._process_facts.look(run.pids, started=self._intake.started))
        self._writer.hurry = self._often or bool(outputs) or taken > _MUCH
        if result is not None and not outputs:
            self._result = _with_image(result, self._image)
            self._over = True
            self._wake.put(None)
        return None if cursor is None else partial(run.release, cursor)

    def _note_state(self, state: RunState) -> None:
        """Store the state of the run, with an event if it was lost, came back or was paused."""
        if state is self._state:
            return
        t = time.monotonic_ns() - self._base_ns
        self._writer.put(meta("run_state", {"state": state.value, "t": t}))
        if state is RunState.LOST:
            self._writer.put(event(t, "run-lost", "the run cannot be followed any more"))
        elif self._state is RunState.LOST and state is RunState.RUNNING:
            self._writer.put(event(t, "run-back", "the run is followed again"))
        elif state is RunState.PAUSED:
            text = "somebody paused the run; nothing runs until it is resumed"
            self._writer.put(event(t, "run-paused", text))
        elif self._state is RunState.PAUSED and state is RunState.RUNNING:
            self._writer.put(event(t, "run-unpaused", "the run was resumed"))
        self._state = state

    def _result_rows(self, t: int) -> list[Row]:
        result = self._result
        assert result is not None
        assert self._run is not None
        ended = result.t - self._base_ns
        spawned = self._run.spawned_ns()
        rows = []
        if result.left_behind:
            text = _left_behind(result.left_behind, kept=result.kept)
            rows.append(event(ended, "left-behind", text))
        until = None
        if (missing := self._missing()) is not None:
            assert result.output_until is not None
            until = result.output_until - self._base_ns
            text = f"the workload's output after this is unknown: {result.text}"
            rows.append(event(until, "output-missing", text))
        error = self._intake.error or {}
        folder = Path(str(self._run.handle()["folder"]))
        told = {
            "code": result.code,
            "signal": result.signal,
            "t": ended,
            "real_seconds": None if spawned is None else (result.t - spawned) / 1e9,
            "user_seconds": result.user_seconds,
            "sys_seconds": result.sys_seconds,
            "cpu_is_bound": result.cpu_is_bound,
            "out_of_memory": result.out_of_memory,
            "launcher_failed": result.launcher_failed,
            "text": missing or result.text or error.get("message"),
            "output_until": until,
            "stopped": run_folder.why_stopped(folder, self._stopped),
        }
        return [*rows, meta("result", told)]


def _with_image(result: Result, image: JSON) -> Result:
    """``result``; of what an image has no program for, with the name of the image."""
    if not result.launcher_failed or image is None:
        return result
    text = f"{result.text} (image {image})"
    if "torchrun" in text:
        text += "; `python3 -m torch.distributed.run` does the same where torch is there"
    return replace(result, text=text)


def begin(
    path: Path,
    about: Mapping[str, JSON],
    facts: Mapping[str, JSON],
    sources: Sources | Opening,
    launch: Launch | None,
    *,
    on_trouble: Callable[[str], None],
    safety: Durability = Durability.MACHINE,
) -> Recording:
    """Create the session file and start the workload, if there is one; ``safety``: what commits
    survive.

    ``about``: meta that is known before the start, of which ``session``, ``workload``,
    ``environment`` and ``interval_seconds`` are needed. Telemetry that is still opening joins after
    the start.

    Raises:
        StorageError: the file cannot be written; nothing was started.
        OSError: the run's folder cannot be written; nothing was started.
        GpuwatchError: the workload could not be started; the session says why.
    """
    base_ns = time.monotonic_ns()
    capsule = {} if CAPSULE is None else {"capsule": CAPSULE}
    made = {"schema": schema.VERSION, "gpuwatch": __version__, **capsule}
    clock = {"monotonic_ns": base_ns, "unix_ns": time.time_ns(), "boot_id": boot_id()}
    known = {**about, "session": {**about["session"], **made}, "clock": clock}
    spec, interval = None if launch is None else launch.spec, float(known["interval_seconds"])
    rows: list[Row] = [
        *(meta(key, value) for key, value in known.items()),
        *_recorder_rows(),
        *(telemetry_rows(sources, spec) if isinstance(sources, Sources) else ()),
        *(fact("host", key, value) for key, value in facts.items()),
    ]
    if launch is not None:
        handle = {"kind": launch.runner.kind, "folder": str(launch.folder), "holder": None}
        off = isinstance(sources, Sources) and sources.off
        settings = run_folder.Settings(interval, facts.get(DCGM_HOST), off)
        run_folder.note_settings(launch.folder, settings)
        run_folder.note_handle(launch.folder, handle)
        rows.append(meta("handle", handle))
        rows.append(meta("launch", {"command": list(launch.prepared.command)}))
        rows.append(meta("run_state", {"state": RunState.STARTING.value, "t": 0}))
    channels = described(sources.channels) if isinstance(sources, Sources) else []
    store = SessionStore.create(path, channels, rows, safety)
    run: Run | None = None
    state: RunState | None = None
    started: list[Row] = []
    if launch is not None:
        try:
            with guarded(launch.runner.kind):
                run = launch.runner.start(launch.spec, launch.prepared, launch.folder)
        except GpuwatchError as error:
            failure = {"code": None, "signal": None, "launcher_failed": True, "text": error.message}
            closed = meta("closed", {"t": time.monotonic_ns() - base_ns})
            whole = False
            with contextlib.suppress(sqlite3.Error):
                store.write([meta("result", failure), closed])
                whole = True
            store.close(whole=whole)
            raise
        with contextlib.suppress(OSError):  # a full disk: the first handle is enough
            run_folder.note_handle(launch.folder, run.handle())
        spawned, state = run.spawned_ns(), run.state()
        begun = None if spawned is None else spawned - base_ns
        started = [
            meta("handle", run.handle()),
            meta("launch", {"command": list(launch.prepared.command), "t": begun}),
            meta("run_state", {"state": state.value, "t": time.monotonic_ns() - base_ns}),
        ]
    if isinstance(sources, Opening):
        assert spec is not None
        sources, late = added(store, sources, spec, base_ns, on_trouble)
        started += late
    intake, hook = Intake(base_ns), None
    if spec is not None and spec.hook is not None:
        given = mapping(known.get("hook"))
        hook = HookReports(Channel(Path(spec.hook.channel)), intake, base_ns, given)
    recording = Recording(
        path,
        store,
        sources,
        known,
        interval=interval,
        run=run,
        state=state,
        intake=intake,
        hook=hook,
        on_trouble=on_trouble,
        commit_seconds=MACHINE_COMMIT_SECONDS if safety is Durability.NEARLY else COMMIT_SECONDS,
    )
    # The workload runs: from here on, wait if the disk is full.
    recording.note(started)
    return recording


def resume(
    path: Path,
    known: Mapping[str, JSON],
    sources: Sources,
    *,
    run: Run,
    interval: float,
    on_trouble: Callable[[str], None],
) -> Recording:
    """Continue a session whose recorder died; ``known`` is its meta.

    Raises:
        StorageError: the file cannot be written.
    """
    store = SessionStore.reopen(path)
    base_ns = int(known["clock"]["monotonic_ns"])
    now = time.monotonic_ns() - base_ns
    try:
        columns = store.channels()
        sources.restore(store.gpus_used(), store.gpus_seen())
        new = [c for c in sources.channels if (c.device, c.metric) not in set(columns)]
        changed = changes(columns, store.channel_states(), sources.channels, now)
        store.add_channels(len(columns), described(new))
    except sqlite3.Error as error:
        store.close(whole=False)
        raise StorageError(f"cannot write {path}: {error}", write_hint(path, error)) from error
    text = "another recorder took over the run after the first one died or could not write"
    intake = Intake(base_ns, known, KeptLog(store.log_lengths(), store.last("log")))
    channel = Path(str(run.handle()["folder"]), HOOK_CHANNEL)
    hook = None
    with contextlib.suppress(OSError):  # most runs have none
        opened = Channel(channel)
        before = Before(store.last_steps(), store.last_rank_steps(), store.events_of("hook"))
        given = mapping(known.get("hook"))
        hook = HookReports(opened, intake, base_ns, given, before)
    stored = mapping(known.get("run_state")).get("state")
    recording = Recording(
        path,
        store,
        sources,
        known,
        interval=interval,
        run=run,
        state=next((state for state in RunState if state.value == stored), None),
        intake=intake,
        hook=hook,
        on_trouble=on_trouble,
    )
    recording.note([*_recorder_rows(), event(now, "resumed", text), *changed])
    return recording


def _left_behind(count: int, *, kept: bool) -> str:
    one = count == 1
    left = "a process running; it" if one else f"{count} processes running; they"
    became = ("goes on" if one else "go on") if kept else ("was ended" if one else "were ended")
    return f"the workload left {left} {became}"


def _recorder_rows() -> list[Row]:
    recorder = identify(os.getpid())
    return [meta("recorder", asdict(recorder))] if recorder else []
