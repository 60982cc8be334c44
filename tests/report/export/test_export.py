"""What leaves gpuwatch: series, steps, log, events and runs, as CSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.samples.rates import flop_of, rate_series
from gpuwatch.cli import output_file
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON, Environment, Workload
from gpuwatch.report.export import parquet
from gpuwatch.report.export.series import series
from gpuwatch.report.export.session_tables import TABLES, events, log, steps
from gpuwatch.report.export.study import runs, under_each_other
from gpuwatch.report.export.table import Column, Export, Row, as_csv, as_json_lines
from gpuwatch.session.reading import samples
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.plan import Part, Plan, PlannedRun
from gpuwatch.session.study.plan_file import document
from tests.analysis.sessions import COUNT, STEPS, record, step_line, summary
from tests.conftest import Cli
from tests.report import results
from tests.session.samples import times_of

UTILIZATION = "gpu0 hw.gpu.utilization [1]"
FLOP = "workload gpuwatch.flop.rate [FLOP/s]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Every second value of the GPU's utilization is unknown, and no value of its power."""
    gauges = {("gpu0", "hw.gpu.utilization"): [0.0, None], ("gpu0", "hw.gpu.power"): None}
    return record(
        tmp_path / "study" / "01-bare.gpuwatch",
        gauges=gauges,
        phases={"forward": 0.3, "data": 0.1},
        events=[("throttle", "held by power")],
    )


@pytest.fixture(autouse=True)
def study_folder(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()


def rows_of(export: Export) -> list[dict[str, Any]]:
    names = [column.name for column in export.columns]
    return [dict(zip(names, row, strict=True)) for batch in export.batches() for row in batch]


def cells_of(export: Export) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(as_csv(export)))))


def test_a_series_has_a_row_for_each_tick_and_unknown_is_empty(path: Path) -> None:
    with SessionReader(path) as reader:
        found = cells_of(series(reader))
        times = times_of(reader)
    assert [float(row["seconds"]) for row in found] == [t / 1e9 for t in times]
    assert [row[UTILIZATION] for row in found[:4]] == ["0", "", "0", ""]
    assert {row["gpu0 hw.gpu.power [W]"] for row in found} == {""}


def test_json_lines_name_keys_and_columns_first_and_unknown_is_null(path: Path) -> None:
    with SessionReader(path) as reader:
        head, *lines = (json.loads(line) for line in as_json_lines(series(reader)))
    assert head["schema"] == 2 and head["keys"] == ["seconds"]
    assert head["columns"][0] == {
        "device": "gpu0", "metric": "hw.gpu.utilization", "unit": "1",
    }  # fmt: skip
    assert {len(line) for line in lines} == {1 + len(head["columns"])}
    assert [line[1] for line in lines[:3]] == [0.0, None, 0.0]


def test_derived_rates_are_the_same_however_many_pieces_they_are_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "_AT_ONCE", 1)
    path = record(tmp_path / "long.gpuwatch", step_seconds=9.0)
    with SessionReader(path) as reader:
        export = series(reader)
        sizes = [len(batch) for batch in export.batches()]
        times = times_of(reader)
        whole = rate_series(reader.all_steps(), flop_of(COUNT), times)
        found = [row[FLOP] for row in rows_of(export)]
    assert len(sizes) > 3 and sum(sizes) == len(times)
    assert found == [None, *whole]
    assert max(rate for rate in whole if rate is not None) == pytest.approx(2e12 / 9)


def test_each_step_has_its_own_time(path: Path) -> None:
    with SessionReader(path) as reader:
        found = rows_of(steps(reader))
    assert len(found) == STEPS
    assert found[1] == {
        "seconds": 6.0, "step": 2, "warmup": False, "partial": False, "line_steps": 1,
        "step_seconds": 0.5, "samples": 64.0, "loss": None, "acc1": None, "acc5": None,
        "flop": 2e12, "bytes": 4e10, "phase_data_seconds": 0.1, "phase_forward_seconds": 0.3,
    }  # fmt: skip


def test_a_line_of_several_steps_becomes_a_row_for_each(tmp_path: Path) -> None:
    line = {
        "event": "step", "step": 3, "count": 3, "seconds": [1.0, 2.0, 0.5], "loss": 0.25,
        "samples": 90, "partial": [3], "phases": {"data": 0.3}, "monotonic_ns": 10_000_000_000,
    }  # fmt: skip
    path = record(tmp_path / "x.gpuwatch", steps=[{**line, "warmup": True}, line])
    with SessionReader(path) as reader:
        found = rows_of(steps(reader))[3:]
    assert [row["step"] for row in found] == [1, 2, 3]
    assert [row["seconds"] for row in found] == [7.5, 9.5, 10.0]
    assert [row["step_seconds"] for row in found] == [1.0, 2.0, 0.5]
    assert [row["loss"] for row in found] == [None, None, 0.25]
    assert [row["partial"] for row in found] == [False, False, True]
    assert {row["samples"] for row in found} == {30.0} and {row["warmup"] for row in found} == {
        False
    }
    assert [row["phase_data_seconds"] for row in found] == pytest.approx([0.1] * 3)


