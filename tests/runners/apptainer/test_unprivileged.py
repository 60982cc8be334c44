"""Apptainer for a user who is not root: the same view, without any help of root's."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core import paths
from gpuwatch.runners.apptainer.runner import ApptainerRunner

from ..recorded import finish, specification, start

pytestmark = pytest.mark.apptainer

NOBODY = pwd.getpwnam("nobody")
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def place(small_root: Path) -> Iterator[Path]:
    """A folder of nobody's, with an image that nobody can reach."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    if not os.path.exists(SYSTEM_PYTHON):
        pytest.skip(f"no {SYSTEM_PYTHON}, which every user can run")
    folder = Path(tempfile.mkdtemp(prefix="gw", dir="/tmp"))
    subprocess.run(["cp", "-al", str(small_root), str(folder / "root")], check=True)
    (folder / "root").chmod(0o755)
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    yield folder
    shutil.rmtree(folder)


def as_nobody(place: Path, action: Callable[[], Any]) -> Any:
    """What ``action`` gives in a child that became nobody."""
    assert ApptainerRunner().engine()  # and with it what nobody may not import
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY.pw_gid)
            os.setuid(NOBODY.pw_uid)
            os.chdir(place)
            os.environ.update(HOME=str(place), XDG_DATA_HOME=str(place), USER="nobody")
            sys.executable = SYSTEM_PYTHON  # that of the tests may lie in root's home
            answer = {"answer": action()}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert "error" not in told, told
    return told["answer"]


def test_a_user_runs_a_folder_with_the_same_view(place: Path) -> None:
    script = (
        "id -u; pwd; head -c 80000000 /dev/zero > /tmp/big && echo room;"
        "touch $HOME/x && echo home;"
        "grep -c 'CapEff:.0000000000000000' /proc/self/status; touch /usr/x 2>/dev/null || echo ro"
    )

    def action() -> Any:
        spec = specification("apptainer", place / "root", "sh", "-c", script, where=place)
        os.environ["XDG_STATE_HOME"] = str(place / "state")
        run = start(ApptainerRunner(), spec, paths.runs_home() / "run")
        ended = finish(run)
        run.forget()
        return ended.lines, ended.result.code

    lines, code = as_nobody(place, action)
    assert lines == [str(NOBODY.pw_uid), str(place), "room", "home", "1", "ro"]
    assert code == 0
    assert list((place / "state/gpuwatch/runs").iterdir()) == []


def test_a_file_without_fuse_is_told_with_the_way_around(place: Path, small_sif: Path) -> None:
    if os.stat("/dev/fuse").st_mode & 0o006 == 0o006:
        pytest.skip("FUSE is open to everyone here")
    os.link(small_sif, place / "small.sif")

    def action() -> Any:
        spec = specification("apptainer", place / "small.sif", "true", where=place)
        return [(each.code, each.hint) for each in ApptainerRunner().preflight(spec)]

    [[code, hint]] = as_nobody(place, action)
    assert code == "fuse-missing"
    assert "build --sandbox" in hint
