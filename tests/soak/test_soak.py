"""The soak, short: a round of everything, and nothing is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import available
from tests.soak import traces
from tests.soak.ground import Ground, kinds
from tests.soak.soak import soak
from tests.soak.table import markdown

MINUTES = 1.25
SEED = 7
"""Of the order of acts, of which the first ones fit in; ``make soak`` does all of them."""
FEWEST = 5
"""Acts, however long they take."""
_MOST_MIB = 24
"""Of a minute that is all warm-up; ``make soak`` judges what comes behind it."""
_POOL = min(32, (os.cpu_count() or 1) + 4)
"""Threads of asyncio's pool, which it starts one by one as they are needed."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_soak_leaves_no_process_container_mount_file_descriptor_or_thread(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root: Path = request.getfixturevalue("small_root")
    has_docker = available.why_not("docker") is None
    image = request.getfixturevalue("small_image") if has_docker else None
    ground = tmp_path / "ground"
    ground.mkdir()
    # Charliecloud mounts only onto folders that the image has.
    (root / (ground / "project").relative_to("/")).mkdir(parents=True, exist_ok=True)
    outcome = soak(ground, kinds(image, root), MINUTES, SEED, print, FEWEST)
    print(markdown(outcome))
    assert outcome.wrong == () and outcome.details == ()
    assert sum(outcome.done.values()) >= FEWEST
    for name, grown in outcome.grown.items():
        kept = (grown.descriptors, grown.children)
        assert kept == (0, 0), f"{name} takes more descriptors or children: {kept}"
        assert grown.threads < _POOL, f"{name} takes more threads: {grown.threads}"
        assert grown.mib < _MOST_MIB, name


def test_a_process_that_got_away_from_its_parent_is_found(tmp_path: Path) -> None:
    ground = Ground(tmp_path, {"bare": "bare"})
    assert ground.left("churn").all() == ()
    command = "import subprocess as s; s.Popen(['sleep', '300'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", command], env=ground.churn.env, check=True)
    found = ground.left("churn").processes
    try:
        assert [each.partition(" ")[2] for each in found] == ["sleep 300"]
        assert ground.left("stays").processes == (), "of the other part"
    finally:
        for each in found:
            subprocess.run(["kill", each.partition(" ")[0]], check=True)


def test_files_that_are_forgotten_are_found(tmp_path: Path) -> None:
    ground = Ground(tmp_path, {"bare": "bare"})
    before = ground.left("churn")
    (ground.runs / "abc").mkdir(parents=True)
    (tmp_path / "runtime" / "gpuwatch-now-x").mkdir()
    study = ground.studies / "study"
    study.mkdir(parents=True)
    for name in (".summary.md.77", "01-bare.gpuwatch-journal", "01-bare.gpuwatch"):
        (study / name).touch()
    left = ground.left("churn", before)
    assert left.run_folders == (str(ground.runs / "abc"),)
    assert left.temporary_files == (str(tmp_path / "runtime" / "gpuwatch-now-x"),)
    assert [Path(each).name for each in left.unfinished_files] == [
        ".summary.md.77",
        "01-bare.gpuwatch-journal",
    ]


def test_a_mount_that_is_left_is_found(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        assert traces.mounts(tmp_path) == (str(place),)
    finally:
        subprocess.run(["umount", place], check=True)
    assert traces.mounts(tmp_path) == ()
