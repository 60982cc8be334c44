"""What a session file says never decides what is stopped, removed, called or run."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.processes import boot_id, identify
from gpuwatch.recorder.programs import digests
from tests.conftest import Cli
from tests.reading import sessions
from tests.waiting import until


def edit(path: Path, **values: object) -> None:
    """Set values of ``meta`` in a session file; ``None`` removes one."""
    with sqlite3.connect(path) as file:
        for key, value in values.items():
            file.execute("DELETE FROM meta WHERE key = ?", (key,))
            if value is not None:
                file.execute("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(value)))
    file.close()


def meta(path: Path) -> dict[str, Any]:
    with sqlite3.connect(path) as file:
        found = {key: json.loads(value) for key, value in file.execute("SELECT * FROM meta")}
    file.close()
    return found


@pytest.fixture
def session(cli: Cli, tmp_path: Path) -> Path:
    """A finished session that came by mail: this user has no run folder of it."""
    cli("--record", "--quiet", "--out", tmp_path / "mail", "--", "true")
    (path,) = sessions(tmp_path / "mail")
    return path


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    folder = tmp_path / "precious"
    (folder / "spool").mkdir(parents=True)
    (folder / "file").write_text("kept")
    return folder


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as process:
        yield process
        process.kill()


def names(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


@pytest.mark.parametrize("over", [True, False])
@pytest.mark.parametrize("command", [("stop",), ("attach", "--record"), ("stop", "--all")])
def test_no_folder_that_a_session_names_is_removed_or_written(
    cli: Cli, session: Path, precious: Path, command: tuple[str, ...], over: bool
) -> None:
    before = names(precious)
    (precious / "started.json").write_text("{}")
    (precious / "ended.json").write_text(json.dumps({"code": 0, "t": 1}))
    before = names(precious)
    edit(session, handle={"kind": "bare", "folder": str(precious), "holder": None})
    if not over:
        dead = {**meta(session)["recorder"], "pid": 1, "start_time": 1}
        edit(session, result=None, closed=None, recorder=dead)
    cli(*command, *([] if "--all" in command else [session]), code=None)
    assert names(precious) == before


def test_no_process_that_a_session_names_is_signalled(
    cli: Cli, session: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    named = identify(sleeper.pid)
    assert named is not None
    edit(session, result=None, closed=None, recorder=asdict(named))
    told = cli("stop", session, code=2).stderr
    assert "no run of yours here is recorded to" in told
    assert cli("stop", session.parent, code=2).stderr
    cli("delete", "--yes", session, code=None)
    cli("attach", "--record", session, code=2)
    assert sleeper.poll() is None


def test_no_workload_that_a_session_names_is_signalled(
    cli: Cli, session: Path, sleeper: subprocess.Popen[bytes], precious: Path
) -> None:
    named = identify(sleeper.pid)
    assert named is not None
    note = {**asdict(named), "workload": named.pid, "workload_start_time": named.start_time}
    (precious / "started.json").write_text(json.dumps(note))
    handle = {"kind": "bare", "folder": str(precious), "holder": asdict(named)}
    for over in (True, False):
        edit(session, handle=handle, **({} if over else {"result": None, "closed": None}))
        cli("stop", session, code=None)
        cli("attach", "--record", session, code=2)
    assert sleeper.poll() is None


def test_no_address_that_a_session_names_is_called(cli: Cli, session: Path, precious: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        handle = {"kind": "docker", "folder": str(precious), "host": host, "holder": None}
        for over in (True, False):
            gone = {} if over else {"result": None, "closed": None}
            edit(session, handle=handle, **gone)
            cli("stop", session, code=None)
            cli("attach", "--record", session, code=2)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def _lost(cli: Cli, tmp_path: Path) -> tuple[Path, Path, int]:
    """A run whose recorder was killed: its session, its own folder, its workload."""
    recorder = cli.start("--record", "--quiet", "--out", tmp_path / "own", "--", "sleep", "300")
    runs = cli.home / ".local/state/gpuwatch/runs"
    until(lambda: list(runs.glob("*/started.json")) and sessions(tmp_path / "own"))
    (path,), (folder,) = sessions(tmp_path / "own"), runs.iterdir()
    until(lambda: (meta(path).get("handle") or {}).get("holder"))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    return path, folder, int(json.loads((folder / "started.json").read_text())["workload"])


def test_a_run_folder_is_believed_about_what_its_session_says_otherwise(
    cli: Cli, tmp_path: Path, precious: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path, folder, workload = _lost(cli, tmp_path)
    named, before = identify(sleeper.pid), names(precious)
    assert named is not None
    edit(path, handle={"kind": "docker", "folder": str(precious), "holder": asdict(named)})
    assert f"stopped {path}" in cli("stop", path).stderr
    assert identify(workload) is None and not folder.exists()
    assert names(precious) == before and sleeper.poll() is None


def test_a_run_folder_speaks_of_itself_alone(cli: Cli, tmp_path: Path, precious: Path) -> None:
    path, folder, workload = _lost(cli, tmp_path)
    before = names(precious)
    handle = json.loads((folder / "handle.json").read_text())
    (folder / "handle.json").write_text(json.dumps({**handle, "folder": str(precious)}))
    cli("stop", path)
    assert identify(workload) is None and not folder.exists() and names(precious) == before


@pytest.mark.parametrize("how", ["a link", "another's name", "another's file"])
def test_what_is_no_run_folder_of_the_session_is_left_alone(
    cli: Cli, tmp_path: Path, precious: Path, how: str
) -> None:
    path, folder, workload = _lost(cli, tmp_path)
    try:
        if how == "a link":
            moved = folder.rename(tmp_path / "moved")
            folder.symlink_to(moved)
        elif how == "another's name":
            folder.rename(folder.with_name("0123456789ab"))
        else:
            (folder / "session").write_text(str(precious / "01-bare.gpuwatch"))
        cli("attach", "--record", path, code=2)
        if how != "another's name":  # of a file that was replaced: it is stopped by its own note
            cli("stop", path, code=2)
            assert identify(workload) is not None
    finally:
        if identify(workload) is not None:
            os.kill(workload, signal.SIGKILL)


def test_a_session_from_another_host_is_left_to_that_host(cli: Cli, tmp_path: Path) -> None:
    path, folder, workload = _lost(cli, tmp_path)
    there = {"host": "node17", "boot_id": "another"}
    lock = json.loads((folder / "recorder.lock").read_text())
    (folder / "recorder.lock").write_text(json.dumps({**lock, **there}))
    handle = meta(path)["handle"]
    handle["holder"] |= there
    edit(path, recorder={**meta(path)["recorder"], **there}, handle=handle)
    (folder / "handle.json").write_text(json.dumps(handle))
    before = names(folder)
    plan = json.loads((path.parent / "plan.json").read_text())
    (path.parent / "plan.json").write_text(json.dumps({**plan, "host": "node17"}))
    here = socket.gethostname()
    for command in (("stop",), ("attach", "--record"), ("delete", "--yes"), ("resume",)):
        told = cli(*command, path, code=2).stderr
        assert "node17" in told and here in told, command
    assert "node17" in cli("stop", "--all").stderr
    cli("--record", "--quiet", "--out", tmp_path / "next", "--", "true")  # its sweep, too
    assert names(folder) == before and path.exists() and identify(workload) is not None
    (folder / "recorder.lock").write_text(json.dumps(lock))
    (folder / "handle.json").write_text(json.dumps({**handle, "holder": None}))
    edit(path, recorder=lock)
    cli("stop", path)
    assert identify(workload) is None


def test_a_container_of_the_same_host_name_is_another_place(cli: Cli, tmp_path: Path) -> None:
    """With the host's name and boot, but process numbers of its own (``unshare --pid``)."""
    path, folder, workload = _lost(cli, tmp_path)
    before = names(folder)
    apart = ("unshare", "--pid", "--fork", "--mount-proc")
    for command in (("stop",), ("attach", "--record"), ("delete", "--yes"), ("stop", "--all")):
        named = [] if "--all" in command else [path]
        code = 0 if "--all" in command else 2
        told = cli(*command, *named, code=code, through=apart).stderr
        assert "container" in told, told
    assert names(folder) == before and path.exists() and identify(workload) is not None
    cli("stop", path)
    assert identify(workload) is None


