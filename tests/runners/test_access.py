"""Whether a user without capabilities could read what is mounted: decided as the kernel would."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.runners.mounting import permitted, unreadable

OWNER, GROUP, OTHER = 4001, 4002, 4003

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def info(mode: int, uid: int = OWNER, gid: int = GROUP) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "gids", "wanted", "granted"),
    [
        (0o400, OWNER, (), 4, True),
        (0o400, OTHER, (), 4, False),
        (0o040, OTHER, (GROUP,), 4, True),
        (0o040, OTHER, (), 4, False),
        (0o004, OTHER, (), 4, True),
        # The first class that fits decides, even where a later one would grant more.
        (0o044, OWNER, (GROUP,), 4, False),
        (0o404, OTHER, (GROUP,), 4, False),
        # Root without capabilities is a user like any other.
        (0o600, 0, (0,), 4, False),
        (0o700, OWNER, (), 5, True),
        (0o600, OWNER, (), 5, False),
        (0o500, OWNER, (), 7, False),
    ],
)
def test_the_mode_decides_as_for_a_process_without_capabilities(
    mode: int, uid: int, gids: tuple[int, ...], wanted: int, granted: bool
) -> None:
    assert permitted(info(mode), uid, gids, wanted) is granted


def test_the_first_thing_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/good").touch()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/secret").touch()
    for folder in (tmp_path, tmp_path / "a", tmp_path / "b"):
        folder.chmod(0o755)
    for file in (tmp_path / "a/good", tmp_path / "b/secret"):
        file.chmod(0o644)
    assert unreadable(tmp_path, OTHER, ()) is None
    (tmp_path / "b/secret").chmod(0o640)
    assert unreadable(tmp_path, OTHER, ()) == tmp_path / "b/secret"
    assert unreadable(tmp_path, OTHER, (os.getegid(),)) is None
    assert unreadable(tmp_path, os.geteuid(), ()) is None
    assert unreadable(tmp_path / "b/secret", OTHER, ()) == tmp_path / "b/secret"


def test_a_folder_needs_the_right_to_search_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o744)
    assert unreadable(folder, OTHER, ()) == folder


def test_the_way_to_the_folder_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "closed/open").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    (tmp_path / "closed/open").chmod(0o755)
    assert unreadable(tmp_path / "closed/open", OTHER, ()) is None


def test_links_are_not_followed_out_of_the_folder_and_dangling_ones_are_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "outside").mkdir(mode=0o700)
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o755)
    (tmp_path / "data/link").symlink_to(tmp_path / "outside")
    (tmp_path / "data/nowhere").symlink_to("/no/such/place")
    (tmp_path / "data/round").symlink_to(tmp_path / "data")
    assert unreadable(tmp_path / "data", OTHER, ()) is None
    assert unreadable(tmp_path / "gone", OTHER, ()) is None


def test_a_large_folder_is_looked_at_for_a_short_time_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for number in range(2500):
        (tmp_path / f"{number:05d}").touch(0o644)
    (tmp_path / "00010").chmod(0o600)
    assert unreadable(tmp_path, OTHER, ()) == tmp_path / "00010"
    (tmp_path / "00010").chmod(0o644)
    (tmp_path / "02400").chmod(0o600)
    assert unreadable(tmp_path, OTHER, ()) is None


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o711, 0o744, 0o077, 0o000])
def test_the_kernel_agrees(tmp_path: Path, mode: int) -> None:
    """A real process of that user, with the folder as its working directory, tries it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("x")
    (folder / "file").chmod(0o644)
    folder.chmod(mode)
    os.chown(folder, OWNER, GROUP)
    for uid, gid in ((OWNER, OTHER), (OTHER, GROUP), (OTHER, OTHER)):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import os, sys; os.chdir(sys.argv[1]); os.setgroups([]); "
                "os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[2])); "
                "os.listdir('.'); open('file').read()",
                str(folder),
                str(uid),
                str(gid),
            ],
            capture_output=True,
            check=False,
        )
        assert (done.returncode == 0) == (unreadable(folder, uid, (gid,)) is None), (uid, gid)
