from __future__ import annotations

import subprocess
import threading
from dataclasses import replace

from gpuwatch.core.processes import identify, when_ended
from tests.waiting import until


def test_the_end_of_a_process_is_told_once() -> None:
    process = subprocess.Popen(["sleep", "60"])
    told: list[bool | None] = []
    holder = identify(process.pid)
    assert holder is not None
    assert when_ended(holder, lambda: told.append(holder.alive()))
    process.kill()
    until(lambda: told)
    process.wait()
    assert told == [False]
    until(lambda: all(thread.name != "gpuwatch-end" for thread in threading.enumerate()))


def test_of_a_process_that_is_gone_or_another_by_now_nothing_is_told() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        holder = identify(process.pid)
        assert holder is not None
        assert not when_ended(replace(holder, start_time=holder.start_time + 1), print)
        process.kill()
    assert not when_ended(holder, print)
