"""Studies in blocks, as the command line runs them: order, pauses, failures, and what is said."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from gpuwatch.cli.dispatch import dispatch
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import Environment, LaunchSpec, Prepared, Workload
from gpuwatch.recorder import control, study
from gpuwatch.recorder.api import record
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.request import Request, plan_of
from gpuwatch.runners.bare import BareRunner
from gpuwatch.session.study.plan import Part, Plan, read
from tests.conftest import Cli
from tests.reading import meta, sessions
from tests.runners.packages import installed
from tests.waiting import until

from ..commands.test_record import STEPS

AA = ("--env", "bare", "--env", "bare")
WORK = ("--", sys.executable, STEPS, 12, 0.002)


def plan_in(out: Path) -> Plan:
    (path,) = out.glob("*/plan.json")
    plan = read(path.parent)
    assert plan is not None
    return plan


def span(path: Path) -> tuple[float, float]:
    """When a recording began and ended, Unix time in seconds."""
    found = meta(path)
    start = found["clock"]["unix_ns"] / 1e9
    return start, start + found["closed"]["t"] / 1e9


def test_a_study_in_blocks_runs_as_it_was_planned(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = ("--blocks", 1, "--order-seed", 7, "--cool-down", "300ms", "--margin", "0.5%")
    said = cli("--record", *flags, *AA, "--plan", *WORK).stdout
    assert not list(cli.home.glob("**/*.gpuwatch")), "a plan alone runs nothing"
    done = cli("--record", *flags, *AA, "--out", out, *WORK)
    plan = plan_in(out)
    (part,) = plan.parts
    assert (part.blocks, part.warmup_blocks, part.margin, part.cool_down) == (1, 1, 0.005, 0.3)
    assert plan.seed == 7 and len(plan.runs) == 4
    assert [path.name for path in sessions(out)] == [run.file for run in plan.runs]
    for block, name in enumerate(("warm-up", "block 1")):
        labels = [run.environment.label for run in plan.runs if run.block == block]
        assert f"{name}: {', '.join(labels)}\n" in said
    spans = [span(path) for path in sessions(out)]
    for (_, ended), (began, _) in pairwise(spans):
        assert began - ended >= 0.3
    assert "4 runs, 1 block after a warm-up block: bare#1, bare#2" in done.stderr
    assert "margin 0.5 %, cool-down 0.3 s, order seed 7" in done.stderr
    assert "1 run of each cannot give a verdict: 5 are needed, with --blocks 5" in done.stderr
    assert "unknown until the first block is over: no earlier run of steps.py" in done.stderr
    turns = [line for line in done.stderr.splitlines() if line.startswith("gpuwatch: run ")]
    assert len(turns) == 4
    assert turns[0] == "gpuwatch: run 1 of 4 (warm-up block): bare#1"
    assert turns[3].startswith("gpuwatch: run 4 of 4 (block 1 of 1): bare#")
    assert re.search("; (about|under) .* left$", turns[3])
    # What took place is what the next estimate goes by.
    again = " ".join(cli("--record", *flags, *AA, "--plan", "--out", out, *WORK).stdout.split())
    assert re.search("it takes (about|under) .*, by earlier runs of the same$", again)


def test_without_blocks_each_runs_once_without_a_pause_as_long_as_it_may(
    cli: Cli, tmp_path: Path
) -> None:
    flags = ("--quiet", "--duration", "400ms")
    done = cli("--record", *flags, *AA, "--out", tmp_path, "--", "sleep", "300")
    assert (done.stdout, done.stderr) == ("", "")
    plan = plan_in(tmp_path)
    assert [(run.environment.label, run.block) for run in plan.runs] == [
        ("bare#1", None),
        ("bare#2", None),
    ]
    assert plan.parts[0].cool_down == 0 and plan.seed is None
    assert len(sessions(tmp_path)) == 2 and plan.problems == {}


def test_one_case_in_one_environment_may_be_repeated(cli: Cli) -> None:
    said = cli("--record", "--quick", "--plan", *WORK).stdout
    assert "4 runs, 3 blocks after a warm-up block: bare;" in said


def test_the_order_that_a_plan_showed_can_be_run(cli: Cli) -> None:
    ask = partial(cli, "--record", "--blocks", 9, *AA, "--plan")
    drawn = [ask(*WORK).stdout for _ in range(2)]
    assert drawn[0] != drawn[1], "the seed is drawn anew"
    *order, hint = drawn[0].splitlines()
    words = hint.split()
    assert (words[0], words[1], " ".join(words[3:])) == ("add", "--order-seed", "to run this order")
    assert ask("--order-seed", words[2], *WORK).stdout.splitlines() == order


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--quick", "--rigorous"), "not allowed with argument"),
        (("--blocks", 0), "integer of at least 1"),
        (("--blocks", 100_000), "at most 1000"),
        (("--margin", "60%"), "invalid margin '60%': expected 0.1% to 50%"),
        (("--margin", "0"), "invalid margin '0': expected 0.1% to 50%"),
        (("--margin", "1"), "invalid margin '1': expected 0.1% to 50%"),
        (("--margin", "a"), "invalid margin 'a': expected 0.1% to 50%"),
        (("--cool-down", "3h"), "at most an hour"),
        (("--cool-down", "-1"), "cool-down"),
        (("--order-seed", "-1"), "at least 0"),
        (("--blocks", 1000, "--env", "bare", *AA), "that would be 3003 runs"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_why(flags: tuple[object, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        dispatch(["--record", *map(str, flags), "--plan", *map(str, WORK)])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--blocks", "3"), "--blocks without a workload"),
        (("gcn", "gcn", "--blocks", "3"), "gcn is named twice"),
    ],
)
def test_the_machine_is_not_recorded_in_blocks_nor_a_workload_twice_in_one(
    words: tuple[str, ...], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        dispatch(["--record", *words])


def test_a_run_that_fails_is_kept_and_only_what_never_succeeds_is_not_tried_a_third_time(
    cli: Cli, tmp_path: Path
) -> None:
    flag, out = tmp_path / "flag", tmp_path / "out"
    site = installed(tmp_path / "site", "failing", "gw_failing:Runner", FAILING)
    cli.variables["PYTHONPATH"] = str(site)
    done = cli(
        "--record", "--blocks", 2, "--cool-down", 0, "--env", "bare", "--env", "failing",
        "--out", out, "--", "sh", "-c", f"mkdir {flag} 2>/dev/null && exit 9; exit 0", code=1,
    )  # fmt: skip
    codes: dict[str, list[int | None]] = {}
    for path in sessions(out):
        codes.setdefault(path.stem[3:], []).append(meta(path)["result"]["code"])
    assert codes == {"bare": [9, 0, 0], "failing": [3, 3]}
    ((_, (problem,)),) = plan_in(out).problems.items()
    told = "sh failed 2 times in failing, one in the warm-up, and never succeeded"
    assert (problem.code, problem.text) == ("failed-twice", told)
    assert done.stderr.count(told) == 1
    found = json.loads((sessions(out)[0].parent / "summary.json").read_text())
    assert [each["problems"][0]["text"] for each in found["not_run"]] == [told]


FAILING = """
from dataclasses import replace

