"""Steps from the lines of progress of programs that print no step lines."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.progress import (
    Progress,
    formats,
    imagenet,
    nanogpt,
    numbered,
    plain,
    torchtitan,
    transformers,
)
from gpuwatch.session.writing.statements import Row
from tests.conftest import Cli
from tests.reading import sessions

IMAGENET = (
    "Epoch: [{epoch}][{number:4d}/5005]\tTime  0.250 ( 0.271)\tData  0.010 ( 0.020)\t"
    "Loss 6.5000e+00 (7.0000e+00)\tAcc@1  25.00 (  0.12)\tAcc@5  50.00 (  0.60)"
)
OLDER = (
    "Epoch: [2][40/100]\tTime 0.250 (0.271)\tData 0.260 (0.020)\tLoss 6.5000 (7.0000)\t"
    "Prec@1 25.000 (0.120)\tPrec@5 50.000 (0.600)"
)
TITAN = (
    "[rank0]:[titan] 2026-01-02 03:04:05,678 - root - INFO - step: {step:2}  loss:  6.2500  "
    "grad_norm:  1.5000  memory: 12.34GiB(15.00%)  tps: 1,234  tflops: 56.78  mfu: 5.67%"
)
COLOURED = (
    "[rank0]:[titan] 2026-01-02 03:04:05,678 - root - INFO - \x1b[31mstep: {step:2}  "
    "\x1b[32mloss:  6.2500  \x1b[38;2;180;60;0mgrad_norm:  1.5000  \x1b[36mmemory: 12.34GiB(15.00%)"
    "  \x1b[34mtps: 1,234  \x1b[36mtflops: 56.78  \x1b[35mmfu: 5.67%\x1b[39m"
)


def rows_of(*texts: str, intake: Intake | None = None, stream: str = "stdout") -> list[Row]:
    data = "".join(f"{text}\n" for text in texts).encode()
    return (intake or Intake(0)).take([Output(10, stream, data)])


def steps(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Number, count and warm-up of each step."""
    return [tuple(values[1:4]) for sql, values in rows if "INTO step " in sql]


def events(rows: list[Row]) -> list[str]:
    return [str(values[1]) for sql, values in rows if "INTO event" in sql]


def test_a_line_of_the_imagenet_script_tells_one_step() -> None:
    assert imagenet(IMAGENET.format(epoch=1, number=11)) == Progress(
        step=5016,
        seconds=0.25,
        loss=6.5,
        acc1=0.25,
        acc5=0.5,
        phases={"data": 0.01, "other": 0.24},
        before=5005,
    )


def test_an_older_line_of_the_imagenet_script_is_read_too() -> None:
    assert imagenet(OLDER) == Progress(240, 0.25, 6.5, 0.25, 0.5, before=200)


@pytest.mark.parametrize(
    "line",
    [
        "step 10/500 loss 0.37",
        "Step 94/200 | loss: 0.37",
        "epoch 0 step 3, train_loss=3.7e-1, lr 0.1",
        "[iteration 12] Loss: tensor(0.37, grad_fn=<NllLossBackward0>)",
        " 12%|█▏       | 12/100 [00:03<00:20,  4.1it/s, loss=0.37, v_num=0]",
        "Epoch: 3   Training Loss: 0.37",
        "epoch 1: train loss 0.37 val loss 0.68",
        "Epoch 1 | train_loss: 0.37 | valid_loss: 0.68 | test acc 0.5",
        "5/60 [==>...] - ETA: 1s - loss: 0.37 - accuracy: 0.5 - val_loss: 7.7",
        "[1,  2000] loss: 0.37",
        "step 1 packet loss 12 % loss 0.37",
        "step 1 total loss 0.37 box loss 0.2",
    ],
)
def test_a_plain_line_with_a_place_and_a_loss_tells_the_loss_alone(line: str) -> None:
    assert plain(line) == Progress(loss=0.37)


