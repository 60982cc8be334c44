"""The runs of a study and the comparison so far on the live screen."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import Kind
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.study_folder import SUMMARY_JSON
from gpuwatch.session.study.summary import KINDS, Contrast
from gpuwatch.tui.feed import study
from gpuwatch.tui.feed.snapshot import StudyStrip, UpcomingRuns
from gpuwatch.tui.feed.study import CurrentStudy
from gpuwatch.tui.live.rows import VERDICTS, strip_rows
from tests.analysis import recorded_studies
from tests.analysis.recorded_studies import blocks_of, written

from ..harness import live, shows
from ..sessions import finished
from ..snapshots_of import page_text, snapshot_of, texts

Make = Callable[..., Path]
TWO = ("bare", "docker=pytorch")
THREE = (*TWO, "apptainer=image.sif")


def planned(folder: Path, environments: tuple[str, ...] = TWO, blocks: int = 2) -> list[str]:
    """The plan of a study with a warm-up block; returns the names of its sessions in order."""
    envs = [Environment(label.partition("=")[0], label) for label in environments]
    case = (Workload("mnist-cnn", "workload"),)
    plan = recorded_studies.planned([blocks_of(blocks, *envs, workloads=case)])
    written(folder, plan)
    return [run.file.removesuffix(".gpuwatch") for run in plan.runs]


def verdict(kind: str = "slower", **more: Any) -> dict[str, Any]:
    change = {"estimate": 0.031, "low": 0.024, "high": 0.038}
    return {"kind": kind, "change": change, "estimate": 0.031, "pairs": 1, **more}


def summary(folder: Path, *verdicts: dict[str, Any], cells: tuple[str, ...] = THREE) -> None:
    contrasts = [
        {"baseline": 0, "other": at, "verdict": verdict} for at, verdict in enumerate(verdicts, 1)
    ]
    question = {"label": "mnist-cnn", "cells": [{"label": c} for c in cells]}
    text = json.dumps({"schema": 1, "questions": [{**question, "contrasts": contrasts}]}, indent=2)
    (folder / SUMMARY_JSON).write_text(text)


def under_way(session: Make, folder: Path, **fields: Any) -> Path:
    """A finished run, a failed run and a live run."""
    names = planned(folder)
    session(names[0], meta=finished(), alive=False, seconds=5)
    session(names[1], meta=finished(1), alive=False, seconds=5)
    return session(names[2], **fields)


def strip_of(path: Path) -> StudyStrip:
    strip = snapshot_of(path).study
    assert strip is not None
    return strip


def test_the_runs_stand_in_the_order_of_the_plan_with_what_became_of_them(
    session: Make, tmp_path: Path
) -> None:
    strip = strip_of(under_way(session, tmp_path / "study"))
    assert [run.state for run in strip.runs] == ["finished", "failed", "running", *["to come"] * 3]
    assert [run.block for run in strip.runs] == [0, 0, 1, 1, 2, 2] and strip.at == 2
    (row,) = texts(strip_rows(strip, 160, 1))
    names = "warm-up bare ✓ docker=pytorch ✗   1 bare [▶] docker=pytorch ·"
    assert " ".join(row.split()).startswith("study " + " ".join(names.split()))
    (row,) = texts(strip_rows(strip, 80, 1))
    assert row.startswith(" study warm-up ✓✗ 1 [▶]· 2 ··")
    assert row.endswith("1 running, 1 finished, 1 failed, 3 to come")


def test_a_run_that_cannot_start_is_marked_and_named(session: Make, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    path = under_way(session, folder)
    text = json.loads((folder / PLAN).read_text())
    text["problems"] = {"4": [{"code": "no-engine", "text": "no engine", "hint": None}]}
    (folder / PLAN).write_text(json.dumps(text))
    (row,) = texts(strip_rows(strip_of(path), 100, 1))
    assert "[▶]–" in row and "1 did not run" in row


def test_one_row_of_a_small_screen_has_the_runs_and_the_comparison(
    session: Make, tmp_path: Path
) -> None:
    path = under_way(session, tmp_path / "study")
    summary(tmp_path / "study", verdict())
    shown = page_text(path)
    assert "▲ docker=pytorch slower +3.1 %, 1/2 blocks" in shown
    row = next(r for r in shown.splitlines() if "▲" in r)
    assert row.startswith(" study ") and "✓✗" in row
    assert len(row) <= 80 and "GPU utilization" in shown


def test_a_larger_screen_has_a_row_for_each_environment(session: Make, tmp_path: Path) -> None:
    path = under_way(session, tmp_path / "study")
    summary(tmp_path / "study", verdict(), verdict("can't tell", estimate=-0.002))
    shown = page_text(path, (120, 40))
    assert (
        "▲ docker=pytorch against bare: slower so far  +3.1 % (+2.4 to +3.8)  1 of 2 blocks"
        in shown
    )
    assert "? apptainer=image.sif against bare: can't tell so far  -0.2 %" in shown


def test_the_comparison_is_read_again_after_each_run(session: Make, tmp_path: Path) -> None:
    path = under_way(session, tmp_path / "study")
    now = CurrentStudy(path)
    assert now.strip is not None and now.strip.contrasts == ()
    summary(tmp_path / "study", verdict("same"))
    again = CurrentStudy(path)
    assert again.strip is not None and [item.kind for item in again.strip.contrasts] == ["same"]


def test_a_study_that_is_over_has_no_run_to_come(session: Make, tmp_path: Path) -> None:
    names = planned(tmp_path / "study", blocks=1)
    paths = [session(n, meta=finished(), alive=False, seconds=5) for n in names]
    assert {run.state for run in strip_of(paths[-1]).runs} == {"finished"}


def test_an_estimate_without_an_interval_and_one_run_each_are_said_as_such(
    session: Make, tmp_path: Path
) -> None:
    strip = strip_of(under_way(session, tmp_path / "study"))
    alone = Contrast("", "bare", "docker", "described", 0.02, None, None, 1)
    rows = texts(strip_rows(replace(strip, blocks=None, contrasts=(alone,)), 120, 4))
    assert "docker against bare: no verdict  +2.0 %  one run each" in rows[1]
    unknown = replace(alone, kind="invalid", estimate=None)
    rows = texts(strip_rows(replace(strip, contrasts=(unknown,)), 120, 4))
    assert "✗ docker against bare: invalid so far  1 of 2 blocks" in rows[1] and "%" not in rows[1]


def test_before_the_first_complete_block_there_is_no_verdict_and_after_the_last_no_so_far(
    session: Make, tmp_path: Path
) -> None:
    strip = strip_of(under_way(session, tmp_path / "study"))
    none = Contrast("", "bare", "docker", "described", None, None, None, 0)
    rows = texts(strip_rows(replace(strip, contrasts=(none,)), 120, 4))
    assert rows[1].endswith("docker against bare: no complete block yet")
    over = tuple(replace(run, state="finished") for run in strip.runs)
    same = replace(none, kind="same", estimate=0.001, pairs=2)
    rows = texts(strip_rows(replace(strip, runs=over, contrasts=(same,)), 120, 4))
    assert "docker against bare: same  +0.1 %  2 of 2 blocks" in rows[1]


def test_every_verdict_has_its_mark() -> None:
    assert set(KINDS) == {kind.value for kind in Kind} == set(VERDICTS)


async def test_what_comes_after_a_run_is_looked_for_in_the_feeds_thread(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    look = study.upcoming_runs

    def noted(path: Path) -> UpcomingRuns | None:
        threads.append(threading.current_thread().name)
        return look(path)

    monkeypatch.setattr(study, "upcoming_runs", noted)
    names = planned(tmp_path / "study")
    first = session(names[0], meta=finished())
    session(names[1], alive=True)
    async with live(first) as (_, pilot):
        await shows(pilot, "✓ finished")
    assert set(threads) == {"session-feed"}
