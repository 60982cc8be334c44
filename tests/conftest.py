"""What every test may use: the real command line in a home of its own, and real engines."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import hypothesis
import pytest

from gpuwatch.cli import main

HERE = Path(__file__).parent

# Helpers that assert say as much of a failure as tests do.
pytest.register_assert_rewrite(*(f"tests.{each.parent.name}" for each in HERE.glob("*/*.py")))

from .engines import available
from .engines.fixtures import (  # noqa: F401 (fixtures of every test)
    docker_daemon,
    registry,
    small_image,
    small_root,
    torch_image,
    torch_root,
)
from .fake_nvml import FakeDriver
from .landing import is_landing
from .tiers import MARKS, every_size, is_system, long_recording, programs, simulations  # noqa: F401 (fixtures)

# Who started the tests may ignore these (nohup, a shell's &). They are ignored here then, too, but
# not inherited: a handler, unlike SIG_IGN, ends with exec.
for _signal in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, lambda number, frame: None)

# The terminal that the tests are started from is not the one that they draw in.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

# How long an example takes, and making it, is a matter of what else the machine does; which ones
# are tried is not: the same ones each time.
hypothesis.settings.register_profile(
    "gpuwatch",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("gpuwatch")

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "torchvision"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_system(item):
            item.add_marker(pytest.mark.system)
        if is_landing(item.nodeid):
            item.add_marker(pytest.mark.landing)
        if item.get_closest_marker("torch") and not HAS_TORCH:
            item.add_marker(pytest.mark.skip(reason="torch and torchvision are not installed"))
    # Files with long tests begin first, so that no process is left alone with one at the end.
    long = {item.path for item in items if MARKS & {mark.name for mark in item.iter_markers()}}
    items.sort(key=lambda item: item.path not in long)
    try:
        required = available.required()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    for engine in required:
        if reason := available.why_not(engine):
            raise pytest.UsageError(f"{available.REQUIRED} asks for {reason}")


TOLD = "told"
"""A property that a test records to have it at the end of the run's output."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, value in report.user_properties:
                if name == TOLD:
                    terminalreporter.write_line(value)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Here, and not by marks: so pytest tells of all tests without an engine in one line.
    for engine in available.ENGINES:
        if item.get_closest_marker(engine) and (reason := available.why_not(engine)):
            pytest.skip(reason)


@dataclass
class Cli:
    """Runs gpuwatch as a process of its own, with a home that is the test's alone."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("VIRTUAL_ENV", "CONDA_PREFIX", "NO_COLOR", "COLUMNS", "LINES")
            and not name.startswith(("XDG_", "GPUWATCH_"))
        }
        return {**kept, "HOME": str(self.home), **self.variables}

    def argv(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "gpuwatch", *map(str, arguments)]

    def __call__(
        self,
        *arguments: object,
        code: int | None = 0,
        timeout: float = 250,
        folder: Path | None = None,
        through: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end in ``folder``; ``code`` is its exit code, ``None`` for any; ``through``: a
        command that runs the one it is given, such as a shell that sets a limit first."""
        done = subprocess.run(
            [*through, *self.argv(*arguments)],
            env=self.env,
            cwd=folder or self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        if code is not None:
            assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def read(self, *arguments: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """As a call, in this process: for commands that only read, and a tenth of the time."""
        words, before = [*map(str, arguments)], os.getcwd()
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
            open(os.devnull) as nothing,
            mock.patch.multiple(sys, stdin=nothing, stdout=out, stderr=errors),
            mock.patch.dict(os.environ, self.env, clear=True),
        ):
            os.chdir(self.home)
            try:
                returned = main(words)
            finally:
                os.chdir(before)
            out.seek(0)
            errors.seek(0)
            done = subprocess.CompletedProcess(words, returned, out.read(), errors.read())
        if code is not None:
            assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def start(
        self, *arguments: object, folder: Path | None = None, through: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Start it in ``folder`` and return at once."""
        return subprocess.Popen(
            [*through, *self.argv(*arguments)],
            env=self.env,
            cwd=folder or self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test does in its own process leaves the state folder of whoever runs it alone."""
    with pytest.MonkeyPatch.context() as patch:  # not the test's own, which ends before others do
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def end_to_end(tmp_path: Path) -> Iterator[Cli]:
    """As ``cli``, for the one run from end to end that ``make test`` has."""
    yield from _cli(tmp_path)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    yield from _cli(tmp_path)


def _cli(tmp_path: Path) -> Iterator[Cli]:
    home = tmp_path / "home"
    home.mkdir()
    cli = Cli(home)
    yield cli
    # A test that failed half-way must not leave its workload running.
    state = home / ".local/state/gpuwatch"
    if any((*state.glob("runs/*"), *state.glob("placements/*"))):
        cli("stop", "--all", code=None)


@pytest.fixture
def driver(tmp_path: Path, cli: Cli) -> FakeDriver:
    """A driver with one GPU, which the command line finds."""
    folder = tmp_path / "driver"
    folder.mkdir()
    driver = FakeDriver(folder)
    cli.variables |= driver.variables
    return driver
