"""``gpuwatch completions SHELL``: bash, zsh and fish are asked what they complete."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from argcomplete.shell_integration import shellcode

from gpuwatch.cli.commands.completions import SHELLS
from gpuwatch.cli.completion import session_names
from gpuwatch.cli.dispatch import COMMANDS
from gpuwatch.session.study import labels
from gpuwatch.workloads.names import BUILT_IN
from tests.conftest import Cli
from tests.terminal import Pty
from tests.tui.sessions import Script, finished, write

from .test_errors import one_line

pytestmark = pytest.mark.usefixtures("programs")

Ask = Callable[[str], list[str]]

_BASH = r"""
source {script}
gpuwatch() {{
    if [[ -n $_ARGCOMPLETE ]]; then command gpuwatch; else printf '<%s>' "$@"; echo '<end>'; fi
}}
bind '"\t": insert-completions'
bind 'set enable-bracketed-paste off'
"""
_ZSH = r"""
autoload -Uz compinit && compinit -u -D
source {script}
gpuwatch() {{
    if [[ -n $_ARGCOMPLETE ]]; then command gpuwatch; else printf '<%s>' "$@"; echo '<end>'; fi
}}
zstyle ':completion:*' completer _all_matches _complete
zstyle ':completion:*' insert yes
zstyle ':completion:*' accept-exact false
unsetopt auto_param_slash zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste
bindkey '^I' complete-word
"""
"""All completions are put into the command line, and the command prints what it is given."""


class Shell(Pty):
    """A shell that a person types into."""

    def __init__(self, name: str, setup: Path, folder: Path, env: dict[str, str]) -> None:
        start = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[name]
        variables = {**env, "TERM": "dumb", "PS1": "$ "}
        super().__init__([name, *start], (4000, 24), variables, folder=folder)
        self._say(f"source {setup}; echo re''ady\n", "ready")

    def complete(self, line: str) -> list[str]:
        """The words of ``line`` with all completions of its last one."""
        said = self._say(f"{line}\t\n", "<end>")
        found = re.findall(rb"<([^<>]*)>", said[said.rindex(b"\n", 0, said.rindex(b"<end>")) :])
        return [word.decode() for word in found[:-1]]

    def _say(self, text: str, until: str) -> bytes:
        start = len(self.sent)
        self.type(text)
        return self.wait(until, start=start)[start:]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        (folder / shell).write_text(shellcode(["gpuwatch"], shell=shell))
    return folder


@pytest.fixture(scope="module")
def homes() -> list[Path]:
    """Of the shells that were asked, the one of now last."""
    return []


@pytest.fixture(scope="module", params=SHELLS)
def ask(
    request: pytest.FixtureRequest,
    scripts: Path,
    homes: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> object:
    """Completes a line in each shell; two studies are saved, and a few files are here."""
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: apt install {name}")
    home = tmp_path_factory.mktemp("home")
    homes.append(home)
    folder = home / "here"
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    for file in ("image.sif", "mine.toml", "one.gpuwatch", ".bash_history"):
        (folder / file).touch()
    env = {
        "PATH": os.pathsep.join([str(program(home / "bin")), os.environ["PATH"]]),
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "studies"),
        "LC_ALL": "C.UTF-8",
    }
    record(home / "studies/gpuwatch/studies", env)
    if name == "fish":
        yield fish(scripts / name, folder, env)
        return
    setup = scripts / f"{name}.setup"
    setup.write_text({"bash": _BASH, "zsh": _ZSH}[name].format(script=scripts / name))
    shell = Shell(name, setup, folder, env)
    yield lambda line: new_words(shell.complete(f"gpuwatch {line}"), line)
    shell.close()


def program(folder: Path) -> Path:
    """A folder with the command ``gpuwatch`` in it."""
    folder.mkdir()
    command = folder / "gpuwatch"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gpuwatch "$@"\n')
    command.chmod(0o755)
    return folder


def record(home: Path, env: dict[str, str]) -> None:
    """Two studies, listed once; one has a name and tags, and somebody gave the other bad ones."""
    for at, study in enumerate(("morning-1", "evening-2")):
        meta = {"session": {"id": f"4f{at}a", "label": study}, **finished(seconds=2)}
        write(home / study / "01-bare.gpuwatch", Script(seconds=2, alive=False, meta=meta))
    good = labels.Label("before the update", ("h100", "fast"))
    labels.change(home / "morning-1", "01-bare.gpuwatch", lambda _: good)
    bad = labels.Label("bad $(touch ~/ran) `touch ~/ran`", ("x;$(touch${IFS}ran)",))
    labels.change(home / "evening-2", "01-bare.gpuwatch", lambda _: bad)
    command = [sys.executable, "-m", "gpuwatch", "sessions"]
    subprocess.run(command, env={**os.environ, **env}, check=True, capture_output=True)


def new_words(words: list[str], line: str) -> list[str]:
    """What stands in place of the last word of ``line``."""
    return words[len(shlex.split(f"{line}.")) - 1 :]


def fish(path: Path, folder: Path, env: dict[str, str]) -> Ask:
    def complete(line: str) -> list[str]:
        done = subprocess.run(
            [
                "fish",
                "--no-config",
                "-c",
                f"source {path}; complete -C $argv[1]",
                f"gpuwatch {line}",
            ],
            capture_output=True,
            text=True,
            cwd=folder,
            env=env,
            timeout=60,
            check=True,
        )
        assert done.stderr == ""
        return [each.partition("\t")[0] for each in done.stdout.splitlines()]

    return complete


def test_commands_are_completed(ask: Ask) -> None:
    assert {*COMMANDS} - {"--record"} == {*ask("")} - {"--record"}
    assert ask("att") == ["attach"]
    assert "--record" in ask("--rec")


def test_flags_of_a_command_are_completed(ask: Ask) -> None:
    assert ask("run --order-s") == ["--order-seed"]
    assert ask("--record --deta") == ["--detach"]
    assert ask("run mnist-cnn --env bare --batch-s") == ["--batch-size"]
    assert {"--table", "--limit", "--format"} <= {*ask("kernels --")}
    assert "--detach" not in ask("show --")


def test_choices_are_completed_also_behind_an_equals_sign(ask: Ask) -> None:
    dtypes = ["bfloat16", "float16", "float32", "fp8", "tf32"]
    assert sorted(ask("run mnist-cnn --dtype ")) == dtypes
    assert ask("run --dtype=bf") == ["--dtype=bfloat16"]
    assert sorted(ask("build ")) == ["apptainer", "docker"]
    assert sorted(ask("completions ")) == sorted(SHELLS)


def test_workloads_presets_and_environments_are_completed(ask: Ask) -> None:
    assert {*BUILT_IN} <= {*ask("run ")}
    assert {*BUILT_IN} <= {*ask("--record --steps 5 --quick ")}
    assert ask("run sentiment-r") == ["sentiment-rnn"]
    assert "multi-environment" in ask("study ") and "mine.toml" in ask("study ")
    assert {"bare", "docker=", "apptainer"} <= {*ask("run mnist-cnn --env ")}
    assert ask("run mnist-cnn --env apptainer=im") == ["apptainer=image.sif"]


def test_sessions_are_completed_by_name_tag_study_identifier_and_file(ask: Ask) -> None:
    offered = [each.rstrip("/") for each in ask("show ")]
    names = ["before the update", "tag:h100", "tag:fast", "last"]
    assert {*names, "morning-1", "evening-2", "4f0a", "4f1a", "one.gpuwatch", "sub"} <= {*offered}
    assert not {".bash_history", "mine.toml", "image.sif"} & {*offered}
    assert ask("compare tag:h") == ["tag:h100"]
    assert ask("show bef") == ["before the update"]
    assert ask(r"show before\ the\ u") == ask("show before\\ ") == ["before the update"]
    assert ask("show 4f1") == ["4f1a"]
    assert ask("show ./o") == ["./one.gpuwatch"]
    assert ask("compare morning-1 eve") == ["evening-2"]
    assert ask("attach --record mor") == ["morning-1"]
    assert "last" not in ask("rename morning-1 ")


def test_nothing_in_a_name_from_elsewhere_is_executed(ask: Ask, homes: list[Path]) -> None:
    (name,) = ask("show ba")
    assert name.startswith("bad $(touch ") and name.endswith("`")
    assert ask("show tag:x") == ["tag:x;$(touch${IFS}ran)"]
    assert not list(homes[-1].rglob("ran"))


def test_folders_and_files_are_completed(ask: Ask) -> None:
    assert [each.rstrip("/") for each in ask("run mnist-cnn --out s")] == ["sub"]
    assert ask("import mine") == ["mine.toml"]


def test_behind_two_dashes_another_program_is_completed(ask: Ask) -> None:
    assert "python3" in ask("run -- python")
    assert "mine.toml" in ask("run --env bare -- cat mi")
    assert ask("run -- ./mi") == ["./mine.toml"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed: apt install zsh")
def test_zsh_finds_the_script_in_its_fpath(tmp_path: Path) -> None:
    (tmp_path / "_gpuwatch").write_text(shellcode(["gpuwatch"], shell="zsh"))
    setup = tmp_path / "setup"
    setup.write_text(f"fpath=({tmp_path} $fpath)\n" + _ZSH.format(script="/dev/null"))
    path = os.pathsep.join([str(program(tmp_path / "bin")), os.environ["PATH"]])
    env = {"PATH": path, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    shell = Shell("zsh", setup, tmp_path, env)
    for _ in range(2):  # the first Tab loads it
        assert shell.complete("gpuwatch run --order-s") == ["run", "--order-seed"]
    shell.close()


def test_a_damaged_cache_costs_only_the_identifiers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    assert session_names() == []
    study = tmp_path / "DATA/gpuwatch/studies/one"
    study.mkdir(parents=True)
    (study / "01-bare.gpuwatch").touch()
    cache = tmp_path / "CACHE/gpuwatch/sessions.json"
    cache.parent.mkdir(parents=True)
    whole = {"files": {str(study / "01-bare.gpuwatch"): [[1], {"id": "4f"}]}}
    cache.write_text(json.dumps(whole))
    assert session_names() == ["last", "one", "4f"]
    for damage in ("", "{", "[]"):
        cache.write_text(damage)
        assert session_names() == ["last", "one"], damage


def test_a_shell_that_is_not_known_is_one_line(cli: Cli) -> None:
    assert "choose from" in one_line(cli("completions", "tcsh", code=2).stderr)


def test_help_says_where_a_script_belongs(cli: Cli) -> None:
    told = cli("completions", "--help").stdout
    for folder in ("bash-completion/completions/gpuwatch", "_gpuwatch", "fish/completions"):
        assert folder in told
