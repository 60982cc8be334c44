"""Workloads that misbehave: each is recorded, told of, and ended with all that it started."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.recorder.control import ONE_REQUEST_SECONDS
from gpuwatch.session.reading.status import State
from tests.waiting import until

from .aftermath import PATIENCE, Kept, complete, in_order
from .environments import STEP, Place, marked, python, text_of
from .table import Row

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]
MOST_MEMORY, MOST_FILE = 128 << 20, 48 << 20
"""Bytes: of the recorder, whatever it is given; of a session full of log."""

BARE = pytest.mark.parametrize("place", ["bare"], indirect=True)


@pytest.mark.parametrize("how", ["--duration", "gpuwatch stop"])
@BARE
def test_a_workload_that_never_ends_is_ended_by_a_limit_or_a_stop(
    place: Place, mark: str, note_fault: NoteFault, how: str
) -> None:
    forever = python(mark, "for n in range(1, 10**9):\n    step(n)\n    time.sleep(0.02)\n")
    if how == "--duration":
        head, *rest = place.arguments(*forever)
        done = place.cli(head, "--duration", "4s", *rest)
        assert done.returncode == 0
    else:
        recorder = place.cli.start(*place.arguments(*forever))
        place.wait_for_line("log line 3")
        place.cli("stop", place.path)
        assert recorder.wait(PATIENCE) == 0
        recorder.communicate()
    found = place.kept()
    in_order(found)
    assert found.status.state is State.STOPPED
    note_fault(row(f"never ends; {how}", found, place.nothing_left(mark)))


DAEMONISES = """
def daemonise():
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    time.sleep(600)
    os._exit(0)
daemonise()
for n in range(1, 4):
    step(n)
"""


def test_what_daemonised_is_told_of_and_ends_with_its_run(
    place: Place, mark: str, note_fault: NoteFault
) -> None:
    place.cli(*place.arguments(*python(mark, DAEMONISES)))
    found = place.kept()
    complete(found, 3)
    assert found.status.state is State.FINISHED
    if place.kind == "bare":  # elsewhere the kernel ends it with the container's first process
        assert "process running; it was ended" in text_of(found, "left-behind")
    note_fault(row(f"daemonises, then ends ({place.kind})", found, place.nothing_left(mark)))


def test_a_stop_ends_what_daemonised_too(place: Place, mark: str, note_fault: NoteFault) -> None:
    recorder = place.cli.start(*place.arguments(*python(mark, DAEMONISES + "time.sleep(600)\n")))
    place.wait_for_line("log line 3")
    assert len(marked(mark)) >= 2
    place.cli("stop", place.path)
    assert recorder.wait(PATIENCE) == 0
    recorder.communicate()
    found = place.kept()
    complete(found, 3)
    assert found.status.state is State.STOPPED
    note_fault(row(f"daemonises, then is stopped ({place.kind})", found, place.nothing_left(mark)))


FLOODS = {
    "prints lines without end": "chunk = (b'x' * 99 + b'\\n') * 10_000",
    "prints one line without end": "chunk = b'x' * 1_000_000",
}


@pytest.mark.parametrize("fault", FLOODS)
@BARE
def test_a_flood_of_output_is_cut_told_of_and_costs_no_memory(
    place: Place, mark: str, note_fault: NoteFault, times: Times, fault: str
) -> None:
    seconds = times(2, 60)
    body = f"""
for n in range(1, 4):
    step(n)
{FLOODS[fault]}
end, size = time.monotonic() + {seconds}, 0
while time.monotonic() < end:
    size += os.write(1, chunk)
print()
print("size", size, flush=True)
step(4)
"""
    recorder = place.cli.start(*place.arguments(*python(mark, body)))
    place.wait_for_line("log line 1")
    peaks, before = [], high_water(recorder.pid)
    while recorder.poll() is None:
        peaks.append(high_water(recorder.pid))
        time.sleep(0.1)
    recorder.communicate()
    found, size = place.kept(), place.path.stat().st_size
    assert recorder.returncode == 0
    # What was printed before the flood and after it is there; nothing in it became a step.
    assert found.steps == [1, 2, 3, 4]
    assert found.log[:3] == [f"log line {n}" for n in range(1, 4)]
    (written,) = [int(line.split()[1]) for line in found.log if line.startswith("size ")]
    assert max(peaks) < MOST_MEMORY and size < MOST_FILE
    lost = [text for kind, text in found.events if kind == "output-lost"]
    said = [text_of(found, "log-shortened"), *lost[-1:]]
    row = Row(
        "workload",
        f"{fault}: {written / 1e6 / seconds:.0f} MB/s for {seconds} s",
        1,
        f"kept {sum(map(len, found.log)) / 1e6:.0f} of {written / 1e6:,.0f} MB of log, no step; "
        f"session {size / 2**20:.0f} MiB, recorder {before / 2**20:.0f} MiB before, "
        f"{max(peaks) / 2**20:.0f} MiB at most",
        place.nothing_left(mark),
        "; ".join(said),
    )
    note_fault(row)


def high_water(pid: int) -> int:
    """The most memory that a process has had, in bytes; 0 once it ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


