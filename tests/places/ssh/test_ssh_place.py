"""A study's job on a host, against a real OpenSSH server; a program of the tests' own stands for
the recorder there."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.places.base import STUDY, Job, JobState, PlaceSpec, Refused
from gpuwatch.places.ssh import scripts
from gpuwatch.places.ssh.connection import Connection
from gpuwatch.places.ssh.place import SshPlace
from tests.places import stand_in
from tests.places.sshd import Sshd, User
from tests.waiting import until

pytestmark = [pytest.mark.ssh, pytest.mark.usefixtures("sshd")]


@pytest.fixture(scope="module")
def gpu2(ssh_server: Sshd) -> User:
    return ssh_server.add_user("gpu2", shell="/usr/bin/fish")


class Study:
    """A study's folder here, and its place."""

    def __init__(self, here: Path, user: User, plan: dict[str, object], **options: str) -> None:
        here.mkdir()
        (here / "plan.json").write_text(json.dumps(plan))
        self.place = SshPlace(
            PlaceSpec("ssh", user.host, options), stand_in.make(here.with_suffix(".pyz"))
        )
        self.job = Job(secrets.token_hex(8), f"{here.name} {secrets.token_hex(4)}", here)
        self.there = user.home / ".local/share/gpuwatch/studies" / self.job.study
        self.place.connect(person=False)

    def wait_for(self, state: JobState) -> None:
        until(lambda: self.place.state(self.job, self.job.study).state is state, state.value)

    @property
    def process(self) -> dict[str, object]:
        until((self.there / "process.json").exists)
        noted: dict[str, object] = json.loads((self.there / "process.json").read_text())
        return noted

    @property
    def attempts(self) -> list[str]:
        return (self.there / "attempts").read_text().split()


@pytest.fixture
def study(tmp_path: Path, gpu2: User) -> Iterator[Study]:
    made = Study(tmp_path / "it's", gpu2, {})
    yield made
    made.place.cancel(made.job, made.job.study)


@pytest.mark.parametrize("archive", [{}, {"old": "error: unrecognized arguments: --look"}])
def test_a_job_from_submission_to_its_end(
    tmp_path: Path, gpu2: User, archive: dict[str, object]
) -> None:
    study = Study(tmp_path / "study", gpu2, {"code": 1, **archive})
    assert study.place.preflight() == []
    assert study.place.submit(study.job) == study.job.study
    assert study.process["cwd"] == str(gpu2.home)
    study.wait_for(JobState.RUNNING)
    (study.there / "go").touch()
    study.wait_for(JobState.ENDED)
    assert study.attempts == [study.job.attempt]
    assert study.there.stat().st_mode & 0o777 == 0o700
    study.place.cancel(study.job, study.job.study)  # nothing happens


def test_a_job_that_was_submitted_is_not_started_again(study: Study) -> None:
    for _ in range(3):
        study.place.submit(study.job)
    assert study.process["pid"]
    for _ in range(3):
        study.place.submit(study.job)
    assert study.attempts == [study.job.attempt]
    study.wait_for(JobState.RUNNING)
    assert study.place.log(study.job, study.job.study) == ""


def test_a_job_outlives_every_connection(sshd: Sshd, study: Study) -> None:
    study.place.submit(study.job)
    assert study.process["pid"]
    sshd.stop()
    assert study.place.state(study.job, study.job.study).state is JobState.UNKNOWN
    sshd.start()
    study.place.connect(person=False)
    study.wait_for(JobState.RUNNING)


def test_a_cancelled_job_saves_first(study: Study) -> None:
    study.place.submit(study.job)
    assert study.process["pid"]
    study.wait_for(JobState.RUNNING)
    study.place.cancel(study.job, study.job.study)
    study.wait_for(JobState.ENDED)
    assert (study.there / "saved").exists()


def test_a_recorder_that_cannot_begin_leaves_its_words(tmp_path: Path, gpu2: User) -> None:
    study = Study(tmp_path / "study", gpu2, {"refuse": "gpuwatch: error: no GPU"})
    study.place.submit(study.job)
    study.wait_for(JobState.FAILED)
    (study.there / "recorder.log").write_text("of an earlier attempt\n")
    *_, last = study.place.log(study.job, study.job.study).splitlines()
    assert last == "gpuwatch: error: no GPU"


