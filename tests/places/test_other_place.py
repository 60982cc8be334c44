"""A place that another package adds: a second folder of this machine, with a home of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuwatch.session.mirror.content import digest_of
from tests.conftest import Cli
from tests.waiting import until

PLACE = '''
import os, shutil, subprocess, sys, tarfile, time
from pathlib import Path
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.models import Problem
from gpuwatch.places.base import STUDY, JobState, JobStatus, Preview
from gpuwatch.session.study.attempts import attempts
from gpuwatch.session.study.study_folder import is_held


class Folder:
    """``--on folder=DIR``."""

    shares_files = False
    takes_folder = True
    kinds_outside = frozenset[str]()
    names_machine = False

    def __init__(self, spec, capsule):
        if spec.target is None or spec.options:
            raise UsageError("--on folder names no folder", "write --on folder=DIR")
        self.home, self.capsule = Path(spec.target), capsule

    def connect(self, *, person):
        if not self.home.is_dir():
            raise NotAvailable(f"there is no folder {self.home}", f"mkdir {self.home}")

    def job_per_block(self, parts):
        return False

    def preflight(self):
        locked = (self.home / "locked").exists()
        return [Problem("locked", "the folder is locked", "unlock it")] if locked else []

    def exact(self, text):
        return text

    def describe(self):
        return None

    def preview(self, parts):
        return Preview()

    def let_go(self, job, native):
        (self.study(job) / "let go").touch()

    def expected_start(self):
        (self.home / "asked").touch()
        while (self.home / "silent").exists():
            time.sleep(0.1)
        return 1e9

    def study(self, job):
        return self.home / job.study

    def send_folder(self, job, archive):
        with tarfile.open(archive) as sent:
            sent.extractall(self.study(job) / "work", filter="data")

    def find(self, job):
        return job.study if job.attempt in attempts(self.study(job)) else None

    def submit(self, job):
        self.study(job).mkdir(exist_ok=True)
        shutil.copy(job.folder / "plan.json", self.study(job) / "plan.json")
        work = self.study(job) / "work"
        with open(self.home / "start.log", "ab") as log:
            words = ["start-plan", str(self.study(job)), "--attempt", job.attempt, "--detach"]
            self.gpuwatch(words, log, cwd=work if work.exists() else self.home).wait()
        return job.study

    def gpuwatch(self, words, log, **more):
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        command = [sys.executable, self.capsule, *words]
        return subprocess.Popen(command, env=variables, stderr=log, **more)

    def state(self, job, native):
        if is_held(self.study(job)):
            return JobStatus(JobState.RUNNING, where="the other folder")
        begun = job.attempt in attempts(self.study(job))
        return JobStatus(JobState.ENDED if begun else JobState.FAILED)

    def open(self, job, arguments):
        words = [str(self.study(job)) if word == STUDY else word for word in arguments]
        pipe = subprocess.PIPE
        return self.gpuwatch(words, subprocess.DEVNULL, stdin=pipe, stdout=pipe)

    def cancel(self, job, native):
        self.gpuwatch(["stop", str(self.study(job))], subprocess.DEVNULL).wait()

    def log(self, job, native):
        return (self.home / "start.log").read_text()
'''


@pytest.fixture
def other(cli: Cli, tmp_path: Path) -> Path:
    """The other folder; the place is installed."""
    package = tmp_path / "package"
    info = package / "folders-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "folders.py").write_text(PLACE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: folders\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gpuwatch.places]\nfolder = folders:Folder\n")
    cli.variables["PYTHONPATH"] = str(package)
    other = tmp_path / "other"
    other.mkdir()
    return other


def test_a_study_is_recorded_there_and_mirrored_here(cli: Cli, other: Path) -> None:
    project = cli.home / "project"
    project.mkdir()
    (project / "say.py").write_text(
        "import os, sys, time\nprint('in', __file__)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.1)"
    )
    go = other / "go"
    recording = cli.start(
        *("--record", "--on", f"folder={other}", "python3", "say.py", go), folder=project
    )
    assert recording.stderr is not None
    for line in recording.stderr:  # the run goes on until this is told
        if "running on the other folder" in line:
            go.touch()
            break
    _, errors = recording.communicate(timeout=120)
    assert (recording.returncode, go.exists()) == (0, True), errors
    (here,) = cli.home.rglob("01-bare.gpuwatch")
    (there,) = other.rglob("01-bare.gpuwatch")
    assert digest_of(here) == digest_of(there)
    assert "in " in cli.read("log", here).stdout
    assert json.loads((here.parent / "placement.json").read_text())["place"] == f"folder={other}"
    until((there.parent / "let go").exists)


def test_its_own_words_are_told(cli: Cli, other: Path) -> None:
    for place, words, code in (
        ("folder", "write --on folder=DIR", 2),
        (f"folder={other},x=y", "write --on folder=DIR", 2),
        (f"folder={other}/nowhere", "there is no folder", 3),
        ("folders=x", "choose from: folder, kubernetes, slurm, ssh", 2),
    ):
        assert words in cli("--record", "--on", place, "--", "true", code=code).stderr
    (other / "locked").touch()
    locked = cli("--record", "--on", f"folder={other}", "--", "true", code=3)
    assert "the folder is locked; unlock it" in locked.stderr


def test_a_place_that_cannot_be_loaded_says_what_to_do(cli: Cli, other: Path) -> None:
    (Path(cli.variables["PYTHONPATH"]) / "folders.py").write_text("import nothing_of_that_name")
    done = cli("--record", "--on", f"folder={other}", "--", "true", code=3)
    assert "pip install --upgrade folders" in done.stderr


def test_it_is_checked_by_doctor(cli: Cli, other: Path) -> None:
    done = cli("doctor", "--on", f"folder={other}", "--", "true")
    assert "clock agrees" in done.stderr and "bare" in done.stdout
    assert f"\nnext: gpuwatch run mnist-cnn --on folder={other}" in done.stdout


def test_a_plan_says_what_the_place_says(cli: Cli, other: Path) -> None:
    words = ("--blocks", "2", "--command", "a=true", "--command", "b=false", "--on")
    told = " ".join(cli("--record", "--plan", *words, f"folder={other}").stdout.split())
    assert "6 runs" in told and f"folder={other} would start a job at " in told
    (other / "locked").touch()
    told = " ".join(cli("--record", "--plan", *words, f"folder={other}").stdout.split())
    assert "6 runs" in told and "the folder is locked; unlock it" in told
    assert {each.name for each in other.iterdir()} == {"asked", "locked"}
    told = " ".join(cli("--record", "--dry-run", *words, f"folder={other}/x").stdout.split())
    assert "there is no folder" in told
    asked = cli("--record", "--plan", "--format", "json", *words, f"folder={other}/x")
    assert json.loads(asked.stdout)["on"] == [f"folder={other}/x"]


def test_a_question_that_is_broken_off_leaves_nothing_here(
    cli: Cli, other: Path, tmp_path: Path
) -> None:
    cli.variables |= {"TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": ""}
    (other / "silent").touch()
    asking = cli.start("--record", "--plan", "--on", f"folder={other}", "--", "true")
    until((other / "asked").exists)
    assert list(tmp_path.glob("gpuwatch-*"))
    asking.terminate()  # as the form does when something else is typed
    asking.communicate()
    until(lambda: not list(tmp_path.glob("gpuwatch-*")))
