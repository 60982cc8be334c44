"""The screens of a run on another host, over real SSH, in a real terminal with its keys."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.places.sshd import Sshd
from tests.terminal import Pty
from tests.tmux import Pane

pytestmark = [pytest.mark.ssh, pytest.mark.timeout(600)]

STEPS = Path(__file__).parents[2] / "cli" / "steps.py"


def test_a_run_there_is_watched_stopped_and_replayed_as_one_here(
    cli: Cli, sshd: Sshd, tmp_path: Path
) -> None:
    user = sshd.add_user("gpu1")
    cli.variables |= sshd.variables
    project = cli.home / "project"
    project.mkdir()
    (project / "train.py").write_text(STEPS.read_text())
    given = [f"{name}={value}" for name, value in cli.env.items() if name not in ("TERM", "TMUX")]
    terminal, script = Pane(tmp_path, (150, 40)), tmp_path / "script"

    def start(*words: str) -> None:
        command = shlex.join(["env", "-i", "TERM=screen-256color", *given, *cli.argv(*words)])
        script.write_text(f"clear; cd {project}; {command}; echo code $?\n")
        terminal.type(f"sh {script}", "Enter")

    try:
        start("run", "--on", "ssh=gpu1", "--", "python3", "train.py", "100000", "0.2")
        terminal.wait("log line 3")
        shown = terminal.wait("▶ running")
        assert "train.py 100000 0.2 in bare on gpu1" in shown.splitlines()[0]
        assert "CPU utilization" in shown and "/100,000" in shown
        terminal.type("p")
        terminal.wait(f" {user.name}")
        terminal.type("p")
        terminal.wait("── log ──")
        terminal.type("l")
        terminal.wait("f follow")
        terminal.wait("log line 12")
        terminal.type("", "Escape")
        terminal.wait("── log ──")
        sshd.stop()
        terminal.wait("? ssh=gpu1 does not answer")
        sshd.start()
        terminal.wait("▶ running")
        terminal.type("", "Left", "Left")
        terminal.wait("◀")
        terminal.type("", "End")
        terminal.wait_gone("◀")
        terminal.type("s")
        terminal.wait("Stop it")
        terminal.type("", "Right", "Enter")
        terminal.wait("■ stopped")
        terminal.type("q")
        terminal.wait("code ")
        start("replay", "last", "--speed", "max")
        terminal.wait("■ stopped")
        terminal.type("l")
        terminal.wait("f follow")
        terminal.type("", "Escape")
        terminal.wait("── log ──")
        terminal.type("q")
        terminal.wait("code 0")
    finally:
        terminal.close()


@pytest.mark.parametrize(("key", "code", "sent"), [("n", 2, []), ("y", 0, [101_000_000])])
def test_a_large_folder_is_sent_once_a_person_says_so(
    cli: Cli, sshd: Sshd, key: str, code: int, sent: list[int]
) -> None:
    user = sshd.add_user(f"asked-{key}")
    cli.variables |= sshd.variables
    project = cli.home / "project"
    project.mkdir()
    with (project / "large").open("wb") as file:
        file.truncate(101_000_000)
    command = cli.argv("--record", "--on", f"ssh={user.host}", "--", "true")
    terminal = Pty(command, environment=cli.env, folder=project)
    try:
        terminal.wait(f"(96.3 MiB) would be sent to ssh={user.host}. Send them?")
        terminal.type(f"{key}\r")
        assert terminal.end(120) == code, terminal.text()
    finally:
        terminal.close()
    assert [path.stat().st_size for path in user.home.rglob("large")] == sent
    assert bool(list(cli.home.rglob("plan.json"))) == bool(sent)
