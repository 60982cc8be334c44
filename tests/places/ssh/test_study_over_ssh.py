"""A study on another host, over a real SSH server: as another user, with nothing installed."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gpuwatch.core.paths import RUN_SESSION
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.placement import PLACEMENT
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.places.sshd import Sshd, User
from tests.waiting import until

pytestmark = [pytest.mark.ssh, pytest.mark.usefixtures("sshd"), pytest.mark.timeout(600)]

UNTIL = "while [ ! -e {name} ]; do sleep 0.1; done; "
"""Lets a run go on until the test, which has seen what it waits for, makes a file in its home."""
STEPS = (
    "i=0; while [ $i -lt {count} ]; do "
    """echo ":::GPUWATCH {{\\"event\\": \\"step\\", \\"step\\": $i, \\"seconds\\": 0.05}}"; """
    "echo line $i; i=$((i+1)); sleep 0.05; done"
)


@pytest.fixture(scope="module")
def gpu1(ssh_server: Sshd) -> User:
    return ssh_server.add_user("gpu1")


@pytest.fixture
def here(cli: Cli, sshd: Sshd) -> Cli:
    """The command line here, which reaches the hosts."""
    cli.variables |= sshd.variables
    return cli


def steps(count: int) -> tuple[str, ...]:
    return ("--", "sh", "-c", STEPS.format(count=count))


def study_of(here: Cli) -> Path:
    (plan,) = (here.home / ".local/share/gpuwatch").rglob("plan.json")
    return plan.parent


def there(user: User) -> list[Path]:
    """The folders of studies there."""
    return sorted((user.home / ".local/share/gpuwatch/studies").glob("*"))


def placement(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / PLACEMENT).read_text())
    return found


def wait_for(path: Path, text: str) -> None:
    until(lambda: path.exists() and text in path.read_text(errors="replace"), text)


def lines(folder: Path) -> int:
    """How much of the output is here."""
    count = 0
    for session in folder.glob("0*.gpuwatch"):
        with SessionReader(session) as reader:
            count += len(reader.log(limit=10**6))
    return count


def calls(sshd: Sshd) -> int:
    """How often ssh was started."""
    return len(sshd.arguments.read_text().splitlines())


def followers(here: Cli) -> list[int]:
    """The processes that follow studies of this home."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().split(b"\0")
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"follow" in command and f"HOME={here.home}".encode() in variables:
                found.append(int(folder.name))
    return found


def same(folder: Path, user: User) -> None:
    """What is here is what is there."""
    (original,) = (each for each in there(user) if each.name.startswith(folder.name))
    names = sorted(path.name for path in folder.glob("0*.gpuwatch*"))
    assert names == sorted(path.name for path in original.glob("0*.gpuwatch*"))
    for name in names:
        assert digest_of(folder / name) == digest_of(original / name)


def test_a_command_is_recorded_there_as_here(here: Cli, gpu1: User) -> None:
    go = gpu1.home / "told"
    script = UNTIL.format(name=go.name) + STEPS.format(count=20)
    running = here.start("--record", "--on", "ssh=gpu1", "--", "sh", "-c", script)
    assert running.stderr is not None
    for line in running.stderr:  # the run goes on until this is told
        if "running on gpu1" in line:
            go.touch()
            break
    _, errors = running.communicate(timeout=120)
    assert (running.returncode, "Traceback" in errors) == (0, False), errors
    folder = study_of(here)
    same(folder, gpu1)
    (session,) = folder.glob("*.gpuwatch")
    shown = json.loads(here.read("show", "--format", "json", session).stdout)
    assert (here.read("log", session).stdout.count("line "), json.dumps(shown)[:1]) == (20, "{")
    known = placement(folder)
    assert (known["state"], known["fetched"], known["place"]) == ("ended", True, "ssh=gpu1")
    assert [state for state, _ in known["changes"]] == ["starting", "running", "ended"]  # type: ignore[attr-defined]
    assert (folder / "summary.md").exists()
    owner = there(gpu1)[-1].stat()
    assert (owner.st_uid, owner.st_mode & 0o077) == (gpu1.number, 0)
    assert not followers(here)
    assert b"handle" not in session.read_bytes()


