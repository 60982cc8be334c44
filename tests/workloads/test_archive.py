from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import gpuwatch.workloads
from gpuwatch.workloads.archive import build

pytestmark = pytest.mark.usefixtures("programs")

SOURCE = Path(gpuwatch.workloads.__file__).resolve().parent


def copy_with_mtime(target: Path, mtime: int, mode: int) -> Path:
    shutil.copytree(SOURCE, target)
    for path in target.rglob("*.py"):
        path.chmod(mode)
        os.utime(path, (mtime, mtime))
    return target


def test_copies_with_other_times_and_permissions_give_the_same_archive(tmp_path: Path) -> None:
    old = copy_with_mtime(tmp_path / "a", 1_000_000_000, 0o644)
    new = copy_with_mtime(tmp_path / "b", 1_700_000_000, 0o600)
    (new / "__pycache__").mkdir(exist_ok=True)
    (new / "__pycache__" / "names.cpython-311.pyc").write_bytes(b"bytecode")
    first, second = tmp_path / "1.pyz", tmp_path / "2.pyz"
    assert build(first, old) == build(second, new) == build(tmp_path / "3.pyz")
    assert first.read_bytes() == second.read_bytes()


def test_the_hash_is_the_files_and_the_file_is_read_only(tmp_path: Path) -> None:
    target = tmp_path / "new" / "workloads.pyz"
    digest = build(target)
    assert digest == hashlib.sha256(target.read_bytes()).hexdigest()
    assert target.stat().st_mode & 0o777 == 0o444
    assert [path.name for path in target.parent.iterdir()] == ["workloads.pyz"]


def test_an_archive_that_is_there_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "workloads.pyz"
    assert build(target) == build(target)


def test_a_changed_source_changes_the_hash(tmp_path: Path) -> None:
    source = copy_with_mtime(tmp_path / "a", 0, 0o644)
    before = build(tmp_path / "1.pyz", source)
    with (source / "names.py").open("a") as file:
        file.write("# changed\n")
    assert build(tmp_path / "2.pyz", source) != before


def test_the_archive_holds_sorted_python_files_and_no_bytecode(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
    assert names == sorted(names)
    assert all(name.endswith(".py") for name in names)
    assert {"__main__.py", "workloads/main.py", "workloads/tasks/gcn.py"} <= set(names)


def test_a_folder_of_ours_is_not_on_the_workloads_path(archive: Path) -> None:
    code = (
        "import runpy, sys; sys.argv = ['x', '--list']\ntry:\n runpy.run_path(sys.orig_argv[-1], "
    )
    code += "run_name='__main__')\nexcept SystemExit: pass\nprint([m for m in sys.modules "
    code += "if m.startswith('gpuwatch')])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(archive)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