@BARE
def test_a_workload_that_closes_its_output_is_recorded_to_its_end(
    place: Place, mark: str, note_fault: NoteFault
) -> None:
    closed, go = place.cli.home / "closed", place.cli.home / "go"
    body = f"""
step(1)
os.close(1)
os.close(2)
open({str(closed)!r}, "w").close()
while not os.path.exists({str(go)!r}):
    time.sleep(0.02)
os._exit(6)
"""
    recorder = place.cli.start(*place.arguments(*python(mark, body)))
    until(closed.exists)
    sampled = len(place.kept().ticks)
    until(lambda: len(place.kept().ticks) > sampled + 3, "it is not sampled any more")
    assert recorder.poll() is None
    go.touch()
    assert recorder.wait(PATIENCE) == 1
    recorder.communicate()
    found = place.kept()
    complete(found, 1)
    assert (found.status.state, found.status.exit_code) == (State.FAILED, 6)
    note_fault(row("closes its output", found, place.nothing_left(mark)))


@BARE
def test_a_workload_that_becomes_another_program_is_the_same_run(
    place: Place, mark: str, note_fault: NoteFault
) -> None:
    after = f"# {mark}\n{STEP}step(2)\nstep(3)\nsys.exit(5)\n"
    body = f"step(1)\nos.execvp('python3', ['python3', '-c', {after!r}])\n"
    place.cli(*place.arguments(*python(mark, body)), code=1)
    found = place.kept()
    complete(found, 3)
    assert (found.status.state, found.status.exit_code) == (State.FAILED, 5)
    note_fault(row("becomes another program (exec)", found, place.nothing_left(mark)))


STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
step(1)
time.sleep(600)
"""


def test_children_that_ignore_sigterm_are_killed_with_their_parent(
    place: Place, mark: str, note_fault: NoteFault, times: Times
) -> None:
    patient = times(0, 1)
    recorder = place.cli.start(*place.arguments(*python(mark, STUBBORN)))
    place.wait_for_line("log line 1")
    assert len(marked(mark)) > 200
    begun = time.monotonic()
    recorder.send_signal(signal.SIGTERM)
    if not patient:  # a second signal does not wait for the grace of ten seconds
        time.sleep(1.2 * ONE_REQUEST_SECONDS)  # or the two are one
        recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(PATIENCE) == 0
    took = time.monotonic() - begun
    recorder.communicate()
    assert took > 10 or not patient
    found = place.kept()
    complete(found, 1)
    assert (found.status.state, found.status.exit_code) == (State.STOPPED, 128 + signal.SIGKILL)
    fault = f"forks 200 children; all ignore SIGTERM ({place.kind})"
    note_fault(
        row(fault, found, place.nothing_left(mark), f", ended {took:.0f} s after the signal")
    )


GARBAGE = """
import random
dice = random.Random(7)
step(1)
for _ in range(2000):
    os.write(1, dice.randbytes(dice.randrange(200)))
    os.write(1, b"\\n:::GPUWATCH " + dice.choice([
        b"", b"{", b"[]", b"null", b"{}", b'{"event": 7}', dice.randbytes(60),
        b'{"event": "step"}', b'{"event": "step", "step": -1}', b'{"event": "step", "step": 1e999}',
        b'{"event": "step", "step": 2, "seconds": "soon"}', b'{"event": "step", "step": NaN}',
        b'{"event": "step", "step": {"a": []}}', b'{"event": "count", "flop_per_step": "many"}',
        b'{"event": "step", "step": 3, "count": 9, "seconds": [1]}', b"[" * 5000,
    ]))
os.write(1, b"\\n")
step(2)
"""


@BARE
def test_garbage_for_step_lines_is_log_and_no_number(
    place: Place, mark: str, note_fault: NoteFault
) -> None:
    place.cli(*place.arguments(*python(mark, GARBAGE)))
    found = place.kept()
    assert found.steps[0] == 1 and found.steps[-1] == 2
    assert all(value > 0 for value in found.step_seconds), found.step_seconds
    assert found.status.state is State.FINISHED
    malformed = [text for kind, text in found.events if kind == "malformed-step"]
    assert "further ones are not reported" in malformed[-1]
    fault = "2,000 malformed step lines and random bytes"
    said = f"{found.status.text}; {malformed[0]}; ...; {malformed[-1]}"
    note_fault(Row("workload", fault, 1, "nothing", place.nothing_left(mark), said))


RESTRICTED = """
import resource, shutil
step(1)
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
os.umask(0o777)
os.nice(19)
for name in ("FSIZE", "NOFILE", "CORE", "STACK", "MEMLOCK", "NPROC"):
    resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (0, 0))
step(2)
time.sleep(0.5)
step(3)
os.kill(0, 9)
"""


@BARE
def test_a_workload_that_takes_its_own_limits_away_harms_itself_alone(
    place: Place, mark: str, note_fault: NoteFault
) -> None:
    place.cli(*place.arguments(*python(mark, RESTRICTED)), code=1)
    found = place.kept()
    complete(found, 3)
    assert (found.status.state, found.status.exit_code) == (State.KILLED, 128 + signal.SIGKILL)
    fault = "goes to a deleted folder, umask 0777, limits of 0, kills its process group"
    note_fault(row(fault, found, place.nothing_left(mark)))


def row(fault: str, found: Kept, left: str, more: str = "") -> Row:
    """Of a workload of which nothing was lost."""
    said = [found.status.text + more, *(text for kind, text in found.events if kind != "epoch")]
    return Row("workload", fault, 1, "nothing", left, "; ".join(dict.fromkeys(said)))
