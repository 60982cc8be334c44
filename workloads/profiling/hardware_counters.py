"""Executed FLOP and DRAM traffic by hardware counters: one or two extra steps under ``ncu``.

The run's own command is started again as ncu's child. ncu replays a kernel once per group of
counters, so its times do not describe the run; its counts do, as the kernels are the same. Where a
trace tells the kernels of a step, ncu, which replays a launch for every group of counters, sees a
few of each kind only: a kind is a kernel with its grid and block, whose launches do the same work.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..lines import PREFIX
from ..options import FLAGS, parameters_to_argv
from ..training import BRACKET
from .ncu import Launch, count, metrics, parse
from .traces import Config, Traced


def most_to_see(step: Iterable[Traced]) -> int:
    """How many launches of each grid and block must be seen to see every kernel among them.

    ncu's filter ``per-launch-config`` counts launches of one grid and block, whatever the kernel.
    """
    seen: dict[Config, list[str]] = {}
    most = 1
    for launch in step:
        names = seen.setdefault(launch.config, [])
        if launch.name not in names:
            most = max(most, len(names) + 1)
        names.append(launch.name)
    return most


def of_whole_step(
    seen: Sequence[Launch], step: Sequence[Traced]
) -> tuple[list[Launch], str | None]:
    """What ncu saw of a step, each launch for as many of its kind as the step has, and a note on
    the kinds of which it saw none.

    ncu and torch spell template arguments differently, so that kernels of one function, grid and
    block are told apart by the order in which they first appear.
    """
    measured: dict[tuple[str, Config], dict[str, list[Launch]]] = {}
    for one in seen:
        kinds = measured.setdefault((_function(one.name), one.config), {})
        kinds.setdefault(one.name, []).append(one)
    traced: dict[tuple[str, Config], dict[str, list[int]]] = {}
    for launch in step:
        times = traced.setdefault((_function(launch.name), launch.config), {})
        times.setdefault(launch.name, []).append(launch.duration_ns)
    found: list[Launch] = []
    lacking: dict[str, int] = {}
    for key, kinds_of_step in traced.items():
        samples = list(measured.get(key, {}).values())
        for at, (name, durations) in enumerate(kinds_of_step.items()):
            if at >= len(samples):
                lacking[name] = lacking.get(name, 0) + sum(durations)
                continue
            found += [one.times_more(len(durations) / len(samples[at])) for one in samples[at]]
    if not lacking:
        return found, None
    share = sum(lacking.values()) / max(1, sum(launch.duration_ns for launch in step))
    named = ", ".join(name[:80] for name in sorted(lacking, key=lambda name: -lacking[name])[:3])
    note = f"not counted: kernels with {share:.1%} of the kernels' time ({named})"
    return found, f"{note}; what a step has is unknown, not the sum of the rest"


def _function(name: str) -> str:
    """A kernel's name without its template arguments, as both tools spell it."""
    plain = re.sub(r"\(anonymous namespace\)|<unnamed>", "_", name).removeprefix("void ")
    return re.split(r"[<(]", plain, maxsplit=1)[0]


LIMIT_SECONDS = 120.0
"""For all of ncu; what it has counted until then is told."""
GRACE_SECONDS = 20.0
"""For the end of a command that is over its limit."""
PROGRESS_SECONDS = 5.0
PROBE_SECONDS = 60.0
SLOW_STEP_SECONDS = 1.0
"""Above this, one step is counted instead of two."""

INSTALL = "install Nsight Compute (package nsight-compute, or the CUDA toolkit)"
PERMISSION = (
    "ncu may not read this GPU's counters (ERR_NVGPUCTRPERM): on the host, let the driver allow it "
    "(option NVreg_RestrictProfilingToAdminUsers=0 of the module nvidia, then load it anew), or "
    "run with CAP_SYS_ADMIN (docker: --cap-add SYS_ADMIN)"
)