@pytest.mark.parametrize(
    "line",
    [
        "loss 0.37",
        "step 10 val_loss 0.37",
        "epoch 1: val loss 0.5, train loss 0.6",
        "epoch 1: loss 0.5, val loss 0.6",
        "step 1: train loss 0.5, val loss 0.6",
        "Test set: average loss: 0.05, accuracy: 9850/10000",
        "step 3 loss_G 0.5 loss_D 0.6",
        "[Epoch 0/3] [Batch 60/60] [D loss: 0.2500] [G loss: 3.1400]",
        "step 3 best loss 0.1",
        "step 10 loss 0.37.1",
        "step 3 of 8: packet loss none",
        "step 3 weight-loss 5",
        "validate step: 10  loss: 3.2",
    ],
)
def test_a_line_without_a_place_or_of_other_data_tells_no_loss(line: str) -> None:
    assert plain(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "step 10/500 loss 0.37 step time 12 ms",
        "12:03:01 INFO Step: 10 | loss: 0.37",
        "[iteration 10] Loss: 0.37",
        '{"time_per_step": 3, "global_step": 10, "loss": 0.37}',
        "step 10 loss 0.37 best 0.3",
        " iteration       10/      60 | elapsed time per iteration (ms): 300.0 | batch size: 8"
        " | lm loss: 3.700000E-01 | loss scale: 1.0 |",
    ],
)
def test_a_plain_line_with_the_word_of_a_step_tells_its_number_too(line: str) -> None:
    assert numbered(line) == Progress(step=10, loss=0.37)


@pytest.mark.parametrize("number", ["12000", "12,000", "12_000"])
def test_a_number_may_have_separators(number: str) -> None:
    assert numbered(f"step {number} loss 0.37") == Progress(step=12000, loss=0.37)
    assert numbered(f"step {number}.5 loss 0.37") is None


@pytest.mark.parametrize(
    "line",
    [
        "epoch 0 step 3 loss 0.37",
        " 12/100 [00:03<00:20,  4.1it/s, loss=0.37]",
        "batch 3/9, 1.5 s per step 3 ms/step 3, loss 0.37",
        "3/9 step 12 ms loss 0.37",
        "3/9 step 1.5 loss 0.37",
        "step 10 val_loss 0.37",
        "step 10",
        "step 1e3 loss 0.37",
        "step 12,00 loss 0.37",
        "best: step 87 loss 0.011",
        "Loaded checkpoint of step 500 with loss 0.33",
        "Resuming from step 1000 (loss 0.5)",
        "accumulation step 1 loss 0.5",
    ],
)
def test_a_line_of_an_epoch_or_of_no_step_tells_no_number(line: str) -> None:
    assert numbered(line) is None


def test_numbered_lines_are_steps_without_a_hook_and_a_second_line_of_a_step_is_none() -> None:
    lines = [f"step {step} loss {loss}" for step, loss in ((5, 3), (10, 2), (10, 9), (15, 1))]
    rows = rows_of(*lines)
    assert steps(rows) == [(5, 1, 1), (10, 5, 0), (15, 5, 0)]
    assert events(rows) == ["progress-lines"]
    rows = rows_of(*lines, "step 5 loss 1", "step 20 loss 1")
    assert steps(rows) == [(5, 1, 1), (10, 5, 0), (15, 5, 0)]
    *_, why = [values[3] for sql, values in rows if "INTO event" in sql]
    assert why.startswith("no further steps are read from lines: step 5 came after step 15")


@pytest.mark.parametrize("line", [TITAN, COLOURED])
def test_a_line_of_torchtitan_tells_number_and_loss_and_no_time(line: str) -> None:
    assert torchtitan(line.format(step=10)) == Progress(step=10, loss=6.25)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Epoch: [0]",
        "Test: [  0/196]\tTime  0.250 ( 0.271)\tLoss 6.5000e+00 (7.0000e+00)",
        " *   Acc@1 25.000 Acc@5 50.000",
        "Epoch: [0][  10/5005]\tData  0.010 ( 0.020)\tLoss 6.5000e+00 (7.0000e+00)",
        "Epoch: [0][  10/5005]\tTime  fast ( 0.271)\tLoss 6.5000e+00 (7.0000e+00)",
        TITAN.format(step=10).replace("step", "validate step"),
        "step: 10  loss: 3.2",
        "next step: 10 loss: low memory: gone tps: none",
        "step 0: train loss 4.2874, val loss 4.2823",
        "iter 10: loss low, time 128.45ms, mfu 12.34%",
        "{'eval_loss': 2.25, 'eval_runtime': 1.5, 'epoch': 1.0}",
        "{'train_runtime': 9.5, 'train_loss': 2.25, 'epoch': 3.0}",
        "{'loss': none, 'epoch': 3.0}",
    ],
)
def test_other_text_is_no_step(line: str) -> None:
    assert {name for name, each in formats() if each.read(line) is not None} <= {
        "plain",
        "numbered",
    }


