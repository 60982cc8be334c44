"""The screens as text, at the smallest and at a large size, with time standing still.

Run with ``GPUWATCH_UPDATE_SNAPSHOTS=1`` to store them anew, and look at the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.new_run.screen import NewRunScreen

from .compare.test_compare import study
from .conftest import Fake, entry, environment
from .harness import check_snapshot, drawn, live, running, screen_text, shows, until
from .live.test_ceilings import measured
from .live.test_kernels import PROFILE
from .sessions import finished

Make = Callable[..., Path]

SIZES = [
    (120, 40),
    *(pytest.param(size, marks=pytest.mark.system) for size in [(80, 24), (200, 60)]),
]
LOG = [("stdout", f"epoch {n} loss {1 / (n + 1):.3f}") for n in range(20)]
LOG.append(("stderr", "UserWarning: the loader has fewer workers than cores"))
FAILED = {**finished(1), "error": {"message": "CUDA out of memory", "hint": "use --batch-size 32"}}

MEASURED: dict[str, Any] = {
    "bandwidth_measured": True,
    "pipes": True,
    "throttled": True,
    "meta": measured(),
}

RUNS: dict[str, dict[str, Any]] = {
    "one-gpu": {"log": LOG, "bandwidth_measured": True},
    "ceilings": {"log": LOG, **MEASURED},
    "eight-gpus": {"log": LOG, "gpus": 8},
    "no-gpu": {"log": LOG, "gpus": 0, "count": False},
    "machine": {"kind": "machine"},
    "failed": {"log": LOG, "meta": FAILED, "alive": False},
    "finished": {"log": LOG, "meta": finished(), "alive": False},
    "no-step-lines": {"log": LOG, "kind": "command", "name": "train.py", "steps": False},
}


def name_of(what: str, size: tuple[int, int]) -> str:
    return f"{what}-{size[0]}x{size[1]}"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("run", RUNS)
async def test_live(session: Make, run: str, size: tuple[int, int]) -> None:
    events = [(20.0, "interval-missed", "3 of 180 samples came too late")]
    async with live(session(events=events, **RUNS[run]), size) as (app, pilot):
        if not RUNS[run].get("alive", True):
            await shows(pilot, "means and history")
        check_snapshot(name_of(f"live-{run}", size), screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_home(fake: Fake, size: tuple[int, int]) -> None:
    states = ("running", "finished", "failed", "killed", "stopped", "lost", "unreadable")
    fake.list(*(_listed(number, state) for number, state in enumerate(states)))
    async with running(HomeScreen, size) as (app, pilot):
        await shows(pilot, "H100")
        await shows(pilot, "unreadable")
        await pilot.press("space", "down")
        await until(pilot, lambda: "1 ▶" in screen_text(app))
        await drawn(pilot)
        check_snapshot(name_of("home", size), screen_text(app))


def _listed(number: int, state: str) -> dict[str, Any]:
    path = Path(f"/home/user/studies/{number:02d}.gpuwatch")
    if state == "unreadable":
        nothing = {
            "seconds": None,
            "elapsed_seconds": None,
            "step_median_seconds": None,
            "samples_per_second": None,
        }
        return entry(path, status=state, workload="", started="", **nothing)
    return entry(path, status=state, environment=["bare", "docker=pytorch"][number % 2])


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_first_contact(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "0")
    async with running(HomeScreen, size) as (app, pilot):
        await shows(pilot, "No run was recorded yet")
        await shows(pilot, "EPYC")
        await shows(pilot, "✓ bare")
        await drawn(pilot)
        check_snapshot(name_of("first-contact", size), screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_new_run(fake: Fake, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    monkeypatch.chdir("/usr")  # the folder is named
    fake.finds(
        environment("bare"),
        environment("apptainer", "there is no image with the workloads here yet"),
        environment("docker", "no Docker daemon answers at unix:///var/run/docker.sock"),
        gpus=8,
    )
    part = {"cases": [{"label": "train.py"}], "environments": [{"label": "bare"}]}
    fake.plans(parts=[part], runs=[{"environment": 0}], seconds=42.0)
    async with running(NewRunScreen, size) as (app, pilot):
        await pilot.press(*"python train.py --lr 3e-4", shows="✓ 1 run: train.py in bare")
        await shows(pilot, "Engine of bare")
        await shows(pilot, "GPUs: all of 8")
        await until(pilot, lambda: screen_text(app).count("--lr 3e-4") == 2)  # the plan's, too
        check_snapshot(name_of("new-run", size), screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_compare(session: Make, size: tuple[int, int]) -> None:
    paths = [
        session(meta=finished(), alive=False),
        session("02", environment="docker=img", pace=1.1, start=100, meta=finished(), alive=False),
        session(
            "03",
            environment="apptainer=x.sif",
            pace=1.2,
            start=200,
            gpus=0,
            meta=FAILED,
            alive=False,
        ),
    ]
    async with running(lambda: CompareScreen(paths), size) as (app, pilot):
        await shows(pilot, "NO VERDICT")
        check_snapshot(name_of("compare", size), screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_compare_study(tmp_path: Path, size: tuple[int, int]) -> None:
    paths = study(tmp_path)
    async with running(lambda: CompareScreen(paths), size) as (app, pilot):
        await shows(pilot, "SLOWER")
        check_snapshot(name_of("compare-study", size), screen_text(app))


async def test_numbers(session: Make) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("i", shows="every number")
        check_snapshot("numbers-80x24", screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_roofline(session: Make, size: tuple[int, int]) -> None:
    async with live(session(**MEASURED), size) as (app, pilot):
        await pilot.press("o", shows="last minute")
        check_snapshot(name_of("roofline", size), screen_text(app))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_kernels(session: Make, size: tuple[int, int]) -> None:
    meta = {**finished(), "profile": PROFILE}
    async with live(session(meta=meta, alive=False), size) as (app, pilot):
        await pilot.press("K", shows="torch.profiler")
        check_snapshot(name_of("kernels", size), screen_text(app))


async def test_help(session: Make) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("question_mark", shows="all keys of this screen")
        check_snapshot("help-80x24", screen_text(app))
