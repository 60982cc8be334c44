"""gpuwatch as one file: the same bytes every time, and a whole recorder in a Python that has no
packages, whatever is found in its cache there."""

from __future__ import annotations

import ast
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

import gpuwatch
from gpuwatch.core.processes import identify
from gpuwatch.places import capsule, capsule_main
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from gpuwatch.telemetry.host.fingerprint import fingerprint_host
from tests.session.samples import step_numbers
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("programs")

MOST_BYTES = 950_000
"""A ConfigMap has at most 1 MiB."""
STEPS = "\n".join(
    f':::GPUWATCH {{"event":"step","step":{step},"samples":8,"loss":0.5}}' for step in range(3)
)
PROGRAM = ("sh", "-c", f"echo '{STEPS}'")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("capsule") / "gpuwatch.pyz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        capsule.build(target)
    return target


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without any package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@dataclass
class Place:
    """Somewhere else: a home of its own, and a Python without packages."""

    archive: Path
    python: Path
    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def capsules(self) -> Path:
        return self.home / ".cache/gpuwatch/capsules"

    @property
    def digest(self) -> str:
        return sha256(self.archive.read_bytes()).hexdigest()

    @property
    def unpacked(self) -> Path:
        return self.capsules / self.digest[:16]

    @property
    def env(self) -> dict[str, str]:
        temporary = self.home / "tmp"
        own = {"HOME": str(self.home), "TMPDIR": str(temporary), "PATH": os.environ["PATH"]}
        return {**own, **self.variables}

    def start(self, *words: object, folder: Path | None = None) -> subprocess.Popen[str]:
        (self.home / "tmp").mkdir(exist_ok=True)
        return subprocess.Popen(
            [self.python, self.archive, *map(str, words)],
            env=self.env,
            cwd=folder or self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(
        self, *words: object, code: int = 0, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, folder=folder)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        assert process.returncode == code, (process.returncode, out, err)
        return subprocess.CompletedProcess(words, code, out, err)

    def version(self) -> str:
        """What it says on stderr when it tells its version."""
        done = self("--version")
        assert done.stdout == f"gpuwatch {gpuwatch.__version__}\n"
        return done.stderr

    def as_sent(self) -> dict[str, bytes]:
        """The unpacked files, without bytecode."""
        return {
            path.relative_to(self.unpacked).as_posix(): path.read_bytes()
            for path in self.unpacked.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture
def place(archive: Path, bare_python: Path, tmp_path: Path) -> Iterator[Place]:
    home = tmp_path / "home"
    home.mkdir()
    place = Place(archive, bare_python, home)
    yield place
    if (home / ".local/state/gpuwatch/runs").exists():
        place("stop", "--all")


def recorded(folder: Path) -> Path:
    (path,) = folder.glob("*/*.gpuwatch")
    return path


def test_the_same_sources_give_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "src" / "gpuwatch"
    shutil.copytree(
        gpuwatch.__path__[0],
        copy,
        ignore=shutil.ignore_patterns("__pycache__"),
        copy_function=shutil.copyfile,  # other times and modes; rooms are folders, not links
    )
    program = (
        "import os, sys; os.umask(0o077); from pathlib import Path; import gpuwatch;"
        f"assert gpuwatch.__path__ == [{str(copy)!r}];"
        "from gpuwatch.places import capsule; print(capsule.build(Path(sys.argv[1])))"
    )
    again = tmp_path / "again.pyz"
    done = subprocess.run(
        [sys.executable, "-c", program, again],
        env={**os.environ, "PYTHONPATH": str(copy.parent), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.read_bytes() == archive.read_bytes()
    assert done.stdout.strip() == sha256(again.read_bytes()).hexdigest()


def test_what_is_kept_of_the_last_build_is_not_trusted(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = tmp_path / "gpuwatch/capsule.xz"
    kept.parent.mkdir()
    whole = lzma.compress(b"something else", preset=6)
    for content in (b"", b"no xz", whole, whole[:-9]):
        kept.write_bytes(content)
        capsule.build(tmp_path / "again.pyz")
        assert (tmp_path / "again.pyz").read_bytes() == archive.read_bytes()
    assert kept.stat().st_size > len(whole)
    capsule.build(tmp_path / "again.pyz")
    assert (tmp_path / "again.pyz").read_bytes() == archive.read_bytes()


def test_it_is_small_enough_to_be_sent_anywhere(archive: Path) -> None:
    assert archive.stat().st_size < MOST_BYTES


def test_nothing_in_it_tells_where_it_was_made(place: Place) -> None:
    place.version()
    here = [os.fsencode(path) for path in (Path(gpuwatch.__path__[0]).parent, sys.prefix)]
    files = place.as_sent()
    assert [name for name, content in files.items() for each in here if each in content] == []
    assert "gpuwatch/cli/commands/record.py" in files
    assert not [name for name in files if name.endswith((".so", ".pyc", "direct_url.json"))]


def test_a_session_is_recorded_whole_where_nothing_is_installed(
    place: Place, tmp_path: Path
) -> None:
    done = place("--record", "--out", tmp_path / "out", "--", *PROGRAM)
    path = recorded(tmp_path / "out")
    assert done.stderr == f"gpuwatch: recording to {path}\n"
    with SessionReader(path) as reader:
        meta = reader.meta()
        assert status(meta, path).state is State.FINISHED
        assert step_numbers(reader) == [0, 1, 2]
        facts = reader.facts()["host"]
    assert meta["session"]["capsule"] == place.digest
    assert meta["session"]["gpuwatch"] == gpuwatch.__version__
    assert not list(path.parent.glob("summary*"))
    here = fingerprint_host()
    for key in ("cpu.model", "cpu.core.physical.count", "cpu.frequency.max", "memory.total"):
        assert facts[key] == here[key]


def test_a_run_is_stopped_and_taken_over_there(place: Place, tmp_path: Path) -> None:
    started = place("--record", "--detach", "--out", tmp_path / "out", "--", "sleep", "600")
    path = Path(started.stdout.strip())
    with SessionReader(path) as reader:
        recorder = identify(reader.meta()["recorder"]["pid"])
    assert recorder is not None
    os.kill(recorder.pid, signal.SIGKILL)
    until(lambda: not recorder.alive())
    taken_over = place.start("attach", "--record", path)
    assert taken_over.stderr is not None
    assert taken_over.stderr.readline() == f"gpuwatch: took over {path}\n"
    assert f"stopped {path}" in place("stop", path).stderr
    assert taken_over.wait(60) == 0
    with SessionReader(path) as reader:
        assert status(reader.meta(), path).state is State.STOPPED


def test_commands_without_their_room_say_so_in_one_line(place: Place) -> None:
    for words in (["show", "last"], ["report", "."], ["sessions"]):
        assert place(*words, code=2).stderr.startswith(
            "gpuwatch: error: this copy was sent here to record, and has no screens or reports; "
        )


def test_what_recorders_import_is_in_it(place: Place) -> None:
    place.version()
    program = f"""
import importlib, pathlib, sys
root = pathlib.Path({str(place.unpacked)!r})
sys.path.insert(0, str(root))
import charset_normalizer, docker, pynvml, requests, spython.main
for room in ("cli", "core", "recorder", "runners", "session", "telemetry"):
    for path in sorted((root / "gpuwatch" / room).rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        importlib.import_module(name.removesuffix(".__init__"))
from importlib.metadata import version
print(docker.__file__, version("gpuwatch-tui"))
"""
    done = subprocess.run(
        [place.python, "-W", "error::RuntimeWarning", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == f"{place.unpacked}/docker/__init__.py {gpuwatch.__version__}\n"


@pytest.mark.parametrize("python_path", ["", ".", "{folder}", ":/nowhere"])
def test_modules_in_the_working_folder_are_not_imported(
    place: Place, tmp_path: Path, python_path: str
) -> None:
    folder = tmp_path / "working"
    folder.mkdir()
    for name in ("json", "hashlib", "shutil", "lzma", "docker", "gpuwatch", "sqlite3"):
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    if python_path:
        place.variables["PYTHONPATH"] = python_path.format(folder=folder)
    place("--record", "--out", tmp_path / "out", "--", *PROGRAM, folder=folder)
    with SessionReader(recorded(tmp_path / "out")) as reader:
        assert len(step_numbers(reader)) == 3


def test_a_second_start_leaves_the_folder_as_it_is(place: Place) -> None:
    assert place.version() == ""
    before = place.unpacked.stat()
    assert place.version() == ""
    assert place.unpacked.stat().st_ino == before.st_ino
    assert before.st_mode & 0o777 == 0o700


def _changed(folder: Path) -> None:
    path = folder / "gpuwatch/cli/say.py"
    path.write_bytes(path.read_bytes().replace(b"gpuwatch", b"gpuwitch"))


def _removed(folder: Path) -> None:
    (folder / "gpuwatch/cli/say.py").unlink()


def _added(folder: Path) -> None:
    (folder / "json.py").write_text("raise SystemExit('the wrong module')\n")


def _linked(folder: Path) -> None:
    path = folder / "gpuwatch/cli"
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def _is_a_link(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


def _is_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def _open_to_others(folder: Path) -> None:
    folder.chmod(0o755)


def _anothers(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(folder, 12345, -1)


@pytest.mark.parametrize(
    "damage",
    [_changed, _removed, _added, _linked, _is_a_link, _is_a_file, _open_to_others, _anothers],
)
def test_a_folder_that_is_not_as_it_was_sent_is_made_anew(
    place: Place, damage: Callable[[Path], None]
) -> None:
    place.version()
    files = place.as_sent()
    damage(place.unpacked)
    assert place.version() == ""
    after = place.unpacked.lstat()
    assert (after.st_mode & 0o777, after.st_uid) == (0o700, os.geteuid())
    assert place.as_sent() == files
    assert {path.name for path in place.capsules.iterdir()} <= {place.unpacked.name, "elsewhere"}


def test_a_folder_of_capsules_that_others_may_write_to_is_closed(place: Place) -> None:
    place.version()
    place.capsules.chmod(0o777)
    assert place.version() == ""
    assert place.capsules.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("whose", ["a link", "another user's"])
def test_a_folder_of_capsules_that_is_not_ours_is_not_used(
    place: Place, tmp_path: Path, whose: str
) -> None:
    place.capsules.parent.mkdir(parents=True)
    if whose == "a link":
        (tmp_path / "target").mkdir(mode=0o700)
        place.capsules.symlink_to(tmp_path / "target")
        reason = "it is a link"
    else:
        place.capsules.mkdir()
        _anothers(place.capsules)
        reason = "it belongs to another user"
    elsewhere = place.home / "tmp" / f"gpuwatch-capsules-{os.geteuid()}"
    for _ in range(2):
        assert place.version() == (
            f"gpuwatch: cannot write to {place.capsules}: {reason}; it runs from {elsewhere}\n"
        )
    assert list(place.capsules.iterdir()) == []
    assert elsewhere.stat().st_mode & 0o777 == 0o700


def test_many_starts_at_once_unpack_it_once_or_mend_it_once(place: Place) -> None:
    for damage in (None, _changed):
        if damage is not None:
            damage(place.unpacked)
        starts = [place.start("--version") for _ in range(8)]
        for each in starts:
            out, err = each.communicate(timeout=60)
            assert (out, err, each.returncode) == (f"gpuwatch {gpuwatch.__version__}\n", "", 0)
        assert [path.name for path in place.capsules.iterdir()] == [place.unpacked.name]


def test_what_a_killed_start_left_is_removed(place: Place) -> None:
    left = place.capsules / f".{place.unpacked.name}.0badcafe.new"
    (left / "gpuwatch").mkdir(parents=True)
    other = place.capsules / f"{place.digest}.pyz"
    other.touch()
    place.version()
    assert set(place.capsules.iterdir()) == {place.unpacked, other}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 1 MiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_leads_to_the_temporary_folder(place: Place, tiny_disk: Path) -> None:
    place.variables["XDG_CACHE_HOME"] = str(tiny_disk)
    assert place.version().startswith(
        f"gpuwatch: cannot write to {tiny_disk}/gpuwatch/capsules: No space left on device; "
    )
    assert list((tiny_disk / "gpuwatch/capsules").iterdir()) == []
    place.variables["TMPDIR"] = str(tiny_disk)
    elsewhere = tiny_disk / f"gpuwatch-capsules-{os.geteuid()}"
    assert place("--version", code=2).stderr == (
        f"gpuwatch: error: cannot write to {tiny_disk}/gpuwatch/capsules: No space left on device; "
        f"nor to {elsewhere}: No space left on device; "
        "free some space, or set XDG_CACHE_HOME to another folder\n"
    )


def test_a_read_only_home_leads_to_the_temporary_folder_unless_it_was_unpacked_before(
    place: Place, tiny_disk: Path, tmp_path: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,size=100m", tiny_disk], check=True)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    place.home = tiny_disk
    place.variables["TMPDIR"] = str(temporary)
    (tiny_disk / "tmp").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    done = place("--record", "--out", tmp_path / "out", "--", *PROGRAM)
    assert done.stderr.startswith(
        f"gpuwatch: cannot write to {place.capsules}: Read-only file system; it runs from "
    )
    with SessionReader(recorded(tmp_path / "out")) as reader:
        assert len(step_numbers(reader)) == 3
    subprocess.run(["mount", "-o", "remount,rw", tiny_disk], check=True)
    assert place.version() == ""
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    assert place.version() == ""


def test_a_relative_cache_folder_is_ignored(place: Place) -> None:
    place.variables["XDG_CACHE_HOME"] = "cache"
    place.version()
    assert place.unpacked.is_dir()


def test_an_old_python_is_refused_in_one_line() -> None:
    source = Path(capsule_main.__file__).read_text()
    ast.parse(source, feature_version=(3, 6))
    stub = "import sys; sys.version_info = (3, 9, 2, 'final', 0); sys.executable = '/opt/python'\n"
    done = subprocess.run(
        [sys.executable, "-c", stub + source], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        3,
        "gpuwatch: error: gpuwatch needs Python 3.10 or newer, and /opt/python is 3.9; "
        "start it with another one\n",
    )


def test_a_python_without_lzma_is_refused_in_one_line(place: Place, tmp_path: Path) -> None:
    packages = next(place.python.parent.parent.glob("lib/*/site-packages"))
    without = packages / "without_lzma.pth"
    without.write_text("import sys; sys.modules['lzma'] = None\n")
    try:
        assert place("--version", code=3).stderr == (
            f"gpuwatch: error: {place.python} was built without its lzma module; "
            "start it with another Python\n"
        )
    finally:
        without.unlink()


BUSY = """
import runpy, threading, time
import gpuwatch.cli
def busy():
    while True:
        time.sleep(0)
def main():
    threading.Thread(target=busy, daemon=True).start()
    return 3
gpuwatch.cli.main = main
runpy.run_module("gpuwatch", run_name="__main__")
"""
"""Ends while a thread is on its way back from a call."""


def test_its_end_is_no_abort_where_libgcc_is_missing(tmp_path: Path) -> None:
    here = 'mount --bind /dev/null "$(readlink -f "$0")" && exec "$@"'
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    file = re.search(r"libgcc_s\.so\.1 .*x86-64.* => (\S+)", known.stdout)
    apart = ["unshare", "--map-root-user", "--mount"]
    if file is None or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("no libgcc_s.so.1 here, or it cannot be hidden")
    python = [sys.executable, "-c", BUSY]
    done = subprocess.run([*apart, "sh", "-c", here, file[1], *python], cwd=tmp_path, check=False)
    assert done.returncode == 3


@pytest.mark.torch
@pytest.mark.slow
def test_built_in_workloads_and_the_hook_run_from_it(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # torch's loaders wait for ever where a socket's path in TMPDIR has more than 107 bytes.
    place.variables["TMPDIR"] = "/tmp"
    place("--record", "mnist-cnn", "--steps", 3, "--python", sys.executable, "--out", out)
    with SessionReader(recorded(out)) as reader:
        assert status(reader.meta(), recorded(out)).state is State.FINISHED
        assert len(step_numbers(reader)) >= 3
    program = tmp_path / "train.py"
    program.write_text(
        "import torch\n"
        "model = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(5):\n"
        "    optimizer.zero_grad()\n"
        "    model(torch.ones(2, 4)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    place("--record", "--out", tmp_path / "own", "--", sys.executable, program)
    with SessionReader(recorded(tmp_path / "own")) as reader:
        assert reader.meta()["end"]["steps"] == 5