def test_phases_of_a_line_are_means_over_its_sampled_steps(tmp_path: Path) -> None:
    line = {"event": "step", "step": 4, "count": 4, "seconds": 0.5, "phases": {"data": 0.3}}
    path = record(tmp_path / "x.gpuwatch", steps=[{**line, "sampled": 2}])
    with SessionReader(path) as reader:
        assert {row["phase_data_seconds"] for row in rows_of(steps(reader))} == {0.15}


def test_steps_without_times_of_their_own_have_none(tmp_path: Path) -> None:
    line = {"event": "step", "step": 2, "count": 2, "monotonic_ns": 10_000_000_000}
    path = record(tmp_path / "x.gpuwatch", steps=[line], count={})
    with SessionReader(path) as reader:
        found = rows_of(steps(reader))
    assert [row["step_seconds"] for row in found] == [None, None]
    assert [row["seconds"] for row in found] == [None, 10.0]
    assert {row["flop"] for row in found} == {None}


@pytest.mark.parametrize("told", [{}, {"unseen_phases": {"data": "no loader"}}])
def test_a_phase_that_the_hook_did_not_see_is_empty(tmp_path: Path, told: dict[str, JSON]) -> None:
    """A hook of before told it as 0, without the reason."""
    phases = {"data": 0.0, "forward": 0.2, "backward": 0.1, "optimizer": 0.1, "other": 0.1}
    line = {"event": "step", "step": 1, "seconds": 0.5, "phases": phases}
    extra = {"hook": {"processes": 1}}
    path = record(tmp_path / "x.gpuwatch", steps=[line], run=told, extra=extra)
    with SessionReader(path) as reader:
        [row] = cells_of(steps(reader))
    assert (row["phase_data_seconds"], row["phase_other_seconds"]) == ("", "0.1")


def test_a_phase_of_any_name_hides_no_other_column(tmp_path: Path) -> None:
    line = {"event": "step", "step": 1, "seconds": 0.5, "phases": {"step": 9.0}}
    path = record(tmp_path / "x.gpuwatch", steps=[line])
    with SessionReader(path) as reader:
        names = [column.name for column in steps(reader).columns]
    assert len(names) == len(set(names)) and "phase_step_seconds" in names


def test_log_and_events_keep_their_times(path: Path) -> None:
    with SessionReader(path) as reader:
        assert rows_of(log(reader)) == []
        assert rows_of(events(reader)) == [
            {"seconds": 6.0, "kind": "throttle", "device": "gpu0", "text": "held by power"}
        ]


def test_text_is_harmless_for_terminals_and_spreadsheets_in_csv_and_whole_in_json() -> None:
    hostile = "=1+1\x1b[31m\u202e"
    columns = (Column("text", "text"),)
    export = Export("log", columns, lambda: iter([[(hostile,)]]))
    assert list(as_csv(export))[1] == "'=1+1\n"
    assert json.loads(list(as_json_lines(export))[1]) == [hostile]


def test_a_loss_that_was_nan_is_null_in_json_and_nan_elsewhere() -> None:
    export = Export("steps", (Column("loss"),), lambda: iter([[(math.nan,), (None,)]]))
    assert "".join(as_csv(export)) == 'loss\nnan\n""\n'
    assert [json.loads(line) for line in list(as_json_lines(export))[1:]] == [[None], [None]]


@pytest.mark.parametrize("what", TABLES)
def test_parquet_gives_back_what_the_session_holds(path: Path, tmp_path: Path, what: str) -> None:
    from pyarrow import parquet as arrow

    file = tmp_path / "x.parquet"
    with SessionReader(path) as reader:
        export = TABLES[what](reader)
        parquet.write(file, export)
        expected = rows_of(export)
    assert arrow.read_table(file).to_pylist() == expected


