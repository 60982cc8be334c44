"""What people install: archive and wheel hold every room; a copy without links fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("programs")

ROOT = Path(__file__).parent.parent
ROOMS = ("tui", "runners", "workloads", "recipes")
FILES = ("Dockerfile", "recorded_h200.gpuwatch")
ENDINGS = (".py", ".tcss", ".css", ".html", ".js", ".typed", ".def", ".toml", ".sh", ".yaml")


def copy_of_the_project(target: Path) -> Path:
    """The files that git tracks or would track, links kept."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        source = ROOT / name
        if source.is_symlink() or source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return target


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The names in the source archive, and in the wheel that was built from it."""
    folder = copy_of_the_project(tmp_path_factory.mktemp("project"))
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(next((folder / "dist").glob("*.tar.gz"))) as archive:
        in_sdist = {member.name.partition("/")[2] for member in archive if not member.isdir()}
    with zipfile.ZipFile(next((folder / "dist").glob("*.whl"))) as wheel:
        in_wheel = set(wheel.namelist())
    return in_sdist, in_wheel


def sources() -> set[str]:
    """Every module and data file of the package, by its name in the wheel."""
    package = ROOT / "src" / "gpuwatch"
    found = set()
    for path in [*package.rglob("*"), *(p for room in ROOMS for p in (package / room).rglob("*"))]:
        known = path.name in FILES or path.suffix in ENDINGS
        if known and "__pycache__" not in path.parts:
            found.add(f"gpuwatch/{path.relative_to(package).as_posix()}")
    return found


def test_the_wheel_holds_every_file_of_the_package(built: tuple[set[str], set[str]]) -> None:
    in_wheel = {name for name in built[1] if ".dist-info/" not in name}
    assert in_wheel == sources()


def test_the_source_archive_holds_the_rooms(built: tuple[set[str], set[str]]) -> None:
    for name in sources():
        assert f"src/{name}" in built[0]


def test_a_copy_without_links_fails_loudly(tmp_path: Path) -> None:
    folder = copy_of_the_project(tmp_path)
    for room in ROOMS:
        link = folder / "src" / "gpuwatch" / room
        link.unlink()
        link.write_text(f"../../{room}")
    done = build(folder)
    assert done.returncode != 0
    assert "lost its symbolic links" in done.stdout + done.stderr
