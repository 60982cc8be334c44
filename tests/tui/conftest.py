"""Fixtures of the screen tests: sessions and fake commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui import commands
from tests.waiting import until

from .sessions import Script, write

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def plain_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The same terminal for every test, independent of the real one, and nothing recorded yet."""
    home = tmp_path_factory.mktemp("home")
    for name in ("data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(home / name))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORFGBG", raising=False)
    monkeypatch.setattr("gpuwatch.tui.home.screen.here", lambda: "me@gpu7  14:05 CET")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


SECRET = "--token=correct-horse"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that does nothing."""
    words = [sys.executable, "-c", "import time; time.sleep(600)", "--config", "7b.yaml", SECRET]
    process = subprocess.Popen(words, cwd="/usr", env={**os.environ, "API_KEY": "hunter2"})
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., Path]:
    """Makes session files; the arguments are fields of ``Script``."""

    def make(file: str = "01-bare", **fields: Any) -> Path:
        return write(tmp_path / "study" / f"{file}.gpuwatch", Script(**fields))

    return make


class Fake:
    """Replaces the commands that screens run by a script with prepared answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.list()
        self.finds(environment("bare"))
        part = {"cases": [{"label": "mnist-cnn"}], "environments": [{"label": "bare"}]}
        self.plans(parts=[part], runs=[{"environment": 0}], seconds=42.0)

    def list(self, *entries: dict[str, Any], studies: Sequence[dict[str, Any]] = ()) -> None:
        text = json.dumps({"schema": 1, "sessions": [*entries], "studies": [*studies]})
        (self.folder / "sessions.json").write_text(text)

    def records(self, path: Path) -> None:
        (self.folder / "record.txt").write_text(str(path))

    def finds(self, *environments: dict[str, Any], gpus: int = 0, torch: str = "") -> None:
        """What doctor finds: environments as :func:`environment` gives them, and GPUs, of which
        ``torch`` says why the first cannot be used."""
        card = {"name": "NVIDIA H100", "memory_bytes": 85e9, "torch": None}
        listed: list[dict[str, Any]] = [{"id": f"gpu{n}", **card} for n in range(gpus)]
        if torch:
            listed[0]["torch"] = {"text": torch, "hint": "install another"}
        why = None if gpus else {"text": "no NVIDIA GPU is seen"}
        report = {"environments": [*environments], "gpus": listed, "gpu_unavailable": why}
        (self.folder / "doctor.json").write_text(json.dumps(report))

    def plans(self, **fields: Any) -> None:
        """Set the answer to ``--plan``."""
        (self.folder / "plan.json").write_text(json.dumps({"schema": 1, **fields}))

    def refuses(self, error: str) -> None:
        (self.folder / "record.err").write_text(error)

    def holds(self, command: str) -> None:
        """Block commands that begin with ``command``, except dry runs, until :meth:`goes_on`."""
        (self.folder / "held.txt").write_text(command)

    def goes_on(self) -> None:
        (self.folder / "held.txt").unlink(missing_ok=True)

    def done(self, command: str, times: int) -> None:
        """Wait until ``times`` blocked commands that begin with ``command`` have ended."""
        file = self.folder / "done.txt"
        until(lambda: sum(each.startswith(command) for each in _lines(file)) >= times)

    @property
    def asked(self) -> list[list[str]]:
        file = self.folder / "asked.txt"
        return (
            [line.split("\x1f") for line in file.read_text().splitlines()] if file.exists() else []
        )


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def environment(text: str, trouble: str = "", *, with_gpu: str = "") -> dict[str, Any]:
    """One environment in the format of ``gpuwatch doctor --format json``."""

    def answer(why: str) -> dict[str, Any]:
        return {"problems": [{"code": "x", "text": why, "hint": f"fix {text}"}] if why else []}

    states = {"without_gpu": answer(trouble), "with_gpu": answer(with_gpu or trouble)}
    return {"env": text, "engine": f"Engine of {text.partition('=')[0]}", **states}


def entry(path: Path, **more: Any) -> dict[str, Any]:
    """One session in the format of ``gpuwatch sessions --format json``."""
    return {
        "id": path.stem,
        "path": str(path),
        "status": "finished",
        "workload": "mnist-cnn",
        "environment": "bare",
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 90.0,
        "elapsed_seconds": 90.0,
        "step_median_seconds": 0.00512,
        "samples_per_second": 12668.0,
        "study": "study",
        **more,
    }


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    folder = tmp_path / "fake"
    folder.mkdir()
    monkeypatch.setenv("FAKE_FOLDER", str(folder))
    path = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    monkeypatch.setattr(commands, "PREFIX", (sys.executable, "-m", "tests.tui.fake_gpuwatch"))
    return Fake(folder)
