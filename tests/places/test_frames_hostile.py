"""Whatever arrives in place of a relay's frames touches nothing but the mirror."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.places.frames import BadFrame, BatchFrame, EndFrame, parse
from gpuwatch.places.mirror import Mirror
from gpuwatch.session.reading.reader import SessionReader
from tests.places.conftest import Study
from tests.places.relaying import Link, files_of, prepare

MUTATIONS = 10_000
OF_ONE_MIRROR = 100
NASTY: tuple[Any, ...] = (
    *("../x", "/etc/passwd", "..", "", ".", "plan.json", "sqlite_master", "meta", "tick", "handle"),
    *("tick; DROP TABLE meta", "c0", "\x00", "\ud800", "\x1b[2J", "x" * 100_000, "recorder"),
    *(0, -1, 1, 1 << 31, 1 << 63, -(1 << 63), (1 << 63) - 1, 1 << 200, 10**4000, 1.5, 1e308),
    *(float("nan"), float("inf"), None, True, False, [], {}, [[]], {"b": "!"}, {"b": 1}, {"c": ""}),
)


def mutated(line: bytes, lines: list[bytes], chance: random.Random) -> bytes:
    """``line``, changed in one to three ways."""
    for _ in range(chance.randint(1, 3)):
        change: Callable[[bytes, list[bytes], random.Random], bytes] = chance.choice(
            (_bytes, _tree, _tree, _tree, _twice, _deep)
        )
        line = change(line, lines, chance)
    return line


def _bytes(line: bytes, lines: list[bytes], chance: random.Random) -> bytes:
    at, length = chance.randrange(len(line) + 1), chance.randrange(20)
    kinds = (
        chance.randbytes(length),
        b"",
        chance.choice(lines)[:length],
        line[at : at + length] * 2,
    )
    return line[:at] + chance.choice(kinds) + line[at + chance.choice((0, length)) :]


def _tree(line: bytes, lines: list[bytes], chance: random.Random) -> bytes:
    """Replace, rename, remove or double something of the JSON."""
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError):
        return line
    place = tree
    while isinstance(place, (dict, list)) and place:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = chance.choice(keys)
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and chance.random() < 0.8:
            place = inner
            continue
        kind = chance.randrange(4)
        if kind == 0 and isinstance(place, dict):
            place[str(chance.choice(NASTY))] = place.pop(key)
        elif kind == 1:
            del place[key]
        elif kind == 2 and isinstance(place, list):
            place.append(copy.deepcopy(inner))
        else:
            place[key] = copy.deepcopy(chance.choice(NASTY))
        break
    return json.dumps(tree).encode() + b"\n"


def _twice(line: bytes, lines: list[bytes], chance: random.Random) -> bytes:
    return line.replace(b'"n":', b'"n":7,"n":', 1) if chance.random() < 0.5 else line[:-1] + line


def _deep(line: bytes, lines: list[bytes], chance: random.Random) -> bytes:
    depth = chance.choice((10, 100_000))
    return line.replace(b"[]", b"[" * depth + b"]" * depth, 1)


@pytest.fixture
def recorded(record: Callable[..., Study], tmp_path: Path) -> tuple[Path, list[bytes]]:
    """A study's folder, and the lines of its relay."""
    study, here = record(2), tmp_path / "whole"
    study.wait_for_steps(50)
    prepare(study.folder, here)
    with Link(study.folder, here) as link:
        lines = []
        for line in link.lines():
            lines.append(line)
            if len(lines) == 4:
                study.stop()
    return study.folder, lines


def _hashes(folder: Path, apart: Path) -> dict[str, str]:
    return {
        str(path): os.readlink(path)
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file()) and apart not in path.parents
    }


def test_ten_thousand_changed_frames_touch_nothing_but_the_mirror(
    recorded: tuple[Path, list[bytes]], tmp_path: Path
) -> None:
    there, lines = recorded
    assert len(lines) > 6
    ground, chance = tmp_path / "ground", random.Random(10_000)
    here = ground / "studies" / "here"
    here.mkdir(parents=True)
    for name in ("x", "notes.txt", "studies/x", "studies/01-bare-1.gpuwatch"):
        (ground / name).write_text("not of the mirror")
    files = files_of(there)
    mine = {"plan.json", "labels.json", "link"}
    taken = refused = 0
    for _ in range(MUTATIONS // OF_ONE_MIRROR):
        shutil.rmtree(here)
        prepare(there, here)
        (here / "labels.json").write_text("{}")
        (here / "link").symlink_to(ground / "x")
        before = _hashes(ground, here) | _mine(here, mine)
        mirror = Mirror(here, files)
        begun = chance.randrange(len(lines))
        for line in lines[:begun]:
            _take(mirror, line)
        for _ in range(OF_ONE_MIRROR):
            # Often the next one, so that it is refused by its change alone.
            line = lines[begun] if chance.random() < 0.5 else chance.choice(lines)
            try:
                _take(mirror, mutated(line, lines, chance))
                taken += 1
            except BadFrame as error:
                assert len(str(error)) < 400
                refused += 1
        mirror.close()
        assert _hashes(ground, here) | _mine(here, mine) == before
        _assert_only_sessions(here, files, mine)
    assert refused > MUTATIONS // 2 and taken > MUTATIONS // 50, (taken, refused)


def _take(mirror: Mirror, line: bytes) -> None:
    frame = parse(line)
    if isinstance(frame, BatchFrame):
        mirror.take(frame.batch)
    elif isinstance(frame, EndFrame):
        mirror.differing(frame)


def _mine(here: Path, names: set[str]) -> dict[str, str]:
    return {
        name: (here / name).read_text() if name != "link" else os.readlink(here / name)
        for name in names
    }


def _assert_only_sessions(here: Path, files: frozenset[str], mine: set[str]) -> None:
    for path in here.iterdir():
        if path.name in mine:
            continue
        stem = path.name.split(".lost-")[0].removesuffix("-journal")
        assert stem in files and path.is_file() and not path.is_symlink(), path
        assert path.stat().st_mode & 0o777 == 0o600
        if path.name in files:
            with SessionReader(path) as reader:  # its tables are the schema's
                assert not {"handle", "recorder"} & reader.meta().keys()


@pytest.mark.parametrize("what", ["session", "journal", "new"])
def test_a_link_in_the_folder_is_not_followed(
    recorded: tuple[Path, list[bytes]], tmp_path: Path, what: str
) -> None:
    there, lines = recorded
    here, victim = tmp_path / "here", tmp_path / "victim"
    prepare(there, here)
    victim.write_text("not of the mirror")
    file = min(files_of(there))
    names = {"session": file, "journal": f"{file}-journal", "new": f".{file}.new"}
    (here / names[what]).symlink_to(victim)
    try:
        mirror = Mirror(here, files_of(there))
        for line in lines:
            _take(mirror, line)
        mirror.close()
    except GpuwatchError as error:
        assert file in error.message and what != "new"
    assert victim.read_text() == "not of the mirror"


def test_a_session_that_begins_anew_again_and_again_is_refused(
    recorded: tuple[Path, list[bytes]], tmp_path: Path
) -> None:
    there, lines = recorded
    here = tmp_path / "here"
    prepare(there, here)
    document = next(json.loads(line) for line in lines if b'"new":true' in line)
    known = document["session"]
    mirror = Mirror(here, files_of(there))
    with pytest.raises(BadFrame, match="again and again"):
        for n in range(1000):
            text = json.dumps(document).replace(known, f"{n:012x}")
            _take(mirror, text.encode() + b"\n")
    mirror.close()
    assert len(list(here.iterdir())) < 110