def test_this_boot_is_known_by_its_name_whatever_the_host_is_called_now() -> None:
    own = identify(os.getpid())
    assert own is not None and own.boot_id == boot_id()
    renamed = type(own)("another", own.boot_id, own.pid, own.start_time, own.pid_namespace)
    assert renamed.alive() is True
    apart = type(own)(own.host, own.boot_id, own.pid, own.start_time, 1)
    assert apart.alive() is None
    assert type(own)("another", "another", own.pid, own.start_time).alive() is None
    assert type(own)(own.host, "another", own.pid, own.start_time).alive() is False
    of_its_name = type(own)(own.host, "another", own.pid, own.start_time, None, "another")
    assert of_its_name.alive() is None, "two machines may have one name"


def _study(cli: Cli, tmp_path: Path, script: str) -> Path:
    """A study of two runs that was stopped in its second."""
    program = tmp_path / "work"
    program.mkdir()
    (program / "train.py").write_text(script)
    recorder = subprocess.Popen(
        cli.argv(
            *("--record", "--quiet", "--env", "bare", "--env", "bare", "--out", tmp_path / "own"),
            *("--", sys.executable, "train.py"),
        ),
        env=cli.env,
        cwd=program,
    )
    ran = program / "ran"
    until(lambda: ran.exists() and ran.read_text() == "xx")
    recorder.send_signal(signal.SIGTERM)
    recorder.wait()
    return sessions(tmp_path / "own")[0].parent


