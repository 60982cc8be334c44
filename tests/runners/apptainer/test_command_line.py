"""The whole of gpuwatch around runs in Apptainer: sessions, errors, a recorder that is killed."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.waiting import until

from ..recorded import processes, shown

pytestmark = pytest.mark.apptainer

STEPS = Path(__file__).parents[2] / "cli" / "steps.py"


def test_a_session_says_where_its_workload_ran(cli: Cli, small_sif: Path) -> None:
    shutil.copy(STEPS, cli.home / "steps.py")
    cli(
        *("--record", "--env", f"apptainer={small_sif}"),
        *("--", "python3", "steps.py", "5", "0.01"),
    )
    session = shown(cli.read("show", "last", "--format", "json").stdout)
    assert session["session"]["status"] == "finished"
    environment = session["environment"]
    assert environment["kind"] == "apptainer"
    assert environment["image"] == str(small_sif)
    assert environment["image_digest"].startswith("sha256:")
    assert environment["image_bytes"] == small_sif.stat().st_size
    assert environment["engine"].split()[0] in ("Apptainer", "Singularity", "SingularityCE")
    assert environment["network"] == "host"
    assert session["step"]["count"] == 5
    assert "log line 5" in cli.read("log", "last").stdout


def test_the_other_name_of_the_product_is_the_same_environment(cli: Cli, small_root: Path) -> None:
    cli("--record", "--env", f"singularity={small_root}", "--", "echo", "here", code=0)
    assert cli.read("log", "last").stdout == "here\n"


def test_our_workloads_travel_into_the_image(cli: Cli, small_root: Path) -> None:
    # The image has no torch: the workload itself says so, hence it was started.
    done = cli("--record", "--env", f"apptainer={small_root}", "mnist-cnn", code=3)
    assert "no torch" in done.stderr


def test_a_failed_launch_is_told_as_one(cli: Cli, small_root: Path) -> None:
    done = cli("--record", "--env", f"apptainer={small_root}", "--", "no-such-program", code=3)
    assert "could not be started" in done.stderr
    assert f"no-such-program: not found (image {small_root})\n" in done.stderr
    done = cli("--record", "--env", f"apptainer={small_root}", "--", "torchrun", "x.py", code=3)
    assert f"(image {small_root}); `python3 -m torch.distributed.run` does the same" in done.stderr


def test_a_workload_that_ends_255_is_a_failed_workload(cli: Cli, small_root: Path) -> None:
    done = cli(
        *("--record", "--env", f"apptainer={small_root}"),
        *("--", "sh", "-c", "echo mine >&2; exit 255"),
        code=1,
    )
    assert "could not be started" not in done.stderr
    assert shown(cli.read("show", "last", "--format", "json").stdout)["session"]["exit_code"] == 255


@pytest.mark.parametrize("image", ["gone.sif", "docker://example.org/a/b:1", None])
def test_a_missing_image_is_one_line_with_its_mend(cli: Cli, image: str | None) -> None:
    environment = "apptainer" if image is None else f"apptainer={image}"
    done = cli("--record", "--env", environment, "--", "true", code=3)
    assert len(done.stderr.strip().splitlines()) == 1
    assert ";" in done.stderr


def test_a_killed_recorders_run_is_taken_up_to_its_end(cli: Cli, small_root: Path) -> None:
    script = "for n in 1 2 3; do echo line $n; done; until [ -e go ]; do sleep 0.05; done; echo end"
    recorder = cli.start(
        *("--record", "--env", f"apptainer={small_root}"), *("--", "sh", "-c", f"{script}; exit 7")
    )
    until(lambda: "line 3" in cli.read("log", "last", code=None).stdout)
    recorder.kill()
    recorder.communicate()
    assert shown(cli.read("show", "last", "--format", "json").stdout)["session"]["status"] == "lost"
    second = cli.start("attach", "--record", "last")
    (cli.home / "go").touch()
    second.communicate(timeout=60)
    session = shown(cli.read("show", "last", "--format", "json").stdout)["session"]
    assert session["exit_code"] == 7
    assert cli.read("log", "last").stdout == "line 1\nline 2\nline 3\nend\n"


def test_stop_all_leaves_no_process(cli: Cli, small_root: Path) -> None:
    script = "setsid sleep 4713.5 & echo up; sleep 4713.5"
    cli("--record", "--detach", "--env", f"apptainer={small_root}", "--", "sh", "-c", script)
    until(lambda: "up" in cli.read("log", "last", code=None).stdout)
    shims = processes("namespace", str(small_root))
    assert shims
    cli("stop", "--all")
    until(lambda: not processes("sleep", "4713.5"))
    until(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in shims))
    session = shown(cli.read("show", "last", "--format", "json").stdout)["session"]
    assert session["status"] == "stopped"
    assert not list((cli.home / ".local/state/gpuwatch/runs").iterdir())


def test_an_interrupt_is_a_stop(cli: Cli, small_root: Path) -> None:
    recorder = cli.start(
        "--record", "--env", f"apptainer={small_root}", "--", "sh", "-c", "echo up; sleep 4713.75"
    )
    until(lambda: "up" in cli.read("log", "last", code=None).stdout)
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=60)
    assert recorder.returncode == 130
    assert not processes("sleep", "4713.75")
