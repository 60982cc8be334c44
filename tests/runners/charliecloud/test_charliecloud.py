"""Runs in Charliecloud: a real ch-run on an unpacked image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import Mount, Problem, RunState
from gpuwatch.runners.charliecloud import CharliecloudRunner, blame
from gpuwatch.runners.local import Ending
from tests.conftest import Cli
from tests.waiting import until

from ..recorded import Ended, finish, processes, reads, shown, specification, start

pytestmark = pytest.mark.charliecloud


@pytest.fixture
def image(tmp_path_factory: pytest.TempPathFactory, small_root: Path) -> Iterator[Path]:
    """``small_root`` with folders of its own to mount on; hard links."""
    folder = tmp_path_factory.mktemp("image") / "root"
    subprocess.run(["cp", "-al", str(small_root), str(folder)], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def where() -> Iterator[Path]:
    """A working directory below /tmp, where any image can show it."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="gw folder ", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


def ran(tmp_path: Path, where: Path, image: Path, *command: str, **more: Any) -> Ended:
    spec = specification("charliecloud", image, *command, where=where, **more)
    return finish(start(CharliecloudRunner(), spec, tmp_path / "run"))


def problems(where: Path, image: object, **more: Any) -> dict[str, Problem]:
    spec = specification("charliecloud", image, "true", where=where, **more)
    return {each.code: each for each in CharliecloudRunner().preflight(spec)}


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 1", 1, None),
        ("exit 255", 255, None),
        ("kill -9 $$", None, 9),
        ("echo 'ch-run[1]: error: not the launcher' >&2; exit 1", 1, None),
    ],
)
def test_codes_and_signals_pass_through(
    tmp_path: Path, where: Path, small_root: Path, script: str, code: int, number: int | None
) -> None:
    result = ran(tmp_path, where, small_root, "sh", "-c", script).result
    assert (result.code, result.signal, result.launcher_failed) == (code, number, False)


def test_a_command_that_is_not_there_is_the_launchers_failure(
    tmp_path: Path, where: Path, small_root: Path
) -> None:
    result = ran(tmp_path, where, small_root, "no-such-program").result
    assert result.launcher_failed
    assert "no-such-program" in str(result.text)


def test_the_launcher_is_known_by_its_number() -> None:
    said = "ch-run[17]: error: can't bind: source not found: /nope (ch_core.c:104)\n"
    assert blame(Ending(17, 1, 0, said)) == "can't bind: source not found: /nope (ch_core.c:104)"
    assert blame(Ending(18, 1, 0, said)) is None
    assert blame(Ending(17, 0, 0, said)) is None


def test_the_environment_is_the_images_and_little_else(
    tmp_path: Path, where: Path, image: Path
) -> None:
    (image / "ch").mkdir()
    (image / "ch/environment").write_text("FROM_THE_IMAGE=yes\nPATH=/usr/local/bin:/usr/bin\n")
    variables = {"A_SECRET": "geheim", "NCCL_DEBUG": "a,$b", "OMP_NUM_THREADS": "3"}
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    ended = ran(tmp_path, where, image, "python3", "-c", script, variables=variables)
    seen = json.loads(ended.out)
    assert "A_SECRET" not in seen
    assert seen["FROM_THE_IMAGE"] == "yes"
    assert seen["PATH"] == "/usr/local/bin:/usr/bin"
    assert (seen["NCCL_DEBUG"], seen["OMP_NUM_THREADS"]) == ("a,$b", "3")
    assert seen["CUDA_VISIBLE_DEVICES"] == "-1"


def test_tmp_and_home_are_the_runs_own_and_large(
    tmp_path: Path, where: Path, small_root: Path
) -> None:
    script = (
        'ls /tmp; pwd; touch /x 2>/dev/null || echo read-only; for at in "$HOME" /tmp; do '
        'head -c 80000000 /dev/zero > "$at/big"; done'
    )
    ended = ran(tmp_path, where, small_root, "sh", "-c", script)
    assert ended.lines == [where.name, "home", str(where), "read-only"]
    assert ended.result.code == 0, ended.err
    assert not Path("/tmp/big").exists()


