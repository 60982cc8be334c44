"""Telemetry that opens beside what else is prepared, so that no workload waits for a driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError

from gpuwatch.recorder.sources import Sources

LAUNCH_S = 3.0
"""How long a launch waits for telemetry, in seconds: longer than a driver needs that answers."""


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