def test_parquet_carries_unit_method_source_and_reason(path: Path, tmp_path: Path) -> None:
    from pyarrow import parquet as arrow

    file = tmp_path / "x.parquet"
    with SessionReader(path) as reader:
        parquet.write(file, series(reader))
    schema = arrow.read_schema(file)
    assert schema.field(UTILIZATION).metadata == {
        b"unit": b"1", b"method": b"measured", b"source": b"test",
        b"device": b"gpu0", b"metric": b"hw.gpu.utilization",
    }  # fmt: skip
    assert schema.field(FLOP).metadata[b"method"] == b"counted"
    missing = schema.field("workload gpuwatch.throughput [{sample}/s]").metadata
    assert b"reason" not in missing
    about = json.loads(schema.metadata[b"gpuwatch"])
    assert about["schema"] == 2 and about["what"] == "series"


def test_a_rate_without_steps_is_unavailable_with_its_reason(tmp_path: Path) -> None:
    path = record(tmp_path / "x.gpuwatch", steps=[])
    with SessionReader(path) as reader:
        column = next(column for column in series(reader).columns if column.name == FLOP)
    assert column.method == "unavailable" and column.reason == "the workload reported no steps"


def test_a_long_table_is_written_in_groups_that_fit_into_memory(tmp_path: Path) -> None:
    from pyarrow import parquet as arrow

    batches, size = 30, 5000

    def read() -> Iterator[list[Row]]:
        for at in range(batches):
            yield [(float(at), None)] * size

    export = Export("series", (Column("seconds"), Column("x")), read)
    parquet.write(tmp_path / "x.parquet", export)
    found = arrow.ParquetFile(tmp_path / "x.parquet").metadata
    assert found.num_rows == batches * size
    groups = [found.row_group(at).num_rows for at in range(found.num_row_groups)]
    assert len(groups) == 3 and max(groups) == 50_000


def test_numbers_that_no_column_can_hold_are_unknown(tmp_path: Path) -> None:
    from pyarrow import parquet as arrow

    columns = (Column("f"), Column("i", "int"), Column("\ud800", "text"))
    rows: list[Row] = [(2**53 + 1, 2**63, "\ud800"), (1, -(2**63), "a")]
    parquet.write(tmp_path / "x.parquet", Export("x", columns, lambda: iter([rows])))
    found = arrow.read_table(tmp_path / "x.parquet").to_pylist()
    assert [list(row.values()) for row in found] == [[float(2**53), None, "?"], [1, -(2**63), "a"]]


def test_without_pyarrow_the_error_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotAvailable, match="pip install pyarrow"):
        parquet.write(tmp_path / "x.parquet", Export("x", (), lambda: iter([])))
    assert list(tmp_path.glob("*.parquet")) == []


def two(folder: Path) -> list[Path]:
    """A CPU that only the second session knows."""
    one = record(folder / "01-bare.gpuwatch", gauges={("gpu0", "hw.gpu.utilization"): 0.5})
    gauges = {("gpu0", "hw.gpu.utilization"): 0.25, ("cpu", "hw.cpu.utilization"): 0.75}
    return [one, record(folder / "02-docker.gpuwatch", gauges=gauges, label="docker")]


def test_a_study_stands_under_each_other_behind_columns_that_name_the_run(tmp_path: Path) -> None:
    found = rows_of(under_each_other(two(tmp_path / "study"), series))
    half = len(found) // 2
    assert {(row["study"], row["environment"], row["session"]) for row in found[:half]} == {
        ("study", "bare", "bare")
    }
    assert {row["environment"] for row in found[half:]} == {"docker"}
    assert {row[UTILIZATION] for row in found[:half]} == {0.5}
    cpu = "cpu hw.cpu.utilization [1]"
    assert {row[cpu] for row in found[:half]} == {None} and found[-1][cpu] == 0.75
    assert {row["block"] for row in found} == {None}, "without a plan there are no blocks"


def test_rows_of_a_study_in_blocks_name_their_block(tmp_path: Path) -> None:
    paths = two(tmp_path / "study")
    workload, environment = Workload("resnet50", "workload"), Environment("bare", "bare")
    part = Part("x", (workload,), (environment,), blocks=1, warmup_blocks=1)
    planned = [
        PlannedRun(at, path.name, workload, environment, block=at - 1)
        for at, path in enumerate(paths, 1)
    ]
    plan = Plan("study", (part,), tuple(planned))
    (tmp_path / "study" / "plan.json").write_text(json.dumps(document(plan)))
    found = rows_of(under_each_other(paths, steps))
    assert [row["block"] for row in found] == [0] * STEPS + [1] * STEPS


def test_runs_have_a_row_each_with_their_steady_time_and_block(tmp_path: Path) -> None:
    result = results.study_result(tmp_path)
    found = rows_of(runs(result))
    assert len(found) == len(result.sessions)
    warm = [row for row in found if row["block"] == 0]
    assert len(warm) == 3 and all(row["warmup_block"] for row in warm)
    for row in found:
        expected = results.step_seconds(row["environment"], row["block"])
        assert row["steady_step_seconds"] == pytest.approx(expected)
        assert row["steps: step time, median [s]"] == pytest.approx(expected)
        assert row["status"] == "finished" and row["exit_code"] == 0