def test_a_line_of_nanogpt_tells_number_and_loss_and_no_time() -> None:
    line = "iter 10: loss 3.2154, time 128.45ms, mfu 12.34%"
    assert nanogpt(line) == nanogpt(f"[rank0]: {line}") == Progress(10, loss=3.2154)
    rows = rows_of(*(line.replace("10", str(step)) for step in (0, 10, 20)))
    assert steps(rows) == [(0, 1, 1), (10, 10, 0), (20, 10, 0)]
    assert any(values[0] == "untimed" and "nanoGPT's" in values[1] for _, values in rows)


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': 2.25, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1}",
        "{'loss': '2.25', 'grad_norm': '1.5', 'learning_rate': '5e-05', 'epoch': '0.1'}",
        "  3%|3         | 1/30 [00:01<00:30]{'loss': 2.25, 'learning_rate': 0.0, 'epoch': 1}",
    ],
)
def test_a_line_of_transformers_trainer_tells_its_loss_and_no_step(line: str) -> None:
    assert transformers(line) == Progress(loss=2.25)
    assert steps(rows_of(line, line)) == []


def test_a_time_that_cannot_be_leaves_the_line_a_log_line() -> None:
    line = IMAGENET.format(epoch=0, number=11)
    for time in ("nan", "inf", "1e99", "-1"):
        rows = rows_of(line.replace("0.250", time))
        assert steps(rows) == []
    assert imagenet(line.replace("6.5000e+00", "nan")) is not None
    assert math.isnan(imagenet(line.replace("6.5000e+00", "nan")).loss)  # type: ignore


def test_a_timed_line_is_one_step_and_an_untimed_one_counts_those_since_the_line_before() -> None:
    timed = rows_of(*(IMAGENET.format(epoch=0, number=number) for number in (1, 11, 21)))
    assert steps(timed) == [(1, 1, 1), (11, 1, 0), (21, 1, 0)]
    untimed = rows_of(*(COLOURED.format(step=step) for step in (1, 10, 20)), stream="stderr")
    assert steps(untimed) == [(1, 1, 1), (10, 9, 0), (20, 10, 0)]
    assert events(timed) == events(untimed) == ["progress-lines"]


def test_the_lines_stay_in_the_log() -> None:
    rows = rows_of(IMAGENET.format(epoch=0, number=1))
    assert len([sql for sql, _ in rows if "INTO log" in sql]) == 1


@pytest.mark.parametrize("epoch", [0, 1, 30])
def test_steps_are_counted_from_the_first_epoch_of_the_run(epoch: int) -> None:
    first, *others = (
        IMAGENET.format(epoch=epoch + after, number=number)
        for after, number in ((0, 1), (0, 5005), (1, 11))
    )
    intake = Intake(0)
    rows = rows_of(first, intake=intake)
    again = Intake(0, {"cursor": json.loads(json.dumps(intake.state))})
    rows += rows_of(*others, intake=again)
    assert steps(rows) == [(1, 1, 1), (5005, 1, 0), (5016, 1, 0)]


def test_steps_of_a_second_training_from_an_earlier_epoch_are_counted_from_that() -> None:
    lines = [IMAGENET.format(epoch=epoch, number=11) for epoch in (5, 0, 1, 6)]
    numbers = [number for number, *_ in steps(rows_of(*lines))]
    assert numbers == [11, 11, 5016, 6 * 5005 + 11]


