"""A model that cannot fit is refused before it is made, with what it needs and what there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gpuwatch.workloads.memory import lacking
from gpuwatch.workloads.processor import free_memory
from gpuwatch.workloads.tasks import transformer_lm
from tests.workloads.conftest import Report
from tests.workloads.tasks.test_models import settings

pytestmark = pytest.mark.torch
GB = 10**9
TRAINS = "107.8 GB (27.0 GB parameters, 27.0 GB gradients, 53.9 GB AdamW's state)"


@pytest.mark.parametrize(
    ("how", "host", "gpu", "told"),
    [
        ({}, 107, None, f"{TRAINS}; the CPU has 107.0 GB"),
        ({}, 108, None, None),
        ({"nproc": 2}, 215, None, "215.6 GB of 2 ranks (53.9 GB parameters"),
        ({}, 28, 80, f"{TRAINS}; the GPU has 80.0 GB"),
        ({"nproc": 2}, 54, 108, None),
        ({"dtype": "bfloat16", "mode": "infer"}, 28, 16, None),
        ({"dtype": "bfloat16", "mode": "infer"}, 26, 16, "27.0 GB parameters, which are made"),
        ({"dtype": "bfloat16", "mode": "infer"}, 28, 14, "14.0 GB (13.5 GB parameters, 0.5 GB"),
        ({"mode": "infer", "batch_size": 100}, 53, None, "26.8 GB cache of keys and values"),
    ],
)
def test_the_least_that_a_7b_needs_is_held_against_the_memory_of_its_device(
    how: dict[str, object], host: int, gpu: int | None, told: str | None
) -> None:
    extent = transformer_lm.LAYOUTS["7b"].extent
    given = settings("transformer-lm", size="7b", **how)
    found = lacking(extent, given, host * GB, None if gpu is None else gpu * GB)
    assert found is None if told is None else told in str(found)


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("0::/a/b", "a/memory.max"),
        ("4:memory:/a/b", "memory/a/memory.limit_in_bytes"),
        ("4:memory:/of/the/host", "memory/memory.limit_in_bytes"),  # inside a container
    ],
)
def test_a_control_groups_limit_is_all_the_memory_there_is(
    line: str, limit: str, tmp_path: Path
) -> None:
    groups = tmp_path / "cgroup"
    groups.write_text(f"9:pids:/a\n{line}\n")
    (tmp_path / limit).parent.mkdir(parents=True)
    (tmp_path / limit).write_text("max\n")
    assert free_memory(groups, tmp_path) > 4096
    (tmp_path / limit).write_text("4096\n")
    assert free_memory(groups, tmp_path) == 4096


def test_a_model_that_cannot_fit_anywhere_is_refused_before_it_is_made(
    fork_workload: Callable[..., Report],
) -> None:
    large = ("--size", "7b", "--mode", "infer", "--batch-size", 10_000)
    done = fork_workload("transformer-lm", *large)
    error = done.one("error")
    assert (done.code, error["kind"], done.all("run")) == (3, "environment", [])
    assert "needs at least 2,711.3 GB (27.0 GB parameters, 2,684.4 GB cache" in error["message"]
    assert error["hint"].startswith("choose --size ")