_FOLDERS = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*")
_OPTIONAL = (("--cache-control", "none"), ("--clock-control", "none"), ("--print-units", "base"))
_VERSION = re.compile(r"Version (\S+)")
_ERROR = re.compile(r"^==ERROR== (.*)", re.MULTILINE)
_CACHES = "caches are left as each replay finds them, clocks as they are"


@dataclass(frozen=True)
class Output:
    """A process's output. ``code`` None means that it was ended after a timeout."""

    code: int | None
    stdout: str
    stderr: str


def count_executed(
    flags: argparse.Namespace, device: str, step_seconds: float, traced: Sequence[Traced] = ()
) -> dict[str, Any]:
    """The keys of a ``counters`` event; a failure becomes its reason.

    ``flags`` are the run's, ``device`` is ``cpu`` or ``cuda``, ``step_seconds`` the mean of a step,
    ``traced`` the kernels of one, if they are known.
    """
    tool = find(os.environ)
    if (reason := refusal(device, tool)) is not None or tool is None:
        return unavailable(reason or "")
    _free_memory()
    steps = 1 if traced or step_seconds >= SLOW_STEP_SECONDS else 2
    program = [sys.executable, sys.argv[0], flags.workload, *arguments(flags, steps)]
    try:
        return under(tool, program, steps, traced)
    except Exception as error:
        return unavailable(f"counting with {tool} failed: {type(error).__name__}: {error}"[:1000])


def find(variables: Mapping[str, str]) -> str | None:
    """The path of ncu: on the ``PATH``, else in NVIDIA's packages, the newest first."""
    path = shutil.which("ncu", path=variables.get("PATH", ""))
    if path is not None:
        return path
    for pattern in _FOLDERS:
        folders = Path("/").glob(pattern.lstrip("/"))
        by_version = sorted(
            folders, key=lambda path: [*map(int, re.findall(r"\d+", path.name))], reverse=True
        )
        for folder in by_version:
            if os.access(folder / "ncu", os.X_OK):
                return str(folder / "ncu")
    return None


def refusal(device: str, tool: str | None) -> str | None:
    """Why counters cannot even be tried; None if they can."""
    if device != "cuda":
        return "the run was on the CPU, and ncu reads the counters of NVIDIA GPUs"
    if tool is None:
        return f"ncu is not installed in this environment: {INSTALL}"
    return None


def arguments(flags: argparse.Namespace, steps: int) -> list[str]:
    """The run's own flags for ``steps`` timed steps, without further measurements.

    One warm-up step lets libraries choose their kernels. The data has already been fetched.
    """
    given = {name: getattr(flags, name, None) for name in FLAGS}
    changed = {"epochs": None, "download": False, "counters": False}
    return parameters_to_argv({**given, **changed, "steps": steps, "warmup": 1, "profile": 0})


def under(
    tool: str, program: Sequence[str], steps: int, traced: Sequence[Traced] = ()
) -> dict[str, Any]:
    """The keys of a ``counters`` event from ``program`` under ncu.

    The program's ``steps`` timed steps are enclosed by ``cudaProfilerStart`` and
    ``cudaProfilerStop``. ``traced``: the kernels of one step, if they are known.

    Raises:
        OSError: ncu cannot be executed.
    """
    version_text = run([tool, "--version"], PROBE_SECONDS).stdout
    match = _VERSION.search(version_text)
    version = match[1] if match else None
    query = run([tool, "--query-metrics"], PROBE_SECONDS)
    if "ERR_NVGPUCTRPERM" in query.stdout + query.stderr:
        return unavailable(PERMISSION, version)
    usage = run([tool, "--help"], PROBE_SECONDS).stdout
    optional = [word for option in _OPTIONAL if option[0] in usage for word in option]
    command = [tool, "--csv", "--page", "raw", "--profile-from-start", "off"]
    command += ["--target-processes", "all", *optional]
    if traced and "per-launch-config" in usage:
        command += ["--filter-mode", "per-launch-config"]
        command += ["--launch-count", str(most_to_see(traced))]
    command += ["--metrics", ",".join(metrics(query.stdout)), *program]
    result = run(command, LIMIT_SECONDS, {BRACKET: "1"}, _say)
    launches, lacking = parse(result.stdout), None
    if (reason := _failure(result, bool(launches), can_be_part=bool(traced))) is not None:
        return unavailable(reason, version)
    if traced:
        launches, lacking = of_whole_step(launches, traced)
    counted = count(launches)
    notes = [*counted.notes, *([_CACHES] if optional else [])]
    if lacking is not None:
        ended = f"ncu was ended after {LIMIT_SECONDS:.0f} s; " if result.code is None else ""
        notes.insert(0, ended + lacking)
    whole = lacking is None
    return {
        **unavailable(None, version),
        "steps": steps,
        "flop_per_step": _per(counted.flop, steps) if whole else None,
        "dram_read_bytes_per_step": _per(counted.dram_read_bytes, steps) if whole else None,
        "dram_write_bytes_per_step": _per(counted.dram_write_bytes, steps) if whole else None,
        "kernels": [vars(kernel) for kernel in counted.kernels],
        "launches": counted.launches,
        "notes": notes,
    }


