"""What a workload finds in Apptainer: as little of this machine as it needs. A real engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.core.models import Mount
from gpuwatch.runners.apptainer.runner import ApptainerRunner

from ..recorded import Ended, finish, specification, start

pytestmark = pytest.mark.apptainer

SEES = """
import json, os, re, shutil
status = open("/proc/self/status").read()
def cannot_write(path):
    try:
        open(os.path.join(path, "x"), "w")
    except OSError:
        return True
def room(path):
    info = os.statvfs(path)
    return info.f_blocks * info.f_frsize
print(json.dumps({
    "environment": dict(os.environ),
    "capabilities": int(re.search(r"CapEff:\\s*(\\w+)", status)[1], 16),
    "no_new_privileges": re.search(r"NoNewPrivs:\\s*(\\w)", status)[1],
    "read_only": [cannot_write(path) for path in ("/", "/usr", "/gpuwatch", os.getcwd())],
    "pid_1_is_ours": "appinit" in open("/proc/1/cmdline").read() or os.getpid() < 50,
    "home": sorted(os.listdir(os.environ["HOME"])),
    "tmp": sorted(os.listdir("/tmp")),
    "root": sorted(os.listdir("/")),
    "devices": sorted(os.listdir("/dev")),
    "shm": room("/dev/shm"),
    "cwd": os.getcwd(),
    "here": sorted(os.listdir(".")),
}))
"""


def ran(tmp_path: Path, where: Path, image: Path, *command: str, **more: object) -> Ended:
    spec = specification("apptainer", image, *command, where=where, **more)  # type: ignore[arg-type]
    return finish(start(ApptainerRunner(), spec, paths.runs_home() / "run"))


def test_little_of_this_machine_is_seen(
    tmp_path: Path, small_sif: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "geheim")
    monkeypatch.setenv("APPTAINERENV_ANOTHER_SECRET", "geheim")
    monkeypatch.setenv("APPTAINER_BIND", "/usr/share:/opt")
    monkeypatch.setenv("http_proxy", "http://user:geheim@proxy:1")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0,eth$(id)")
    where = tmp_path / 'a folder, with: odd "names"'
    where.mkdir()
    (where / "train.py").write_text(SEES)
    (tmp_path / "not mounted").touch()
    ended = ran(tmp_path, where, small_sif, "python3", "train.py")
    assert ended.result.code == 0, ended.err
    seen = json.loads(ended.out)
    environment = seen["environment"]
    assert "geheim" not in json.dumps(environment)
    assert environment["NCCL_SOCKET_IFNAME"] == "eth0,eth$(id)"
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"
    assert seen["capabilities"] == 0
    assert seen["no_new_privileges"] == "1"
    assert seen["read_only"] == [True] * 4
    assert seen["pid_1_is_ours"]
    assert seen["home"] == []
    assert not any(name.startswith("nvidia") for name in seen["devices"])
    assert (seen["cwd"], seen["here"]) == (str(where), ["train.py"])


def test_home_and_tmp_hold_more_than_the_engines_own_64_megabytes(
    tmp_path: Path, small_root: Path
) -> None:
    script = 'for at in "$HOME" /tmp /var/tmp; do head -c 80000000 /dev/zero > "$at/big"; done'
    ended = ran(tmp_path, tmp_path, small_root, "sh", "-e", "-c", script)
    assert ended.result.code == 0, ended.err


def test_the_size_of_shared_memory_is_told_as_it_is(tmp_path: Path, small_root: Path) -> None:
    spec = specification("apptainer", small_root, "python3", "-c", SEES, where=tmp_path)
    told = ApptainerRunner().prepare(spec, print).facts["shm_bytes"]
    seen = json.loads(ran(tmp_path, tmp_path, small_root, "python3", "-c", SEES).out)["shm"]
    assert abs(told - seen) <= os.sysconf("SC_PAGE_SIZE")


def test_mounts_are_read_only_unless_asked_otherwise(tmp_path: Path, small_root: Path) -> None:
    for name in ("in", "out", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "in/data").write_text("17")
    mounts = (
        Mount(str(tmp_path / "in"), "/not/in/the/image"),
        Mount(str(tmp_path / "out"), "/results", writable=True),
        Mount(str(tmp_path / "in/data"), "/tmp/deep/file"),
    )
    script = (
        "cat /not/in/the/image/data /tmp/deep/file; touch /results/made; touch /not/in/the/image/x"
    )
    ended = ran(tmp_path, tmp_path, small_root, "sh", "-c", script, mounts=mounts)
    assert ended.out == b"1717"
    assert b"Read-only" in ended.err
    assert (tmp_path / "out/made").exists()


def test_a_folder_below_tmp_is_seen_even_if_the_image_has_its_like(
    tmp_path: Path, small_root: Path
) -> None:
    image = tmp_path / "image"
    subprocess.run(["cp", "-al", str(small_root), str(image)], check=True)
    where = Path(tempfile.mkdtemp(prefix="gw", dir="/tmp"))
    try:
        (where / "file").write_text("17")
        (image / str(where).lstrip("/")).mkdir()
        mounts = (Mount(str(where / "file"), "/var/tmp/deep/file"),)
        ended = ran(tmp_path, where, image, "cat", "file", "/var/tmp/deep/file", mounts=mounts)
        assert ended.out == b"1717", ended.err
    finally:
        shutil.rmtree(where)
        (image / str(where).lstrip("/")).rmdir()


def test_no_network_leaves_the_loopback_alone(tmp_path: Path, small_root: Path) -> None:
    read = "print(len(open('/proc/net/dev').readlines()) - 2)"
    ended = ran(tmp_path, tmp_path, small_root, "python3", "-c", read, network="none")
    assert ended.out == b"1\n", ended.err


def test_the_folders_of_a_run_go_with_it(tmp_path: Path, small_root: Path) -> None:
    spec = specification("apptainer", small_root, "touch", "/tmp/x", where=tmp_path)
    run = start(ApptainerRunner(), spec, paths.runs_home() / "run")
    assert finish(run).result.code == 0
    run.forget()
    assert not (paths.runs_home() / "run").exists()