from gpuwatch.runners.bare import BareRunner


class Runner(BareRunner):
    kind = "failing"

    def prepare(self, spec, say):
        return replace(super().prepare(spec, say), command=("sh", "-c", "exit 3"))
"""


def test_a_summary_that_takes_long_is_rewritten_at_the_end_of_each_block_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(study, "SLOW_SUMMARY", 0.0)
    runs: list[int] = []

    def summarise(folder: Path, say: Callable[[str], None]) -> None:
        control.summarise(folder, say)
        runs.append(len(json.loads((folder / "summary.json").read_text())["sessions"]))

    monkeypatch.setattr(study, "summarise", summarise)
    both = (Environment("bare", "bare#1"), Environment("bare", "bare#2"))
    part = Part("p", (Workload("true", "command", ("true",)),), both, blocks=2, warmup_blocks=1)
    assert record(Request(plan_of([part], seed=1), tmp_path / "out"), Observer(print)) == 0
    assert runs == [1, 2, 4, 6], "the first one is how it is known"


def test_a_note_on_an_environment_is_shown_once_for_all_runs_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    prepare = BareRunner.prepare

    def noted(runner: BareRunner, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        say("a note")
        return prepare(runner, spec, say)

    monkeypatch.setattr(BareRunner, "prepare", noted)
    both = (Environment("bare", "bare#1"), Environment("bare", "bare#2"))
    part = Part("p", (Workload("true", "command", ("true",)),), both)
    messages: list[str] = []
    assert record(Request(plan_of([part]), tmp_path / "out"), Observer(messages.append)) == 0
    assert messages.count("a note") == 1


def test_a_stop_ends_the_rest_between_runs_at_once(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start(
        "--record", "--quiet", "--blocks", 2, "--cool-down", "10m", *AA, "--out", out, "--", "true"
    )
    until(lambda: list(out.glob("*/summary.json")))
    (folder,) = out.iterdir()
    assert f"stopped {folder}" in cli("stop", folder).stderr
    assert recorder.wait(60) == 0
    plan = plan_in(out)
    assert len(sessions(out)) == 1 and list(plan.problems) == [2, 3, 4, 5, 6]
    (problem,) = plan.problems[2]
    assert problem.text == "the study was ended before its turn (SIGTERM)"
    assert problem.hint == f"gpuwatch resume {folder.name}"


def test_stop_all_ends_a_study_between_two_runs(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rest = ("--cool-down", "10m")
    recorder = cli.start("--record", "--quiet", *AA, *rest, "--out", out, "--", "true")
    until(lambda: list(out.glob("*/summary.md")))
    told = cli("stop", "--all").stderr
    recorder.wait(timeout=60)
    (folder,) = out.iterdir()
    assert told == f"gpuwatch: stopped {folder}\n"
    assert len(sessions(out)) == 1
    ((_, (problem,)),) = plan_in(out).problems.items()
    assert problem.text == "the study was ended before its turn (SIGTERM)"
    assert "nothing was running" in cli("stop", "--all").stderr


def test_a_sweep_stops_at_the_size_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def size(count: int) -> Workload:
        said = '{"event": "error", "message": "out of memory: 3 GiB", "kind": "run"}'
        script = f"[ {count} -lt 32 ] || {{ echo ':::GPUWATCH {said}'; exit 1; }}"
        return Workload("w", "command", ("sh", "-c", script), {"batch_size": count})

    part = Part(
        "sizes",
        tuple(size(count) for count in (64, 16, 32)),
        (Environment("bare", "bare"),),
        sweep={"batch_size": (64, 16, 32)},
        blocks=1,
        warmup_blocks=1,
    )
    said: list[str] = []
    out = tmp_path / "out"
    assert record(Request(plan_of([part], seed=1), out), Observer(said.append)) == 0, (
        "where memory ends is its result"
    )
    plan = plan_in(out)
    took_place = [
        run.workload.parameters["batch_size"]
        for run in plan.runs
        if (out / plan.study / run.file).exists()
    ]
    assert took_place == [16, 32, 16]
    texts = {problem.text for (problem,) in plan.problems.values()}
    assert texts == {"w in bare ran out of memory at batch size 32"}
    assert said.count("w in bare ran out of memory at batch size 32: not started again") == 1