def test_the_exit_code_is_that_of_the_run_there(here: Cli, gpu1: User) -> None:
    here("--record", "--on", "ssh=gpu1", "--", "sh", "-c", "echo no >&2; exit 7", code=1)


def test_what_cannot_run_there_is_said_with_its_fix(here: Cli, gpu1: User) -> None:
    done = here("--record", "--on", "ssh=gpu1", "--env", "docker=x:1", "--", "true", code=3)
    assert "docker" in done.stderr.lower()
    done = here("--record", "--on", "ssh=gpu1", "mnist-cnn", "--steps", "5", code=3)
    assert "torch" in done.stderr
    closed = here.home / "closed"
    closed.mkdir(mode=0o700)
    python = closed / "python3"
    words = ("--record", "--on", "ssh=gpu1", "--env", f"bare,python={python}", "python3", "x.py")
    assert f"no command '{python}' that you may see" in here(*words, code=3).stderr


def test_a_study_of_blocks_has_its_verdict_here(here: Cli, gpu1: User) -> None:
    commands = ("--command", "a=sleep 0.2", "--command", "b=sleep 0.2")
    done = here("--record", "--on", "ssh=gpu1", "--blocks", "2", "--cool-down", "0", *commands)
    folder = study_of(here)
    same(folder, gpu1)
    assert len(list(folder.glob("*.gpuwatch"))) == 6
    assert done.stdout.strip() and (folder / "summary.json").exists()


def test_the_working_folder_goes_along_without_what_git_ignores(here: Cli, gpu1: User) -> None:
    project = here.home / "project"
    (project / "data").mkdir(parents=True)
    (project / "train.py").write_text("import helper; print('value', helper.VALUE)")
    (project / "helper.py").write_text("VALUE = 42")
    (project / "data/large").write_text("ignored")
    (project / ".gitignore").write_text("data/\n")
    subprocess.run(["git", "init", "-q", project], check=True)
    told = here("run", "--on", "ssh=gpu1", "python3", "train.py", folder=project).stderr
    assert "not sent, as git ignores it: data/\n" in told
    (session,) = study_of(here).glob("*.gpuwatch")
    assert "value 42" in here.read("log", session).stdout
    (copy,) = (each for each in there(gpu1) if each.name.startswith(study_of(here).name))
    sent = sorted(path.name for path in (copy / "work").iterdir())
    assert sent == [".gitignore", "__pycache__", "helper.py", "train.py"]
    program = "import sys; sys.exit(\"FileNotFoundError: No such file or directory: 'data/large'\")"
    words = ("--record", "--on", "ssh=gpu1", "python3", "-c", program)
    told = here(*words, code=1, folder=project).stderr
    assert f"it is here: only {project} was sent, without what git ignores" in told


def test_a_large_folder_is_not_sent_unasked_and_the_home_folder_never(
    here: Cli, gpu1: User
) -> None:
    project = here.home / "project"
    project.mkdir()
    with (project / "large").open("wb") as file:
        file.truncate(101_000_000)
    before = there(gpu1)
    done = here("--record", "--on", "ssh=gpu1", "--", "true", code=2, folder=project)
    assert "1 file" in done.stderr or "96.3 MiB" in done.stderr
    assert "folder=DIR" in done.stderr
    here("--record", "--on", "ssh=gpu1,folder=/", "--", "true", folder=project)
    assert len(there(gpu1)) == len(before) + 1
    done = here("--record", "--on", "ssh=gpu1", "--", "pwd")
    assert "home folder is not sent" in done.stderr
    assert str(gpu1.home) in here.read("log", "last").stdout


