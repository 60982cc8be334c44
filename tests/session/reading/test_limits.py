"""Files with more rows than any recorder writes: how much is read, and that the rest is told."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.cli import main
from gpuwatch.core.errors import NotASession
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.reader import SessionReader
from tests.fuzz import bases
from tests.session.samples import fill

S = 10**9
MANY = "WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < {}) "


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return bases._rich(tmp_path_factory.mktemp("sound") / "01-bare.gpuwatch").read_bytes()


@pytest.fixture
def path(sound: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "01-bare.gpuwatch"
    path.write_bytes(sound)
    return path


def add(path: Path, sql: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(sql, values)


def told(path: Path) -> str:
    """What a summary says was left out; its notes say it too."""
    with SessionReader(path) as reader:
        summary = summarise(reader)
    assert set(summary.left_out) <= set(summary.notes)
    return "\n".join(summary.left_out)


def test_nothing_is_left_out_of_a_sound_session(path: Path) -> None:
    assert told(path) == ""


def test_a_day_of_eight_gpus_at_ten_hertz_stays_below_every_limit() -> None:
    seconds, devices, of_one = 86_400, 8, 60
    channels = devices * of_one
    assert channels < limits.CHANNELS and 100 * channels <= limits.CHANGES
    assert 10 * seconds <= limits.LINES
    assert 10 * seconds * 8 * 4 <= limits.OF_LINES, "one step a line, its time and three scores"
    assert 10 * seconds * devices <= limits.SAMPLES, "one metric of all GPUs"
    assert devices * 7 + 2 < limits.DEVICES, "every GPU in seven slices"
    assert limits.CELLS >= 20 * 1000 * 11, "the largest profile"


FLOODS: dict[str, tuple[str, int, str]] = {
    "KEYS": (
        "INSERT INTO meta SELECT 'z' || x, '1' FROM i", 50,
        "only the first 50 rows of the table meta",
    ),
    "FACTS": (
        "INSERT INTO fact SELECT 'host', x, '1' FROM i", 50,
        "only the first 50 rows of the table fact",
    ),
    "DEVICES": (
        "INSERT INTO device SELECT 'z' || x, 'cpu', 'x', NULL, 0, '{}' FROM i", 50,
        "only the first 50 rows of the table device",
    ),
    "CHANGES": (
        "INSERT INTO change SELECT x + 1000, x, 0, 'measured', 'z', NULL FROM i", 50,
        "only the last 50 changes of channels are read",
    ),
    "LINES": (
        f"INSERT INTO step SELECT x + 9999, {12 * S} + x, x + 9999, 1, 0, 1, x'000000000000f03f', "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM i", 50,
        "only the first 50 step lines are read",
    ),
    "ON_GPUS_ROWS": (
        "INSERT INTO gpu_process SELECT x + 1000, x, 'gpu0', x, 'z', 0, 1, 1, 'compute', 0.5, "
        "NULL, 0.2 FROM i", 50, "only the last 50 rows of processes on GPUs are read",
    ),
    "ON_GPUS": (
        "INSERT INTO gpu_process SELECT x + 1000, x, 'gpu0', x, 'z', 0, 1, 1, 'compute', 0.5, "
        "NULL, 0.2 FROM i", 50, "only 50 processes on GPUs are read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("limit", FLOODS)
def test_a_table_of_too_many_rows_is_read_in_part_and_that_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    sql, most_, said = FLOODS[limit]
    add(path, MANY.format(200) + sql)
    assert told(path) == "", "200 rows are none too many"
    monkeypatch.setattr(limits, limit, most_)
    assert said in told(path)


def test_more_channels_than_a_table_has_columns_are_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHANNELS", 5)
    text = told(path)
    assert "only the first 5 of " in text and " channels are read" in text


def test_samples_beyond_the_limit_are_left_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [0.0] * 2
    with SessionReader(path) as reader:
        values = [0.5] * len(reader.channels())
    fill(path, ((n * S // 2, values) for n in range(30_000)))
    monkeypatch.setattr(limits, "SAMPLES", 20_000)
    monkeypatch.setattr(SessionReader, "_size", lambda _: 0)
    with SessionReader(path) as reader:
        assert len(reader.samples(()).t) == 12_000
        assert list(reader.left_out) == ["only 12,000 samples in a row are read"]


def test_more_samples_than_a_minute_has_are_no_session(path: Path) -> None:
    add(path, MANY.format(60_000) + f"INSERT INTO tick (n, t) SELECT x + 999, {12 * S} + x FROM i")
    with pytest.raises(NotASession), SessionReader(path) as reader:
        reader.samples(())


def test_values_in_json_are_counted_before_it_is_read(path: Path) -> None:
    add(path, "INSERT INTO meta VALUES ('a', ?)", json.dumps([0] * 600_000))
    add(path, "INSERT INTO meta VALUES ('b', ?)", "[" + "[]," * 600_000 + "0]")
    with SessionReader(path) as reader:
        meta = reader.meta()
        assert len(meta["a"]) == 600_000 and meta["b"] is None
        assert meta["session"] is None, "nothing behind it is read either"
        (said,) = reader.left_out
    assert "values of the table meta are left out" in said


def test_more_step_times_than_a_line_has_room_for_are_unknown(path: Path) -> None:
    times = array("d", [0.1] * (limits.OF_A_LINE // 8 + 1)).tobytes()
    phases = json.dumps({f"p{n}": 0.1 for n in range(9000)})
    add(path, "INSERT INTO step VALUES (9999, ?, 9999, 1, 0, 1, ?, ?, NULL, NULL, ?, ?, 1, 1)",
        12 * S, times, times, phases, "[" + "1," * limits.OF_A_LINE + "1]")  # fmt: skip
    with SessionReader(path) as reader:
        row = reader.steps()[-1]
    assert (row.seconds, row.loss, row.phases, row.partial) == (None, None, {}, ())


def test_the_bytes_of_step_lines_are_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OF_LINES", 1000)
    assert "step lines are read" in told(path)
    with SessionReader(path) as reader:
        assert len(reader.some_steps()) < len(list(reader.all_steps()))
    monkeypatch.setattr(limits, "OF_TIMES", 100)
    with SessionReader(path) as reader:
        assert len(reader.steps_together()) < 3
        assert "step lines are read" in str(reader.left_out)


def test_what_is_left_out_stands_in_text_and_json(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(limits, "CHANGES", 50)
    add(path, MANY.format(60) + FLOODS["CHANGES"][0])
    said = "only the last 50 changes of channels are read"
    assert main(["show", str(path)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert main(["show", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"]["left_out"] == [said]
    assert main(["export", str(path)]) == 0
    assert capsys.readouterr().err == f"gpuwatch: note: {said}\n"
    other = path.with_name("02-bare.gpuwatch")
    other.write_bytes(path.read_bytes())
    add(other, "UPDATE meta SET value = json_set(value, '$.id', 'b') WHERE key = 'session'")
    assert main(["compare", str(path), str(other), "--format", "json"]) == 0
    assert said in capsys.readouterr().out


def test_thirty_megabytes_of_brackets_take_little_memory(path: Path) -> None:
    for name in ("a", "b"):
        add(path, "INSERT INTO meta VALUES (?, ?)", name, "[" + "[]," * (5 << 20) + "0]")
    # VmHWM is of the program alone; `ru_maxrss` counts who started it as well.
    code = (
        "import sys; from gpuwatch.cli import main; main(['show', sys.argv[1]])\n"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert int(done.stderr.split()[-1]) < 300 * 1024, "700 MB if they were read"