def test_a_mount_point_that_the_image_lacks_is_told_with_its_mend(
    tmp_path: Path, image: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("17")
    mounts = (Mount(str(tmp_path / "data"), "/data"),)
    (tmp_path / "cwd").mkdir()
    for target in (tmp_path / "cwd",):
        (image / str(target).lstrip("/")).mkdir(parents=True)
    found = problems(tmp_path / "cwd", image, mounts=mounts)
    assert list(found) == ["mount-point-missing"]
    subprocess.run(["sh", "-c", str(found["mount-point-missing"].hint)], check=True)
    ended = ran(tmp_path, tmp_path / "cwd", image, "cat", "/data/file", mounts=mounts)
    assert ended.out == b"17", ended.err


def test_that_mounts_are_writable_is_told_as_it_is(where: Path, small_root: Path) -> None:
    spec = specification("charliecloud", small_root, "true", where=where)
    facts = CharliecloudRunner().prepare(spec, print).facts
    assert facts["mounts"] == [f"{where}:{where}:rw"]
    assert facts["shm_bytes"] == os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize


def test_images_that_are_none_are_told(tmp_path: Path, where: Path) -> None:
    assert "--env charliecloud=FOLDER" in str(problems(where, None)["image-missing"].hint)
    assert "image-missing" in problems(where, tmp_path / "gone")
    (tmp_path / "file").touch()
    assert "image-invalid" in problems(where, tmp_path / "file")
    assert "image-invalid" in problems(where, tmp_path)


@pytest.mark.docker
def test_the_mend_unpacks_an_image_of_dockers_and_leaves_no_container(
    tmp_path: Path, where: Path, small_image: str
) -> None:
    hint = str(problems(where, None)["image-missing"].hint).partition("from Docker: ")[2]
    name = f"gpuwatch-test-{tmp_path.name}"
    for word, own in (("FOLDER", "root"), ("gpuwatch-tmp", name), ("IMAGE", small_image)):
        assert word in hint
        hint = hint.replace(word, own)
    subprocess.run(["sh", "-c", hint], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert problems(where, tmp_path / "root") == {}
    left = ["docker", "ps", "--all", "--quiet", "--filter", f"name={name}"]
    assert subprocess.run(left, capture_output=True, check=True).stdout == b""


def test_nothing_is_mounted_over_the_home_of_a_run(where: Path, small_root: Path) -> None:
    for writable in (False, True):
        mount = Mount(str(where), "/tmp", writable)
        assert list(problems(where, small_root, mounts=(mount,))) == ["mount-hides-tmp"]


def test_what_it_cannot_do_is_refused(where: Path, small_root: Path) -> None:
    found = problems(where, small_root, shm_bytes=1, memory_bytes=1, network="none")
    assert list(found) == ["shm-unsupported", "memory-unsupported", "network-unsupported"]
    odd = (Mount(str(where), "/tmp/a:b"),)
    assert "mount-path" in problems(where, small_root, mounts=odd)


def test_a_gpu_needs_its_driver_in_the_image(where: Path, image: Path) -> None:
    assert "ch-fromhost" in str(problems(where, image, gpus=("GPU-1",))["gpu-driver-missing"].hint)
    (image / "usr/local/lib").mkdir(exist_ok=True)
    (image / "usr/local/lib/libcuda.so.1").touch()
    assert not problems(where, image, gpus=("GPU-1",))


def test_a_stop_takes_the_whole_tree(tmp_path: Path, where: Path, small_root: Path) -> None:
    script = "setsid sleep 4714.5 & echo up; sleep 4714.5"
    runner = CharliecloudRunner()
    spec = specification("charliecloud", small_root, "sh", "-c", script, where=where)
    run = start(runner, spec, tmp_path / "run")
    reads(run, b"up\n")
    again = runner.attach(run.handle(), run.cursor())
    assert again.state() is RunState.RUNNING
    again.stop()
    assert finish(again).result.signal == 15
    until(lambda: not processes("sleep", "4714.5"))


def test_through_the_command_line(cli: Cli, small_root: Path) -> None:
    cli.variables["USER"] = ""
    done = cli("--record", "--env", f"charliecloud={small_root}", "mnist-cnn", code=3)
    assert "no torch" in done.stderr  # the image's: our workload travelled into it
    session = shown(cli.read("show", "last", "--format", "json").stdout)
    assert session["environment"]["engine"].startswith("Charliecloud ")
    done = cli("--record", "--env", "charliecloud", "mnist-cnn", code=3)
    assert "needs an image" in done.stderr
