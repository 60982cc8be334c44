from __future__ import annotations

import gc
import os
import subprocess
import threading
from dataclasses import replace

import pytest

from gpuwatch.core.processes import LivenessCheck, identify, when_ended
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


@pytest.mark.parametrize("by_descriptor", [True, False])
def test_a_pulse_is_there_until_the_process_ends(
    monkeypatch: pytest.MonkeyPatch, by_descriptor: bool
) -> None:
    if not by_descriptor:

        def none(pid: int) -> int:
            raise OSError("an old kernel")

        monkeypatch.setattr(os, "pidfd_open", none)
    before = len(os.listdir("/proc/self/fd"))
    process = subprocess.Popen(["sleep", "60"])
    holder = identify(process.pid)
    assert holder is not None
    pulse, another = (
        LivenessCheck(holder),
        LivenessCheck(replace(holder, start_time=holder.start_time + 1)),
    )
    assert pulse.alive() and another.alive() is False
    assert LivenessCheck(replace(holder, host="elsewhere", boot_id="its own")).alive() is None
    process.kill()
    until(lambda pulse=pulse: not pulse.alive())
    process.wait()
    assert pulse.alive() is False
    del pulse, another
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
