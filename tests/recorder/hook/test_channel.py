"""The folder that hooked processes write into: whole lines are read, nothing else is trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.recorder.hook import channel as module
from gpuwatch.recorder.hook.channel import Channel
from gpuwatch.recorder.output.step_lines import Report, Step


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "hook"
    made.mkdir()
    return made


@pytest.fixture
def channel(folder: Path) -> Iterator[Channel]:
    opened = Channel(folder)
    yield opened
    opened.close()


def line(**keys: object) -> bytes:
    return json.dumps(keys).encode() + b"\n"


STEP = line(event="step", step=1, tokens=12)


def test_whole_lines_are_read_once_and_torn_ones_when_they_are_whole(
    channel: Channel, folder: Path
) -> None:
    first, second = folder / "1-1.jsonl", folder / "2-1.jsonl"
    first.write_bytes(line(event="hook", pid=1) + STEP[:10])
    second.write_bytes(STEP)
    one, two = channel.read()
    assert isinstance(one.line, Report) and one.process == "1-1.jsonl"
    assert isinstance(two.line, Step) and (two.line.tokens, two.process) == (12, "2-1.jsonl")
    assert channel.read() == []
    with first.open("ab") as file:
        file.write(STEP[10:] + STEP)
    assert [each.process for each in channel.read()] == ["1-1.jsonl"] * 2
    first.unlink()
    assert channel.read() == [] and channel.problems == []


def test_only_regular_files_are_opened_and_never_through_a_link(
    channel: Channel, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(STEP)
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "fifo")  # opening it for reading would block
    (folder / "folder").mkdir()
    assert channel.read() == []
    assert len(channel.problems) == 3 and all("cannot be read" in p for p in channel.problems)
    assert channel.read() == [] and len(channel.problems) == 3


def test_a_folder_that_is_a_link_is_not_read(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError):
        Channel(tmp_path / "link")


@pytest.mark.parametrize(
    "broken",
    [
        *(b"\xff\xfe\n", b"[]\n", b"nonsense\n", b'{"event": 3}\n', b"[" * 60_000 + b"\n"),
        b'{"event": "run", "deep": ' + b"[" * 30_000 + b"]" * 30_000 + b"}\n",
        b'{"event": "step", "step": 99999999, "count": 1000000}\n',
        *(b'{"event": "step"}\n', b'{"event": "step", "step": 1, "tokens": -1}\n'),
    ],
)
def test_a_malformed_line_is_told_and_the_next_one_counts(
    channel: Channel, folder: Path, broken: bytes
) -> None:
    (folder / "a").write_bytes(broken + STEP)
    assert [type(each.line) for each in channel.read()] == [Step]
    assert len(channel.problems) == 1 and "malformed line" in channel.problems[0]


def test_a_line_that_is_too_long_is_left_out(channel: Channel, folder: Path) -> None:
    long = b'{"event": "' + b"x" * (70 << 10) + b'"}'
    (folder / "a").write_bytes(long)
    assert channel.read() == []
    with (folder / "a").open("ab") as file:
        file.write(long + b"\n" + STEP + long + b"\n" + STEP)
    read = channel.read()
    assert [type(each.line) for each in read] == [Step, Step]
    assert set(channel.problems) == {"a line of more than 64 KiB"}


def test_files_and_bytes_are_limited(
    channel: Channel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(module.MOST_FILES + 30):
        (folder / f"{number}").write_bytes(STEP)
    assert len(channel.read()) == module.MOST_FILES
    assert channel.problems == ["only 1,024 files of the hook are read"]
    monkeypatch.setattr(module, "MOST_BYTES", (module.MOST_FILES + 2) * len(STEP))
    for number in range(module.MOST_FILES + 30):
        (folder / f"{number}").write_bytes(STEP * 2)
    assert len(channel.read()) == 2 and len(channel.problems) == 2
    assert channel.read() == [] and len(channel.problems) == 2
    assert "MiB of the hook's reports are read" in channel.problems[1]


def test_complaints_are_limited(channel: Channel, folder: Path) -> None:
    (folder / "a").write_bytes(b"nonsense\n" * 1000)
    assert channel.read() == []
    assert len(channel.problems) == 20 and "not told" in channel.problems[-1]
