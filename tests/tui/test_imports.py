"""Modules that the screens load late or never."""

from __future__ import annotations

import subprocess
import sys

from .conftest import ROOT

HEAVY = ("numpy", "scipy", "pynvml", "psutil", "torch")
FORBIDDEN = ("gpuwatch.telemetry", "gpuwatch.recorder", "gpuwatch.runners")


def loaded_by(*modules: str) -> set[str]:
    source = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_live_and_home_load_nothing_heavy() -> None:
    loaded = loaded_by("gpuwatch.tui.app", "gpuwatch.tui.live.screen", "gpuwatch.tui.home.screen")
    assert not loaded & set(HEAVY)


def test_no_screen_loads_what_samples_or_launches() -> None:
    screens = ("live", "home", "new_run", "compare", "processes.page", "log")
    modules = [name if "." in name else f"{name}.screen" for name in screens]
    loaded = loaded_by("gpuwatch.tui.app", *(f"gpuwatch.tui.{name}" for name in modules))
    assert not [name for name in loaded if name.startswith(FORBIDDEN)]


def test_no_command_of_a_screen_loads_what_samples_or_launches() -> None:
    loaded = loaded_by(*(f"gpuwatch.cli.commands.{name}" for name in ("attach", "replay", "home")))
    assert not [name for name in loaded if name.startswith(FORBIDDEN)]
