"""Processes on the screen: whose they are, what they use, and who disturbs the run."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.rows import GpuProcessRow, Processes, ProcessRow
from gpuwatch.session.schema import MOST_PROCESSES
from gpuwatch.tui.feed.processes import ProcessNow, as_sampled, processes_of
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.processes.page import ProcessScreen
from gpuwatch.tui.processes.table import matching
from gpuwatch.tui.widgets.process_rows import process_rows, unknown_rows
from tests.fake_nvml import FakeDriver

from ..harness import live, running, screen_text, shows, until
from ..process_sessions import HIDDEN, LOADERS, RUN, STRANGER, Made, add
from ..sessions import GIB, NS, finished, put
from ..snapshots_of import numbers_text, page_text, snapshot_of

Make = Callable[..., Path]

SIZES = [(60, 16), (80, 24), (120, 40), (200, 60)]


def text_of(processes: tuple[ProcessNow, ...], width: int = 120, most: int = 50) -> list[str]:
    rows = process_rows(processes, width, most)
    return ["".join(text for text, _ in row.spans()).rstrip() for row in rows]


def row(pid: int, **changes: Any) -> ProcessRow:
    known: dict[str, Any] = {
        "t": 0,
        "pid": pid,
        "started": 0,
        "name": f"p{pid}",
        "user": "alice",
        "place": None,
        "owned": True,
        "running": True,
        "reason": None,
        "cores": 1.0,
        "resident": GIB,
    }
    return ProcessRow(**{**known, **changes})


def gpu(pid: int, device: str = "gpu0", **changes: Any) -> GpuProcessRow:
    known: dict[str, Any] = {
        "t": 0,
        "device": device,
        "pid": pid,
        "name": f"p{pid}",
        "owned": True,
        "bytes": GIB,
        "running": True,
        "kind": "compute",
        "share": 0.5,
        "memory_share": 0.2,
    }
    return GpuProcessRow(**{**known, **changes})


def now(found: Processes, *, over: bool = False) -> tuple[ProcessNow, ...]:
    return processes_of(found, "docker=pytorch", 90 * NS, ended=over)


def test_a_runs_only_process_has_the_newer_samples_of_the_run() -> None:
    found = now(Processes((row(1), row(2, owned=False)), ()))
    own, other = sorted(as_sampled(found, 0.08, 3.0), key=lambda each: each.pid)
    assert (own.cores, own.resident) == (0.08, 3) and other in found
    two = now(Processes((row(1), row(2)), ()))
    assert as_sampled(two, 0.08, 3.0) == two and as_sampled(found, None, None) == found


# What is shown.


def test_the_biggest_gpu_memory_comes_first_and_the_runs_own_are_marked() -> None:
    found = now(
        Processes(
            (row(1), row(2, owned=False, place="docker 3f2a"), row(3)),
            (gpu(1, bytes=GIB), gpu(2, owned=False, bytes=5 * GIB)),
        )
    )
    heading, first, second, third = text_of(found)
    assert "user" in heading and "GPU mem" in heading
    assert first.startswith("  ·  0") and "alice, docker 3f2a" in first and "5.00 GiB" in first
    assert second.startswith(" run 0") and " alice " in second and " 50 %" in second
    assert third.startswith(" run  ") and third.endswith("p3") and "50 %" not in third


def test_without_a_gpu_a_narrow_table_has_what_each_uses_of_the_host() -> None:
    heading, line = text_of(now(Processes((row(1),))), 60)
    assert "CPU %" in heading and "memory" in heading and " 100 " in line and " 1.00G " in line
    assert "CPU %" not in text_of(now(Processes((row(1),), (gpu(1),))), 60)[0]


def test_memory_that_an_ending_process_gave_back_is_unknown_and_not_0() -> None:
    (ended,) = now(Processes((row(1, resident=0),), (gpu(1),)))
    assert ended.resident is None


def test_a_process_on_two_gpus_is_one_row_with_their_sum() -> None:
    found = now(Processes((row(1),), (gpu(1), gpu(1, "gpu3", share=0.7))))
    (line,) = text_of(found)[1:]
    assert line.startswith(" run 0,3") and "2.00 GiB" in line and " 60 %" in line


def test_time_on_the_memory_is_the_mean_over_the_gpus_and_unknown_where_one_is() -> None:
    rows = (row(1), row(2), row(3))
    two = (gpu(1), gpu(1, "gpu3", memory_share=0.4), gpu(2), gpu(2, "gpu3", memory_share=None))
    shares = {each.pid: each.memory_share for each in now(Processes(rows, two))}
    assert shares == {1: pytest.approx(0.3), 2: None, 3: None}


def test_of_one_gpu_only_its_processes_are_shown_with_what_they_have_of_it() -> None:
    found = now(Processes((row(1), row(2), row(3)), (gpu(1), gpu(1, "gpu1"), gpu(2, "gpu1"))))
    rows = process_rows(found, 120, 9, selected="gpu0")
    assert len(rows) == 3
    assert "1.00 GiB" in "".join(text for text, _ in rows[1].spans())


def test_what_is_not_known_is_a_dash_and_the_reason_is_told_once() -> None:
    reason = "GPU time: not supported"
    none: dict[str, Any] = {"bytes": None, "share": None, "reason": reason}
    found = now(Processes((row(1, cores=None),), (gpu(1, **none), gpu(2, **none, name=None))))
    lines = text_of(found)[1:]
    assert all(" 0" not in line.split("p1")[0][8:] for line in lines), lines
    assert lines[0].count("—") == 3 and lines[1].count("—") == 6
    told = unknown_rows(found)
    assert told.count(f"1 and 1 more: {reason}") == 1


def test_a_number_of_another_pid_namespace_is_not_joined_with_a_process_of_this_one() -> None:
    elsewhere = gpu(7, owned=None, name=None, reason="gpuwatch runs in a PID namespace of its own")
    found = now(Processes((row(7),), (elsewhere,)))
    assert [(each.owned, bool(each.gpus)) for each in found] == [(None, True), (True, False)]


def test_of_a_long_command_the_program_and_its_last_words_are_shown() -> None:
    commands = {
        "/opt/bin/python3 /home/a/train.py --config b.yaml --seed 1": "train.py …b.yaml --seed 1",
        "/home/a/bin/simulate --input data.bin --steps 3": "simulate …a.bin --steps 3",
        "sh -c 'sleep 100; python train.py'": "sh -c 'sleep 100; python…",
        "env A=1 'B=b c' bash -lc 'cd /home/a; train'": "bash -lc 'cd /home/a; tr…",
        "env -u A /bin/python3 -u b/train.py --layers 12": "train.py --layers 12",
        "python -W ignore -m pkg.train --config b.yaml": "pkg.train --config b.yaml",
        "python -W ignore -c 'import pkg; pkg.train()'": "python -W ignore -c 'imp…",
        "bash -euo pipefail run.sh --config b.yaml": "run.sh --config b.yaml",
    }
    found = zip(now(Processes(tuple(map(row, range(8))), ())), commands, strict=True)
    shown = text_of(tuple(replace(each, command=command) for each, command in found), 60)
    assert all(map(str.endswith, shown[1:], commands.values())), shown


def test_what_ended_is_shown_only_of_a_session_that_is_over() -> None:
    rows = Processes((row(1, running=False),), (gpu(1, running=False),))
    assert now(rows) == ()
    (line,) = text_of(now(rows, over=True))[1:]
    assert line.startswith(" end 0") and line.endswith("p1")


def test_those_that_do_not_fit_are_counted() -> None:
    found = now(Processes(tuple(row(pid) for pid in range(1, 20))))
    assert len(text_of(found, most=5)) == 6 and "15 more, press p" in text_of(found, most=5)[-1]
    assert process_rows(found, 80, 0) == [] and process_rows((), 80, 9) == []


def test_of_so_many_as_are_watched_at_most_the_count_is_a_bound() -> None:
    watched = [row(pid) for pid in range(1, MOST_PROCESSES + 1)]
    assert "at least 60 more, press p" in text_of(now(Processes(tuple(watched))), most=5)[-1]
    assert "     59 more, press p" in text_of(now(Processes(tuple(watched[1:]))), most=5)[-1]
    (more,) = process_rows(now(Processes(tuple(watched))), 80, 5, selected="gpu0")[-1:]
    assert more.spans()[0][0].strip() == "at least 60 more, press", "those on no GPU are listed too"
    on_gpus = now(Processes((), tuple(gpu(each.pid, owned=None) for each in watched)))
    assert "     60 more, press p" in text_of(on_gpus, most=5)[-1], "NVML's lists are whole"


# The page.


@pytest.mark.parametrize("size", SIZES)
async def test_p_shows_the_processes_and_leads_back(session: Make, size: tuple[int, int]) -> None:
    path = add(session(), RUN, *LOADERS, STRANGER, HIDDEN)
    async with live(path, size) as (app, pilot):
        await pilot.press("p", shows="python")
        assert isinstance(app.screen, ProcessScreen)
        text = screen_text(app)
        assert "5 processes, 3 on a GPU, 3 of the run" in text and "31337" in text
        assert "GPU 0: shared with python sweep.py" in text
        assert all(len(line) <= size[0] for line in text.splitlines())
        if size[0] >= 120:
            assert "bob, docker 3f2a9c1b4d5e" in text and "2:01:30" in text
            assert "— 999: NVML does not say how much memory it holds" in text
        await pilot.press("p")
        await until(pilot, lambda: not isinstance(app.screen, ProcessScreen))


def order_of(app: object) -> list[int]:
    """PIDs from top to bottom."""
    lines = screen_text(app).splitlines()  # type: ignore[arg-type]
    cells = [line[5:17].split() for line in lines if line[1:4] in ("run", "end", " · ")]
    return [int(each[-1]) for each in cells]


async def test_o_sorts_by_use_cores_and_memory(session: Make) -> None:
    hungry = Made(50, "a", gpus=(), cores=9.0, resident=GIB)
    path = add(session(), RUN, STRANGER, hungry)
    async with live(path) as (app, pilot):
        await pilot.press("p", shows="by GPU memory")
        assert order_of(app) == [4711, 31337, 50]
        await pilot.press("o", shows="by GPU %")
        assert order_of(app) == [4711, 31337, 50]
        for title, order in (
            ("memory busy ↓", [4711, 31337, 50]),
            ("CPU ↓", [50, 31337, 4711]),
            ("memory ↓", [31337, 4711, 50]),
            ("age ↓", None),
            ("GPU ↑", None),
            ("user ↑", None),
            ("PID ↑", [50, 4711, 31337]),
        ):
            await pilot.press("o", shows=f"by {title}")
            assert order is None or order_of(app) == order
        await pilot.press("o", shows="by GPU memory")


async def test_without_a_gpu_the_first_order_is_named_by_what_it_sorts_by(session: Make) -> None:
    big = Made(50, "a", gpus=(), resident=5 * GIB)
    async with live(add(session(gpus=0), big, replace(big, pid=60, resident=GIB))) as (app, pilot):
        await pilot.press("p", shows="by CPU ↓")
        told = screen_text(app)
        assert (
            told.index("     50 ") < told.index("     60 ") and "GPU" not in told.split("user")[1]
        )


async def test_the_page_finds_by_pid_user_and_command(session: Make) -> None:
    path = add(session(), RUN, STRANGER, Made(500, "python eval.py", gpus=()))
    async with live(path, (120, 40)) as (app, pilot):
        await pilot.press("p", shows="3 processes")
        for text, pid in (("BOB", 31337), ("eval.py", 500), ("4711", 4711), ("31", 31337)):
            await pilot.press("slash", *text, shows=", 1 to 1")
            await shows(pilot, " 1 of 3 processes, ")
            assert chosen(app).startswith(f"{pid} ")
            await pilot.press("escape", shows=", 1 to 3")
        await pilot.press("slash", *"nobody's", shows="no process matches nobody's: Esc shows all")
        await pilot.press("backspace", "enter", "escape", shows=", 1 to 3")
        await pilot.press("slash", *"python", "enter", shows="  /python ")
        before = chosen(app)
        await pilot.press("down")
        await until(pilot, lambda: chosen(app) != before)  # the keys are the table's again
        await pilot.press("escape", "escape")
        await until(pilot, lambda: not isinstance(app.screen, ProcessScreen))


def test_a_number_is_found_where_one_begins() -> None:
    ranks = [row(5300 + i, name=f"python3 train.py --rank {i}") for i in range(6)]
    others = (row(81, name="seed_42.py"), row(82, name="llama7b"), row(83, name="resnet50"))
    found = now(Processes((*ranks, *others)))
    for query, pids in (
        ("rank 3", [5303]),
        ("530", range(5300, 5306)),
        ("5304", [5304]),
        ("04", []),
        ("42", [81]),
        ("7", [82]),
        ("50", [83]),
    ):
        assert [each.pid for each in matching(found, query)] == list(pids), query


def chosen(app: object) -> str:
    """The PID and command of the selected process, as they stand below the table."""
    lines = screen_text(app).splitlines()[:-1]  # type: ignore[arg-type]
    return next(line for line in reversed(lines) if line[1:4].isdecimal()).strip()


async def test_the_page_selects_by_rows_and_pages_and_the_rows_follow(session: Make) -> None:
    many = [Made(100 + i, gpus=(), resident=(90 - i) * GIB) for i in range(1, 60)]
    many.append(Made(100))
    async with live(add(session(), *many)) as (app, pilot):
        await pilot.press("p", shows=", 1 to ")
        for key, pid in [
            *(("down", 101), ("j", 102), ("up", 101), ("pagedown", 121), ("space", 141)),
            *(("pageup", 121), ("end", 159), ("home", 100)),
        ]:
            await pilot.press(key)
            await until(pilot, lambda pid=pid: chosen(app).startswith(f"{pid} "))  # type: ignore[misc]
            assert pid in order_of(app)
        await pilot.press("question_mark", shows="sort by GPU memory")


async def test_a_click_selects_a_process(session: Make) -> None:
    async with live(add(session(), *(Made(100 + i) for i in range(4)))) as (app, pilot):
        await pilot.press("p", shows="4 processes")
        row = next(n for n, line in enumerate(screen_text(app).splitlines()) if " 102 " in line)
        await pilot.click(offset=(20, row))
        await until(pilot, lambda: chosen(app).startswith("102 "))


async def test_the_page_follows_the_run_while_it_is_open(session: Make) -> None:
    path = add(session(), RUN)
    async with live(path) as (_, pilot):
        await pilot.press("p", shows="1 process, 1 on a GPU")
        add(path, STRANGER, t=85)
        await shows(pilot, "2 processes, 2 on a GPU, 1 of the run")
        add(path, STRANGER, t=86, running=False)
        await shows(pilot, "1 process, 1 on a GPU")


async def test_a_run_without_a_process_yet_says_so(session: Make) -> None:
    async with live(session()) as (_, pilot):
        await pilot.press("p", shows="no process of the run is there yet, and none is on a GPU")


async def test_the_runs_last_processes_are_there_when_it_is_over(session: Make) -> None:
    path = add(session(meta=finished()), RUN, STRANGER)
    add(path, RUN, t=89, running=False)
    async with live(path, (120, 40)) as (app, pilot):
        await pilot.press("p", shows="as sampled last")
        rows = screen_text(app).splitlines()
        assert [line[:8] for line in rows[5:7]] == [" end 0  ", "  ·  0  "]


def test_beside_means_no_process_is_as_busy_as_it_was_in_its_last_second(session: Make) -> None:
    path = add(session(meta=finished(), alive=False), RUN, STRANGER)
    processes = snapshot_of(path).processes
    assert [(each.gpu_share, each.memory_share, each.cores) for each in processes] == [
        (None, None, None)
    ] * 2
    assert all(each.gpu_bytes for each in processes)
    why = "CPU and GPU shares are of a moment while it ran: ← goes back"
    assert f"and 1 more: {why}" in unknown_rows(processes)[0]
    text = page_text(path, (120, 60))
    assert "── processes, as sampled last ─" in text
    assert "GPU %" in text and "mem busy" not in text
    text = page_text(add(session("02"), RUN, STRANGER), (120, 60))
    assert "── processes ─" in text and "GPU % mem busy" in text and "SM %" not in text


@pytest.fixture
def neighbour() -> Iterator[int]:
    program = subprocess.Popen(["sleep", "300"])
    yield program.pid
    program.kill()
    program.wait()


async def test_the_machines_processes_are_recorded_while_their_page_is_open(
    tmp_path: Path, neighbour: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = FakeDriver(tmp_path)
    driver.processes(0, (neighbour, 3 * GIB, "compute"))
    for name, value in driver.variables.items():
        monkeypatch.setenv(name, value)
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, f"{neighbour}")
        await pilot.press("p", shows="this machine")
        text = screen_text(app)
        assert "this machine" in text and "1 process, 1 on a GPU" in text and "sleep" in text
        assert "run" not in text.splitlines()[5] and "of the run" not in text
        driver.processes(0)
        await shows(pilot, "no process is on a GPU")


# Who disturbs.


def test_a_stranger_on_a_gpu_of_the_run_is_named(session: Make) -> None:
    path = add(session(), RUN, STRANGER)
    assert page_text(path, (120, 40)).splitlines()[1] == (
        " ! GPU 0: shared with python sweep.py (PID 31337, bob, docker 3f2a9c1b4d5e, 12.3 GiB)"
    )
    add(path, STRANGER, t=85, running=False)
    assert " ! " not in page_text(path, (120, 40)), "it has left"


@pytest.mark.parametrize(
    "other",
    [
        Made(7, "python", gpus=(("gpu1", GIB, 0.9),), owned=0),
        Made(7, "Xorg", gpus=(("gpu0", GIB, 0.01),), owned=0, kind="graphics"),
        Made(7, "nvidia-cuda-mps-server", gpus=(("gpu0", GIB, 0.9),), owned=0),
        Made(7, "python", gpus=(("gpu0", GIB, 0.9),), owned=None),
        Made(7, "python", gpus=(("gpu0", GIB, 0.9),), owned=1),
    ],
    ids=["on another GPU", "draws only", "runs the run's kernels", "nobody knows", "is the run's"],
)
def test_nobody_is_accused_who_does_not_disturb(session: Make, other: Made) -> None:
    assert " ! " not in page_text(add(session(gpus=2), RUN, other))


def test_nobody_is_accused_before_it_is_known_which_gpus_the_run_uses(session: Make) -> None:
    path = add(session(gpus=2, steps=False, gpus_unknown=True), STRANGER)
    assert " ! " not in page_text(path)
    add(path, RUN, t=85)
    assert " ! GPU 0: shared with python sweep.py" in page_text(path)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_while_the_gpus_of_a_run_are_not_known_it_is_said_and_no_share_is_told(
    session: Make, size: tuple[int, int]
) -> None:
    path = session(gpus=8, gpus_unknown=True, known_card=True)
    text = page_text(path, size)
    assert "counted, GPUs not known" in text and "of peak" not in text and "…" not in text
    assert "it is not known which GPUs are the run's" in text or size == (80, 24)
    ahead = {"launch": {"t": 0}, "hook": {"given": True}, "waiting": {"for": "import", "t": 0}}
    early = session("02", kind="command", steps=False, gpus=2, gpus_unknown=True, meta=ahead)
    for width, note in (120, ", Tab for the next  per"), (90, "2  per"), (80, "  no use seen yet"):
        assert note in page_text(early, (width, 24)), width
    add(path, replace(RUN, gpus=(("gpu3", 36 * GIB, 0.8),)))
    text = page_text(path, size)
    assert " GPU 3  NVIDIA" in text and " peak" in text and "not known" not in text


def test_of_a_run_that_is_over_it_is_told_for_how_long_it_was_disturbed(session: Make) -> None:
    path = add(session(meta=finished()), RUN, t=2)
    add(path, STRANGER, t=30)
    add(path, STRANGER, t=75, running=False)
    shown = numbers_text(path, 120)
    assert "GPU 0: shared for 50 % of the time with python sweep.py (PID 31337, " in shown
    assert "bob, docker 3f2a9c1b4d5e, at most 12.3 GiB)" in shown


def set_values(path: Path, metric: str, value: float) -> Path:
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT id FROM channel WHERE metric = ?", (metric,)).fetchall()
    return put(path, *((f"UPDATE tick SET c{column} = ?", (value,)) for (column,) in found))


def test_gpu_memory_that_runs_out_is_told_with_what_is_left(session: Make) -> None:
    path = set_values(session(), "hw.gpu.memory.usage", 79.2 * GIB)
    assert page_text(path).splitlines()[1] == " ! GPU 0: 819 MiB of 80.0 GiB memory is free"
    set_values(path, "hw.gpu.memory.usage", 70 * GIB)
    assert " ! " not in page_text(path)


def test_memory_of_a_gpu_that_the_run_does_not_use_is_no_matter_of_the_run(session: Make) -> None:
    path = set_values(
        session(gpus=2, steps=False, gpus_unknown=True), "hw.gpu.memory.usage", 79.2 * GIB
    )
    assert " ! " not in page_text(path), "nothing tells yet which GPU it uses"
    add(path, RUN)
    assert page_text(path).splitlines()[1] == " ! GPU 0: 819 MiB of 80.0 GiB memory is free"


def test_host_memory_that_runs_out_is_graver_than_a_neighbour(session: Make) -> None:
    path = add(set_values(session(), "hw.memory.usage", 126 * GIB), RUN, STRANGER)
    shown = page_text(path)
    assert shown.splitlines()[1].startswith(" ! host: 2.00 GiB of 128 GiB memory is available")
    assert shown.splitlines()[1].endswith("; 1 more, press i")
    assert "GPU 0: shared with" in numbers_text(path)


def test_a_container_near_its_limit_is_told() -> None:
    from gpuwatch.core.metrics import Method
    from gpuwatch.session.rows import DeviceRow
    from gpuwatch.tui.feed.alerts import low_memory
    from gpuwatch.tui.feed.snapshot import DeviceNow, Reading

    used = {"container.memory.usage": Reading(7.8 * GIB, Method.MEASURED)}
    device = DeviceNow(DeviceRow("workload", "workload", "w", None, True, {}), used)
    assert [each.text for each in low_memory([device], None, 8 * GIB)] == [
        "the container uses 98 % of its memory limit, 8.00 GiB"
    ]
    assert low_memory([device], None, None) == [] and low_memory([device], None, 16 * GIB) == []


def test_clocks_that_are_held_down_are_told_with_the_clock(session: Make) -> None:
    warning = " ! GPU 0: clocks held down (power), SM clock 1.41 GHz of 1.98 GHz"
    assert (
        page_text(session(throttled=True, known_card=True), (120, 40))
        .splitlines()[1]
        .startswith(warning)
    )


@pytest.mark.parametrize("over", [False, True])
def test_one_stranger_on_all_gpus_is_one_warning_and_a_mark_in_every_panel(
    session: Make, over: bool
) -> None:
    more = {"meta": finished(), "alive": False} if over else {}
    on = tuple((f"gpu{n}", (12 + n) * GIB, 0.15) for n in range(8))
    run = tuple((f"gpu{n}", 36 * GIB, 0.8) for n in range(8))
    path = session(gpus=8, **more)
    for t in (10.0, 89.0) if over else (80.0,):
        add(path, replace(RUN, gpus=run), replace(STRANGER, gpus=on), t=t)
    snapshot = snapshot_of(path, View(grid=True))
    shared = [text for text in snapshot.warnings if "shared" in text]
    assert len(shared) == 1 and "at most 19.0 GiB" in shared[0], snapshot.warnings
    assert shared[0].startswith("GPUs 0 to 7: shared ")
    assert all(panel.problem.startswith("shared ") for panel in snapshot.panels)


def test_who_left_before_the_launch_disturbed_nobody(session: Make) -> None:
    path = add(session(meta={**finished(), "launch": {"t": 40 * NS}}), RUN, t=41)
    add(path, STRANGER, t=0)
    add(path, STRANGER, t=39, running=False)
    assert "shared for" not in page_text(path, (120, 40))


def test_a_process_that_works_a_little_is_not_shown_at_0() -> None:
    processes = processes_of(
        Processes((row(1, cores=0.003), row(2, cores=0.0)), ()), "", 0, ended=False
    )
    assert [line.split()[3] for line in text_of(processes)[1:]] == ["<1", "0"]
