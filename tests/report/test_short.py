"""What a command says when a run is over: a few lines, and where the rest is."""

from __future__ import annotations

import html
import math
import re
import sqlite3
from array import array
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.study.cost import run_cost, run_energy
from gpuwatch.analysis.study.read import read_study
from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.load import load_notes
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.cli import main
from gpuwatch.report import json, markdown
from gpuwatch.report import json as as_json
from gpuwatch.report import text as study_text
from gpuwatch.report.document.sessions import document
from gpuwatch.report.html.page import page
from gpuwatch.report.text import as_text
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.plan import Part
from gpuwatch.session.writing.store import SessionStore
from tests.analysis.recorded_studies import (
    APPTAINER,
    BARE,
    DOCKER,
    FAILED,
    RESNET,
    START,
    blocks_of,
    planned,
    recorded,
    run,
)
from tests.analysis.sessions import CPU, GPU, record

from ..rank_steps import rank_rows, rank_steps, written
from ..tui.sessions import Script, finished, write

EFFECTS = {BARE.label: 1.0, DOCKER.label: 1.0}


def test_a_single_run_is_said_in_a_dozen_lines(tmp_path: Path) -> None:
    write(tmp_path / "01-bare.gpuwatch", Script(meta=finished(), alive=False))
    lines = study_text.terminal(read_study(tmp_path), short=True).splitlines()
    assert "01-bare: finished" in lines and len(lines) <= 16
    assert any(line.startswith("step time, median") for line in lines)


def test_the_figures_at_the_end_of_a_run_are_those_that_are_shown_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "01-bare.gpuwatch"
    write(path, Script(meta=finished(), alive=False))
    at_end = study_text.terminal(read_study(tmp_path), short=True)
    assert main(["show", str(path)]) == 0
    later = capsys.readouterr().out
    ended, shown = (
        re.search(r"^over [\d,]+ timed steps (.+\n)+", text, re.M) for text in (at_end, later)
    )
    assert ended and shown and ended[0] == shown[0]


def test_a_loss_that_is_no_number_is_told_first_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "01-bare.gpuwatch"
    write(path, Script(meta=finished(), alive=False))
    with closing(sqlite3.connect(path)) as file, file:
        nan = array("d", [math.nan]).tobytes()
        file.execute("UPDATE step SET loss = ? WHERE n = (SELECT max(n) FROM step)", (nan,))
    assert main(["show", str(path)]) == 0
    told = capsys.readouterr().out
    assert re.match(r"The loss is no finite number any more \(since step [\d,]+\)\.\n", told)
    assert told.count("no finite number") == 1
    result = read_study(tmp_path)
    assert "The loss is no finite number any more" in page(result, ())
    assert "the loss is no finite number any more" in study_text.terminal(result)


def test_of_a_run_that_failed_its_output_is_named_and_of_another_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for code in (0, 1):
        path = tmp_path / f"{code}.gpuwatch"
        write(path, Script(meta=finished(code=code), alive=False))
        assert main(["show", str(path)]) == 0
        named = f"full output: gpuwatch log {path}\n" in capsys.readouterr().out
        assert named is (code == 1)


def test_a_run_that_used_none_of_its_gpus_says_so_unless_the_cpu_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for device in ("auto", "cpu"):
        workload = {"name": "mnist-cnn", "kind": "workload", "parameters": {"device": device}}
        path = tmp_path / f"{device}.gpuwatch"
        meta = {**finished(), "workload": workload}
        write(path, Script(gpus=2, off_gpu=True, meta=meta, alive=False))
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE device SET used = 0 WHERE kind = 'gpu'")
        assert main(["show", str(path)]) == 0
        told = "the run used no GPU, 2 were there" in capsys.readouterr().out
        assert told is (device == "auto")


