"""Telemetry that opens beside what else is prepared, so that no workload waits for a driver."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError

from gpuwatch.core.models import LaunchSpec
from gpuwatch.recorder.sampling import described
from gpuwatch.recorder.sources import Sources
from gpuwatch.session.writing.statements import Row, event, fact
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.write_hints import write_hint

LAUNCH_S = 3.0
"""How long a launch waits for telemetry, in seconds: longer than a driver needs that answers."""
_AGAIN_SECONDS = 1.0
"""Time until a write that failed is tried again."""


class Opening:
    """Sources while they open, on a thread of their own."""

    def __init__(self, open_: Callable[[], Sources]) -> None:
        self._opened: Future[Sources] = Future()

        def run() -> None:
            try:
                self._opened.set_result(open_())
            except BaseException as error:
                self._opened.set_exception(error)

        threading.Thread(target=run, name="gpuwatch-open", daemon=True).start()

    def within(self, seconds: float) -> Sources | None:
        """The sources if they are open by then; raises what opening them raised."""
        try:
            return self._opened.result(seconds)
        except TimeoutError:
            return None

    def result(self) -> Sources:
        """The sources, once they are open; raises what opening them raised."""
        return self._opened.result()

    def close(self) -> None:
        """Close the sources, now or as soon as they are open."""
        self._opened.add_done_callback(
            lambda opened: None if opened.exception() else opened.result().close()
        )


def telemetry_rows(sources: Sources, spec: LaunchSpec | None) -> list[Row]:
    """Rows on the devices and the host."""
    facts = sources.host_facts().items()
    return [*sources.device_rows(spec), *(fact("host", key, value) for key, value in facts)]


def added_late(
    store: SessionStore,
    opening: Opening,
    spec: LaunchSpec,
    base_ns: int,
    say: Callable[[str], None],
) -> tuple[Sources, Row]:
    """Add telemetry that opened only after the workload had started; returns the event of it."""
    sources = opening.result()
    t = time.monotonic_ns() - base_ns
    text = f"nothing was sampled in the first {t / 1e9:.1f} s: the driver was slow to answer"
    while True:
        try:
            store.write(telemetry_rows(sources, spec))  # may be written again
            store.add_channels(0, described(sources.channels))
            return sources, event(t, "sampling-late", text)
        except sqlite3.Error as error:  # as for any row of a workload that runs
            say(f"cannot write {store.path}: {error}; {write_hint(store.path, error)}")
            time.sleep(_AGAIN_SECONDS)
