"""What a container writes: every byte, once, on its own stream, whoever reads when."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import time
from collections.abc import Callable

import docker
import pytest

from gpuwatch.core.models import Output
from gpuwatch.runners.docker import outcome
from gpuwatch.runners.docker.run import DockerRun
from tests.waiting import until

from .conftest import Lab, Launched

docker_only = pytest.mark.docker


@docker_only
def test_both_streams_stay_apart_and_in_order(launch: Callable[..., Launched]) -> None:
    program = """
import sys
for i in range(20_000):
    print("out", i)
    print("err", i, file=sys.stderr)
"""
    launched = launch("python3", "-c", program)
    assert launched.to_end().code == 0
    for name, stream in (("out", "stdout"), ("err", "stderr")):
        wanted = "".join(f"{name} {i}\n" for i in range(20_000))
        assert launched.data(stream).decode() == wanted


@docker_only
def test_a_long_line_and_the_end_without_a_line_break_come_out_byte_by_byte(
    launch: Callable[..., Launched],
) -> None:
    text = "\n\n" + "é" * 30_001 + "\r 10 %\r 20 %\n" + "x" * 16_384 + "\n\0last"
    program = f"import sys; sys.stdout.buffer.write({text!r}.encode())"
    launched = launch("python3", "-c", program)
    launched.to_end()
    assert launched.data("stdout") == text.encode()


@docker_only
def test_garbage_is_kept_as_far_as_it_is_text_and_hurts_nothing(lab: Lab) -> None:
    seed, size = 7, 300_000
    program = (
        "import sys, random; "
        f"sys.stderr.buffer.write(random.Random({seed}).randbytes({size})); "
        "sys.stdout.buffer.write(b'\\xff\\xfe\\x00\\n'); print(); print('still text')"
    )
    seen = lab.record("python3", "-c", program)
    assert ("stdout", "still text") in seen.log
    printable = random.Random(seed).randbytes(size).count(b"\n")
    assert sum(stream == "stderr" for stream, _ in seen.log) >= printable // 2


@docker_only
def test_a_flood_without_a_line_break_is_complete_and_takes_little_memory(
    launch: Callable[..., Launched],
) -> None:
    size = 100_000_000
    program = f"""
import sys
for _ in range({size} // 1_000_000):
    sys.stderr.buffer.write(b"y" * 1_000_000)
"""
    launched = launch("python3", "-c", program)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = 0
    while (result := launched.run.result()) is None:
        outputs = launched.run.read()
        assert all(each.data.strip(b"y") == b"" for each in outputs)
        count += sum(len(each.data) for each in outputs)
        time.sleep(0 if outputs else 0.01)
    assert result.code == 0 and count == size
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@docker_only
def test_reading_goes_on_at_any_cursor_with_nothing_twice_and_nothing_lost(
    launch: Callable[..., Launched],
) -> None:
    program = """
import sys, time
for i in range(3000):
    print(i, file=(sys.stdout, sys.stderr)[i % 3 == 0], flush=True)
    i % 50 or time.sleep(0.01)
"""
    launched = launch("python3", "-c", program)
    found: list[Output] = []
    run = launched.run
    chance = random.Random(3)
    ended = None
    while ended is None:
        # A new reader with what a session would hold: the handle and the cursor, as text.
        handle, cursor = json.loads(json.dumps(run.handle())), run.cursor()
        run = DockerRun.attach(handle, cursor, "unix:///nowhere")
        while ended is None and chance.random() > 0.2:
            found.extend(run.read())
            ended = run.result()
            time.sleep(0.01)
    while more := run.read():
        found.extend(more)
    for stream, wanted in (
        ("stdout", [i for i in range(3000) if i % 3]),
        ("stderr", [i for i in range(3000) if not i % 3]),
    ):
        data = b"".join(each.data for each in found if each.stream == stream)
        assert [int(line) for line in data.split()] == wanted
    assert ended.code == 0


@docker_only
def test_times_are_those_of_the_writing_on_the_recorders_clock(
    launch: Callable[..., Launched], api: docker.APIClient
) -> None:
    """And not of the reading, which begins when all is written."""
    program = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print(time.monotonic_ns(), flush=True)
signal.sigwait({signal.SIGUSR1})
print(time.monotonic_ns(), flush=True)
"""
    launched = launch("python3", "-c", program)
    (pid,) = launched.run.pids()
    until(lambda: api.logs(launched.run.handle()["name"]))
    between = time.monotonic_ns()
    os.kill(pid, signal.SIGUSR1)
    launched.to_end()
    first, second = launched.outputs
    assert int(first.data) <= first.t < between < int(second.data) <= second.t


@docker_only
def test_a_reader_that_waits_long_without_output_stays_connected(
    launch: Callable[..., Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch.runners.docker.client.ANSWER_SECONDS", 2.0)
    launched = launch("sh", "-c", "echo one; sleep 5; echo two")
    assert launched.to_end().code == 0
    assert launched.data("stdout") == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:01.000000002Z", 1_000_000_002),
        ("2026-11-21T02:18:25.5Z", 1_795_227_505_500_000_000),
        ("2026-11-21T04:18:25.5+02:00", 1_795_227_505_500_000_000),
        ("2026-11-21T02:18:25Z", 1_795_227_505_000_000_000),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
    ],
)
def test_the_daemons_times_are_read_to_the_nanosecond(text: str, ns: int | None) -> None:
    assert outcome.unix_ns(text) == ns


def test_a_time_in_the_future_is_now() -> None:
    assert outcome.monotonic_ns(time.time_ns() + 10**12) <= time.monotonic_ns()
