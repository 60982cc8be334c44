"""``gpuwatch --record`` with programs of the user's own: what is kept, said and returned."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from tests.conftest import Cli
from tests.reading import events, log, meta, sessions, show, step_numbers, steps
from tests.session.samples import times_of
from tests.waiting import until

STEPS = Path(__file__).parents[1] / "steps.py"


def test_any_program_that_prints_step_lines_is_measured(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = cli("--record", "--out", out, "--", sys.executable, STEPS, 60, 0.02)
    (path,) = sessions(out)
    assert "recording to" in done.stderr and "step time, median" in done.stdout
    found = show(cli, path)
    assert found["schema"] == 2
    assert found["session"]["status"] == "finished" and found["session"]["exit_code"] == 0
    assert found["workload"]["kind"] == "command"
    assert found["step"]["count"] == 60
    assert 0.02 <= found["step"]["median_seconds"] < found["timing"]["real_seconds"] / 30
    assert found["throughput"]["samples_per_second"] == pytest.approx(
        64 / found["step"]["mean_seconds"], rel=0.01
    )
    rate = found["metrics"]["gpuwatch.flop.rate"]
    assert rate["method"] == "counted"
    assert rate["mean"] == pytest.approx(2e9 * _pace(path))
    assert found["timing"]["real_seconds"] > 1.2
    study = path.parent
    assert (study / "plan.json").exists()
    assert "step time, median" in (study / "summary.md").read_text()
    assert json.loads((study / "summary.json").read_text())["schema"] == 2


def test_an_operator_of_a_shell_that_is_an_argument_is_told_and_passed_on(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("--record", "--out", tmp_path / "out", "--", "echo", "a b", "|", "tee", "o")
    assert "'|' goes to echo as it is; for a shell: -- bash -o pipefail -c " in done.stderr
    (path,) = sessions(tmp_path / "out")
    assert "a b | tee o" in cli("log", path).stdout
    piped = cli("--record", "--out", tmp_path / "two", "--", "bash", "-c", "echo a | cat")
    assert "for a shell" not in piped.stderr


def test_nothing_is_zero_that_is_not_known(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--out", tmp_path / "out", "--", "sleep", "1.2")
    found = show(cli, sessions(tmp_path / "out")[0])
    for name in ("gpuwatch.flop.rate", "gpuwatch.bytes.rate", "gpuwatch.throughput"):
        metric = found["metrics"][name]
        assert metric["method"] == "unavailable" and metric["mean"] is None and metric["reason"]
    assert found["step"]["count"] is None
    assert found["step"]["median_seconds"] is None and found["step"]["reason"]
    assert found["throughput"]["samples_per_second"] is None
    assert found["flop"]["per_step"] is None
    assert found["timing"]["import_seconds"] is None
    assert found["metrics"]["hw.cpu.utilization"]["method"] == "measured"
    gpu = found["metrics"]["hw.gpu.power"]
    assert gpu["method"] == "unavailable" and gpu["mean"] is None and "GPU" in gpu["reason"]


@pytest.mark.parametrize(("code", "state"), [(7, "failed"), (137, "killed"), (143, "killed")])
def test_the_workloads_exit_code_is_kept(cli: Cli, tmp_path: Path, code: int, state: str) -> None:
    cli("--record", "--out", tmp_path / "out", "--", "sh", "-c", f"exit {code}", code=1)
    found = show(cli, sessions(tmp_path / "out")[0])
    assert found["session"]["exit_code"] == code
    assert found["session"]["status"] == state


def test_a_signal_without_a_name_is_told_by_its_number(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--out", tmp_path / "out", "--", "sh", "-c", "kill -37 $$", code=1)
    assert "the workload was ended by signal 37" in done.stderr
    found = show(cli, sessions(tmp_path / "out")[0])
    assert found["session"]["status_text"] == "ended by signal 37"
    assert found["session"]["exit_code"] == 165


def test_the_log_keeps_both_streams_in_order(cli: Cli, tmp_path: Path) -> None:
    script = "for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.05; done; printf end"
    cli("--record", "--out", tmp_path / "out", "--", "sh", "-c", script)
    with SessionReader(sessions(tmp_path / "out")[0]) as reader:
        log = reader.log()
    assert [row.text for row in log if row.stream == "stdout"] == ["out 1", "out 2", "out 3", "end"]
    assert [row.text for row in log if row.stream == "stderr"] == ["err 1", "err 2", "err 3"]
    assert [row.t for row in log] == sorted(row.t for row in log)


def test_two_ranks_on_one_stdout_are_told_and_never_added_up(cli: Cli, tmp_path: Path) -> None:
    rank = f"{sys.executable} {STEPS} 40 0.005"
    done = cli("--record", "--out", tmp_path, "--", "sh", "-c", f"{rank} & {rank}; wait")
    (path,) = sessions(tmp_path)
    found = show(cli, path)
    assert found["step"]["count"] is None and found["step"]["median_seconds"] is None
    assert found["throughput"]["samples_per_second"] is None
    reason = found["step"]["reason"]
    assert "several processes print step lines (let only rank 0 print)" in reason
    assert found["metrics"]["gpuwatch.flop.rate"]["reason"] == reason
    assert "let only rank 0 print" in " ".join(done.stdout.split())
    assert "let only rank 0 print" in " ".join(cli.read("show", path).stdout.split())


def test_a_malformed_step_line_is_log_and_an_event_says_so(cli: Cli, tmp_path: Path) -> None:
    script = 'echo \':::GPUWATCH {broken\'; echo \':::GPUWATCH {"event": "step", "step": 1}\''
    cli("--record", "--out", tmp_path / "out", "--", "sh", "-c", script)
    (path, *_) = sessions(tmp_path / "out")
    assert log(path) == [":::GPUWATCH {broken"]
    assert events(path, "malformed-step") and len(steps(path)) == 1


def test_the_output_of_a_run_is_passed_on_while_it_runs(cli: Cli, tmp_path: Path) -> None:
    script = f"echo first; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo last >&2; exit 3"
    for words in (("--record", "--echo", "--quiet"), ("run",)):
        out = tmp_path / words[0]
        started = cli.start(*words, "--out", out, "--", "sh", "-c", script)
        assert started.stderr is not None
        told = iter(started.stderr.readline, "")
        assert next(line for line in told if "recording to" not in line) == "first\n"
        (tmp_path / "go").touch()
        rest = started.communicate()[1]
        assert rest.count("last\n") == 1 and started.returncode == 1, rest
        (tmp_path / "go").unlink()
        (path,) = sessions(out)
        assert cli("log", "--follow", path).stdout == "first\nlast\n"
    assert "first" not in cli("--record", "--", "echo", "first").stderr
    assert "first\n" in cli("rerun", "last").stderr
    for more in (("--detach",), ("--env", "bare", "--blocks", 2), ("--on", "ssh=nowhere")):
        told = cli("--record", "--echo", *more, "--", "echo", "first", code=2).stderr
        assert "--echo is for one run" in told and not told.startswith("first")


def test_the_machine_alone_is_recorded_for_a_time(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--duration", "3s", "--interval", "0.1", "--out", tmp_path / "out")
    assert "recorded the machine" in done.stdout and "has no time" not in done.stdout
    assert re.search(r"host memory usage +[\d.,]+/[\d.]+ GiB +measured", done.stdout)
    assert "load average" in done.stdout and "samples cover" not in done.stdout
    found = show(cli, sessions(tmp_path / "out")[0])
    assert found["session"]["status"] == "finished"
    assert found["metrics"]["hw.cpu.utilization"]["count"] >= 1
    assert found["metrics"]["process.cpu.time"]["reason"]


def test_interrupting_stops_the_workload_and_keeps_the_session(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = cli.start("--record", "--out", out, "--", "sleep", "300")
    until(lambda: sessions(out) and "handle" in meta(sessions(out)[0]))
    until(lambda: (meta(sessions(out)[0]).get("handle") or {}).get("holder"))
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    found = show(cli, sessions(out)[0])
    assert found["session"]["status"] == "stopped"
    assert (sessions(out)[0].parent / "summary.md").exists()


def test_stop_ends_a_detached_run_and_sessions_lists_it(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = cli("--record", "--detach", "--out", out, "--", sys.executable, STEPS, 10_000, 0.02)
    path = Path(done.stdout.strip())
    assert path in sessions(out)
    until(lambda: "steps" and _listed(cli)[0]["steps"])
    assert _listed(cli)[0]["status"] == "running"
    cli("stop", path)
    listed = json.loads(cli.read("sessions", out, "--format", "json").stdout)["sessions"]
    assert [row["status"] for row in listed] == ["stopped"]
    assert [row["status"] for row in _listed(cli)] == ["stopped"]
    assert "nothing was running" in cli("stop", "--all").stderr


def test_the_time_limit_stops_the_workload(cli: Cli, tmp_path: Path) -> None:
    limited = ("--record", "--duration", "1s", "--out", tmp_path / "out", "--", "sleep", "300")
    assert "the run of bare was stopped (--duration 1s)" in cli(*limited).stdout
    found = show(cli, sessions(tmp_path / "out")[0])
    assert found["session"]["status"] == "stopped"
    assert "--duration" in found["session"]["status_text"]


def test_a_recording_of_the_machine_ends_with_the_process_it_is_for(
    cli: Cli, tmp_path: Path
) -> None:
    other = subprocess.Popen(["sleep", "300"])
    process = cli.start("--record", "--quiet", "--while-pid", other.pid, "--out", tmp_path / "out")
    until(lambda: sessions(tmp_path / "out"))
    assert process.poll() is None
    other.kill()
    other.wait()
    assert process.wait(timeout=60) == 0
    assert not (tmp_path / "out").exists(), "nobody is left who would remove it"


def test_two_environments_make_one_study(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = cli("--record", "--out", out, "--env", "bare", "--env", "bare", "--", "sleep", "0.6")
    assert [path.name for path in sessions(out)] == ["01-bare-1.gpuwatch", "02-bare-2.gpuwatch"]
    assert "bare#1" in done.stdout and "bare#2" in done.stdout
    assert "NO VERDICT (1 run of each, needs 5)" in done.stdout


def test_an_interval_that_cannot_be_held_is_said(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = cli.start("--record", "--interval", "0.05", "--out", out, "--quiet")

    def numbers() -> list[int]:
        with SessionReader(sessions(out)[0]) as reader:
            return [t // 50_000_000 for t in times_of(reader)]

    until(lambda: sessions(out) and numbers())
    process.send_signal(signal.SIGSTOP)
    before = numbers()[-1]
    time.sleep(1)  # this is the fault
    process.send_signal(signal.SIGCONT)
    until(lambda: numbers()[-1] > before + 1)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert "are missing" in events(sessions(out)[0], "interval-missed")[-1].text
    assert len(numbers()) < numbers()[-1]


def _pace(path: Path) -> float:
    """Steps per second of the time that the steps took."""
    rows = steps(path)
    return sum(row.count for row in rows) / sum(sum(row.seconds or ()) for row in rows)


def _listed(cli: Cli) -> list[dict[str, Any]]:
    return list(json.loads(cli.read("sessions", "--format", "json").stdout)["sessions"])


def test_a_session_of_a_living_recorder_needs_no_other(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--detach", "--out", tmp_path / "out", "--", "sleep", "300")
    path = Path(done.stdout.strip())
    told = cli("attach", "--record", path, code=2).stderr
    assert "needs no recorder" in told
    assert status(meta(path), path).state is State.RUNNING
    cli("stop", path)


def test_a_killed_shim_leaves_a_workload_that_stop_still_finds(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = cli.start("--record", "--out", out, "--", "sleep", "300")
    until(lambda: sessions(out) and (meta(sessions(out)[0]).get("handle") or {}).get("holder"))
    (path,) = sessions(out)
    os.kill(meta(path)["handle"]["holder"]["pid"], signal.SIGKILL)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1 and "was not seen" in told
    assert show(cli, path)["session"]["status"] == "lost"
    assert "stopped" in cli("stop", path).stderr
    assert "is not running" in cli("stop", path).stderr


def test_a_stop_right_after_the_shim_was_killed_ends_the_workload_too(
    cli: Cli, tmp_path: Path
) -> None:
    path = Path(
        cli("--record", "--detach", "--out", tmp_path / "out", "--", "sleep", "300").stdout[:-1]
    )
    shim = psutil.Process(until(lambda: (meta(path).get("handle") or {}).get("holder"))["pid"])
    (workload,) = until(shim.children)
    shim.kill()
    assert "stopped" in cli("stop", path).stderr
    until(lambda: not workload.is_running() or workload.status() == psutil.STATUS_ZOMBIE)


def test_a_command_that_cannot_be_executed_is_the_environments_failure(
    cli: Cli, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    told = cli("--record", "--out", tmp_path / "out", "--", script, code=3).stderr
    assert "could not be started" in told
    found = show(cli, sessions(tmp_path / "out")[0])
    assert found["session"]["status"] == "failed"
    assert "could not be started" in found["session"]["status_text"]


def test_a_finished_session_is_one_file(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--out", tmp_path / "out", "--", "true")
    names = {path.name for path in sessions(tmp_path / "out")[0].parent.iterdir()}
    summary = {f"summary.{kind}" for kind in ("json", "md", "html", "csv")}
    assert names == {"plan.json", "01-bare.gpuwatch", *summary}


def test_a_loss_that_is_no_number_costs_no_step(cli: Cli, tmp_path: Path) -> None:
    line = '{"event": "step", "step": 2, "count": 2, "seconds": [0.1, 0.2], "loss": [1.5, null]}'
    cli("--record", "--out", tmp_path / "out", "--", "echo", f":::GPUWATCH {line}")
    found = show(cli, sessions(tmp_path / "out")[0])
    assert found["step"]["count"] == 2
    assert found["step"]["median_seconds"] == pytest.approx(0.15)
    assert (found["step"]["first_loss"], found["step"]["last_loss"]) == (1.5, None)


def test_a_flood_of_output_costs_log_lines_never_steps(cli: Cli, tmp_path: Path) -> None:
    flood = tmp_path / "flood.py"
    flood.write_text(
        "import json\n"
        "for step in range(1, 301):\n"
        "    for line in range(2000):\n"
        "        print('a line of log, number', line, 'of step', step)\n"
        "    print(':::GPUWATCH', json.dumps({'event': 'step', 'step': step, 'seconds': 0.01}))\n"
    )
    out = tmp_path / "out"
    done = cli("--record", "--out", out, "--", sys.executable, flood)
    (path, *_) = sessions(out)
    assert step_numbers(path) == list(range(1, 301))
    kinds = {row.kind for row in events(path)}
    assert kinds - {"interval-missed"} == {"log-shortened"}, "a busy machine misses samples"
    lines = log(path)
    assert lines[0] == "a line of log, number 0 of step 1"
    assert lines[-1] == "a line of log, number 1999 of step 300"
    assert any("lines left out here" in line for line in lines)
    shown = cli.read("show", sessions(out)[0]).stdout
    assert "not in the log" in " ".join(shown.split()) or "only its start and end" in shown
    assert "flood.py" in done.stdout


def failed(cli: Cli, *words: object) -> str:
    """What is told of a program that fails, perhaps with a traceback."""
    done = subprocess.run(
        cli.argv("--record", *words),
        env=cli.env, cwd=cli.home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr


def test_what_a_failed_program_said_is_told_and_kept(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('fine so far')\nraise ValueError('the loss is \\x1b[31mgone')\n")
    out = tmp_path / "out"
    told = failed(cli, "--out", out, "--", sys.executable, script)
    assert "ValueError: the loss is gone" in told
    assert told.count("gpuwatch log ") == 1
    path = sessions(out)[0]
    assert cli.read("log", path, "--stream", "stdout").stdout == "fine so far\n"
    assert cli.read("log", path, "--tail", 1).stdout == "ValueError: the loss is gone\n"
    assert show(cli, path)["workload"]["name"] == "train.py"


def test_the_lines_before_what_torchrun_says_of_an_error_are_told(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    footer = ["=" * 60, "train.py FAILED", *["  rank      : 0 (local_rank: 0)"] * 9, "=" * 60]
    script.write_text(
        "import sys\n"
        "print('[rank0]: Traceback (most recent call last):', file=sys.stderr)\n"
        "print('[rank0]: ValueError: bad shape', file=sys.stderr)\n"
        "print('Traceback (most recent call last):', file=sys.stderr)\n"
        "print('torch.distributed.elastic.ChildFailedError: ', file=sys.stderr)\n"
        f"print({chr(10).join(footer)!r}, file=sys.stderr)\n"
        "sys.exit(1)\n"
    )
    told = failed(cli, "--out", tmp_path / "out", "--", sys.executable, script)
    assert "  [rank0]: ValueError: bad shape\n" in told and "local_rank" not in told


def test_a_module_that_is_not_there_is_told_with_the_python(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    cli.variables["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    out, program = ("--out", tmp_path / "out"), ("-c", "import nosuch")
    told = failed(cli, *out, "--", "python", *program)
    assert f"python was {tmp_path}/python; another: --env bare,python=PATH\n" in told
    assert " was " not in failed(cli, *out, "--", sys.executable, *program)


def test_what_several_runs_ended_with_is_told_once(cli: Cli, tmp_path: Path) -> None:
    twice = ("--env", "bare", "--env", "bare", "--", "sh", "-c", "echo oh >&2; exit 3")
    told = cli("--record", "--out", tmp_path / "out", *twice, code=1).stderr
    assert told.count("  oh\n") == told.count("gpuwatch log ") == 1


def test_a_study_recorded_elsewhere_is_found_again(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--quiet", "--out", tmp_path / "elsewhere", "--", "true")
    (path,) = sessions(tmp_path / "elsewhere")
    assert [row["path"] for row in _listed(cli)] == [str(path)]
    assert show(cli, Path("last"))["session"]["path"] == str(path)


def test_a_session_that_was_not_sampled_all_along_says_so(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--out", out, "--", sys.executable, STEPS, 100, 0.02)
    until(lambda: sessions(out) and (meta(sessions(out)[0]).get("handle") or {}).get("holder"))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.communicate()
    (path,) = sessions(out)
    done = cli("attach", "--record", "--detach", path)
    assert done.stdout.strip() == str(path)
    until(lambda: not status(meta(path), path).live and "result" in meta(path))
    assert any("nothing was sampled" in note for note in show(cli, path)["session"]["notes"])
    assert "nothing was sampled" in cli.read("show", path).stdout


def test_one_sample_makes_no_difference_and_no_zero(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--interval", 60, "--out", tmp_path, "--", sys.executable, STEPS, 5, 0.1)
    found = show(cli, sessions(tmp_path)[0])
    metrics, pace = found["metrics"], _pace(sessions(tmp_path)[0])
    time = metrics["process.cpu.time"]
    assert (time["method"], time["max"]) == ("unavailable", None) or time["max"] > 0
    assert metrics["gpuwatch.throughput"]["mean"] == pytest.approx(64 * pace)


def test_output_for_a_terminal_that_knows_ascii_alone(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--quiet", "--out", tmp_path / "out", "--", "true")
    cli.variables["PYTHONIOENCODING"] = "ascii"
    assert "finished" in cli("show", "last").stdout
    assert "finished" in cli("sessions").stdout


@pytest.mark.parametrize("command", ["show", "sessions", "export"])
def test_a_full_disk_behind_the_output_is_one_line(cli: Cli, tmp_path: Path, command: str) -> None:
    cli("--record", "--quiet", "--out", tmp_path / "out", "--", "true")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            cli.argv(command), env=cli.env, stdout=full, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 2  # as for a file that cannot be written
    assert done.stderr == "gpuwatch: error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("how", ["run", "--record"])
def test_what_is_piped_into_a_recording_is_read_by_its_program(
    cli: Cli, tmp_path: Path, how: str
) -> None:
    subprocess.run(
        cli.argv(how, "--out", tmp_path / "out", "--", "sh", "-c", "read word; echo got $word"),
        env=cli.env, cwd=cli.home, input="hello\n", text=True, capture_output=True, check=True,
    )  # fmt: skip
    (path,) = sessions(tmp_path / "out")
    assert cli.read("log", path).stdout == "got hello\n"


@pytest.mark.parametrize("options", [("--detach",), ("--env", "bare", "--env", "bare")])
def test_what_is_piped_and_cannot_be_passed_on_is_told(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = subprocess.run(
        cli.argv("--record", "--out", tmp_path / "out", *options, "--", "cat"),
        env=cli.env, cwd=cli.home, input="hello\n", text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert "standard input is not passed on" in done.stderr
    first = sessions(tmp_path / "out")[0]
    until(lambda: show(cli, first)["session"]["status"] == "finished")
    assert cli.read("log", first, "--tail", 2).stdout == ""
    assert "nothing was printed" in cli.read("log", first, "--tail", 2).stderr
    assert "at least 1" in cli("log", first, "--tail", -1, code=2).stderr


def test_children_are_kept_only_where_they_can_be(cli: Cli, tmp_path: Path) -> None:
    keep = ("--record", "--keep-children", "--out", tmp_path / "out")
    refused = cli(*keep, "--env", "docker=x", "--", "true", code=2)
    assert "ends with its container" in refused.stderr
    cli(*keep, "--", "sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $!")
    (path,) = sessions(tmp_path / "out")
    os.kill(int(cli.read("log", path).stdout), signal.SIGKILL)
    assert "a process running; it goes on" in cli.read("show", path).stdout.replace("\n  ", " ")


def test_why_a_workload_failed_is_told_with_its_hint(cli: Cli, tmp_path: Path) -> None:
    error = {"event": "error", "kind": "run", "message": "out of memory", "hint": "smaller batch"}
    program = f"echo ':::GPUWATCH {json.dumps(error)}'; exit 1"
    told = cli("--record", "--out", tmp_path / "out", "--", "sh", "-c", program, code=1).stderr
    assert "error: out of memory; smaller batch" in told
    (session,) = sessions(tmp_path / "out")
    shown = json.loads(cli.read("show", "--format", "json", session).stdout)
    assert shown["error"]["hint"] == "smaller batch"
