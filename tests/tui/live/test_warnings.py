"""Warnings in the second row of the live screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.statements import fact
from gpuwatch.tui.feed.alerts import paused, stalled
from gpuwatch.tui.feed.busiest import Busiest
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import View
from tests.waiting import until

from ..harness import live, screen_text
from ..process_sessions import Made, add
from ..sessions import NS, finished, put
from ..snapshots_of import numbers_text, page_text, snapshot_of

Make = Callable[..., Path]

CLOCKS = "clocks are held down: software power cap"


def add_event(path: Path, t: float, kind: str, text: str, device: str | None = "gpu0") -> None:
    insert = "INSERT INTO event (t, kind, device, text) VALUES (?, ?, ?, ?)"
    put(path, (insert, (int(t * 1e9), kind, device, text)))


def test_held_clocks_are_told_with_the_drivers_reasons(session: Make) -> None:
    path = session(throttled=True)
    add_event(path, 5, "throttle", CLOCKS)
    assert page_text(path).splitlines()[1] == " ! GPU 0: clocks held down (software power cap)"


def test_a_driver_that_did_not_start_is_told_with_its_mend(session: Make) -> None:
    path = put(
        session(gpus=0),
        fact("host", "gpu.unavailable", "no NVIDIA GPU is seen: the NVIDIA driver is not loaded"),
        fact("host", "gpu.hint", "load it with modprobe nvidia"),
    )
    assert (
        "the NVIDIA driver is not loaded; load it with modprobe nvidia"
        in page_text(path, (120, 30)).splitlines()[1]
    )


def test_the_program_that_uses_most_of_the_cpu_is_named_and_none_of_the_run(
    session: Make, tmp_path: Path
) -> None:
    path = session(sampled={("cpu", "hw.cpu.utilization"): 0.9})
    pids = [2**22 + 1, 2**22 + 2]  # no kernel gives them
    ticks = count(1)

    def look() -> None:
        """Each uses a million ticks more: much of the CPU, however long the last look is ago."""
        used = next(ticks)
        for share, pid in enumerate(pids, 1):
            folder = tmp_path / "proc" / str(pid)
            folder.mkdir(parents=True, exist_ok=True)
            fields = f"S {'0 ' * 10}{used * share}000000 {'0 ' * 20}"
            (folder / "stat").write_text(f"{pid} (busy) {fields}")
            (folder / "comm").write_text("busy\n")
            (folder / "status").write_text("Uid:\t0\t0\t0\t0\n")

    with SessionReader(path) as reader:
        look()
        collector = Collector(reader, busiest=Busiest(tmp_path / "proc"))

        def told() -> tuple[str, list[int]]:
            look()
            collector.update()
            snapshot = collector.snapshot(View())
            (text,) = (each.text for each in snapshot.alerts if "of the CPU's time" in each.text)
            return text, [each.pid for each in snapshot.processes if not each.owned]

        def named(text: str, listed: list[int]) -> bool:
            found, pids = told()
            pattern = f"other programs use 79 % of the CPU's time{text}"
            return re.fullmatch(pattern, found) is not None and pids == listed

        until(lambda: named(rf"; now most by PID {pids[1]}, \d+ % of a core: busy", pids[::-1]))
        add(path, Made(pids[1], "busy"))  # it is of the run now
        until(lambda: named(rf"; now most by PID {pids[0]}, \d+ % of a core: busy", pids[:1]))
        add(path, Made(pids[0], "busy"))
        until(lambda: named("", []))


def test_other_programs_that_take_half_of_the_cpu_are_told(session: Make) -> None:
    path = session(sampled={("cpu", "hw.cpu.utilization"): 0.9})
    assert " ! other programs use 79 % of the CPU's time" in page_text(path)
    over = session("02", sampled={("cpu", "hw.cpu.utilization"): 0.3})
    assert "other programs" not in page_text(over)


GIVEN = {"environment": {"kind": "bare", "label": "bare", "gpus": ["GPU-0"]}}
ON_CPU = GIVEN | {"run": {"device": "cpu", "dtype": "float32", "batch_size": 64}}
UNUSED = " ! the run uses no GPU (1 was given)"


@pytest.mark.parametrize(
    ("told", "fields"),
    [
        (True, {}),
        (True, {"steps": False}),
        (False, {"steps": False, "seconds": 20}),
        (False, {"meta": GIVEN}),
        (False, {"meta": ON_CPU | {"environment": {**GIVEN["environment"], "gpus": []}}}),
        *(
            (told, {"meta": ON_CPU | {"launch": {"t": 0, "command": ["train", *words]}}})
            for told, words in (
                (False, ["--device", "CPU"]),
                (False, ["--device=cpu:0"]),
                (False, ["--no-gpu"]),
                (False, ["x --no-cuda && echo"]),
                (True, ["--workers-per-cpu", "4"]),
            )
        ),
        (False, {"meta": ON_CPU | finished()}),
    ],
)
def test_a_run_that_leaves_its_gpus_unused_is_told_of_unless_that_was_asked_for(
    session: Make, told: bool, fields: dict[str, object]
) -> None:
    path = session(**{"meta": ON_CPU, **fields})
    shown = page_text(path)
    assert (UNUSED in shown.splitlines()) == told
    assert (" ! the run used no GPU (1 was given)" in shown) == ("'result'" in str(fields))
    put(path, fact("process", "process.env.CUDA_VISIBLE_DEVICES", "-1"))
    assert UNUSED not in page_text(path)


def test_clocks_that_are_free_again_are_no_warning(session: Make) -> None:
    path = session(throttled=True, seconds=3)
    add_event(path, 1, "throttle", CLOCKS)
    add_event(path, 2, "throttle", "clocks are no longer held down")
    assert "held down" not in page_text(path).splitlines()[1]


def test_of_a_run_that_is_over_the_share_of_its_timed_steps_is_told(session: Make) -> None:
    # Of all of the recording it is 96 %.
    assert "GPU 0: clocks held down by power 100 % of the timed steps" in page_text(
        session(throttled=True, meta=finished(), alive=False)
    )


def test_an_xid_stays_on_the_screen_before_everything_else(session: Make) -> None:
    path = session(throttled=True)
    for t in (4, 9):
        add_event(path, t, "xid", "Xid 79: GPU has fallen off the bus")
    shown = page_text(path)
    assert shown.splitlines()[1].startswith(
        " ! GPU 0: Xid 79: GPU has fallen off the bus (2 times)"
    )
    assert shown.splitlines()[1].endswith("; 1 more, press i")
    assert len(shown.splitlines()[1]) < 80
    assert "clocks held down (power)" in numbers_text(path)


def test_memory_errors_are_told(session: Make) -> None:
    path = session()
    add_event(path, 4, "ecc", "memory errors that could not be corrected: 1 more")
    assert (
        "GPU 0: memory errors that could not be corrected: 1 more"
        in page_text(path).splitlines()[1]
    )


def test_counters_that_went_away_are_told_until_they_are_back(session: Make) -> None:
    path = session(gpus=3)
    for gpu in ("gpu0", "gpu1", "gpu2"):
        add_event(path, 4, "gpm-lost", "no permission", gpu)
    assert page_text(path).splitlines()[1] == " ! GPUs 0 to 2: no permission"
    for gpu in ("gpu1", "gpu2"):
        add_event(path, 5, "gpm-back", "GPM answers again", gpu)
    assert page_text(path).splitlines()[1] == " ! GPU 0: no permission"
    add_event(path, 5, "gpm-back", "GPM answers again")
    assert " ! " not in page_text(path)


LOST = "the GPU is lost: it has fallen off the bus; reset the GPU"


def test_a_lost_gpu_is_the_gravest_until_it_is_back(session: Make) -> None:
    meta = {"count": {"flop_per_step": 1.5e13, "bytes_per_step": 1e6}}
    path = session(known_card=True, gpus=4, meta=meta)
    add_event(path, 4, "xid", "Xid 79: GPU has fallen off the bus", "gpu3")
    add_event(path, 5, "gpu-lost", LOST, "gpu3")
    shown = page_text(path)
    assert shown.splitlines()[1].startswith(" ! GPU 3 is lost: it has fallen off the bus; reset")
    assert shown.splitlines()[1].endswith("; 1 more, press i"), "cross-checks are of the past"
    add_event(path, 6, "gpu-back", "the GPU answers again", "gpu3")
    shown = page_text(path)
    assert shown.splitlines()[1].startswith(" ! GPU 3: Xid 79")
    again = shown.splitlines()[1]
    assert again.endswith("; 1 more, press i"), "the cross-check is of now again"


def test_a_gpu_that_was_lost_for_a_part_of_a_finished_run_is_told_first(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    for start in (5, 20):
        add_event(path, start, "gpu-lost", LOST, "gpu0")
        add_event(path, start + 9, "gpu-back", "the GPU answers again", "gpu0")
    row = " ! GPU 0 was lost for 9.00 s, the last of 2 times: its figures are of the rest"
    assert page_text(path).splitlines()[1].startswith(row)


def test_a_loss_without_the_drivers_word_names_the_gpu_all_the_same(session: Make) -> None:
    path = session()
    add_event(path, 4, "gpu-lost", "NVML was ended")
    assert page_text(path).splitlines()[1] == " ! GPU 0 is lost: NVML was ended"


@pytest.mark.parametrize(("gpus", "size"), [(1, (80, 24)), (8, (120, 40)), (8, (80, 24))])
async def test_the_last_event_names_its_gpu_and_is_whole_there_or_on_the_page(
    session: Make, gpus: int, size: tuple[int, int]
) -> None:
    path = session(gpus=gpus, bandwidth_measured=True)
    text = "clocks are held down: software power cap, hardware thermal slowdown"
    add_event(path, 8, "throttle", text, f"gpu{gpus - 1}")
    async with live(path, size) as (app, pilot):
        assert f"◆ at 0:08: GPU {gpus - 1}: clocks are held" in screen_text(app)
        if (gpus, size) == (8, (80, 24)):
            await pilot.press("i", "end", shows=f"gpu{gpus - 1}: clocks")
        words = " ".join(screen_text(app).split())
        assert "hardware thermal slowdown" in words


def test_counts_that_disagree_with_the_hardware_are_told_with_both_numbers(session: Make) -> None:
    meta = {"count": {"flop_per_step": 1.5e13, "bytes_per_step": 1e6}}
    path = session(known_card=True, meta=meta)
    assert "counted 3.05 PFLOP/s" in page_text(path)
    assert "which no run can pass" in " ".join(numbers_text(path).split())


def test_what_a_gpu_does_without_the_run_on_it_is_not_held_against_its_counts(
    session: Make,
) -> None:
    meta = {"count": {"flop_per_step": 1.5e13, "bytes_per_step": 1e6}}
    path = session(known_card=True, meta=meta, off_gpu=True)
    assert "Algorithmic bytes/s" in numbers_text(path)
    assert "3.05 PFLOP/s, " not in page_text(path)


def test_a_run_that_has_no_step_for_long_is_told_and_not_one_whose_steps_are_done(
    session: Make,
) -> None:
    hangs = {"kind": "command", "total_steps": 4000}  # the last one at about 25 s
    row = page_text(session(**hangs)).splitlines()[1]
    assert re.fullmatch(r" ! no step for 1:0\d, usually 5\.\d\d ms", row)
    assert " ! no step" not in page_text(session("02", **hangs, seconds=35.0))
    done = {"run": {"total_steps": 4000}}
    assert " ! no step" not in page_text(session("03", **hangs, meta=done))
    assert " ! no step" not in page_text(session("04", **hangs, meta=finished(), alive=False))


def test_a_stall_is_told_once_and_after_a_lost_gpu(session: Make) -> None:
    path = session(total_steps=4000, meta={"run": {"total_steps": 9000}})
    shown = page_text(path)
    assert re.search(r"\n ! no step for 1:0\d, (.*\n)* step .* 4\d %\n", shown)
    add_event(path, 4, "gpu-lost", LOST)
    shown = page_text(path)
    assert re.search(r"\n ! GPU 0 is lost(.*\n)* step .* 4\d %  no step for 1:0\d\n", shown)


def test_ten_medians_of_a_step_and_twice_the_longest_pause_are_waited_for() -> None:
    each, evaluated = [n * NS for n in range(20)], [n * NS for n in (*range(20), 40, 41)]
    (alert,) = stalled("step", each, 29 * NS, 0.5)
    assert alert.text == "no step for 10 s, usually 500 ms"
    assert stalled("step", each, 28 * NS, 0.5) == []
    assert stalled("step", each, 48 * NS, 3.0) == []
    assert len(stalled("step", each, 49 * NS, 3.0)) == 1
    assert stalled("step", evaluated, 82 * NS) == []
    assert len(stalled("step", evaluated, 83 * NS)) == 1
    assert stalled("step", each, 98 * NS, longest=40 * NS) == []
    assert len(stalled("step", each, 99 * NS, longest=40 * NS)) == 1
    assert stalled("step", each[-8:], 900 * NS) == []
    assert len(stalled("step", each[-8:], 900 * NS, steps=14)) == 1


def test_of_a_run_that_is_over_the_pause_that_was_told_is_told_without_its_evaluation(
    session: Make,
) -> None:
    with SessionReader(session()) as reader:
        (first,) = reader.steps(limit=1)
    ends = [*range(20), 92, 93]
    rows = [replace(first, t=t * NS, step=at, evaluation=0.0) for at, t in enumerate(ends)]
    (alert,) = paused(rows)
    assert alert.text == "longest pause 1:13, after step 19"
    rows[20] = replace(rows[20], evaluation=70.0)
    assert paused(rows) == paused(rows[:1]) == []
    rows[20] = replace(rows[20], evaluation=1e305)
    assert paused(rows) == []


def test_of_two_pauses_the_longest_is_told_that_was_no_usual_one_then(session: Make) -> None:
    with SessionReader(session()) as reader:
        (first,) = reader.steps(limit=1)
    ends = [*range(20), 34, 35, 60]
    rows = [replace(first, t=t * NS, step=at, evaluation=0.0) for at, t in enumerate(ends)]
    (alert,) = paused(rows)
    assert alert.text == "longest pause 15 s, after step 19"


def test_a_pause_after_few_lines_of_several_steps_each_is_told_after_its_step(
    session: Make,
) -> None:
    with SessionReader(session()) as reader:
        (first,) = reader.steps(limit=1)
    ends = [0.2, 0.4, 0.6, 0.8, 1.0, 26.2, 26.4]
    steps = [replace(first, t=round(t * NS), step=2 * n + 1) for n, t in enumerate(ends)]
    steps[5] = replace(steps[5], count=2, seconds=(0.1, 25.1))
    (alert,) = paused(steps)
    assert alert.text == "longest pause 25 s, after step 10"


@pytest.mark.parametrize(("after", "told"), [(100, False), (900, True)])
def test_a_pause_before_the_steps_that_are_kept_is_known(
    session: Make, after: int, told: bool
) -> None:
    hangs = {"kind": "command", "total_steps": 130_000}  # the last one at about 700 s
    later = ("UPDATE step SET t = t + ? WHERE t > ?", (60 * NS, after * NS))
    path = put(session(seconds=800.0, **hangs), later)
    assert ("stalled" in [each.kind for each in snapshot_of(path).alerts]) == told


@pytest.mark.parametrize(
    ("steps", "insert"),
    [
        (
            True,
            "INSERT INTO step (t, step, count, warmup, seconds) VALUES (?, ?, 1, 0, zeroblob(8))",
        ),
        (False, "INSERT INTO log (t, n, stream, text) VALUES (?, ?, 'stdout', '')"),
    ],
)
def test_a_pause_is_remembered_when_its_lines_are_kept_no_more(
    session: Make, steps: bool, insert: str
) -> None:
    begun = {"kind": "command", "total_steps": 2000, "log": [("stdout", "begun")]}
    path = session(**begun, steps=steps, seconds=800.0)
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        put(path, *((insert, (n * NS // 10, 1001 + n)) for n in range(1000, 7000)))
        collector.update()
        assert "stalled" not in [each.kind for each in collector.snapshot(View()).alerts]


def test_a_program_that_tells_no_steps_and_prints_no_more_is_told(session: Make) -> None:
    often = [("stdout", f"line {n}") for n in range(180)]  # one each 0.5 s
    told = {"kind": "command", "steps": False}
    path = session(**told, log=often)
    assert " ! no output" not in page_text(path)
    row = page_text(put(path, ("UPDATE log SET t = t / 2", ()))).splitlines()[1]
    assert re.fullmatch(r" ! no output for 45 s, usually each 250 ms", row)
    at_once = put(session("02", **told, log=often), ("UPDATE log SET t = t / 1000", ()))
    assert " ! no output" not in page_text(at_once)
