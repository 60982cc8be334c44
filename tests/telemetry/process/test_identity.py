"""What a process is and whose: from its own files under /proc."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpuwatch.core.users import Users
from gpuwatch.telemetry.process.identity import identify, place_of, with_user_name
from tests.waiting import until

ID = "3f2a9c1b4d5e" + "0" * 52


@pytest.mark.parametrize(
    ("cgroup", "place"),
    [
        ("0::/user.slice/user-1000.slice/session-2.scope\n", None),
        ("0::/\n", None),
        (f"0::/system.slice/docker-{ID}.scope\n", "docker 3f2a9c1b4d5e"),
        (f"12:pids:/docker/{ID}\n1:name=systemd:/docker/{ID}\n", "docker 3f2a9c1b4d5e"),
        (f"0::/../docker-{ID}.scope/init.scope\n", "docker 3f2a9c1b4d5e"),
        (f"0::/user.slice/user-7.slice/libpod-{ID}.scope/container\n", "podman 3f2a9c1b4d5e"),
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/x/cri-containerd-{ID}.scope\n",
            "kubernetes 3f2a9c1b4d5e",
        ),
        (f"4:memory:/kubepods/besteffort/pod1-2-3/{ID}\n", "kubernetes 3f2a9c1b4d5e"),
        ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "slurm job 4711"),
        ("5:devices:/slurm/uid_1000/job_4711/step_batch\n", "slurm job 4711"),
        ("0::/lxc.payload.trainer/system.slice\n", "lxc trainer"),
        (f"0::/lxc.payload.trainer/docker-{ID}.scope\n", "lxc trainer"),
        ("x" * 100_000, None),
    ],
)
def test_a_control_group_leads_to_its_container_or_job(cgroup: str, place: str | None) -> None:
    assert place_of(cgroup) == place


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (
            ("python3.12", "-X", "SECRET", "-W", "SECRET", "train.py", "SECRET"),
            "python3.12 train.py",
        ),
        (("/usr/bin/python3", "-um", "pkg.train", "SECRET"), "python3 -m pkg.train"),
        (("python", "-mpkg.train", "SECRET"), "python -m pkg.train"),
        (("python", "-uc", "login('SECRET')", "SECRET"), "python -c"),
        (("python", "-clogin('SECRET')"), "python -c"),
        (("python", "-", "SECRET"), "python"),
        (
            ("python", "--check-hash-based-pycs", "SECRET", "/data/SECRET/train.py"),
            "python train.py",
        ),
        (("python",), "python"),
        (("python worker --token=SECRET",), "kernel's name"),
        (("python: SECRET", "SECRET"), "kernel's name"),
        (("curl", "-H", "SECRET"), "kernel's name"),
        (("", "SECRET"), "kernel's name"),
    ],
)
def test_no_argument_of_a_program_is_taken_for_its_name(
    tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "comm").write_text("kernel's name\n")
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    assert identify(7, tmp_path).name == name


def test_a_program_is_named_with_its_script_and_never_with_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    argv = [sys.executable, "-u", str(script), "--token=secret"]
    program = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert program.stdout is not None and program.stdout.readline()
        told = identify(program.pid)
    finally:
        program.kill()
        program.communicate()
    assert told.name == f"{os.path.basename(sys.executable)} train.py"
    assert told.user == pwd.getpwuid(os.getuid()).pw_name and told.reason is None
    gone = identify(program.pid)
    assert (gone.name, gone.user, gone.place) == (None, None, None)
    assert gone.reason is not None and "hidepid" in gone.reason


def test_a_module_is_named_too() -> None:
    argv = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    program = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert program.stdout is not None and program.stdout.readline()
        assert str(identify(program.pid).name).endswith(" -c")
    finally:
        program.kill()
        program.communicate()


def test_a_user_without_a_name_here_is_a_number() -> None:
    users = Users()
    until(lambda: users.name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name)
    assert users.name(3_999_999_999) == "uid 3999999999"


def test_a_directory_that_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    def look_up(uid: int) -> str:
        answer.wait()
        return f"user{uid}"

    users = Users(look_up)
    told = identify(os.getpid(), users=users)
    # None of a hundred more users is waited for.
    monkeypatch.setattr("gpuwatch.core.users._PATIENCE", 3600)
    assert [users.name(uid) for uid in range(5001, 5101)] == [f"uid {n}" for n in range(5001, 5101)]
    assert told.user == f"uid {os.getuid()}" and told.reason is None
    assert with_user_name(told, users) is told
    answer.set()
    until(lambda: with_user_name(told, users).user == f"user{os.getuid()}")
    until(lambda: users.name(5100) == "user5100")