SCRIPT = (
    "import os, time\n"
    "first = not os.path.exists('ran')\n"
    "open('ran', 'a').write('x')\n"
    "time.sleep(0 if first or os.path.exists('fast') else 300)\n"
)


@pytest.mark.parametrize("what", ["command", "another folder", "environment", "unsigned"])
def test_resume_runs_no_study_that_this_user_did_not_start(
    cli: Cli, tmp_path: Path, what: str
) -> None:
    folder = _study(cli, tmp_path, SCRIPT)
    plan = json.loads((folder / "plan.json").read_text())
    if what == "command":
        arguments = plan["parts"][0]["workloads"][0]["arguments"]
        arguments[:] = ["touch", str(tmp_path / "PWN; #")]
    elif what == "another folder":
        plan["working_directory"] = str(tmp_path)
    elif what == "environment":
        plan["parts"][0]["environments"][0]["mounts"] = ["/:/host:rw"]
    else:
        del plan["signature"]
    (folder / "plan.json").write_text(json.dumps(plan))
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    for flags in ((), ("--plan",)):
        told = cli("resume", folder, *flags, code=2).stderr
        assert "--trust" in told
        if what == "command":
            assert f"touch '{tmp_path}/PWN; #'" in told
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    assert not (tmp_path / "PWN; #").exists()
    if what == "command":
        cli("resume", folder, "--trust")
        assert (tmp_path / "PWN; #").exists()


def test_resume_goes_on_with_ones_own_study(cli: Cli, tmp_path: Path) -> None:
    folder = _study(cli, tmp_path, SCRIPT)
    (tmp_path / "work" / "fast").touch()
    cli("resume", folder)
    assert (tmp_path / "work" / "ran").read_text() == "xxx"


def test_resume_does_not_go_on_with_a_program_that_was_changed(cli: Cli, tmp_path: Path) -> None:
    folder = _study(cli, tmp_path, SCRIPT)
    (tmp_path / "work" / "train.py").write_text("print('another program')")
    told = cli("resume", folder, code=2).stderr
    assert "train.py was changed" in told and "gpuwatch rerun" in told
    (tmp_path / "work" / "train.py").write_text(SCRIPT)
    (tmp_path / "work" / "fast").touch()
    cli("resume", folder)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["python3", "train.py", "--lr", "1"], ["train.py"]),
        (["bash", "-c", "python3 train.py 60 | tee 'o';./go.sh>x"], ["train.py", "./go.sh"]),
        (["python3", "-m", "pkg.train"], ["pkg/train.py"]),
        (["python3", "-um", "pkg.train"], ["pkg/train.py"]),
        (["python3", "-mtrain"], ["train.py"]),
        (["python3", "pkg"], ["pkg/__main__.py"]),
        (["./go.sh", "--config=a.yaml", "@b.cfg", "cfg=a.yaml"], ["./go.sh", "a.yaml", "b.cfg"]),
        (["python3", "train.py", "--log", "o.csv"], ["train.py"]),
        (["true"], []),
    ],
)
def test_the_files_of_a_program_are_those_that_its_command_names(
    tmp_path: Path, command: list[str], named: list[str]
) -> None:
    (tmp_path / "pkg").mkdir()
    for name in (
        "train.py",
        "go.sh",
        "a.yaml",
        "b.cfg",
        "o.csv",
        "pkg/train.py",
        "pkg/__main__.py",
        "true",
    ):
        (tmp_path / name).write_text(name)
    assert sorted(digests(command, tmp_path)) == sorted(named)
