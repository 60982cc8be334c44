"""Real runs that differ in one setting alone: the explanation names it first."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli

pytestmark = pytest.mark.torch

FLAGS = ("--steps", "2", "--warmup", "0", "--device", "cpu", "--profile", "0", "--quiet")


def record(cli: Cli, out: Path, **variables: str) -> Path:
    """Train for two steps with these variables of the caller."""
    before = dict(cli.variables)
    cli.variables.update(variables)
    try:
        cli("--record", "gcn", *FLAGS, "--python", sys.executable, "--out", out)
    finally:
        cli.variables.clear()
        cli.variables.update(before)
    (session,) = out.glob("*/*.gpuwatch")
    return session


def contrast(cli: Cli, *files: Path) -> dict[str, Any]:
    document = json.loads(cli.read("compare", *files, "--format", "json").stdout)
    ((found,),) = [question["contrasts"] for question in document["questions"]]
    assert isinstance(found, dict)
    return found


def first_evidence(cli: Cli, *files: Path) -> str:
    return str(contrast(cli, *files)["explanation"]["evidence"][0]["text"])


@contextmanager
def on_one_processor() -> Iterator[None]:
    """What is started here may use a single processor."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("a single processor is usable here")
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.timeout(600)
def test_each_setting_that_alone_differs_is_named_first(cli: Cli, tmp_path: Path) -> None:
    plain = record(cli, tmp_path / "plain")
    isa = record(cli, tmp_path / "isa", ONEDNN_MAX_CPU_ISA="SSE41")
    text = first_evidence(cli, plain, isa)
    assert text.startswith("ONEDNN_MAX_CPU_ISA not set in ")
    assert "oneDNN uses Intel AVX" in text and "Intel SSE4.1 in " in text

    threads = record(cli, tmp_path / "threads", OMP_NUM_THREADS="1")
    assert first_evidence(cli, plain, threads).startswith("OMP_NUM_THREADS not set in ")

    with on_one_processor():
        pinned = record(cli, tmp_path / "pinned")
    found = contrast(cli, plain, pinned)
    assert found["explanation"]["evidence"][0]["text"].startswith("usable CPUs 2")
    assert found["verdict"]["kind"] == "invalid"
