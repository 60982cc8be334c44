"""Names, tags and notes beside the sessions: kept, limited, and harmless where they come from
elsewhere."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import (
    LONGEST_NAME,
    LONGEST_NOTE,
    NONE,
    Label,
    clean_name,
    clean_note,
    clean_tag,
    with_tags,
)
from gpuwatch.session.study.labels import LABELS


def name(folder: Path, key: str, text: str) -> Label:
    return labels.change(folder, key, lambda label: replace(label, name=text))


def test_what_is_written_is_read_again_and_private(tmp_path: Path) -> None:
    name(tmp_path, "01-bare.gpuwatch", "first")
    labels.change(tmp_path, "", lambda label: with_tags(label, ["fast", "x"], []))
    assert labels.read(tmp_path) == {
        "01-bare.gpuwatch": Label(name="first"),
        "": Label(tags=("fast", "x")),
    }
    assert stat.S_IMODE((tmp_path / LABELS).stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [LABELS]


def test_the_file_goes_with_the_last_label(tmp_path: Path) -> None:
    name(tmp_path, "", "a")
    name(tmp_path, "", "")
    assert os.listdir(tmp_path) == []
    name(tmp_path, "a", "a")
    labels.forget(tmp_path, ["a", "b"])
    assert os.listdir(tmp_path) == []


def test_a_refused_change_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="17 tags"):
        labels.change(
            tmp_path, "", lambda label: with_tags(label, [f"t{n}" for n in range(17)], [])
        )
    assert os.listdir(tmp_path) == []


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    def write(key: str) -> None:
        for n in range(5):
            name(tmp_path, f"{key}-{n}", key)

    threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(labels.read(tmp_path)) == 20


def test_a_lock_that_is_not_given_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_PATIENCE", 0.0)
    with paths.one_at_a_time(), pytest.raises(StorageError, match="has locked") as refused:
        name(tmp_path, "01-bare.gpuwatch", "first")
    assert refused.value.hint == "try again"
    assert name(tmp_path, "01-bare.gpuwatch", "first") == Label(name="first")


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[" * 100_000,
        "[]",
        '{"labels": {"": {"name": "x"}}}',
        '{"kind": "gpuwatch-labels", "schema": 2, "labels": {}}',
        '{"kind": "gpuwatch-labels", "schema": 1, "labels": []}',
        "x" * (labels.LARGEST + 1),
    ],
    ids=["text", "deep", "list", "another's", "newer", "labels", "huge"],
)
def test_a_file_of_another_kind_says_nothing_and_is_never_replaced(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / LABELS).write_text(content)
    assert labels.read(tmp_path) == {}
    with pytest.raises(StorageError, match="is not gpuwatch's"):
        name(tmp_path, "", "x")
    assert (tmp_path / LABELS).read_text() == content


def test_a_link_and_a_pipe_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / LABELS).symlink_to(tmp_path / "elsewhere")
    assert labels.read(tmp_path) == {}
    with pytest.raises(StorageError):
        name(tmp_path, "", "x")
    (tmp_path / LABELS).unlink()
    os.mkfifo(tmp_path / LABELS)
    assert labels.read(tmp_path) == {}
    with pytest.raises(StorageError):
        name(tmp_path, "", "x")


def test_hostile_labels_are_cleaned_and_limited(tmp_path: Path) -> None:
    bad = "a\x1b[2Jb\u202e" + "x" * 5000
    told = {
        "": {"name": bad, "tags": [bad, "ok", 7, "a b", "ok"], "note": f"{bad}\n\x07two"},
        "../x": {"name": "out of the folder"},
        "b": 7,
        "c": {"name": 7, "tags": {}, "note": []},
    }
    text = json.dumps({"kind": labels.KIND, "schema": 1, "labels": told})
    (tmp_path / LABELS).write_text(text)
    found = labels.read(tmp_path)
    assert set(found) == {"", "c"} and found["c"] == NONE
    label = found[""]
    assert label.name.startswith("abx") and len(label.name) <= LONGEST_NAME
    assert label.tags == ("ok",) and len(label.note) <= LONGEST_NOTE
    assert all(c == "\n" or c.isprintable() for c in label.name + label.note)


@pytest.mark.parametrize("text", ["last", "a/b", "x.gpuwatch", "tag:x", "-x", "y" * 81])
def test_a_name_that_commands_take_for_something_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        clean_name(text)


@pytest.mark.parametrize("text", ["", "a b", "a,b", "a:b", "+a", "-a", "y" * 33])
def test_what_is_no_tag_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        clean_tag(text)


@pytest.mark.parametrize(("take", "most"), [(clean_name, 80), (clean_note, 2000)])
def test_what_is_too_long_is_told_with_its_whole_length(
    take: Callable[[str], str], most: int
) -> None:
    with pytest.raises(UsageError, match=f"has 100000 characters; at most {most};"):
        take("x" * 100_000)


def test_lines_of_a_name_are_joined_and_none_is_lost() -> None:
    assert clean_name("one\r\ntwo\rthree") == "one two three"


def test_what_is_no_tag_says_all_that_a_tag_may_not_be() -> None:
    with pytest.raises(UsageError, match="and does not start with \\+ or -"):
        clean_tag("-x")


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EINVAL, "move it elsewhere"),
        (errno.EACCES, "check who owns the folder"),
    ],
)
def test_trouble_with_the_file_names_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    def refused(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / LABELS).touch()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(StorageError, match=hint):
            name(tmp_path, "", "x")
        problem = labels.read_with_problem(tmp_path)[1]
    assert problem is not None and problem.endswith(hint)


def test_no_file_is_no_problem_and_a_damaged_one_is(tmp_path: Path) -> None:
    assert labels.read_with_problem(tmp_path) == ({}, None)
    (tmp_path / LABELS).write_text("garbage")
    found, problem = labels.read_with_problem(tmp_path)
    assert found == {} and problem is not None
    assert problem.endswith("is not gpuwatch's: it does not hold labels; move it elsewhere")