@pytest.mark.parametrize(
    ("place", "words", "code"),
    [
        ("ssh", "names no host", 2),
        ("ssh=-oProxyCommand=touch /tmp/owned", "names no host", 2),
        ("ssh=gpu1,color=red", "unknown option 'color'", 2),
        ("ssh=gpu1,python=x,python=y", "given twice", 2),
        ("shh=gpu1", "unknown place", 2),
        ("ssh=nowhere.invalid", "cannot connect to nowhere.invalid", 3),
        ("ssh=gpu1,python=/bin/false", "Python", 3),
        ("ssh=gpu1,folder=/nowhere", "/nowhere", 3),
    ],
)
def test_a_place_that_is_none(here: Cli, gpu1: User, place: str, words: str, code: int) -> None:
    done = here("--record", "--on", place, "--", "true", code=code)
    assert words in done.stderr
    assert not list((here.home / ".local/share/gpuwatch").rglob("plan.json"))
    assert not list((here.home / ".local/state/gpuwatch/placements").glob("*"))


def test_a_host_whose_key_changed_is_refused(here: Cli, sshd: Sshd) -> None:
    sshd.add_user("changed")
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    try:
        done = here("--record", "--on", "ssh=changed", "--", "true", code=3)
        assert "host key" in done.stderr.lower()
    finally:
        sshd.trust()


def test_with_a_password_that_a_person_enters(here: Cli, sshd: Sshd) -> None:
    user = sshd.add_user("secret", password="pass-word")
    done = here("--record", "--on", "ssh=secret", "--", "true", code=3)
    assert "Permission denied" in done.stderr
    here.variables |= sshd.answers("pass-word")
    here("--record", "--on", "ssh=secret", "--", "true")
    assert len(there(user)) == 1


@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/fish", "/bin/csh"])
def test_other_login_shells(here: Cli, sshd: Sshd, shell: str) -> None:
    user = sshd.add_user(f"with-{Path(shell).name}", shell=shell)
    (user.home / ".bashrc").write_text("echo welcome; PS1=x\n")
    here("--record", "--on", f"ssh={user.host}", *steps(3))
    same(study_of(here), user)


def test_cut_connections_lose_nothing(here: Cli, gpu1: User, sshd: Sshd) -> None:
    over = gpu1.home / "cut-enough"
    script = f"while [ ! -e {over.name} ]; do echo a line; sleep 0.05; done; echo the last"
    words = ("--record", "--detach", "--on", "ssh=gpu1", "--", "sh", "-c", script)
    folder = Path(here(*words).stdout.strip())
    draw = random.Random(23)
    for number in range(9):
        more = lines(folder) + draw.randrange(30)
        until(lambda more=more: lines(folder) > more)
        assert sshd.cut(gpu1)
        if number == 5:  # and for longer
            sshd.stop()
            before = calls(sshd)
            until(lambda before=before: calls(sshd) > before + 1, "it is tried again")
            sshd.start()
    over.touch()
    here("attach", "--plain", folder.name)
    same(folder, gpu1)
    assert "the last" in here.read("log", folder).stdout


def test_a_follower_that_is_killed_is_replaced(here: Cli, gpu1: User) -> None:
    go = gpu1.home / "killed"
    script = UNTIL.format(name=go.name) + STEPS.format(count=20)
    words = ("--record", "--detach", "--on", "ssh=gpu1", "--", "sh", "-c", script)
    folder = Path(here(*words).stdout.strip())
    wait_for(folder / PLACEMENT, '"running"')
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)
    (folder / PLACEMENT).write_text(json.dumps({**placement(folder), "written": 0}))
    go.touch()
    first = here.start("attach", "--plain", folder.name)
    second = here.start("attach", "--plain", folder.name)
    for each in (first, second):
        told, _ = each.communicate(timeout=120)
        assert "the run is over" in told and "nobody here follows it" not in told
    wait_for(folder / PLACEMENT, '"ended"')
    same(folder, gpu1)