def test_a_short_run_names_the_gpus_of_which_it_is_not_known_whether_it_used_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.gpuwatch"
    write(path, Script(gpus_unknown=True, meta=finished(), alive=False))
    assert main(["show", str(path)]) == 0
    assert "; GPU use not known (NVIDIA H100" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("reason", "doctor"), [("the run was stopped while it was counted", False), ("no ncu", True)]
)
def test_without_counters_the_doctor_is_named_where_something_may_lack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: str, doctor: bool
) -> None:
    path = tmp_path / "a.gpuwatch"
    write(path, Script(meta={**finished(), "counters": {"reason": reason}}, alive=False))
    assert main(["show", str(path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "record it again with --counters" in told
    assert ("gpuwatch doctor" in told.partition(f"--counters gave nothing: {reason}")[2]) is doctor


def test_hints_name_the_session_in_both_views(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gauges = {("gpu0", "hw.gpu.utilization"): 1.0, ("gpu0", "hw.gpu.memory.bandwidth"): 1e11}
    profiled = {"profile": {"tables": {"kernels": {}}}}
    path = record(tmp_path / "a.gpuwatch", gauges=gauges, extra=profiled)
    for flags in ((), ("--all",)):
        assert main(["show", *flags, str(path)]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert f"`gpuwatch kernels {path}` shows its kernels" in told and "SESSION" not in told


def test_one_session_is_shown_by_what_bounds_it_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[1] / "data" / "h200" / "train.gpuwatch"
    monkeypatch.setenv("GPUWATCH_PRICES", "H200=3.20")
    assert main(["show", str(path)]) == 0
    first, identity, table, *_ = capsys.readouterr().out.split("\n\n")
    assert " ".join(first.split()) == (
        "Launch- or host-bound: 65 % of the time no kernel ran; neither compute (1.4 %) nor "
        "bandwidth (5.6 %) is full. MFU 1.4 %; step time 31.2 ms, median (mean 37.2 ms, that of "
        "MFU); 7.57 J ±4.6 % a step; "
        "0.0201 EUR for the run."
    )
    assert identity.startswith("train.py (bare): finished")
    rows = (re.split(" {2,}", line) for line in table.splitlines()[1:])
    figures = {name: (value, method) for name, value, method in rows}
    assert figures["throughput, samples/s"] == ("1,720", "counted")
    batch = float(figures["step time, mean"][0].removesuffix(" ms")) / 1e3 * 1720
    assert batch == pytest.approx(64, rel=2e-3), "for who multiplies what is shown"
    assert figures["peak GPU memory"] == ("2.14 GiB", "measured")
    assert main(["show", "--all", str(path)]) == 0
    every = capsys.readouterr().out
    assert "GPU power  " in every and "GPU power average" not in every
    assert "FLOP/s, % of data-sheet peak" in every and "MFU at maximum clock" in every


@pytest.mark.parametrize(
    ("file", "note", "shown"),
    [
        ("h200/copy", "process GPU utilization: samples cover only 84 %", False),
        ("kept-0.1.0/study/01-bare-1", "CPU utilization: samples cover only 86 %", True),
    ],
)
def test_how_far_a_row_was_sampled_is_told_where_the_row_is(
    capsys: pytest.CaptureFixture[str], file: str, note: str, shown: bool
) -> None:
    path = Path(__file__).parents[1] / "data" / f"{file}.gpuwatch"
    assert main(["show", str(path)]) == 0
    assert (note in capsys.readouterr().out) is shown
    assert main(["show", "--all", str(path)]) == 0
    assert note in capsys.readouterr().out


def test_profile_and_counters_are_in_no_elapsed_time(tmp_path: Path) -> None:
    times = {"real_seconds": 89.0, "user_seconds": 20.0, "sys_seconds": 10.0}
    stages = {"profile": {"real_seconds": 1.5}, "counters": {"real_seconds": 71.5}}
    path = run(tmp_path / "01-bare.gpuwatch", result={"t": 89_400_000_000, **times}, extra=stages)
    assert "elapsed 16.0 s" in said(tmp_path) and "counters 73.0 s" in said(tmp_path)
    with SessionReader(path) as reader:
        listed, session = listing(reader), summarise(reader)
        joules = run_energy(reader, session)
    assert (listed.seconds, listed.elapsed_seconds) == pytest.approx((session.seconds, 16.0))
    paid = run_cost(session, 3.6, joules)
    assert paid.startswith("0.0890 EUR for 1:29 (73.0 s of it profile and counters) at 3.60 EUR")


def _cells(text: str, first: str) -> list[str]:
    (row,) = (line for line in text.splitlines() if line.startswith(f"{first} "))
    return re.split(" {2,}", row)


@pytest.mark.parametrize("gpus", [1, 2])
def test_a_machine_is_a_line_for_each_gpu_and_no_word_of_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpus: int
) -> None:
    path = tmp_path / "01-bare.gpuwatch"
    script = Script(kind="machine", gpus=gpus, meta=finished(), alive=False)
    script.sampled["gpu0", "hw.gpu.memory.usage"] = 2.0**34
    write(path, script)
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("CPU utilization") == 1 and "GPU utilization" not in shown
    head = ["utilization", "memory", "power", "temperature", "energy"]
    assert head in [line.split() for line in shown.splitlines()], "no GPU tells its bandwidth"
    for at in range(gpus):
        _, utilization, memory, power, *_ = _cells(shown, f"gpu{at}")
        assert utilization.endswith(" %") and power.endswith(" W")
        assert memory == "16.0/80.0 GiB" or at
    alone = Part(name="", workloads=(RESNET,), environments=(BARE,), blocks=None)
    result = replace(read_study(tmp_path), plan=planned([alone]))
    told = html.unescape(page(result, ()))
    assert "step time, median" not in told and "no verdict, margin" not in told


def test_a_run_without_steps_tells_its_own_use_and_not_that_of_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Energy by the integral of power, as no counter was read."""
    used = {"real_seconds": 8.0, "user_seconds": 3.0, "sys_seconds": 1.0}
    for name, known in (("known", used), ("unknown", {})):
        script = Script(steps=False, seconds=8.0, meta=finished(seconds=8.0), alive=False)
        script.meta["result"] = {**script.meta["result"], **dict.fromkeys(used), **known}
        script.sampled["gpu0", "hw.gpu.power"] = 500.0
        write(path := tmp_path / f"{name}.gpuwatch", script)
        assert main(["show", str(path)]) == 0
        shown = capsys.readouterr().out
        assert "CPU utilization" not in shown
        assert _cells(shown, "maximum process memory usage")[1] == "2.40 GiB"
        assert _cells(shown, "GPU energy")[1] == "4.00 kJ"
        assert ("CPU time, user" in shown) is (name == "known")
        assert ("process CPU time" in shown) is (name == "unknown")


def test_user_and_system_time_are_told_apart_only_where_ticks_can(tmp_path: Path) -> None:
    for name, each, told in (("short", 0.04, False), ("long", 0.06, True)):
        script = Script(steps=False, seconds=8.0, meta=finished(seconds=8.0), alive=False)
        script.meta["result"] |= {"real_seconds": 8.0, "user_seconds": each, "sys_seconds": each}
        with SessionReader(write(tmp_path / f"{name}.gpuwatch", script)) as reader:
            found = summarise(reader)
        text = as_text(document(compare([found]), ""), 100)
        assert _cells(text, "CPU time")[1] == f"{2000 * each:.0f}{'' if told else '.0'} ms"
        assert ("CPU time, user" in text, "CPU time, system" in text) == (told, told)


def test_two_single_runs_stand_beside_each_other_under_the_answer(tmp_path: Path) -> None:
    for at, name in enumerate(("bare", "docker"), 1):
        script = Script(environment=name, pace=at, meta=finished(), alive=False)
        write(tmp_path / f"0{at}-{name}.gpuwatch", script)
    lines = study_text.terminal(read_study(tmp_path), short=True).splitlines()
    assert lines[0].startswith("NO VERDICT (1 run of each, needs 5)") and len(lines) <= 19
    assert any("+100.0 %" in line for line in lines)


def test_a_failed_run_without_figures_says_how_it_ended(tmp_path: Path) -> None:
    script = Script(meta=finished(1), alive=False, steps=False, gpus=0)
    write(tmp_path / "01-bare.gpuwatch", script)
    assert "exit code 1" in study_text.terminal(read_study(tmp_path), short=True)


def loaded(own: float, **more: Any) -> dict[str, Any]:
    """Options of a run on eight cores that are always busy, of which it uses ``own``."""
    return {
        "gauges": {("cpu", "hw.cpu.utilization"): 1.0},
        "counters": {("workload", "process.cpu.time"): own},
        "devices": (GPU, CPU, ("workload", "workload", "workload", None, {})),
        "host": {"cpu.core.logical.count": 8},
        **more,
    }


def said(folder: Path, *, short: bool = True) -> str:
    """On one line, as where lines are broken is of no matter."""
    return " ".join(study_text.terminal(read_study(folder), short=short).split())


def test_the_load_of_other_programs_is_said_at_the_end_of_a_study_and_in_its_summary(
    tmp_path: Path,
) -> None:
    options = {at: loaded(1.6 if at % 2 else 2.4) for at in range(1, 15)}
    recorded(tmp_path, [blocks_of(6, BARE, DOCKER)], EFFECTS, options=options)
    note = "other programs used 70 to 80 % of the CPU's time in 12 of 12 runs"
    result = read_study(tmp_path)
    for text in (
        said(tmp_path),
        said(tmp_path, short=False),
        markdown.as_markdown(result),
        html.unescape(page(result, ())).replace("\xa0", " "),
        "\n".join(json.study(result)["notes"]),
    ):
        assert note in text


def test_the_load_of_other_programs_is_said_of_a_run_alone(tmp_path: Path) -> None:
    options = loaded(1.6, facts={"threads": "2"})
    options["counters"]["workload", "process.cpu.wait"] = 0.04
    path = run(tmp_path / "01-bare.gpuwatch", **options)
    note = "other programs used 80 % of the CPU's time; it waited for a core 2.0 % of the time"
    assert note in said(tmp_path)
    with SessionReader(path) as reader:
        found = summarise(reader)
    assert note in as_json.summary(found)["session"]["notes"]
    assert note in as_text(document(compare([found]), ""), 100)
    own = found.metrics["process.cpu.time"]
    assert own.max is not None
    for share, known in ((0.1, 1), (0.04, 0)):  # of the window, of which its own time is known
        part = replace(own, max=own.max * share, coverage=share)
        metrics = {**found.metrics, "process.cpu.time": part}
        notes = load_notes([replace(found, metrics=metrics)])
        assert len(notes) == known and all("used 80 % of the CPU" in each for each in notes)


def test_others_had_the_cores_of_a_run_that_used_less_than_a_tick(tmp_path: Path) -> None:
    run(tmp_path / "01.gpuwatch", label="bare", **loaded(0.0))
    run(tmp_path / "02.gpuwatch", label="bare", start=START + 1000, **loaded(1.6))
    assert "other programs used 80 to 100 % of the CPU's time in 2 of 2 runs" in said(tmp_path)
    untold = loaded(0.0) | {"counters": {}}
    run(tmp_path / "03.gpuwatch", label="bare", start=START + 2000, **untold)
    assert "of the CPU's time in 2 of 3 runs, unknown of 1" in said(tmp_path)


def test_waiting_for_a_core_is_a_share_of_the_threads_of_all_ranks(tmp_path: Path) -> None:
    for cores, told in ((0.4, True), (0.6, False)):  # several threads, of how many is not known
        options = loaded(cores)
        options["counters"]["workload", "process.cpu.wait"] = 0.5
        run(tmp_path / "00-bare.gpuwatch", **options)
        assert ("it waited for a core 50 % of the time" in said(tmp_path)) == told
        (tmp_path / "00-bare.gpuwatch").unlink()
    options = loaded(1.6, facts={"threads": "2"})
    options["counters"]["workload", "process.cpu.wait"] = 1.0
    path = run(tmp_path / "01-bare.gpuwatch", **options)
    assert "it waited for a core 50 % of the time" in said(tmp_path)
    store = SessionStore.reopen(path)
    store.write(written(rank_rows(2), rank_steps(2)))
    store.close()
    assert "it waited for a core 25 % of the time" in said(tmp_path)


def test_the_load_beside_two_runs_is_that_of_both_where_one_failed(tmp_path: Path) -> None:
    run(tmp_path / "01.gpuwatch", label="bare", result=FAILED, **loaded(1.6))
    run(tmp_path / "02.gpuwatch", label="docker", start=START + 1000, **loaded(2.4))
    assert "other programs used 70 to 80 % of the CPU's time in 2 of 2 runs" in said(tmp_path)


def test_load_that_two_environments_had_apart_is_said_though_it_is_little(tmp_path: Path) -> None:
    for at, (environment, own) in enumerate((("bare", 7.84), ("docker", 7.2)), 1):
        run(tmp_path / f"0{at}.gpuwatch", label=environment, start=START + 1000 * at, **loaded(own))
    note = "other programs used 2.0 % of the CPU's time in bare, 10 % in docker"
    assert note in said(tmp_path) and note in said(tmp_path, short=False)


def test_a_machine_of_ones_own_ends_without_a_note(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], EFFECTS)
    assert "note:" not in said(tmp_path)


@pytest.mark.parametrize("blocks", [None, 5])
def test_who_else_was_on_the_gpu_and_what_was_lost_is_said_at_the_end(
    tmp_path: Path, blocks: int | None
) -> None:
    options = {
        "processes": [("gpu0", 7, "other.py", False, 1 << 30)],
        "events": [("gpu-lost", "fallen off the bus")],
    }
    part = Part(name="", workloads=(RESNET,), environments=(BARE, DOCKER), blocks=blocks)
    recorded(tmp_path, [part], EFFECTS, options=dict.fromkeys(range(1, 11), options))
    for short in (True, False):
        text = said(tmp_path, short=short)
        assert "was on the run's GPUs: other.py (PID 7" in text
        assert "gpu0: fallen off the bus" in text


def test_what_several_environments_have_alike_is_one_note(tmp_path: Path) -> None:
    torch = {at: "2.6.0" if at % 3 == 1 else "2.7.1" for at in range(1, 19)}
    options = {at: {"facts": {"torch": version}} for at, version in torch.items()}
    effects = {**EFFECTS, APPTAINER.label: 1.0}
    part = blocks_of(5, BARE, DOCKER, APPTAINER)
    recorded(tmp_path, [part], effects, options=options)
    lines = study_text.terminal(read_study(tmp_path), short=True, columns=100).splitlines()
    both = f"{DOCKER.label} and {APPTAINER.label}"
    assert [line for line in lines if "torch" in line] == [
        f"note: torch 2.6.0 in bare, 2.7.1 in {both}"
    ]


def test_a_study_that_was_broken_off_says_so_at_its_end(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], EFFECTS, left_out=(11, 12))
    assert "ended early: 2 of 12 runs never started; `gpuwatch resume" in said(tmp_path)


def test_the_notes_at_the_end_are_few(tmp_path: Path) -> None:
    lost = [
        (kind, f"{kind} was told")
        for kind in ("gpu-lost", "xid", "ecc", "nvml-lost", "gpm-lost", "dcgm-lost")
    ]
    run(tmp_path / "01.gpuwatch", **loaded(1.6, events=[*lost, ("throttle", "held down")]))
    lines = study_text.terminal(read_study(tmp_path), short=True).splitlines()
    notes = [line for line in lines if line.startswith("note: ")]
    assert len(notes) == 6 and notes[-1] == "note: 2 more notes in the report"
