"""What is in a person's variables and on other programs' command lines stays out of sessions."""

from __future__ import annotations

import contextlib
import ctypes.util
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.cli.commands.test_record import STEPS
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid
from tests.reading import sessions
from tests.waiting import until

SITES = """
    HF GH GITHUB GITLAB WANDB OPENAI ANTHROPIC AZURE GOOGLE KAGGLE COMET NEPTUNE SLACK SENTRY MLFLOW
    VAULT DOCKER NPM PYPI TWINE DB REDIS MONGO PG MYSQL SSH LDAP KRB5 JUPYTER RAY
"""
KINDS = "TOKEN SECRET PASSWORD API_KEY APIKEY"
OTHERS = """
    AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN AWS_PROFILE TOKEN token Password
    passwd CREDENTIALS DATABASE_URL MASTER_ADDR MASTER_PORT GOOGLE_APPLICATION_CREDENTIALS NETRC
    PGPASSFILE JWT COOKIE PRIVATE_KEY NCCL_PROXY_PASSWORD NCCL_AUTH_TOKEN NCCL_CONF_FILE
    NCCL_SOCKET NCCL_COMM_ID NCCL_X NCCL_ CUDA_REGISTRY_KEY CUDA_HOME CUDA_PATH CUDA_CACHE_PATH
    CUDA_MPS_PIPE_DIRECTORY CUDA_ TORCH_HOME TORCH_LICENSE TORCH_HUB_LOGIN TORCH_LOGS
    TORCH_EXTENSIONS_DIR TORCH_PWD TORCH_TOKENS PYTORCH_KEY PYTORCH_USER PYTORCH_KERNEL_CACHE_PATH
    PYTORCH_BUILD_SECRETS OMP_SECRET MKL_KEY NVIDIA_API_KEY NVIDIA_LICENSE NGC_CLI_API_KEY
    nccl_debug CUDA.VISIBLE.DEVICES OMP_NUM_THREADS_ XOMP_NUM_THREADS APPTAINER_DOCKER_PASSWORD
    SINGULARITYENV_TOKEN A
"""
NAMES = [f"{site}_{kind}" for site in SITES.split() for kind in KINDS.split()] + OTHERS.split()
NAMES_IT_HAS = """\
import os, time
print(*os.environ, flush=True)
while not os.path.exists("seen"):
    time.sleep(0.05)
"""
"""And runs on until what is written meanwhile was looked into."""
NEVER_ENDS = "import time, sys; print(flush=True); time.sleep(600)"


@pytest.fixture
def hidden(cli: Cli, tmp_path: Path) -> dict[str, str]:
    """The variables, each with a value of its own, in the environment of what ``cli`` starts."""
    values = {name: f"hush-{number}-{secrets.token_hex(8)}-x" for number, name in enumerate(NAMES)}
    preloaded = tmp_path / f"hush-preload-{secrets.token_hex(8)}-x.so"
    shutil.copy(library(), preloaded)
    values["LD_PRELOAD"] = str(preloaded)
    cli.variables.update(values)
    values["LD_PRELOAD"] = preloaded.name
    return values


def library() -> Path:
    """One that does no harm where it is loaded into every process."""
    name = ctypes.util.find_library("m")
    assert name is not None
    ctypes.CDLL(name)
    maps = Path("/proc/self/maps").read_text()
    return next(Path(line.split()[-1]) for line in maps.splitlines() if line.endswith(name))


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another program on the GPU, with a secret on its command line."""
    argv = [sys.executable, "-uc", NEVER_ENDS, "--token=hush-argument-x"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield process
        process.kill()


class Search:
    """Looks for the values in files, and remembers what it looked into and what it found."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._pattern = re.compile(rb"hush-[\w-]+-x")
        self.seen: set[str] = set()
        self.found: set[tuple[str, bytes]] = set()

    def look(self) -> None:
        for folder in self._folders:
            for parent, _, names in os.walk(folder):
                for path in (Path(parent, name) for name in names):
                    with contextlib.suppress(OSError):
                        self.bytes(path.name, path.read_bytes())

    def bytes(self, name: str, data: bytes) -> None:
        self.seen.add(name)
        self.found |= {(name, each) for each in self._pattern.findall(data)}


