"""``gpuwatch import``: one session of files of one run, and one clear line for all else."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.cli import main
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.profiles import files
from gpuwatch.profiles.base import Text
from gpuwatch.profiles.files import load
from gpuwatch.profiles.merge import LONGEST_NAME, MOST_KERNELS, MOST_ROWS, merge
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from tests.analysis.recorded_studies import run
from tests.profiles.conftest import SAMPLES, loaded
from tests.profiles.printed import Counted, Row, nsys_csv, nvprof_metrics_csv
from tests.tui.harness import live, screen_text, shows

SAMPLE_NAMES = sorted(path.name for path in SAMPLES.iterdir())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def imported(capsys: pytest.CaptureFixture[str], *arguments: object) -> Path:
    assert main(["import", *map(str, arguments)]) == 0
    return Path(capsys.readouterr().out.strip())


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the command says when it fails."""
    assert main(["import", *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_a_session_holds_the_profile_and_where_it_is_from(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = samples / "nvprof-winograd-summary.log"
    metrics = samples / "nvprof-winograd-metrics.log"
    path = imported(capsys, summary, metrics, "--label", "bare", "--out", tmp_path / "out")
    assert path.parent.parent == tmp_path / "out"
    with SessionReader(path) as reader:
        meta, (device,) = reader.meta(), reader.devices()
        assert reader.last_sample() is None
        assert reader.last_step() == -1
    assert (device.kind, device.name, device.used) == ("gpu", "Tesla V100-SXM2-16GB", True)
    assert status(meta, path).state is State.FINISHED
    assert status(meta, path).exit_code is None
    assert meta["profile"]["tool"] == "nvprof"
    assert meta["profile"]["steps"] is None
    assert meta["counters"]["flop"] == 3.49e9
    assert meta["imported"]["command"] == "python train.py"
    said = meta["imported"]["files"][0]
    assert said["name"] == summary.name
    assert said["sha256"] == hashlib.sha256(summary.read_bytes()).hexdigest()


def test_the_commands_that_show_an_import_are_told(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(samples / "nsys-stats.csv"), "--label", "nsysrun"]) == 0
    told = capsys.readouterr().err.splitlines()[-1].partition("gpuwatch show ")[2]
    name, _, kernels = told.partition(", gpuwatch ")
    assert kernels == f"kernels {name}"
    assert main(["show", name]) == main(["kernels", name]) == 0


def test_no_time_of_the_run_is_made_up(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = imported(capsys, samples / "nsys-stats.csv")
    assert main(["show", str(path), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["session"]["started"] == ""
    assert shown["session"]["seconds"] is None
    assert shown["session"]["exit_code"] is None
    assert shown["session"]["status_text"] == "imported profile"


def test_an_imported_profile_is_listed_by_the_time_of_its_import(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "study").mkdir(parents=True)
    run(tmp_path / "out" / "study" / "01-bare.gpuwatch", start=1e9)
    path = imported(capsys, samples / "nsys-stats.csv", "--out", tmp_path / "out")
    with SessionReader(path) as reader:
        when = str(reader.meta()["imported"]["when"])
    assert main(["sessions", str(tmp_path / "out"), "--format", "json"]) == 0
    first, _ = json.loads(capsys.readouterr().out)["sessions"]
    assert (first["path"], first["started"]) == (str(path), when)


@pytest.mark.parametrize("form", ["table", "json", "md", "csv"])
def test_imported_runs_are_shown_and_compared(
    samples: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    paths = [
        imported(capsys, samples / f"nvprof-{name}", "--label", label)
        for name, label in (
            ("winograd-summary.log", "bare"),
            ("implicit-gemm-summary.csv", "docker"),
        )
    ]
    assert main(["show", str(paths[0]), "--format", form]) == 0
    assert main(["compare", *map(str, paths), "--format", form]) == 0
    said = capsys.readouterr().out
    assert form == "csv" or ("bare" in said and "docker" in said)
    assert "the run used no GPU" not in said
    assert main(["sessions"]) == 0
    assert capsys.readouterr().out.count("imported profile") == 2


def test_what_an_import_cannot_have_is_told_in_one_line_and_its_limits_beside_the_figures(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = imported(capsys, samples / "nvprof-winograd-metrics.log")
    assert main(["show", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.count("unavailable") == 1 and "unavailable: every metric: an imported" in said
    assert "counters: operations that were not counted: double precision" in said
    assert re.search(r"DRAM bytes read +502 MB", said)


async def test_an_imported_profile_can_be_replayed(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = imported(capsys, samples / "nvprof-winograd-summary.log")
    async with live(path) as (app, pilot):
        await shows(pilot, "imported profile")
        assert "0 FLOP/s" not in screen_text(app)


def test_times_of_nsys_go_before_those_under_ncu(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = imported(capsys, samples / "ncu-raw.csv", samples / "nsys-stats.csv")
    with SessionReader(path) as reader:
        meta, (device,) = reader.meta(), reader.devices()
    assert meta["profile"]["tool"] == "nsys"
    assert meta["profile"]["version"] == "2023.2.3"
    assert meta["counters"]["tool"] == "ncu"
    assert "not those of ncu" in meta["profile"]["notes"][0]
    assert device.name == "GPU of compute capability 7.0"


def test_metrics_alone_tell_the_launches_of_each_kernel(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = imported(capsys, samples / "nvprof-winograd-metrics.log")
    with SessionReader(path) as reader:
        table = reader.meta()["profile"]["tables"]["cuda_gpu_kern_sum"]
    assert sum(row[2] for row in table["rows"]) == 43
    assert {row[1] for row in table["rows"]} == {None}


def test_what_is_kept_is_bounded_and_the_totals_are_not(tmp_path: Path) -> None:
    kernels = [
        Counted(f"{'k' * 5000}{n}", 2, {"flop_count_sp": ("3", "3", "3")}) for n in range(300)
    ]
    found = merge([loaded(tmp_path, nvprof_metrics_csv(kernels))])
    table = found.profile["tables"]["cuda_gpu_kern_sum"]
    assert len(table["rows"]) == MOST_ROWS
    assert table["rows_left_out"] == 100
    assert len(table["rows"][0][-1]) == LONGEST_NAME
    assert len(found.counters["kernels"]) == MOST_KERNELS
    assert (found.counters["flop"], found.counters["launches"]) == (1800, 600)


def test_shares_are_of_the_tables_own_total(samples: Path) -> None:
    tables = merge([load(samples / "nvprof-winograd-summary.log")]).profile["tables"]
    for table in tables.values():
        assert sum(row[0] for row in table["rows"]) == pytest.approx(100)


def test_hostile_names_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "\x1b[31mevil[bold].csv"
    path.write_text(nsys_csv("cuda_gpu_kern_sum", [Row("\x1b]0;x\x07[/red]k", 1, (1.0,) * 6)]))
    session = imported(capsys, path, "--device-name", "\x1b[5mA100")
    assert main(["show", str(session)]) == 0
    assert main(["sessions"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    with SessionReader(session) as reader:
        assert reader.devices()[0].name == "A100"


def test_a_file_that_powershell_wrote_is_read(samples: Path, tmp_path: Path) -> None:
    text = (samples / "nsys-stats.csv").read_text()
    other = tmp_path / "utf16.csv"
    other.write_text(text, encoding="utf-16")
    assert load(other).report == load(samples / "nsys-stats.csv").report


def test_a_last_line_without_its_end_is_told(samples: Path, tmp_path: Path) -> None:
    text = (samples / "nsys-2021-gpukernsum.csv").read_text().rstrip("\n")
    assert "may be cut off" in loaded(tmp_path, text).report.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b" \n\n", "blank.csv is empty"),
        ("run.nsys-rep", b"\0\1\2", "nsys stats --report cuda_gpu_kern_sum"),
        ("run.ncu-rep", b"NVR\0", "ncu --csv --page raw --import run.ncu-rep"),
        ("latin.csv", b"a\nb\n\xe9\n", "latin.csv, line 3: not utf-8"),
        ("prose.txt", b"Kernels were fast.\n", "(1 line) holds no profile"),
        ("other.csv", b"epoch,loss\n1,0.3\n", "what is recognised"),
        ("head.csv", b"Time (%),Total Time (ns),Instances,Name\n", "a header without rows"),
        ("utf16.csv", b"\xff\xfea", "utf16.csv, line 1: not utf-16"),
    ],
)
def test_a_file_of_another_kind_is_one_line_with_the_command_that_mends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, why: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert why in refused(capsys, path)
    assert not (tmp_path / "data").exists()


def test_a_hundred_megabytes_of_garbage_are_not_even_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    assert "huge.csv has 100 MB" in refused(capsys, path)


def test_long_lines_of_garbage_are_refused_at_once(tmp_path: Path) -> None:
    head = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
    for filler in (" ", "[", '"', "9", "A", "=", "-", ","):
        with pytest.raises(UsageError):
            loaded(tmp_path, f"{head}{filler * 200_000}\nTime (%)  Total Time\n{filler * 200_000}")


def test_a_device_or_a_pipe_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        assert "is not a file" in refused(capsys, path)
    assert "No such file" in refused(capsys, tmp_path / "none.csv")


def test_files_that_contradict_each_other_are_not_one_run(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    winograd = samples / "nvprof-winograd-metrics.log"
    implicit = samples / "nvprof-implicit-gemm-metrics.csv"
    copy = tmp_path / "copy.log"
    copy.write_bytes(winograd.read_bytes())
    assert "are the same file" in refused(capsys, winograd, copy)
    assert "counts again" in refused(capsys, winograd, implicit)
    assert "both hold cuda_api_sum" in refused(
        capsys, samples / "nsys-stats.csv", samples / "nsys-stats.txt"
    )
    assert "times of two tools" in refused(
        capsys, samples / "nsys-stats.csv", samples / "nvprof-winograd-summary.log"
    )
    assert "counters of two tools" in refused(capsys, winograd, samples / "ncu-raw.csv")
    copy.write_text(winograd.read_text().replace("V100", "A100").replace("flop_", "FLOP_"))
    assert "different GPUs, Tesla V100-SXM2-16GB and Tesla A100-SXM2-16GB" in refused(
        capsys, winograd, copy
    )
    assert "not of a H100" in refused(capsys, winograd, "--device-name", "H100")


def test_counters_of_some_launches_are_no_total_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = [Counted("gemm", 2, {"flop_count_sp": ("5", "5", "5")})]
    profiles = []
    for name, text in (
        ("m.csv", nvprof_metrics_csv(counted)),
        (
            "t.csv",
            nsys_csv("cuda_gpu_kern_sum", [Row("gemm", 150, (3e3, 20.0, 20.0, 9.0, 30.0, 1.0))]),
        ),
    ):
        (tmp_path / name).write_text(text)
        profiles.append(load(tmp_path / name))
    counters = merge(profiles).counters
    assert (counters["flop"], counters["launches"], counters["reason"]) == (None, 2, None)
    assert counters["kernels"][0]["flop"] == 10
    assert counters["notes"][0] == (
        "the counters are of 2 of 150 launches, so no total is known; the known part: 10.0 FLOP, "
        "DRAM — read, — written"
    )


def test_a_folder_is_named_before_the_label_it_would_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ". is not a file" in refused(capsys, ".")


def test_a_folder_that_cannot_be_written_is_one_line(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    said = refused(capsys, samples / "nsys-stats.csv", "--out", tmp_path / "file" / "out")
    assert "cannot write to" in said


def test_the_name_of_a_file_may_be_too_long_for_a_label(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("n" * 200 + ".csv")
    path.write_bytes((samples / "nsys-stats.csv").read_bytes())
    assert imported(capsys, path).exists()
    assert "1 to 100 characters" in refused(capsys, path, "--label", "l" * 101)
    assert "1 to 100 characters" in refused(capsys, path, "--label", "\x1b[1m")


@given(st.sampled_from(SAMPLE_NAMES), st.data())
def test_random_damage_is_the_typed_error_or_a_table(name: str, data: st.DataObject) -> None:
    text = (SAMPLES / name).read_text()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 400)))
        text = text[:start] + data.draw(st.text(max_size=12)) + text[end:]
    lines = Text(name, text.split("\n"))
    found = []
    for reader in files._READERS:
        try:
            found.append(reader(lines))
        except UsageError as error:
            assert name in str(error) and "\n" not in str(error)
    for each in found:
        if each is None:
            continue
        with contextlib.suppress(GpuwatchError):
            merged = merge([files.Profile(name, 1, "0", each)])
            json.dumps([merged.profile, merged.counters], allow_nan=False)