def _say(output: str, seconds: float) -> None:
    """Progress, into the run's log."""
    done = output.count("==PROF== Profiling")
    print(f"counting with ncu: {seconds:.0f} s, {done} kernels so far", flush=True)


def unavailable(reason: str | None, version: str | None = None) -> dict[str, Any]:
    """The keys of a ``counters`` event without figures."""
    return {
        "tool": "ncu",
        "version": version,
        "steps": None,
        "flop_per_step": None,
        "dram_read_bytes_per_step": None,
        "dram_write_bytes_per_step": None,
        "kernels": [],
        "launches": None,
        "reason": reason,
        "notes": [],
    }


def run(
    command: Sequence[str],
    limit: float,
    variables: Mapping[str, str] | None = None,
    say: Callable[[str, float], None] = lambda output, seconds: None,
) -> Output:
    """Run a command in its own process group for at most ``limit`` seconds, and leave no process
    behind. ``say`` is called every few seconds, with the output and the seconds so far.

    Raises:
        OSError: it cannot be executed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **(variables or {})},
            start_new_session=True,
        )
        code = None
        try:
            while code is None and (left := begun + limit - time.monotonic()) > 0:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = process.wait(min(left, PROGRESS_SECONDS))
                if code is None:
                    say(_text(out), time.monotonic() - begun)
            if code is None:  # ncu prints at its end what it has counted
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_SECONDS)
            return Output(code, _text(out), _text(err))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _text(file: IO[bytes]) -> str:
    """What was written so far, without moving the place where the command writes."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


def _failure(result: Output, launches: bool, *, can_be_part: bool) -> str | None:
    """Why there are no counts, from the output of ncu and the workload."""
    if result.code is None and launches and can_be_part:
        return None
    if result.code is None:
        return f"ncu had not finished after {LIMIT_SECONDS:.0f} s: choose a smaller --batch-size"
    everything = result.stdout + result.stderr
    if "ERR_NVGPUCTRPERM" in everything:
        return PERMISSION
    if result.code == 0 and launches:
        return None
    for line in result.stdout.splitlines():
        if line.startswith(PREFIX) and (error := _error_of(line)) is not None:
            return f"the workload failed under ncu: {error}"[:1000]
    if errors := _ERROR.findall(everything):
        return f"ncu: {errors[-1]}"[:1000]
    if result.code:
        last = result.stderr.strip().rpartition("\n")[2]
        return f"ncu ended with code {result.code}: {last}"[:1000]
    return "ncu saw no kernel in the counted steps"


def _error_of(line: str) -> str | None:
    try:
        event = json.loads(line[len(PREFIX) :])
    except ValueError:
        return None
    return str(event.get("message")) if event.get("event") == "error" else None


def _free_memory() -> None:
    import gc

    import torch

    gc.collect()
    torch.cuda.empty_cache()


def _per(total: float | None, steps: int) -> float | None:
    return None if total is None else total / steps
