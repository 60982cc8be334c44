"""Who may read what gpuwatch writes: its owner alone, from the first moment, whatever the umask."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.core.errors import StorageError
from tests.conftest import Cli
from tests.reading import sessions
from tests.waiting import until

from .commands.test_record import STEPS

OTHERS = 0o077
RECORDED = Path(__file__).parents[1] / "data" / "kept-0.1.0" / "study" / "01-bare-1.gpuwatch"


@pytest.fixture(params=[0o000, 0o077], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    """What below ``folder`` has a mode for anybody but its owner; links have none."""
    found = (each for each in folder.rglob("*") if not each.is_symlink())
    return [f"{each} {mode(each):o}" for each in found if mode(each) & OTHERS]


def test_all_that_gpuwatch_keeps_is_its_owners_and_what_is_asked_for_by_path_follows_the_umask(
    cli: Cli, tmp_path: Path, umask: int
) -> None:
    work = ("--", sys.executable, STEPS, 10, 0.02)
    cli("--record", "--env", "bare", "--env", "bare", *work)
    kept = cli.home / ".local/share/gpuwatch/studies"
    one, other = sessions(kept)
    outside = tmp_path / "outside" / "deeper"
    cli("--record", "--detach", "--out", outside, *work)
    until(lambda: sessions(outside))
    cli("attach", "--record", sessions(outside)[0], code=None)
    until(lambda: not list((cli.home / ".local/state/gpuwatch/runs").iterdir()))
    cli("tag", one, "first")
    cli("note", one.parent, "a note")
    cli("report", one.parent)
    cli("sessions")
    assert open_to_others(cli.home) == []
    assert {each.name for each in kept.glob("*/*")} >= {"plan.json", "summary.html", "labels.json"}

    (folder,) = outside.iterdir()
    assert mode(folder) == 0o700 and open_to_others(folder) == []
    for each in (outside.parent, outside):
        assert mode(each) == 0o777 & ~umask, "as mkdir -p makes it"
    exported, compared = tmp_path / "a.csv", tmp_path / "compared.md"
    cli("export", one, "--out", exported)
    cli("compare", one, other, "--out", compared, "--format", "md")
    for each in (exported, compared):
        assert mode(each) == 0o666 & ~umask


def test_while_a_run_goes_on_its_folder_is_closed_and_the_workload_has_the_callers_umask(
    cli: Cli, tmp_path: Path, umask: int
) -> None:
    made = tmp_path / "made"
    cli("--record", "--detach", "--", "sh", "-c", 'echo up > "$0"; cat "$0"; sleep 300', made)
    runs = cli.home / ".local/state/gpuwatch/runs"
    until(made.exists)
    (folder,) = runs.iterdir()
    assert mode(folder) == 0o700
    assert not [
        each
        for each in folder.parents
        if each.is_relative_to(cli.home / ".local") and mode(each) & OTHERS
    ]
    spool = folder / "spool"
    until(lambda: list(spool.iterdir()))
    assert mode(spool) == 0o700 and open_to_others(spool) == []
    assert open_to_others(cli.home / ".local/share") == [], "the journal of a session as well"
    assert mode(made) == 0o666 & ~umask
    cli("stop", "--all")


_TRACED = "open,openat,creat,mkdir,mkdirat,chmod,fchmodat,rename,renameat,renameat2"
_CALL = re.compile(rf"(?P<call>{_TRACED.replace(',', '|')})\((?P<rest>.*)\) = \d+")


def test_nothing_is_opened_to_others_even_for_a_moment(cli: Cli, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not on the PATH")
    strace = ["strace", "-ff", "-qq", "-ttt", "-s", "4096", "-e", f"trace={_TRACED}", "-o"]
    probe = subprocess.run(
        [*strace, tmp_path / "probe", "true"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"programs may not be traced here: {probe.stderr.strip()}")
    words = cli.argv("--record", "--quiet", "--", sys.executable, STEPS, 5, 0.02)
    before = os.umask(0)
    try:
        done = subprocess.run(
            [*strace, tmp_path / "calls", *words],
            env=cli.env,
            capture_output=True,
            text=True,
            timeout=150,
        )
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    runs = cli.home / ".local/state/gpuwatch/runs"
    folders, files, wrong = 0, 0, []
    known: set[str] = set()
    # A file for each thread, where no call is cut in two by another's; a line begins with its time.
    calls = [each.read_text(errors="replace") for each in tmp_path.glob("calls.*")]
    for line in sorted("".join(calls).splitlines()):
        found = _CALL.search(line)
        if found is None:
            continue
        names = re.findall(r'"([^"]*)"', found["rest"])
        if not names or not names[0].startswith(f"{cli.home}/"):
            continue
        name, call = names[0], found["call"]
        if call.startswith("rename"):
            known.add(names[1])
            continue
        within_a_run = Path(name).is_relative_to(runs) and Path(name).parent != runs
        last = found["rest"].rsplit(", ", 1)[-1]
        if call.startswith("mkdir"):
            folders += 1
            if last != "0700" and not within_a_run:
                wrong.append(line)
        elif "chmod" in call and not within_a_run:
            wrong.append(line)
        elif "O_CREAT" in found["rest"] and name not in known:
            files += 1
            known.add(name)
            if int(last, 8) & OTHERS and not within_a_run:
                wrong.append(line)
    assert not wrong, "\n".join(wrong)
    assert folders >= 4 and files >= 6, "what was looked at"


@pytest.mark.parametrize("trap", ["a link", "a folder that all may write"])
def test_a_trap_in_the_temporary_folder_is_named_and_not_used(
    cli: Cli, tmp_path: Path, trap: str
) -> None:
    shared, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    for folder in (shared, elsewhere):
        folder.mkdir()
        folder.chmod(0o1777)
    planted = shared / f"gpuwatch-{os.geteuid()}"
    if trap == "a link":
        planted.symlink_to(elsewhere)
    else:
        planted.mkdir()
        planted.chmod(0o777)
    cli.variables |= {"TMPDIR": str(shared), "XDG_STATE_HOME": "/proc/nowhere"}
    done = cli("--record", "--", "true", code=None)
    assert done.returncode != 0
    assert f"{planted} is a link, or open to other users" in done.stderr + done.stdout
    assert f"rm -r {planted}" in done.stderr + done.stdout
    assert list(elsewhere.iterdir()) == [] and list(planted.iterdir()) == []


def test_a_folder_in_the_way_of_a_private_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot create the folder"):
        paths.private_folder(tmp_path / "file")
    with pytest.raises(StorageError, match="cannot create the folder"):
        paths.private_folder(tmp_path / "file/deeper")