def test_what_has_no_unit_is_headed_without_one(tmp_path: Path) -> None:
    steps = [step_line(n, loss=1.0 / n) for n in range(1, 21)]
    one = summary(tmp_path / "one.gpuwatch", steps=steps)
    headings = [
        each.name for each in runs(replace(results.study_result(tmp_path), sessions=(one,))).columns
    ]
    assert "training: last loss" in headings


def test_the_ending_of_the_file_says_the_format(path: Path, cli: Cli, tmp_path: Path) -> None:
    from pyarrow import parquet as arrow

    out = tmp_path / "out"
    out.mkdir()
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        done = cli.read("export", path, "--what", "steps", "--out", out / name)
        assert done.stderr == f"gpuwatch: written to {out / name}\n"
    assert (out / "a.csv").read_text().startswith("seconds,step,")
    assert json.loads((out / "a.jsonl").read_text().splitlines()[0])["schema"] == 2
    assert arrow.read_table(out / "a.parquet").num_rows == STEPS
    assert sorted(each.name for each in out.iterdir()) == ["a.csv", "a.jsonl", "a.parquet"]


@pytest.mark.parametrize(
    ("name", "form", "right"),
    [("x.xlsx", (), "x.csv"), ("x.txt", (), "x.csv"), ("x.csv", ("--format", "json"), "x.json"),
     ("x.xlsx", ("--format", "parquet"), "x.parquet")],
)  # fmt: skip
def test_an_ending_that_says_another_format_is_refused_with_what_is_right(
    path: Path, cli: Cli, tmp_path: Path, name: str, form: tuple[str, ...], right: str
) -> None:
    done = cli("export", path, "--what", "steps", *form, "--out", tmp_path / "out" / name, code=2)
    ending = Path(name).suffix
    assert f"{ending} is not the ending of {Path(right).suffix[1:]}" in done.stderr
    assert f"gpuwatch export --what steps --out {tmp_path / 'out' / right} {path}" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_study_is_exported_by_its_folder(cli: Cli, tmp_path: Path) -> None:
    two(tmp_path / "study")
    done = cli.read("export", tmp_path / "study", "--what", "steps")
    head, *lines = csv.reader(io.StringIO(done.stdout))
    assert head[:5] == ["study", "environment", "block", "session", "seconds"]
    assert len(lines) == 2 * STEPS


def test_parquet_is_not_written_to_a_terminal(path: Path, cli: Cli) -> None:
    done = cli("export", path, "--format", "parquet", code=2)
    assert "add --out FILE.parquet" in done.stderr and done.stdout == ""


def test_a_session_is_not_overwritten_with_itself(path: Path, cli: Cli) -> None:
    before = path.read_bytes()
    done = cli.read("export", path, "--out", path, code=2)
    assert "already exists" in done.stderr and path.read_bytes() == before


def test_an_export_that_breaks_off_leaves_nothing(path: Path, cli: Cli) -> None:
    other = path.with_name("02-docker.gpuwatch")
    shutil.copy(path, other)
    with sqlite3.connect(path) as db:
        ((page,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'step'")
        ((size,),) = db.execute("PRAGMA page_size")
    db.close()
    with other.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    folder = path.parent
    output = folder / "all.csv"
    done = cli.read("export", folder, "--what", "steps", "--out", output, code=2)
    assert "02-docker.gpuwatch is damaged" in done.stderr
    assert sorted(each.name for each in folder.iterdir()) == sorted([path.name, other.name])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_an_export_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), output_file.opened(folder / "all.csv") as file:
        file.write(b"seconds")
        assert any(folder.iterdir()), "a file that has no name yet"
        signal.raise_signal(number)
    assert not any(folder.iterdir())
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_place_that_cannot_be_written_to_is_one_clear_error(
    path: Path, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = cli.read("export", path, "--out", tmp_path / "file" / "x.csv", code=2)
    assert "cannot write" in done.stderr and "choose another --out" in done.stderr


def test_a_file_system_that_is_read_only_is_one_clear_error(
    path: Path, cli: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", folder], check=False).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        done = cli.read("export", path, "--out", folder / "x.csv", code=2)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
    (line,) = done.stderr.splitlines()
    assert "Read-only file system; choose another --out" in line


def test_a_pipe_is_written_to_as_it_is(path: Path, cli: Cli) -> None:
    done = subprocess.run(
        [*cli.argv("export", path, "--out", "/dev/stdout")],
        env=cli.env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("seconds,")
