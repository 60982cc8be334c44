"""Files that gpuwatch writes: whole or not at all, through no link, and by one writer."""

from __future__ import annotations

import ast
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.core.errors import StorageError
from gpuwatch.session.writing.store import SessionStore
from tests.conftest import Cli

from .test_shells import ROOT, files

RECORDED = Path(__file__).parents[1] / "data" / "kept-0.1.0" / "study" / "01-bare-1.gpuwatch"
WRITING = {
    "roofline": ("roofline", RECORDED, "--format", "json", "--out"),
    "export, CSV": ("export", RECORDED, "--out"),
    "export, Parquet": ("export", RECORDED, "--format", "parquet", "--out"),
    "compare": ("compare", RECORDED, "OTHER", "--format", "json", "--out"),
}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    copy = tmp_path / "other.gpuwatch"
    copy.write_bytes(RECORDED.with_name("02-bare-2.gpuwatch").read_bytes())
    return copy


@pytest.fixture(params=WRITING)
def writing(request: pytest.FixtureRequest, other: Path) -> list[object]:
    """A command that writes the file which is named behind it."""
    return [other if word == "OTHER" else word for word in WRITING[request.param]]


def test_a_planted_link_is_not_followed(cli: Cli, tmp_path: Path, writing: list[object]) -> None:
    treasure, out = tmp_path / "treasure", tmp_path / "out"
    treasure.write_text("gold")
    for target in (treasure, tmp_path / "nowhere"):
        out.symlink_to(target)
        done = cli(*writing, out, code=2)
        (line,) = done.stderr.splitlines()
        assert str(out) in line and ("is a link" in line or "already exists" in line)
        assert out.is_symlink() and treasure.read_text() == "gold"
        assert not (tmp_path / "nowhere").exists()
        out.unlink()


def test_a_file_that_is_there_is_not_overwritten(
    cli: Cli, tmp_path: Path, writing: list[object]
) -> None:
    mine = tmp_path / "train.py"
    mine.write_text("my program")
    told = cli(*writing, mine, code=2).stderr
    assert f"{mine} already exists; choose another name, or remove it" in told
    assert mine.read_text() == "my program"


def test_a_link_that_is_planted_in_the_meantime_is_not_followed(cli: Cli, tmp_path: Path) -> None:
    treasure, out = tmp_path / "treasure", tmp_path / "out.json"
    treasure.write_text("gold")
    over = threading.Event()

    def plant() -> None:
        while not over.is_set():
            for each in tmp_path.glob("out*"):
                if not each.is_symlink():
                    each.unlink(missing_ok=True)
            (tmp_path / "planted").unlink(missing_ok=True)
            (tmp_path / "planted").symlink_to(treasure)
            (tmp_path / "planted").replace(out)

    planting = threading.Thread(target=plant)
    planting.start()
    try:
        for _ in range(5):
            cli("roofline", RECORDED, "--format", "json", "--out", out, code=None)
            assert treasure.read_text() == "gold"
    finally:
        over.set()
        planting.join()


