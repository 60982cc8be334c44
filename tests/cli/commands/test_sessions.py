"""``gpuwatch sessions``: a line for each study and each session of none."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from gpuwatch.cli import main
from gpuwatch.cli.commands.resume import folder_of
from gpuwatch.cli.selection.session_lookup import session, target
from gpuwatch.cli.study_result import exit_code
from gpuwatch.core.errors import ExitCode
from gpuwatch.session.in_part import InPart, RunInPart
from gpuwatch.session.placement import JobState, Placement, read, write
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import Label
from tests.analysis.sessions import record

KEPT = Path(__file__).parents[2] / "data" / "kept-0.1.0"
ALONE = Path(__file__).parents[2] / "data" / "h200"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The lines of ``gpuwatch sessions`` at so many columns."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def ask(*words: object, columns: int = 200) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["sessions", *map(str, words)]) == 0
        return capsys.readouterr().out.splitlines()

    return ask


def test_a_study_is_one_line_with_its_name_its_runs_and_what_it_says(said) -> None:
    head, killed, study = said(KEPT)
    assert head.split()[:2] == ["session", "status"]
    assert killed.startswith("killed") and "  1 lost  " in killed
    assert study.startswith("kept study  4 runs") and "  bare#1 +1  " in study
    assert study.rstrip().endswith("NO VERDICT bare#2")
    assert str(KEPT) not in "".join([head, killed, study])


def test_on_a_terminal_the_newest_stay_in_sight(said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LINES", "6")
    _, *every = said(KEPT, "--runs")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _, *newest, last = said(KEPT, "--runs")
    ids = [line.split()[0] for line in every]
    assert len(ids) == 5 and [line.split()[0] for line in newest] == ids[:3]
    assert last == "and 2 older: -n 5"
    assert said(KEPT, "--runs", "-n", 5)[1:] == every


def test_each_run_and_each_file_is_there_where_it_is_asked_for(said) -> None:
    _, *runs = said(KEPT, "--runs")
    assert [" ms/step" in line for line in runs] == [False, True, True, True, True]
    assert "lost" in runs[0] and "  the recorder died or could not save the end: " in runs[0]
    _, *runs = said(KEPT, "--runs", "--paths", columns=80)
    files = {line.split()[-1] for line in runs}
    assert files == {str(path) for path in KEPT.glob("*/*.gpuwatch")}
    _, killed, study = said(KEPT, "--paths", columns=80)
    assert killed.endswith(str(KEPT / "killed")) and study.endswith(str(KEPT / "study"))


@pytest.mark.parametrize(
    ("flags", "most", "sessions", "studies"),
    [((), 5, 5, 2), ((), 9, 9, 3), (("--runs",), 5, 5, 2), (("--find", "train.py"), 2, 2, 2)],
)
def test_of_many_the_newest_are_there_where_so_many_are_asked_for(
    said, flags: tuple[str, ...], most: int, sessions: int, studies: int
) -> None:
    def first(*more: object) -> list[str]:
        return [line.split()[0] for line in said(KEPT, ALONE, *flags, *more)[1:]]

    assert first("-n", most) == first()[:most]
    told = json.loads("\n".join(said(KEPT, ALONE, *flags, "-n", most, "--format", "json")))
    assert (len(told["sessions"]), len(told["studies"])) == (sessions, studies)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_the_result_stays(said, columns: int) -> None:
    lines = said(KEPT, ALONE, "--runs", columns=columns)
    assert max(map(len, lines)) <= columns
    if columns >= 80:
        assert all("ms/step" in line or "the recorder died" in line for line in lines[1:])


def test_a_long_name_is_cut_before_the_start_goes(said, tmp_path: Path) -> None:
    name = "a-study-with-a-very-long-name-that-somebody-gave-20261129-045832"
    (tmp_path / "kept").mkdir()
    unnamed = shutil.ignore_patterns("labels.json")
    shutil.copytree(KEPT / "study", tmp_path / "kept" / name, ignore=unnamed)
    assert any(name in line for line in said(tmp_path / "kept"))
    for columns in (80, 100):
        head, line = said(tmp_path / "kept", columns=columns)
        assert "start" in head and line.startswith("a-study-w")
        assert "…20261129-045832  4 runs" in line
        assert "NO VERDICT" in line and len(line) <= columns


def named(folder: Path, name: str) -> Path:
    """A folder with a run that failed and has that name."""
    path = folder / "runs" / "a.gpuwatch"
    path.parent.mkdir()
    workload = {"name": "train.py", "kind": "command", "arguments": ["train.py", "--bs", "64"]}
    result = {"code": 1, "signal": None, "t": 5}
    more = {"result": result, "error": {"message": MEMORY}, "clock": {"unix_ns": 10**18}}
    record(path, extra={"workload": workload, **more})
    labels.change(path.parent, path.name, lambda label: replace(label, name=name))
    return path.parent


@pytest.mark.parametrize(("columns", "shown"), [(40, False), (66, True), (80, True)])
def test_what_is_less_useful_stands_only_behind_what_is_more(
    said, tmp_path: Path, columns: int, shown: bool
) -> None:
    head, _ = said(named(tmp_path, "a-name-of-25-columns-wide"), columns=columns)
    assert ("command" in head) == shown and ("start" in head) == (columns == 80)


@pytest.mark.parametrize("columns", [40, 120])
def test_wide_characters_have_two_columns(
    said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    folder = named(tmp_path, "漢字" * 10)
    head, line = said(folder, columns=columns)
    assert cell_len(line) <= columns
    name, _, _ = line.partition("failed")
    assert cell_len(name) == head.index("status")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert said(folder, columns=columns)[1].startswith(f"{name}\x1b[1;31mfailed")


def test_an_id_without_text_is_shown_by_the_name_of_the_file(said, tmp_path: Path) -> None:
    path = tmp_path / "runs" / "a.gpuwatch"
    path.parent.mkdir()
    record(path, extra={"session": {"id": "\u200b" * 8, "label": "a"}})
    assert said(path.parent)[1].startswith("a.gpuwatch  ")


def test_a_terminal_has_the_statuses_in_colour(said, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = said(KEPT)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    head, killed, study = said(KEPT)
    assert head == f"\x1b[1m{plain[0]}\x1b[m" and study == plain[2]
    status = "1 lost"
    assert killed.replace("\x1b[1;31m", "").replace("\x1b[m", "") == plain[1]
    assert f"\x1b[1;31m{status}" in killed
    assert said(KEPT, columns=12)[0].startswith("\x1b[1msession")
    monkeypatch.setenv("NO_COLOR", "1")
    assert said(KEPT) == plain


def test_json_lists_sessions_and_studies_as_before(said) -> None:
    found = json.loads("\n".join(said(KEPT, "--format", "json")))
    assert len(found["sessions"]) == 5 and len(found["studies"]) == 2


def test_a_long_environment_is_cut_but_in_json(said, tmp_path: Path) -> None:
    label = f"bare,set=A={'x' * 200}"
    record(tmp_path / "a.gpuwatch", extra={"environment": {"kind": "bare", "label": label}})
    head, line = said(tmp_path, columns=1000)
    assert "bare,set=A=xx" in line and "x…" in line and len(head) < 200
    (found,) = json.loads("\n".join(said(tmp_path, "--json")))["sessions"]
    assert found["environment"] == label


GIB = 1024**3
GAUGES = {("gpu0", "hw.gpu.memory.usage"): 20.0 * GIB}
MEMORY = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 18 GiB free."


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with a run that worked and one that failed."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for size, more in ((8, {}), (64, {"result": {"code": 1, "signal": None, "t": 5}})):
        command = ["python3", "train.py", "--bs", str(size)]
        record(
            folder / f"{size}.gpuwatch",
            gauges=GAUGES,
            extra={
                "workload": {"name": "train.py", "kind": "command", "arguments": command},
                "error": {"message": f"torch.OutOfMemoryError: {MEMORY}"},
                **more,
            },
        )
    return folder


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_runs_are_told_apart_by_their_arguments(said, recorded: Path, columns: int) -> None:
    head, *lines = said(recorded, "--runs", columns=columns)
    assert "command" in head
    assert {size for size in (8, 64) for line in lines if f"train.py --bs {size} " in line} == {
        8,
        64,
    }


@pytest.mark.parametrize(
    ("columns", "kept", "told"),
    [
        (80, "start", "CUDA out of memo"),
        (100, "start", "CUDA out of memory"),
        (120, "started, ", "CUDA out of memory (t"),
        (140, "started, ", "CUDA out of memory (tried 20."),
        (160, "started, ", "CUDA out of memory (tried 20.00 GiB)"),
    ],
)
def test_the_start_and_the_result_have_room_before_what_is_less_useful(
    said, recorded: Path, columns: int, kept: str, told: str
) -> None:
    study = recorded / "mnist-cnn-20261129-045832"
    shutil.copytree(KEPT / "study", study, ignore=shutil.ignore_patterns("labels.json"))
    (study / "04-bare-2.gpuwatch").unlink()
    head, *lines = said(recorded, columns=columns)
    assert f"  {kept}" in head and max(map(len, lines)) <= columns
    assert any(f"  {told}" in line and "train.py --b" in line for line in lines)
    assert any(line.startswith(f"{study.name}  3/4 runs") for line in lines)


def test_mfu_and_peak_memory_stand_where_there_is_room(said, recorded: Path) -> None:
    head, *lines = said(recorded, columns=130)
    good = next(line for line in lines if "--bs 8 " in line)
    assert "MFU" in head and "peak mem" in head
    assert "≤20.0 GiB" in good and " % " in good and "500 ms/step" in good
    assert "peak mem" not in said(recorded, columns=80)[0]
    assert "MFU" not in said(KEPT, columns=200)[0]


@pytest.mark.parametrize("columns", [100, 200])
def test_the_device_stands_where_there_is_room_and_words_find_it(said, columns: int) -> None:
    head, *lines = said(KEPT, ALONE, columns=columns)
    assert "device" in head and any("  H200  " in line for line in lines)
    assert any("  CPU  " in line for line in lines)
    found = said(KEPT, ALONE, "--find", "env:h200", columns=columns)[1:]
    on_gpu = [line for line in lines if "  H200  " in line]
    assert [line.split()[0] for line in found] == [line.split()[0] for line in on_gpu]
    assert "device" not in said(KEPT, ALONE, columns=60)[0]


def test_a_run_that_failed_says_why_in_few_words(said, recorded: Path) -> None:
    failed = next(line for line in said(recorded) if "--bs 64 " in line)
    assert failed.endswith("CUDA out of memory (tried 20.00 GiB)")


def test_json_has_what_ran_mfu_peak_memory_and_the_failure(said, recorded: Path) -> None:
    found = json.loads("\n".join(said(recorded, "--format", "json")))
    good, failed = sorted(found["sessions"], key=lambda row: row["failure"])
    assert good["command"] == "train.py --bs 8" and good["workload"] == "train.py"
    assert 0 < good["mfu"] < 1 and good["peak_gpu_memory_bytes"] == 20 * GIB
    assert good["peak_gpu_memory_method"] == "bound"
    assert (
        failed["failure"] == "CUDA out of memory (tried 20.00 GiB)" and MEMORY in failed["reason"]
    )
    kept = json.loads("\n".join(said(KEPT, "--format", "json")))["sessions"][0]
    assert kept["mfu"] is None and kept["peak_gpu_memory_bytes"] is None
    assert kept["peak_gpu_memory_method"] == "unavailable"


def test_a_file_that_cannot_be_read_has_all_keys_too(said, recorded: Path) -> None:
    (recorded / "torn.gpuwatch").write_bytes(b"x" * 4096)
    found = json.loads("\n".join(said(recorded, "--format", "json")))["sessions"]
    (torn,) = (row for row in found if row["status"] == "unreadable")
    assert all(row.keys() == torn.keys() for row in found)
    assert torn["mfu"] is None and torn["peak_gpu_memory_method"] == "unavailable"
    assert "torn.gpuwatch  unreadable" in "\n".join(said(recorded))


def test_the_cache_of_another_version_is_read_anew(said, recorded: Path, tmp_path: Path) -> None:
    first = said(recorded, "--format", "json")
    cache = tmp_path / "gpuwatch" / "sessions.json"
    stored = json.loads(cache.read_text())
    assert str(recorded / "8.gpuwatch") in stored["files"]
    stored["version"][0] = 1
    for _, row in stored["files"].values():
        row.clear()
    cache.write_text(json.dumps(stored))
    assert said(recorded, "--format", "json") == first


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that was sent to a place and has no session yet, in the default folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "data/gpuwatch/studies/waiting"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes((KEPT / "study/plan.json").read_bytes())
    now = Placement("slurm,partition=gpu", "0" * 16, JobState.QUEUED, written=time.time())
    write(folder, replace(now, reason="Resources"))
    return folder


def test_a_study_that_was_fetched_in_part_is_listed_with_its_figures(said, waiting: Path) -> None:
    known = read(waiting)
    assert known is not None
    runs = [RunInPart(run, "finished", 9.0, 50, 0.001, None, None) for run in (1, 2)]
    for told, words in (
        (runs[:1], "finished after 0:09, 50 steps, median 1.00 ms"),
        (runs, "2 finished, as last reported"),
    ):
        part = InPart(tuple(told))
        write(waiting, replace(known, state=JobState.IN_PART, fetched=True, in_part=part))
        _, line = said()
        assert " fetched in part " in line and words in line
    (study,) = json.loads("\n".join(said("--format", "json")))["studies"]
    assert [run["steps"] for run in study["placement"]["in_part"]] == [50, 50]


def test_words_find_what_has_all_of_them(
    said, recorded: Path, waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [line.split()[0] for line in said("--find", "waiting")] == ["session", "waiting"]
    assert len(said("--find", "name:nothing env:bare")) == 0
    found = json.loads("\n".join(said(recorded, "--find", "train.py 64", "--format", "json")))
    assert [Path(each["path"]).name for each in found["sessions"]] == ["64.gpuwatch"]
    (_, study), (_, run) = (said(KEPT, "--find", "tag:old", *more) for more in ((), ("--runs",)))
    assert "  4 runs  " in study and "  finished  " in run
    assert main(["sessions", "--find", "colour:red"]) == 2
    assert "colour: is not a field" in capsys.readouterr().err
    assert main(["sessions", "resnet"]) == 2
    assert "gpuwatch sessions --find resnet" in capsys.readouterr().err


def test_of_a_folder_without_sessions_the_folder_is_told(
    said, waiting: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["sessions", str(tmp_path / "empty")]) == 0
    assert f"no session in {tmp_path / 'empty'}; " in capsys.readouterr().err


def test_a_study_that_waits_is_listed_with_its_reason(said, waiting: Path) -> None:
    _, line = said()
    assert line.startswith("waiting ") and " queued " in line
    assert "  slurm bare#1 +1  " in line
    assert "queued on slurm,partition=gpu: Resources" in line
    found = json.loads("\n".join(said("--format", "json")))
    (study,) = found["studies"]
    assert (study["sessions"], study["going_on"], found["sessions"]) == (0, True, [])
    assert study["placement"] == {
        "place": "slurm,partition=gpu",
        "state": "queued",
        "text": "queued on slurm,partition=gpu: Resources",
        "hint": None,
        "sent": "",
        "starts": None,
        "in_part": None,
    }


def test_one_that_never_ran_is_listed_with_what_became_of_it(said, waiting: Path) -> None:
    why = "was queued: ImagePullBackOff"
    write(waiting, Placement("ssh=gpu1", "0" * 16, JobState.CANCELLED, why, fetched=True))
    _, line = said(columns=80)
    assert line.startswith("waiting") and " cancelled " in line
    assert f"cancelled on ssh=gpu1: {why}" in said()[1]


def test_the_name_of_a_study_without_a_session_is_known(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting.with_name("waiting-2").mkdir()
    record(waiting.with_name("waiting-2") / "01-bare.gpuwatch")
    (waiting / "job.log").write_text("first\nno such \x1b[31mmodule\n")
    write(
        waiting,
        Placement("slurm", "0" * 16, JobState.FAILED, "NoSuchModule", "load it", "7", fetched=True),
    )
    assert main(["show", "waiting"]) == 0
    shown = capsys.readouterr().out
    for words in ("failed on slurm: NoSuchModule", "place: slurm, job 7", "load it", "  first\n"):
        assert words in shown
    assert main(["show", "waiting", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["native"], found["in_part"]) == ("failed", "7", [])
    assert main(["log", "waiting", "--tail", "1"]) == 0
    logged = capsys.readouterr().out
    assert "no such" in logged and "first" not in logged and "\x1b" not in logged
    (waiting / "job.log").write_text("")
    assert main(["log", "waiting"]) == 0
    assert "nothing was printed" not in capsys.readouterr().err
    (waiting / "job.log").write_text("first\n" + "x\n" * 200_000 + "last\n")
    for command in ("show", "log"):
        assert main([command, "waiting"]) == 0
        assert capsys.readouterr().out.endswith(" last\n" if command == "show" else "\nlast\n")
    assert main(["attach", "--plain", "waiting"]) == 2
    assert "has no session: failed on slurm: NoSuchModule" in capsys.readouterr().err
    assert folder_of("waiting") == waiting.resolve() == target("waiting")[0]
    assert exit_code(waiting) == ExitCode.RUN_FAILED


def test_the_log_of_a_study_that_waits_cannot_be_followed(
    waiting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "waiting"]) == 0
    capsys.readouterr()
    for option in ("--follow", "--stream=stderr"):
        assert main(["log", "waiting", option]) == 2
        assert "no session: queued on slurm,partition=gpu" in (told := capsys.readouterr().err)
        assert "wait for it: gpuwatch attach waiting" in told
    write(waiting, Placement("slurm", "0" * 16, JobState.FAILED, fetched=True))
    assert main(["log", "waiting", "--follow"]) == 0
    assert main(["log", "waiting", "--stream=stdout"]) == 2
    assert "leave --stream out" in capsys.readouterr().err


@pytest.mark.parametrize("other", ["study", "session"])
def test_of_several_that_have_the_name_of_a_study_without_a_session_none_is_taken(
    waiting: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    labels.change(waiting, "", lambda _: Label("mine"))
    second = waiting.with_name("second")
    if other == "study":
        shutil.copytree(waiting, second)
    else:
        second.mkdir()
        record(second / "01-bare.gpuwatch")
        labels.change(second, "", lambda _: Label("mine"))
    for command in (["show", "mine"], ["log", "mine"], ["resume", "mine"], ["tag", "mine"]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "mine may be any of 2; name one: " in told and f"{waiting} (queued)" in told
    assert main(["show", str(waiting)]) == 0


def test_a_study_that_its_scheduler_ended_is_listed_with_how(said, waiting: Path) -> None:
    (session,) = (KEPT / "study").glob("01-*.gpuwatch")
    (waiting / session.name).write_bytes(session.read_bytes())
    write(waiting, Placement("slurm", "0" * 16, JobState.PREEMPTED, fetched=True))
    _, line = said()
    assert "  1/4 runs  " in line and line.endswith("  preempted on slurm")


def test_what_runs_is_first_then_the_newest_and_what_never_began_has_its_time(
    said, waiting: Path
) -> None:
    (waiting.parent / "run").mkdir()
    extra = {"result": None, "clock": {"unix_ns": 10**18}}
    record(waiting.parent / "run" / "01-bare.gpuwatch", extra=extra)
    sent = (("queued", 1.0), ("cancelled", time.time()))
    over = Placement("ssh=gpu1", "0" * 16, JobState.CANCELLED, fetched=True, changes=sent)
    write(waiting, over)
    *_, last = said()
    assert last.startswith("waiting ") and last.endswith("  cancelled on ssh=gpu1")
    assert "  ssh=gpu1 bare#1 +1  " in last and "  1970-01-01  " in last
    write(waiting, replace(over, changes=sent[1:]))
    assert said()[1].startswith("waiting ")
    now = Placement("ssh=gpu1", "0" * 16, JobState.RUNNING, written=time.time(), changes=sent[:1])
    write(waiting.parent / "run", now)
    _, first, second = said()
    assert " running " in first and second.startswith("waiting ")


def test_where_a_run_was_is_told_also_after_its_end(said, recorded: Path) -> None:
    write(recorded, Placement("slurm,partition=gpu", "0" * 16, JobState.ENDED, where="n1"))
    assert all("  slurm n1  " in line for line in said(recorded, "--runs")[1:])
    found = json.loads("\n".join(said(recorded, "--format", "json")))
    assert {each["place"] for each in found["sessions"]} == {"slurm n1"}
    now = Placement("slurm", "0" * 16, JobState.RUNNING, native="11", where="n1")
    write(recorded, now)
    assert all(" (job 11)  " in line for line in said(recorded, "--runs")[1:])
    found = json.loads("\n".join(said(recorded, "--format", "json")))
    assert {(each["place"], each["job"]) for each in found["sessions"]} == {("slurm n1", "11")}
    assert {each["place"] for each in found["studies"]} == {"slurm n1"}


def test_a_study_that_goes_on_has_no_verdict_yet(said, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(KEPT / "study", folder, ignore=shutil.ignore_patterns("04-*"))
    now = Placement("ssh=gpu1", "0" * 16, JobState.RUNNING, written=time.time())
    write(folder, now)
    _, line = said(folder)
    assert line.rstrip().endswith("running on ssh=gpu1")
    (study,) = json.loads("\n".join(said(folder, "--format", "json")))["studies"]
    assert [each["short"] for each in study["says"]] == ["3 of 4 runs, no verdict yet"]
    file = folder / "summary.json"
    summary = json.loads(file.read_text())
    (question,) = summary["questions"]
    (contrast,) = question["contrasts"]
    slower = {
        **contrast,
        "sentence": "slower",
        "verdict": {**contrast["verdict"], "kind": "slower"},
    }
    question["contrasts"] = [slower, contrast]
    file.write_text(json.dumps(summary))
    (study,) = json.loads("\n".join(said(folder, "--format", "json")))["studies"]
    assert [each["kind"] for each in study["says"]] == ["slower", "described"]
    assert [each["text"] for each in study["says"]] == ["slower", contrast["sentence"]]
    (folder / "placement.json").unlink()
    assert said(folder)[1].rstrip().endswith("NO VERDICT bare#2")


def test_the_last_run_of_a_study_is_listed_with_where_it_runs(said, waiting: Path) -> None:
    for number in range(1, 5):
        extra = {"result": None} if number == 4 else {}
        record(waiting / f"{number:02}-bare.gpuwatch", extra=extra)
    now = Placement("ssh=gpu1", "0" * 16, JobState.UNKNOWN, "timed out", written=time.time())
    write(waiting, now)
    _, line = said()
    assert "ssh=gpu1 does not answer: timed out" in line


def test_the_last_session_is_the_one_that_started_last_whenever_its_file_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    copies = [tmp_path / "gpuwatch" / "studies" / at / "01-bare.gpuwatch" for at in ("new", "old")]
    for copy, file in zip(
        copies, (ALONE / "train.gpuwatch", KEPT / "study" / "01-bare-1.gpuwatch"), strict=True
    ):
        copy.parent.mkdir(parents=True)
        shutil.copyfile(file, copy)
    os.utime(copies[0], (0, 0))
    assert session("last") == copies[0]