def test_stop_resume_and_delete(here: Cli, gpu1: User) -> None:
    go = gpu1.home / "go"
    script = f"[ -e {go} ] || sleep 100"
    folder = Path(
        here("--record", "--detach", "--on", "ssh=gpu1", "--", "sh", "-c", script).stdout.strip()
    )
    wait_for(folder / PLACEMENT, "running")
    assert "not over" in here("delete", "--yes", folder, code=2).stderr
    assert "not over" in here("resume", folder, code=2).stderr
    assert "stopped" in here("stop", folder).stderr
    assert "is not running" in here("stop", folder).stderr
    listed = json.loads(here.read("sessions", "--format", "json").stdout)
    assert [row["status"] for row in listed["sessions"]] == ["stopped"]
    go.touch()
    here("resume", folder)
    go.unlink()
    assert "complete" in here("resume", folder, code=2).stderr
    same(folder, gpu1)
    assert sorted(path.name for path in folder.glob("0*.gpuwatch*")) == [
        "01-bare.gpuwatch",
        "01-bare.gpuwatch.lost-1",
    ]
    here("delete", "--yes", folder)
    assert not folder.exists()
    assert not list((here.home / ".local/state/gpuwatch/placements").iterdir())


def orphan(here: Cli, user: User) -> tuple[Path, Path, int]:
    """A study whose recorder was killed there; its folder here, a file that ends the run, and the
    PID of the program that goes on."""
    go = user.home / f"end-{secrets.token_hex(4)}"
    script = f"echo $$ >{go}.pid; echo begun; " + UNTIL.format(name=go)
    words = ("--record", "--detach", "--on", "ssh=gpu1", "--", "sh", "-c", script)
    folder = Path(here(*words).stdout.strip())
    wait_for(folder / PLACEMENT, '"running"')
    until(lambda: lines(folder), "its output is here")
    runs = (user.home / ".local/state/gpuwatch/runs").iterdir()
    (run,) = (each for each in runs if folder.name in (each / RUN_SESSION).read_text())
    recorder = json.loads((run / "recorder.lock").read_text())["pid"]
    program = int(Path(f"{go}.pid").read_text())
    os.kill(recorder, signal.SIGKILL)
    wait_for(folder / PLACEMENT, '"orphaned"')
    return folder, go, program


def test_a_run_that_lost_its_recorder_there_is_told_and_ended(here: Cli, gpu1: User) -> None:
    folder, _, program = orphan(here, gpu1)
    died = "the recorder on gpu1 died, the workload still runs there"
    (listed,) = json.loads(here.read("sessions", "--format", "json").stdout)["sessions"]
    assert listed["status"] == "lost"
    assert died in here.read("sessions").stdout
    refused = here("resume", folder, code=2).stderr
    assert died in refused
    assert f"`gpuwatch attach --record {folder.name}` takes it over" in refused
    assert f"`gpuwatch stop {folder.name}` ends it" in refused
    assert f"stopped {folder}" in here("stop", folder).stderr
    assert not Path(f"/proc/{program}").exists()
    (listed,) = json.loads(here.read("sessions", "--format", "json").stdout)["sessions"]
    assert (listed["status"], placement(folder)["state"]) == ("stopped", "ended")
    same(folder, gpu1)


def test_a_run_that_lost_its_recorder_there_is_taken_over_there(here: Cli, gpu1: User) -> None:
    folder, go, program = orphan(here, gpu1)
    taking = here.start("attach", "--record", folder.name)
    until(lambda: placement(folder)["state"] == "running", "it is recorded again")
    assert Path(f"/proc/{program}").exists()
    go.touch()
    _, errors = taking.communicate(timeout=120)
    assert taking.returncode == 0 and "died" not in errors, errors
    (listed,) = json.loads(here.read("sessions", "--format", "json").stdout)["sessions"]
    assert (listed["status"], placement(folder)["state"]) == ("finished", "ended")
    same(folder, gpu1)


def test_an_interrupt_here_ends_it_there(here: Cli, gpu1: User) -> None:
    running = here.start("--record", "--on", "ssh=gpu1", "--", "sleep", "100")
    until(lambda: list((here.home / ".local/share/gpuwatch").rglob("*.gpuwatch")))
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, (out, err)
    folder = study_of(here)
    assert placement(folder)["state"] == "ended"
    same(folder, gpu1)


