"""Bad input: one line that says what, why and the hint; the exit code; never a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.session import schema
from tests.conftest import Cli
from tests.disks import mounted
from tests.reading import events, sessions, step_numbers
from tests.terminal import Pty, surroundings
from tests.waiting import until

from .commands.test_record import STEPS


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("gpuwatch: error: ")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--record", "mnist-cn"], "did you mean mnist-cnn"),
        (["run", "--detach", "true"], "without a screen: gpuwatch --record [--detach] WORKLOAD"),
        (["--record", "mnist-cnn", "--batch-size", "0"], "at least 1"),
        (["--record", "mnist-cnn", "--lr", "1", "--lr", "2"], "given twice; several values are a"),
        (["--record", "mnist-cnn", "--interval", "0.001"], "out of range"),
        (["--record", "mnist-cnn", "--interval", "soon"], "invalid time"),
        (["--record", "mnist-cnn", "--env", "podman"], "choose from: apptainer, bare"),
        (["--record", "mnist-cnn", "--env", "bare,x=1"], "unknown option"),
        (["--record", "mnist-cnn", "--env", "bare=image"], "takes no image"),
        (["--record", "mnist-cnn", "--", "sleep", "1"], "give one of them"),
        (["--record", "--env", "bare,python=/a/python", "--", "true"], "-- /a/python train.py"),
        (["--record", "--python", "/a/python", "--", "true"], "not of true"),
        (["noise", "--env", "bare,python=/a/python", "--", "true"], "call it in the command"),
        (["--record", "mnist-cnn", "--dcgm", "--counters"], "counters that ncu needs"),
        (["--record", "--steps", "5"], "without a workload"),
        (["--record", "--steps", "5", "--", "sleep", "1"], "after --"),
        (["--record", "--"], "no command after --"),
        (["mnist-cn"], "did you mean run mnist-cnn?"),
        (["run", "deepspeed", "train.py"], "it is not on the PATH: activate"),
        (["train.py"], "to run it: `gpuwatch run python train.py`"),
        (["--record", "--gpus", ","], "names no GPU"),
        (["--record", "--gpus", "0,banana"], "'banana' is no name of a GPU"),
        (["run"], "nothing to run"),
        (["mnist-cnn"], "gpuwatch run mnist-cnn"),
        (["resnet34"], "gpuwatch run torchvision:resnet34"),
        (["run", "resnet34"], "did you mean torchvision:resnet34"),
        (["shwo", "x"], "did you mean show"),
        (["--recrod", "python", "x.py"], "no option --recrod; did you mean --record?"),
        (["--plian"], "no option --plian; did you mean --plain?"),
        (["--thmee=light"], "no option --thmee=light; did you mean --theme?"),
        (["--record", "mnist-cnn", "--interval", "0"], "choose from 0.01 to 60 seconds"),
        (["--record", "mnist-cnn", "--duration", "0"], "more than 0"),
        (["run", "--set", "A=1,2", "true"], "to set a variable: --env bare,set=VAR=VALUE"),
        (["run", "--timeout", "3", "true"], "to end it after some time: --duration 90s"),
        (["run", "--price", "3", "--", "true"], "gpuwatch show last --price EUR"),
        (
            ["noise", "--plain"],
            "arguments: --plain; it has no plain form: omit --plain",
        ),
        (["sweep", "mnist-cnn", "--plain"], "it has no plain form: omit --plain"),
        (
            ["demo", "--plain"],
            "unrecognized arguments: --plain; it has no plain form: omit --plain",
        ),
        (["show", "--steps"], "see `gpuwatch show --help`"),
        (["show", "a", "b"], "several sessions: gpuwatch compare A B"),
        (["ls"], "did you mean sessions?"),
        (["sesions"], "did you mean sessions?"),
        (["version"], "did you mean --version?"),
        (["list"], "did you mean sessions?"),
        (["lsit"], "did you mean sessions?"),
        (["./lsit"], "no command './lsit'; see `gpuwatch --help`"),
        (["diff", "a", "b"], "did you mean compare?"),
        (["note"], "required: SESSION|STUDY;"),
        (["tag"], "required: SESSION|STUDY;"),
        (["completions"], "required: bash|zsh|fish;"),
        (["build"], "required: docker|apptainer;"),
        (["--plain", "rnu", "x"], "did you mean run"),
        (["--theme", "dark", "--plain", "replay", "nothing"], "no session 'nothing'"),
        (["--plain", "run"], "nothing to run"),
        (["--plain", "run", "--steps", "0", "--", "true"], "gpuwatch run --help"),
        ([], "needs a terminal"),
        (["show", "nothing"], "gpuwatch sessions"),
        *(
            ([command], "no session was recorded yet")
            for command in (
                "show",
                "log",
                "kernels",
                "roofline",
                "compare",
                "export",
                "report",
                "replay",
            )
        ),
        (["show", "./missing.gpuwatch"], "no such file"),
        (["compare", "./missing.gpuwatch"], "no such file"),
        (["stop"], "--all"),
        (["attach"], "nothing is running"),
    ],
)
def test_a_wrong_command_line_says_what_helps(cli: Cli, arguments: list[str], says: str) -> None:
    done = cli(*arguments, code=None)
    assert done.returncode in (2, 3), done.stderr
    assert says in one_line(done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize(
    "command", ["stop", "show", "delete", "report", "resume", "sessions", "note"]
)
def test_a_name_that_cannot_be_looked_at_is_none_of_a_session(
    cli: Cli, tmp_path: Path, command: str
) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    # Root may enter every folder: one that may not, as others.
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    for name in ("x" * 300, str(tmp_path / "closed" / "study")):
        done = cli(command, name, code=2, through=prefix if os.geteuid() == 0 else ())
        assert name in one_line(done.stderr)


def test_a_missing_command_is_said_before_anything_is_made(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--out", tmp_path / "out", "--", "no-such-program", code=3)
    assert "no command 'no-such-program'" in one_line(done.stderr)
    assert not (tmp_path / "out").exists()


def test_a_missing_script_is_said_before_anything_is_made(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--out", tmp_path / "out", "python3", "-u", "trian.py", code=3)
    assert f"there is no file {cli.home / 'trian.py'}; check its name" in one_line(done.stderr)
    (cli.home / "train.py").touch()
    done = cli("--record", "--out", tmp_path / "out", "python3", "-u", "trian.py", code=3)
    assert "trian.py; did you mean train.py?" in one_line(done.stderr)
    assert not (tmp_path / "out").exists()


def test_an_option_that_is_misspelt_is_told_the_one_that_is_like_it(cli: Cli) -> None:
    for words in (["--stpes", "4"], ["--stpes=100000"]):
        done = cli("run", "mnist-cnn", *words, code=2)
        assert f"{' '.join(words)}; did you mean --steps?" in one_line(done.stderr)
    done = cli("compare", "--zzz", code=2)
    assert "see `gpuwatch compare --help`" in one_line(done.stderr)


def test_help_is_a_command_too(cli: Cli) -> None:
    assert cli("help", "note").stdout == cli("note", "--help").stdout
    assert cli("help").stdout == cli("--help").stdout


def test_an_option_behind_a_program_that_may_be_meant_for_gpuwatch_is_told(cli: Cli) -> None:
    (cli.home / "a.py").touch()
    words = ("python3", "a.py", "--blocks", "5", "--steps", "3")
    told = "gpuwatch: --blocks goes to a.py; for gpuwatch write it before python3"
    assert told in cli("--record", "--plan", *words).stderr.splitlines()
    assert "goes to" not in cli("--record", "--plan", "--", *words).stderr


def test_a_python_without_torch_names_the_command_that_installs_it(
    cli: Cli, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    python = tmp_path / "v" / "bin" / "python"
    done = cli("--record", "mnist-cnn", "--python", python, code=3)
    assert f"{python} -m pip install torch torchvision" in one_line(done.stderr)


def test_gpus_are_refused_where_there_are_none(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--gpus", "0", "--out", tmp_path / "out", "--", "sleep", "1", code=3)
    assert "--gpus: " in done.stderr and "; leave --gpus out" in one_line(done.stderr)


def test_json_is_short_for_the_format_wherever_there_is_that(cli: Cli) -> None:
    for words in (["sessions"], ["run", "--plan", "mnist-cnn"]):
        assert json.loads(cli(*words, "--json").stdout)["schema"]


def test_a_folder_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = cli("--record", "--out", tmp_path / "file" / "x", "--", "true", code=2)
    assert "cannot write" in one_line(done.stderr) and "--out" in done.stderr
    done = cli("--record", "--detach", "--out", tmp_path / "file", "--", "true", code=2)
    assert "cannot write" in done.stderr


def test_what_is_no_session_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.gpuwatch"
    path.write_bytes(b"no database")
    assert "is not a gpuwatch session" in one_line(cli("show", path, code=2).stderr)
    with sqlite3.connect(tmp_path / "y.gpuwatch") as db:
        db.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={schema.VERSION + 1}")
        db.execute("CREATE TABLE x (a)")
    done = cli("export", tmp_path / "y.gpuwatch", code=2)
    assert "newer one" in one_line(done.stderr)
    listed = cli("sessions", tmp_path).stdout
    assert listed.count("unreadable") == 2


def test_a_closed_pipe_is_no_error(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--quiet", "--duration", "1s", "--interval", "0.01", "--out", tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*/*.gpuwatch")
    head = subprocess.run(
        f"{sys.executable} -m gpuwatch export {path} | head -n 1",
        shell=True, env=cli.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert head.stdout.startswith("seconds,") and head.stderr == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    with mounted(tmp_path / "small", "size=400k") as folder:
        yield folder


def test_a_disk_that_is_full_from_the_start(cli: Cli, small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * 400 * 1024)
    done = cli("--record", "--out", small_disk, "--", "true", code=2)
    assert "--out" in one_line(done.stderr)


def test_a_disk_that_fills_up_loses_nothing_once_there_is_room(cli: Cli, small_disk: Path) -> None:
    process = cli.start("--record", "--out", small_disk, "--", sys.executable, STEPS, 300, 0.02)
    until(lambda: sessions(small_disk) and sessions(small_disk)[0].stat().st_size > 40_000)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert process.stderr is not None
    told = ""
    while "cannot write" not in told:
        told = process.stderr.readline()
        assert told, "it never complained"
    filler.unlink()
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    (path, *_) = sessions(small_disk)
    assert step_numbers(path) == list(range(1, 301))
    assert events(path, "storage")


def test_a_full_disk_under_the_state_folder_is_told_as_such(cli: Cli, small_disk: Path) -> None:
    cli.variables["XDG_STATE_HOME"] = str(small_disk)
    with (small_disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    told = cli("--record", "--quiet", "--out", cli.home / "out", "--", "true", code=2).stderr
    assert f"cannot write to {small_disk}/gpuwatch/runs: No space" in one_line(told)
    assert "XDG_STATE_HOME" in one_line(told)


@pytest.mark.parametrize(
    ("variables", "text"),
    [({"LC_ALL": "C"}, "x1 u-s~x"), ({"LC_ALL": "", "LANG": "C.UTF-8"}, "x1 µ–s…x")],
)
def test_a_terminal_gets_what_its_locale_can_show(variables: dict[str, str], text: str) -> None:
    terminal = Pty(
        [sys.executable, "-m", "gpuwatch", "show", "x1 µ–s…x"],
        environment=surroundings(**variables),
    )
    try:
        terminal.wait(text)
        assert terminal.sent.isascii() is text.isascii()
    finally:
        terminal.hang_up()
        terminal.process.wait()
