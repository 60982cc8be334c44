"""Run ``make test`` with the oldest and the newest versions of Python and of every dependency.

``python -m tests.versions [DIRECTORY]``: makes a virtual environment for each, without torch, whose
tests are for ``make test-all``; prints a line for each and exits with 1 if one failed. A Python
that is not installed is skipped by name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True)
class Versions:
    python: str
    lowest: bool
    """Of each dependency the lowest version allowed, else the newest."""

    @property
    def name(self) -> str:
        return f"python{self.python}-{'lowest' if self.lowest else 'newest'}"


def lowest() -> list[str]:
    """A constraint to the lowest release series allowed, for each package that gpuwatch needs."""
    constraints = []
    for requirement in map(Requirement, requires("gpuwatch-tui") or ()):
        least = [each.version for each in requirement.specifier if each.operator == ">="]
        if least and (requirement.marker is None or "extra" not in str(requirement.marker)):
            constraints.append(f"{requirement.name}=={least[0]}.*")
    return constraints


def tested(versions: Versions, folder: Path) -> str:
    """``passed`` or what failed, in a new environment below ``folder``."""
    interpreter = shutil.which(f"python{versions.python}")
    if interpreter is None or subprocess.run([interpreter, "-c", ""], check=False).returncode:
        return f"skipped: there is no python{versions.python}"
    home = folder / versions.name
    python = home / "bin" / "python"
    subprocess.run([interpreter, "-m", "venv", "--clear", home], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if versions.lowest:
        constraints = folder / "lowest.txt"
        constraints.write_text("\n".join(lowest()))
        pip += ["--constraint", constraints]
    if subprocess.run([*pip, "-e", f"{ROOT}[dev]"], check=False).returncode:
        return "failed: the dependencies cannot be installed together"
    command = [python, "-m", "pytest", "-n", "auto", "--dist", "loadfile", "-m", "not system", "-q"]
    done = subprocess.run(command, cwd=ROOT, check=False)
    return "passed" if done.returncode == 0 else "failed"


def main(arguments: list[str]) -> int:
    """Returns 1 if one of them failed."""
    folder = Path(arguments[0]) if arguments else Path(tempfile.mkdtemp(prefix="versions-"))
    found = [python for python in PYTHONS if shutil.which(f"python{python}")]
    matrix = [Versions(PYTHONS[0], lowest=True), Versions(found[-1], lowest=False)]
    results = {versions.name: tested(versions, folder) for versions in matrix}
    for name, result in results.items():
        print(f"{name}: {result}")
    return int(any(result.startswith("failed") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