@pytest.mark.timeout(1800)
def test_a_kill_at_any_moment_leaves_exactly_one_job(here: Cli, gpu1: User, sshd: Sshd) -> None:
    ran = gpu1.home / "ran"
    ran.mkdir(mode=0o777)
    os.chown(ran, gpu1.number, gpu1.number)
    detached = ("--record", "--detach", "--on", "ssh=gpu1", "--", "sh", "-c")
    before = calls(sshd)
    here(*detached, f"echo x >>{ran}/undisturbed")
    needed = calls(sshd) - before
    draw = random.Random(7)
    for number in range(20):
        last = calls(sshd) + draw.randrange(needed + 1)
        sending = here.start(*detached, f"echo x >>{ran}/{number}")
        until(lambda at=last, it=sending: calls(sshd) > at or it.poll() is not None)
        sending.kill()
        sending.communicate()
    noted = list((here.home / ".local/state/gpuwatch/placements").glob("*/record.json"))
    for record in noted:
        study = Path(json.loads(record.read_text())["study"])
        first = here.start("attach", "--plain", study.name)
        second = here.start("attach", "--plain", study.name)
        for each in (first, second):
            each.communicate(timeout=120)
        assert placement(study)["state"] == "ended"
    counts = [path.read_text() for path in ran.iterdir()]
    assert counts == ["x\n"] * len(noted)
    assert len(noted) > 1


def test_a_mailed_study_makes_nothing_happen(here: Cli, gpu1: User, sshd: Sshd) -> None:
    here("--record", "--on", "ssh=gpu1", "--", "true")
    original = study_of(here)
    mailed = here.home / "mailed"
    mailed.mkdir()
    for path in original.iterdir():
        if path.is_file():
            (mailed / path.name).write_bytes(path.read_bytes())
    owned = here.home / "owned"
    trace = here.home / "trace"
    calls = "trace=execve,kill,tgkill,pidfd_send_signal"
    traced = ("strace", "-f", "-qq", "--seccomp-bpf", "-e", calls, "-o", str(trace))
    now = time.time()
    for place, written in (
        ("ssh=gpu1", now),  # as if somebody followed it, for whom `attach` waits half a minute
        ("ssh=gpu1", 0),
        (f"ssh=-oProxyCommand=touch {owned}", 0),
        (f"slurm,setup={owned}", 0),
        ("slurm,job=1", 0),
        ("kubernetes,image=x", 0),
    ):
        hostile = {
            **placement(original),
            "place": place,
            "native": "1",
            "state": "running",
            "fetched": False,
            "written": written,
        }
        (mailed / PLACEMENT).write_text(json.dumps(hostile))
        before = sshd.arguments.read_text()
        for words in (
            ("stop", mailed),
            ("resume", mailed),
            ("resume", "--trust", mailed),
            ("delete", "--yes", mailed),
            ("attach", "--plain", mailed),
            ("sessions", mailed),
            ("show", mailed),
        ):
            here(*words, code=None, through=traced)
            called = trace.read_text()
            started = set(re.findall(r'execve\("[^"]*?([^/"]+)"', called))
            assert not started & {"ssh", "touch", "sbatch", "srun", "squeue", "scancel", "kubectl"}
            assert not re.search(r"(kill|signal)\(.*SIG", called), called
        assert sshd.arguments.read_text() == before
        assert mailed.exists() and not owned.exists()


def test_secrets_of_here_stay_here(here: Cli, gpu1: User) -> None:
    here.variables["HF_TOKEN"] = secret = "hf_" + "s3cr3t" * 5
    here("--record", "--on", "ssh=gpu1", "--", "sh", "-c", "echo token is ${HF_TOKEN:-none}")
    (session,) = study_of(here).glob("*.gpuwatch")
    assert "token is none" in here.read("log", session).stdout
    for home in (here.home, gpu1.home):
        found = subprocess.run(["grep", "-rlaF", secret, home], capture_output=True, check=False)
        assert found.stdout == b""


def test_figures_come_while_the_run_goes_on(here: Cli, gpu1: User) -> None:
    go = gpu1.home / "shown"
    script = STEPS.format(count=60) + "; " + UNTIL.format(name=go.name)
    running = here.start("run", "--plain", "--on", "ssh=gpu1", "--", "sh", "-c", script)
    assert running.stdout is not None
    for line in running.stdout:
        if re.search(r"\bstep", line):
            break
    assert running.poll() is None
    go.touch()
    running.communicate(timeout=120)


