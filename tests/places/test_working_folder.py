"""Which files of a working folder are sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gpuwatch.places import working_folder


def repository(path: Path) -> None:
    """A git repository with one file that is tracked, one that is new and one that is ignored."""
    path.mkdir()
    for name, text in (("tracked", ""), ("new", ""), ("ignored", ""), (".gitignore", "ignored\n")):
        (path / name).write_text(text)
    for words in (("init", "-q"), ("add", "tracked", ".gitignore")):
        subprocess.run(["git", "-C", path, *words], check=True)


def test_repositories_inside_a_repository_are_sent_with_their_files(tmp_path: Path) -> None:
    top = tmp_path / "top"
    repository(top)
    repository(top / "clone")
    repository(top / "submodule")
    in_submodule = ["git", "-C", top / "submodule", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*in_submodule, "commit", "-q", "-m", "one"], check=True)
    subprocess.run(["git", "-C", top, "add", "submodule"], check=True, capture_output=True)
    own = [".gitignore", "new", "tracked"]
    expected = [f"{folder}{name}" for folder in ("", "clone/", "submodule/") for name in own]
    (top / "data").mkdir()
    (top / "data/one").touch()
    (top / ".gitignore").write_text("ignored\ndata/\n")
    found = working_folder.find(top)
    assert found.files == tuple(sorted(expected))
    assert found.ignored == ("data/", "ignored")