def test_step_lines_are_believed_instead() -> None:
    intake = Intake(0)
    told = ':::GPUWATCH {"event": "step", "step": 1}'
    assert steps(rows_of(IMAGENET.format(epoch=0, number=1), told, intake=intake)) == [
        (1, 1, 1),
        (1, 1, 0),
    ]
    assert steps(rows_of(IMAGENET.format(epoch=0, number=11), intake=intake)) == []
    run = ':::GPUWATCH {"event": "run", "workload": "mine"}'
    assert steps(rows_of(run, IMAGENET.format(epoch=0, number=1))) == []


def test_lines_of_two_ranks_are_told_apart_from_those_of_one() -> None:
    lines = [IMAGENET.format(epoch=0, number=number) for number in (1, 11, 11, 21, 21)]
    assert events(rows_of(*lines)) == ["progress-lines", "several-writers"]


def test_another_recorder_goes_on_where_one_was_killed() -> None:
    first = Intake(0)
    rows_of(COLOURED.format(step=1), COLOURED.format(step=10), intake=first)
    second = Intake(0, {"cursor": json.loads(json.dumps(first.state))})
    rows = rows_of(COLOURED.format(step=30), intake=second)
    assert steps(rows) == [(30, 20, 0)]
    assert events(rows) == []


PRINTS = """
import time
for epoch in range(2):
    for number in range(1, 101):
        start = time.perf_counter()
        time.sleep(0.012)
        took = time.perf_counter() - start
        if number % 10 == 1:
            print(
                f"Epoch: [{epoch}][{number:3d}/100]\\tTime {took:6.3f} ({took:6.3f})\\t"
                f"Data  0.002 ( 0.060)\\tLoss {2 - number / 100:.4e} (1.5e+01)\\t"
                f"Acc@1  10.00 (  5.68)\\tAcc@5  50.00 ( 27.27)",
                flush=True,
            )
"""


def test_a_recording_shows_the_steps_and_says_where_they_are_from(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PRINTS)
    cli("--record", "--out", tmp_path / "out", "--", sys.executable, tmp_path / "main.py")
    (session,) = sessions(tmp_path / "out")
    timing = json.loads(cli.read("show", session, "--format", "json").stdout)["timing"]
    shown = " ".join(cli.read("show", "--all", session).stdout.split())
    assert "timed steps 19 counted" in shown
    assert "last loss 1.090 measured" in shown
    assert "steps are from lines in the format of pytorch/examples' ImageNet script" in shown
    median = float(shown.partition("step time, median ")[2].partition(" ms")[0])
    assert median >= 12 and 95 * median <= 1000 * timing["real_seconds"], "half of them are shorter"
    assert "throughput: its steps report no samples" in shown


PACKAGE = """
from gpuwatch.recorder.progress import Progress, ProgressLines

def read(line):
    name, _, number = line.partition(" ")
    if name == "broken":
        raise RuntimeError(line)
    return Progress(step=int(number), loss=0.5) if name == "tick" else None

FORMAT = ProgressLines("the ticker", "each tells its loss", read)
"""


@pytest.mark.parametrize(
    ("module", "first", "found"),
    [(PACKAGE, "tick 3", 1), (PACKAGE, "broken", 0), ("raise SystemExit", "tick 3", 0)],
)
@pytest.mark.usefixtures("programs")
def test_another_package_adds_a_format_and_cannot_break_a_recording(
    tmp_path: Path, module: str, first: str, found: int
) -> None:
    info = tmp_path / "ticker-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ticker\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gpuwatch.progress_lines]\nticker = ticker:FORMAT\n")
    (tmp_path / "ticker.py").write_text(module)
    program = (
        "from gpuwatch.core.models import Output\n"
        "from gpuwatch.recorder.output.intake import Intake\n"
        f"text = {first!r} + '\\ntick 4\\n'\n"
        "rows = Intake(0).take([Output(5, 'stdout', text.encode())])\n"
        "print([values[3] for sql, values in rows if 'INTO event' in sql])\n"
        "print(sum('INTO step ' in sql for sql, _ in rows))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    told, count = done.stdout.splitlines()
    assert count == str(2 * found)
    assert ("the ticker (ticker), where each tells its loss" in told) is bool(found)