def test_a_study_at_each_of_two_places(here: Cli, gpu1: User, sshd: Sshd) -> None:
    gpu2 = sshd.add_user("gpu2")
    places = ("--on", "ssh=gpu1", "--on", "ssh=gpu2")
    script = UNTIL.format(name="both-told") + STEPS.format(count=12)
    words = ("run", *places, "--blocks", "2", "--cool-down", "0", "--", "sh", "-c", script)
    running = here.start(*words)
    assert running.stderr is not None
    said = ""
    for line in running.stderr:  # the first run at each goes on until this is told
        said += line
        for user in (gpu1, gpu2):
            if f"running on {user.host}" in line:
                (user.home / "both-told").touch()
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 0, (out, said)
    one, two = sorted(path.parent for path in here.home.rglob("plan.json"))
    told = re.search(r"gpuwatch (compare --across-devices .*)", said)
    assert told is not None and one.name in told[1] and two.name in told[1]
    compared = here(*told[1].split(), "--format", "json").stdout
    assert json.loads(compared)["questions"]
    assert here("--record", *places[:2], *places[:2], "--", "true", code=2).stderr.count("twice")


def test_where_one_place_cannot_be_reached_nothing_starts(here: Cli, gpu1: User) -> None:
    before = there(gpu1)
    here("--record", "--on", "ssh=gpu1", "--on", "ssh=nowhere.invalid", "--", "true", code=3)
    assert there(gpu1) == before and not list(here.home.rglob("plan.json"))


def test_doctor_tells_what_is_there_before_any_study_was_sent(here: Cli, ssh_server: Sshd) -> None:
    ssh_server.add_user("fresh")
    done = here("doctor", "--on", "ssh=fresh", code=None)
    assert "its clock agrees" in done.stderr
    assert "GPU: no NVIDIA GPU is seen" in done.stdout


def test_a_study_whose_folder_was_removed_here_can_be_stopped(here: Cli, gpu1: User) -> None:
    here("--record", "--detach", "--on", "ssh=gpu1", *steps(1_000_000))
    folder = study_of(here)
    wait_for(folder / PLACEMENT, "running")
    shutil.rmtree(folder)
    stopped = here("stop", folder.name)
    assert "its folder is not here any more" in stopped.stderr + stopped.stdout
    until(lambda: not followers(here))
    (original,) = (each for each in there(gpu1) if each.name.startswith(folder.name))
    assert not list(original.glob("*-journal"))


def test_a_study_on_a_host_that_is_away_is_said_to_go_on(
    here: Cli, ssh_server: Sshd, gpu1: User
) -> None:
    here("--record", "--detach", "--on", "ssh=gpu1", *steps(1_000_000))
    folder = study_of(here)
    wait_for(folder / PLACEMENT, "running")
    ssh_server.stop()
    try:
        done = here("stop", folder, code=3)
    finally:
        ssh_server.start()
    assert f"{folder.name} was not stopped and goes on: cannot connect to gpu1" in done.stderr
    here("stop", folder)


def test_a_command_whose_files_were_not_sent_to_the_end_never_runs(
    here: Cli, ssh_server: Sshd, gpu1: User
) -> None:
    work = here.home / "work"
    work.mkdir()
    (work / "data").write_bytes(os.urandom(90_000_000))
    command = here.argv("--record", "--on", "ssh=gpu1", "--", "touch", "went")
    sender = subprocess.Popen(command, env=here.env, cwd=work, stderr=subprocess.DEVNULL)
    (part,) = until(lambda: [*gpu1.home.glob(".local/share/gpuwatch/studies/*/.work.*.tar")])
    sender.kill()
    sender.wait()
    until(lambda: not part.exists())
    folder = study_of(here)
    assert "starting" in here.read("sessions").stdout
    here("attach", "--plain", folder, code=3)
    known = placement(folder)
    assert (known["state"], known["hint"]) == ("failed", "start the study anew")
    assert "the working folder is not on gpu1" in str(known["reason"])
    assert not list(gpu1.home.rglob("went"))
