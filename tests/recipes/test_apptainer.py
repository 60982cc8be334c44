"""Claims about ``gpuwatch build apptainer``, with the real engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from gpuwatch.core.processes import start_time
from tests.conftest import Cli

from .conftest import put_package

pytestmark = pytest.mark.apptainer

QUICK = ("--compress", "none")


def temporary() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("gpuwatch-build-*"))


@pytest.mark.docker
def test_a_sif_of_dockers_image_is_made_as_it_is(cli: Cli, nominal_image: str, tag: str) -> None:
    cli("build", "docker", "--base", nominal_image, "--tag", tag)
    base = f"docker-daemon:{tag}"
    done = cli("build", "apptainer", "--base", base, "--format", "json", *QUICK)
    told = json.loads(done.stdout)
    image = cli.home / ".local/share/gpuwatch/images/workloads.sif"
    assert (told["image"], told["bytes"]) == (str(image), image.stat().st_size)
    assert "post scriptlet" not in done.stderr  # Docker's build has prepared it
    ran = subprocess.run(
        ["apptainer", "exec", "--contain", str(image), "python3", "-c", "import torch"],
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    note = json.loads((image.parent / f"{told['id']}.json").read_text())
    assert (note["how"], note["seconds"]) == ("build", told["seconds"])


def test_a_base_that_is_a_folder_is_prepared(builder: Cli, nominal_root: Path) -> None:
    out = builder.home / "w.sif"
    done = builder("build", "apptainer", "--base", nominal_root, "--out", out, *QUICK)
    assert "torch 2.6, torchvision 0.21; byte-compiled" in done.stderr
    assert done.stdout.startswith(f"{out}  ")


@pytest.mark.skipif(os.geteuid() != 0, reason="others build in a namespace of the engine's own")
@pytest.mark.skipif(shutil.which("capsh") is None, reason="capsh is not on the PATH")
def test_a_root_without_a_capability_is_told_before_anything_is_unpacked(
    cli: Cli, nominal_root: Path
) -> None:
    build = cli.argv("build", "apptainer", "--base", nominal_root, *QUICK)
    done = subprocess.run(
        ["capsh", "--drop=cap_sys_time", "--", "-c", '"$0" "$@"', *build],
        env=cli.env,
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 3 and "lacks capabilities that the engine needs" in line
    assert "unshare --map-root-user gpuwatch build apptainer" in line


def test_a_base_without_torch_is_told_and_leaves_the_old_image(
    builder: Cli, nominal_root: Path, small_root: Path
) -> None:
    out = builder.home / "w.sif"
    builder("build", "apptainer", "--base", nominal_root, "--out", out, *QUICK)
    before, files = out.stat(), temporary()
    done = builder("build", "apptainer", "--base", small_root, "--out", out, *QUICK, code=1)
    assert done.stderr.splitlines()[-1].endswith("has no torch; choose a base with it")
    assert out.stat() == before
    assert sorted(path.name for path in builder.home.iterdir()) == [".apptainer", ".local", "w.sif"]
    assert temporary() <= files


@pytest.mark.parametrize(
    ("base", "told"),
    [
        ("nowhere.sif", "to build on; name another: --base"),
        ("docker://no/such", "would have to be fetched; let gpuwatch fetch it: add --pull"),
    ],
)
def test_a_base_that_is_not_here_is_told(cli: Cli, base: str, told: str) -> None:
    assert told in cli("build", "apptainer", "--base", base, code=3).stderr


def test_what_is_no_image_is_not_overwritten(cli: Cli, nominal_root: Path) -> None:
    letter = cli.home / "letter.txt"
    letter.write_text("Dear reader")
    done = cli("build", "apptainer", "--base", nominal_root, "--out", letter, code=2)
    assert "exists and is not a SIF file" in done.stderr
    assert letter.read_text() == "Dear reader"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing(
    builder: Cli, nominal_root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", str(nominal_root), str(root)], check=True)
    program = "import os, time; print('preparing', os.getpid(), flush=True); time.sleep(3600)\n"
    put_package(root, "torch", program)
    files = temporary()
    out = builder.home / "w.sif"
    started = builder.start("build", "apptainer", "--base", root, "--out", out)
    assert started.stderr is not None
    line = next(line for line in started.stderr if "preparing" in line)
    inside = start_time(int(line.split()[-1]))
    started.send_signal(number)
    assert started.wait(60) == 130
    assert not list(builder.home.glob("w.sif*"))
    assert temporary() <= files
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(out) not in processes.stdout
    assert inside is not None and start_time(int(line.split()[-1])) != inside