def test_an_archive_that_is_there_is_not_sent_again(study: Study, gpu2: User) -> None:
    assert study.place.preflight() == []
    (capsule,) = (gpu2.home / ".cache/gpuwatch/capsules").glob("*.pyz")
    sent = capsule.stat().st_mtime_ns
    assert study.place.preflight() == []
    study.place.submit(study.job)
    assert capsule.stat().st_mtime_ns == sent
    assert study.process["pid"]
    capsule.unlink()  # a cache may be emptied
    with study.place.open(study.job, ["relay", STUDY, "--from", "it's"]) as process:
        output, _ = process.communicate(b"cursor")
    assert output == b"relay --from it's\ncursor"


def test_the_working_folder_arrives_with_links_and_modes(study: Study, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.sh").write_text("#!/bin/sh\n")
    (work / "train.sh").chmod(0o755)
    (work / "link").symlink_to("train.sh")
    archive = tmp_path / "work.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(work, ".")
    for _ in range(2):
        study.place.send_folder(study.job, archive)
    there = study.there / "work"
    assert (there / "link").readlink() == Path("train.sh")
    assert (there / "train.sh").stat().st_mode & 0o777 == 0o700
    study.place.submit(replace(study.job, work=True))
    assert study.process["cwd"] == str(there)


def test_nothing_starts_there_without_the_folder_that_was_to_be_sent(study: Study) -> None:
    with pytest.raises(Refused, match="the working folder is not on gpu2"):
        study.place.submit(replace(study.job, work=True))
    assert not (study.there / "process.json").exists()


def test_a_connection_that_is_lost_while_a_folder_is_sent_is_no_refusal(
    sshd: Sshd, gpu2: User, study: Study, tmp_path: Path
) -> None:
    long, archive, data = tmp_path / "long.tar", tmp_path / "work.tar", os.urandom(1_000_000)
    with long.open("wb") as file:
        file.truncate(500_000_000)  # which takes seconds to send
    with tarfile.open(archive, "w") as packed:
        whole = tarfile.TarInfo("data")
        whole.size = len(data)
        packed.addfile(whole, io.BytesIO(data))

    def cut() -> None:
        until(lambda: list(study.there.glob(".work.*.tar")))
        sshd.cut(gpu2)

    cutting = threading.Thread(target=cut)
    cutting.start()
    with pytest.raises(NotAvailable, match="the connection to gpu2 was lost") as error:
        study.place.send_folder(study.job, long)
    cutting.join()
    assert not isinstance(error.value, Refused)
    assert not (study.there / "work").exists()
    study.place.connect(person=False)
    study.place.send_folder(study.job, archive)
    assert (study.there / "work/data").read_bytes() == data


def test_a_part_of_a_folder_is_not_taken_for_all_of_it(
    sshd: Sshd, study: Study, tmp_path: Path
) -> None:
    archive = tmp_path / "work.tar"
    with tarfile.open(archive, "w") as packed:
        for name in ("a", "b"):
            packed.addfile(tarfile.TarInfo(name))
    data = archive.read_bytes()
    connection = Connection("gpu2")
    connection.connect(person=False)
    answer = connection.run(scripts.store_folder(study.job.study, len(data)), data[:512])
    assert answer.code == scripts.NO_ROOM
    assert [path.name for path in study.there.iterdir()] == []


def test_a_folder_there_is_used_as_it_is(tmp_path: Path, gpu2: User) -> None:
    data = gpu2.home / "my project"
    data.mkdir()
    data.chmod(0o755)
    study = Study(tmp_path / "study", gpu2, {"seconds": 0}, folder="~/my project")
    assert not study.place.takes_folder
    assert study.place.preflight() == []
    study.place.submit(study.job)
    assert study.process["cwd"] == str(data)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"folder": "/nowhere"}, r".*nowhere"),
        ({"python": "/nowhere/python3"}, r"there is no /nowhere/python3"),
        ({"python": "~/old python"}, r".*/old python is Python 3\.9\.2"),
    ],
)
def test_what_is_missing_there_is_told_before_anything_is_sent(
    tmp_path: Path, gpu2: User, options: dict[str, str], text: str
) -> None:
    old = gpu2.home / "old python"
    old.write_text('#!/bin/sh\necho "Python 3.9.2"\necho "of this site"\nexit 1\n')
    old.chmod(0o755)
    study = Study(tmp_path / "study", gpu2, {}, **options)
    (problem,) = study.place.preflight()
    what = "folder /nowhere: " if "folder" in options else r"Python 3\.10 or newer \("
    assert re.fullmatch(rf"gpu2 has no {what}{text}\)?", problem.text), problem.text


