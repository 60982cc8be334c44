"""What stands against a run in Apptainer is told before it starts, with how to fix it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import Mount, Problem
from gpuwatch.runners.apptainer import command, engine, preflight, spython_client
from gpuwatch.runners.apptainer.engine import Engine
from gpuwatch.runners.apptainer.runner import ApptainerRunner
from gpuwatch.runners.container_launch import namespaces_off

from ..recorded import specification

OLD = Engine("/usr/bin/singularity", "Singularity", "3.6.4", frozenset({"--nv"}))
NEW = Engine("/usr/bin/apptainer", "Apptainer", "1.4.5", frozenset({"--mount", "--memory"}))


def problems(tmp_path: Path, image: object, **options: Any) -> dict[str, Problem]:
    spec = specification("apptainer", image, "true", where=tmp_path, **options)
    return {each.code: each for each in ApptainerRunner().preflight(spec)}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("apptainer version 1.4.5", ("Apptainer", "1.4.5")),
        ("apptainer version 1.3.2-1.el9\n", ("Apptainer", "1.3.2")),
        ("singularity-ce version 4.1.0+123-gabcdef", ("SingularityCE", "4.1.0")),
        ("singularity-pro version 3.9-2", ("SingularityPRO", "3.9")),
        ("singularity version 3.8.7", ("Singularity", "3.8.7")),
        ("2.6.1-dist\n", ("Singularity", "2.6.1")),
        ("", None),
        ("command not found", None),
    ],
)
def test_every_product_is_known_by_what_it_says(text: str, parsed: tuple[str, str] | None) -> None:
    assert spython_client.parsed(text) == parsed


def test_without_an_engine_the_mend_is_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    engine.find.cache_clear()
    try:
        found = problems(tmp_path, tmp_path)
        assert ApptainerRunner().engine() is None
    finally:
        engine.find.cache_clear()
    assert list(found) == ["apptainer-missing"]
    assert "install" in str(found["apptainer-missing"].hint)


def test_an_engine_of_long_ago_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "singularity"
    program.write_text("#!/bin/sh\necho 2.6.1-dist\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(spython_client, "program", lambda: str(program))
    engine.find.cache_clear()
    try:
        assert list(problems(tmp_path, tmp_path)) == ["apptainer-too-old"]
    finally:
        engine.find.cache_clear()


def test_user_namespaces_that_are_off_are_told_with_the_switch(tmp_path: Path) -> None:
    assert namespaces_off("Apptainer", tmp_path) is None
    (tmp_path / "user").mkdir()
    (tmp_path / "user/max_user_namespaces").write_text("0\n")
    found = namespaces_off("Apptainer", tmp_path)
    assert found is not None
    assert "sysctl -w user.max_user_namespaces" in str(found.hint)


@pytest.mark.apptainer
def test_an_image_that_is_not_there_is_told_with_the_command_that_gets_it(tmp_path: Path) -> None:
    assert "gpuwatch build apptainer --pull" in str(problems(tmp_path, None)["image-missing"].hint)
    assert list(problems(tmp_path, "no.sif")) == ["image-missing"]
    hint = str(problems(tmp_path, "docker://example.org/a/b:1")["image-missing"].hint)
    assert "--pull" in hint
    assert "pull" in hint
    assert "docker://example.org/a/b:1" in hint
    assert not problems(tmp_path, "docker://example.org/a/b:1", pull=True)
    assert list(problems(tmp_path, "s3://bucket/a", pull=True)) == ["image-source"]


@pytest.mark.apptainer
def test_what_is_no_image_is_told(tmp_path: Path, small_root: Path) -> None:
    (tmp_path / "text.sif").write_text("not an image" * 10)
    (tmp_path / "folder").mkdir()
    assert "not a SIF" in problems(tmp_path, "text.sif")["image-invalid"].text
    assert "/bin/sh" in problems(tmp_path, "folder")["image-invalid"].text
    assert not problems(tmp_path, small_root)


@pytest.mark.apptainer
def test_an_image_for_another_machine_is_told(tmp_path: Path, small_sif: Path) -> None:
    header = bytearray(small_sif.read_bytes()[:4096])
    header[45:47] = b"11"
    (tmp_path / "s390x.sif").write_bytes(header)
    assert "s390x" in problems(tmp_path, "s390x.sif")["image-architecture"].text


@pytest.mark.apptainer
def test_what_the_engine_cannot_do_is_refused_not_ignored(tmp_path: Path, small_root: Path) -> None:
    assert "shm-unsupported" in problems(tmp_path, small_root, shm_bytes=1 << 30)
    assert "network-unsupported" in problems(tmp_path, small_root, network="bridge")
    spec = specification("apptainer", small_root, "true", where=tmp_path)
    own = replace(spec.environment, variables={"HOME": "/x"})
    (problem,) = ApptainerRunner().preflight(replace(spec, environment=own))
    assert problem.code == "home-unsupported"
    assert not problems(tmp_path, small_root, network="host")


@pytest.mark.apptainer
def test_mounts_that_could_not_be_used_are_told(tmp_path: Path, small_root: Path) -> None:
    gone = Mount(str(tmp_path / "gone"), "/data")
    assert "mount-missing" in problems(tmp_path, small_root, mounts=(gone,))
    if os.geteuid() == 0:
        (tmp_path / "private").mkdir(mode=0o700)
        os.chown(tmp_path / "private", 12345, 12345)
        others = Mount(str(tmp_path / "private"), "/data")
        found = problems(tmp_path, small_root, mounts=(others,))
        assert "private" in found["mount-unreadable"].text


@pytest.mark.apptainer
def test_a_tmp_that_cannot_be_written_is_told(tmp_path: Path, small_root: Path) -> None:
    hiding = Mount(str(tmp_path), "/tmp")
    assert list(problems(tmp_path, small_root, mounts=(hiding,))) == ["mount-hides-tmp"]
    tmp_path.chmod(0o777)
    writable = Mount(str(tmp_path), "/tmp", writable=True)
    assert problems(tmp_path, small_root, mounts=(writable,)) == {}


@pytest.mark.apptainer
def test_a_gpu_without_its_driver_is_a_problem_not_a_silent_cpu_run(
    tmp_path: Path, small_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "CONTROL_DEVICE", tmp_path / "nvidiactl")
    found = problems(tmp_path, small_root, gpus=("GPU-1",))
    assert "nvidiactl" in found["gpu-driver-missing"].text


def test_older_engines_get_binds_and_refuse_paths_that_these_would_split() -> None:
    plain, odd = Mount("/a", "/b"), Mount("/a,b", "/c:d", writable=True)
    assert command.mount_flags(plain, OLD) == ("--bind", "/a:/b:ro")
    assert command.cannot_mount(plain, OLD) is None
    assert command.cannot_mount(odd, OLD) == ","
    assert command.mount_flags(odd, NEW) == ("--mount", 'type=bind,"source=/a,b",destination=/c:d')
    assert command.cannot_mount(odd, NEW) is None


def test_variables_have_the_prefix_of_the_product(tmp_path: Path) -> None:
    spec = specification("apptainer", None, "true", where=tmp_path, gpus=("GPU-1", "GPU-2"))
    assert command.variables(spec, NEW)["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert command.variables(spec, OLD)["SINGULARITYENV_CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


def test_gpus_are_asked_for_only_where_the_run_uses_them(tmp_path: Path) -> None:
    with_one = specification("apptainer", None, "true", where=tmp_path, gpus=("GPU-1",))
    without = specification("apptainer", None, "true", where=tmp_path)
    assert "--nv" in command.build(with_one, NEW, tmp_path)
    assert "--nv" not in command.build(without, NEW, tmp_path)