def test_a_new_file_appears_whole_and_nothing_is_left_beside_it(
    cli: Cli, tmp_path: Path, writing: list[object]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    # As long as a name can be.
    out = folder / ("x" * 255)
    cli(*writing, out)
    assert out.stat().st_size > 10 and [*folder.iterdir()] == [out]
    limited = ("sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh")
    (line,) = cli(*writing, folder / ("x" * 256), code=2).stderr.splitlines()
    assert "cannot write" in line and "File name too long" in line
    small = folder / "small"
    (line,) = cli(*writing, small, code=2, through=limited).stderr.splitlines()
    assert "cannot write" in line and [*folder.iterdir()] == [out]


def test_a_pipe_and_the_null_device_are_written_to_as_they_are(cli: Cli, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    drawn = Path(__file__).parents[1] / "data" / "h200" / "train.gpuwatch"
    for command, session in (("export", RECORDED), ("roofline", drawn)):
        words = (command, session, "--out")
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reading:
            cli(*words, pipe)
            assert reading.stdout is not None and len(reading.stdout.read()) > 10
        cli(*words, "/dev/null")
        done = cli(*words, "/dev/stdout", through=("sh", "-c", '"$@" | cat', "sh"))
        assert len(done.stdout) > 10
    assert pipe.is_fifo() and Path("/dev/null").is_char_device()


def test_standard_output_that_is_a_file_is_not_replaced_by_name(cli: Cli, tmp_path: Path) -> None:
    # As /dev/stdout is, which a test had better not try.
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    words = ("export", RECORDED, "--out", tmp_path / "stdout")
    into = ("sh", "-c", f'"$@" > {tmp_path}/file', "sh")
    assert "is a link" in cli(*words, through=into, code=2).stderr
    assert (tmp_path / "stdout").is_symlink() and (tmp_path / "file").read_text() == ""


@pytest.mark.parametrize("name", ["{}-journal", ".{}.new"])
def test_a_link_where_a_session_is_made_is_not_followed(tmp_path: Path, name: str) -> None:
    treasure = tmp_path / "treasure"
    treasure.write_text("gold")
    path = tmp_path / "01-bare.gpuwatch"
    (tmp_path / name.format(path.name)).symlink_to(treasure)
    with contextlib.suppress(StorageError):
        SessionStore.create(path, (), ()).close()
    assert treasure.read_text() == "gold"


_ANOTHER = {
    "write_text",
    "write_bytes",
    "touch",
    "mkstemp",
    "NamedTemporaryFile",
    "TemporaryFile",
    "memfd_create",
    "FileHandler",
}
"""Names of functions and methods that make or fill files."""
_MAKING = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")

MAY_WRITE = {
    "src/gpuwatch/core/output.py": "the writer",
    "src/gpuwatch/session/writing/store.py": "SQLite writes sessions; made by output.private_file",
    "src/gpuwatch/session/reading/bounded_connection.py": "SQLite reads sessions",
    "src/gpuwatch/session/reading/open.py": "a journal that must be new",
    "src/gpuwatch/session/study/labels.py": "locks the labels, through no link; output writes them",
    "src/gpuwatch/recorder/observer.py": "appends to a log, by output.private_file; /dev/null",
    "src/gpuwatch/recorder/run_folder.py": "a lock and a mark in the run's private folder",
    "src/gpuwatch/cli/calibration_run.py": "in a fresh private folder",
    "src/gpuwatch/cli/commands/demo.py": "in a fresh private folder",
    "src/gpuwatch/cli/options/notifying.py": "appends to a log, by output.private_file",
    "src/gpuwatch/cli/say.py": "/dev/null",
    "src/gpuwatch/cli/place/sending.py": "appends to a log in the user's private state folder",
    "src/gpuwatch/places/capsule_main.py": "stands alone; new files in a private folder",
    "src/gpuwatch/places/kubernetes/in_pod.py": "stands alone; in a pod's own folder",
    "src/gpuwatch/places/machines.py": "a file without a name",
    "src/gpuwatch/places/slurm/step.py": "a lock and a log, by output.private_file",
    "src/gpuwatch/places/ssh/connection.py": "a lock in a private folder; files without a name",
    "src/gpuwatch/places/working_folder.py": "an archive in a fresh private folder",
    "src/gpuwatch/web/screen_process.py": "the shell notes a process's number, in a temporary file",
    "tui/terminal/terminal.py": "/dev/null",
    "tui/commands.py": "files without a name",
    "tui/feed/machine_recorder.py": "/dev/null; a file without a name",
    "runners/local.py": "the shim's log in the run's private folder",
    "runners/shim.py": "has the standard library alone; in the run's private folder",
    "runners/mounting.py": "what is mounted on, in the run's private folder",
    "runners/charliecloud.py": "the workload's archive in the run's private folder",
    "workloads/archive.py": "may import nothing of gpuwatch; a temporary file, then renamed",
    "workloads/lines.py": "may import nothing of gpuwatch; a new file in the run's private folder",
    "workloads/main.py": "/dev/null",
    "workloads/profiling/hardware_counters.py": "may import nothing of gpuwatch; no name",
    "workloads/profiling/torch_profiler.py": "may import nothing of gpuwatch; a temporary file",
}
"""Where files are opened for writing, and why not by :mod:`gpuwatch.core.output` alone."""


def writes(source: str) -> Iterator[str]:
    """What opens files for writing, with the line."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        whole = ast.unparse(node.func)
        name = whole.rpartition(".")[2]
        if whole in ("output.write_text", "output.write_bytes"):
            continue
        if name in _ANOTHER or whole.startswith(("shutil.copy", "shutil.move", "sqlite3.connect")):
            yield f"{node.lineno}: {whole}"
        elif name in ("open", "fdopen", "ZipFile", "TarFile", "GzipFile"):
            flags = [ast.unparse(each) for each in node.args]
            flags += [ast.unparse(each.value) for each in node.keywords if each.arg == "mode"]
            if any(each in flag for flag in flags for each in _MAKING):
                yield f"{node.lineno}: {whole}"
            # Of pathlib's the mode stands first, of all others second.
            modes = [flag.strip("'") for flag in flags if flag.startswith("'")]
            if any(set(mode) <= set("rwaxbt+") and set(mode) & set("wax+") for mode in modes):
                yield f"{node.lineno}: {whole}"


def test_files_are_written_by_the_one_writer() -> None:
    found = {path.relative_to(ROOT).as_posix(): [*writes(path.read_text())] for path in files()}
    found = {path: told for path, told in found.items() if told}
    assert {path: told for path, told in found.items() if path not in MAY_WRITE} == {}
    assert [path for path in MAY_WRITE if path not in found] == [], "allowed, and does not"


@pytest.mark.parametrize(
    "source",
    [
        "open(path, 'w')",
        "open(path, mode='ab')",
        "path.open('x', encoding='utf-8')",
        "os.open(path, os.O_RDWR)",
        "os.open(path, flags | os.O_CREAT, 0o600)",
        "path.write_text(text)",
        "(folder / name).write_bytes(data)",
        "tempfile.mkstemp(dir=folder)",
        "shutil.copy2(one, other)",
        "zipfile.ZipFile(path, 'w')",
        "sqlite3.connect(path)",
    ],
)
def test_another_way_to_write_a_file_is_found(source: str) -> None:
    assert [*writes(source)]


@pytest.mark.parametrize(
    "source",
    ["open(path)", "path.open('rb')", "output.write_text(path, text)", "text.replace(a, b)"],
)
def test_reading_and_the_one_writer_are_no_other_way(source: str) -> None:
    assert not [*writes(source)]