def test_a_full_disk_there_is_told(sshd: Sshd, tmp_path: Path) -> None:
    user = sshd.add_user("full")
    mount = user.home / ".local"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", mount], check=True)
    try:
        shutil.chown(mount, user.name)
        study = Study(tmp_path / "study", user, {"long": "x" * 200_000})
        with pytest.raises(
            Refused, match=r"files cannot be written on full: .*No space left"
        ) as error:
            study.place.submit(study.job)
        assert "free some space there" in (error.value.hint or "")
        assert not (study.there / "plan.json").exists()
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_home_that_cannot_be_written_is_told(sshd: Sshd, tmp_path: Path) -> None:
    user = sshd.add_user("sealed")
    study = Study(tmp_path / "study", user, {})
    user.home.chmod(0o555)
    try:
        with pytest.raises(
            Refused, match=r"files cannot be written on sealed: .*\.cache: Permission denied"
        ):
            study.place.preflight()
    finally:
        user.home.chmod(0o755)


def test_a_host_without_tar_is_told(
    sshd: Sshd, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # Whoever logs in must be able to run it.
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    request.addfinalizer(lambda: shutil.rmtree(folder))
    folder.chmod(0o755)
    programs, shell = folder / "bin", folder / "shell"
    programs.mkdir()
    (programs / "mkdir").symlink_to("/bin/mkdir")
    shell.write_text(f'#!/bin/sh\nexport PATH={programs}\nexec /bin/sh "$@"\n')
    (programs / "sh").symlink_to("/bin/sh")
    shell.chmod(0o755)
    study = Study(tmp_path / "study", sshd.add_user("bare-bones", shell=str(shell)), {})
    study.place.connect(person=False)
    archive = tmp_path / "work.tar"
    archive.write_bytes(b"")
    with pytest.raises(Refused, match="bare-bones has no tar") as error:
        study.place.send_folder(study.job, archive)
    assert "--on ssh=bare-bones,folder=DIR" in (error.value.hint or "")


def test_a_host_that_is_away_is_told(sshd: Sshd, study: Study) -> None:
    sshd.stop()
    try:
        with pytest.raises(NotAvailable, match="Connection refused"):
            study.place.submit(study.job)
        status = study.place.state(study.job, study.job.study)
        assert status.state is JobState.UNKNOWN
        assert status.reason is not None and "Connection refused" in status.reason
    finally:
        sshd.start()


@pytest.mark.parametrize(
    "target",
    [
        "-oProxyCommand=touch",
        "me@-oProxyCommand",
        "gpu1 touch",
        "gpu1;touch",
        "$(touch)",
        "gpu1\n",
        "@gpu1",
        "",
        None,
    ],
)
def test_a_hostile_target_never_reaches_ssh(sshd: Sshd, tmp_path: Path, target: str | None) -> None:
    before = sshd.arguments.read_text()
    with pytest.raises(UsageError):
        SshPlace(PlaceSpec("ssh", target), stand_in.make(tmp_path / "a.pyz"))
    assert sshd.arguments.read_text() == before


@pytest.mark.parametrize(
    "target", ["gpu1", "me@gpu1.example.org", "me%realm@gpu@jump", "fe80::1%eth0"]
)
def test_targets(tmp_path: Path, target: str) -> None:
    SshPlace(PlaceSpec("ssh", target), stand_in.make(tmp_path / "a.pyz"))