def recorded(
    cli: Cli, search: Search, *arguments: object, meanwhile: frozenset[str] = frozenset()
) -> None:
    """Record to the end, looking into every file that there is ``meanwhile``."""
    (cli.home / "steps.py").write_text(f"{NAMES_IT_HAS}{STEPS.read_text()}")
    process = cli.start("--record", *arguments, "--", "python3", "steps.py", 40, 0.05)
    while process.poll() is None:
        search.look()
        if meanwhile <= search.seen:
            (cli.home / "seen").touch()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    out, err = process.communicate()
    assert process.returncode == 0, err
    search.bytes("standard output", out.encode())
    search.bytes("standard error", err.encode())


def shown(cli: Cli, search: Search, session: Path) -> None:
    """All that the session can be turned into; the study's summaries are there already."""
    for arguments in (
        ("show", session), ("show", "--format", "json", session), ("log", session),
        *(("export", "--what", what, session) for what in ("series", "steps", "events", "runs")),
        ("export", "--what", "log", "--format", "json", session),
    ):  # fmt: skip
        done = cli(*arguments)
        search.bytes(" ".join(map(str, arguments[:-1])), (done.stdout + done.stderr).encode())


def facts_of(session: Path) -> dict[str, str]:
    """What the session holds of its process's variables."""
    with contextlib.closing(sqlite3.connect(f"file:{session}?mode=ro", uri=True)) as file:
        rows = file.execute("SELECT key, value FROM fact WHERE key LIKE 'process.env.%'")
        return {key: json.loads(value) for key, value in rows}


def test_a_value_that_is_written_anywhere_is_found(hidden: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"\0" + hidden["HF_TOKEN"].encode() + b"\0")
    search = Search(tmp_path / "deep")
    search.look()
    assert search.found == {("file", hidden["HF_TOKEN"].encode())}


def test_no_variable_is_in_anything_that_is_written_of_a_bare_run(
    cli: Cli, hidden: dict[str, str], other_process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    driver = FakeDriver(tmp_path)
    driver.processes(0, (other_process.pid, 2**30, "compute"))
    cli.variables |= driver.variables
    cli.variables.update(CUDA_VISIBLE_DEVICES="0", NCCL_DEBUG="INFO")
    out = tmp_path / "out"
    search = Search(cli.home, out)
    assert len(hidden) > 200
    meanwhile = frozenset(("started.json", "shim.log"))
    recorded(cli, search, "--out", out, meanwhile=meanwhile)
    (session,) = sessions(out)
    shown(cli, search, session)
    search.look()
    assert search.found == set()
    wanted = {session.name, "plan.json", "summary.json", "summary.html", "summary.csv"}
    wanted |= {*meanwhile, "export --what log --format json"}
    assert wanted <= search.seen
    facts = facts_of(session)
    assert facts["process.env.CUDA_VISIBLE_DEVICES"] == uuid(0)
    assert facts["process.env.NCCL_DEBUG"] == "INFO"
    assert facts["process.env.LD_PRELOAD"] == "present"
    assert facts.keys() & {f"process.env.{name}" for name in hidden} == {"process.env.LD_PRELOAD"}
    assert f"{os.path.basename(sys.executable)} -c".encode() in session.read_bytes()


def test_the_log_of_a_detached_recorder_holds_no_variable(
    cli: Cli, hidden: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    search = Search(cli.home, out)
    recorded(cli, search, "--detach", "--out", out)

    def written() -> bool:
        search.look()
        return bool(list(out.glob("*/summary.html")))

    until(written, "no summary", 120)
    search.look()
    assert "recorder.log" in search.seen
    assert search.found == set()


@pytest.mark.docker
def test_no_variable_gets_into_a_container_or_what_is_written_of_it(
    cli: Cli, hidden: dict[str, str], small_image: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    search = Search(cli.home, out)
    recorded(cli, search, "--env", f"docker={small_image}", "--out", out)
    (session,) = sessions(out)
    shown(cli, search, session)
    search.look()
    assert search.found == set()
    facts = facts_of(session)
    assert facts["process.env.LD_PRELOAD"] == "absent"
    with SessionReader(session) as reader:
        found = set(reader.log()[0].text.split())
    settings = {"NCCL_SOCKET", "NCCL_COMM_ID", "NCCL_X"}
    assert "PATH" in found and found & hidden.keys() == settings, "neither secrets nor paths"
