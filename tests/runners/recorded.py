"""Running things in real engines: through a runner alone, and through the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuwatch.core.models import Environment, LaunchSpec, Result, Workload
from gpuwatch.runners.base import Run, Runner
from tests.waiting import until


def specification(
    kind: str,
    image: object,
    *command: str,
    where: Path,
    variables: Mapping[str, str] | None = None,
    gpus: tuple[str, ...] = (),
    **options: Any,
) -> LaunchSpec:
    """What a run of a command of the user's own asks for."""
    environment = Environment(kind, kind, image=None if image is None else str(image), **options)
    return LaunchSpec(
        Workload("test", "command", command),
        environment,
        None,
        str(where),
        {**os.environ, **(variables or {})},
        gpus,
        gpus_chosen=bool(gpus),
    )


@dataclass
class Ended:
    result: Result
    out: bytes
    err: bytes

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()


def start(runner: Runner, spec: LaunchSpec, folder: Path) -> Run:
    problems = runner.preflight(spec)
    assert problems == [], problems
    folder.mkdir(mode=0o700, parents=True)
    return runner.start(spec, runner.prepare(spec, lambda line: None), folder)


def finish(run: Run) -> Ended:
    """Everything until the end, which must come."""
    streams = {"stdout": bytearray(), "stderr": bytearray()}

    def over() -> bool:
        ended = run.result() is not None
        while outputs := run.read():
            for output in outputs:
                streams[output.stream] += output.data
        return ended

    until(over)
    result = run.result()
    assert result is not None
    return Ended(result, bytes(streams["stdout"]), bytes(streams["stderr"]))


def reads(run: Run, wanted: bytes) -> None:
    """Wait until the run wrote this."""
    seen = bytearray()

    def came() -> bool:
        for output in run.read():
            seen.extend(output.data)
        return wanted in seen

    until(came)


def processes(*words: str) -> list[int]:
    """The processes of this machine whose command line holds all of these words."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if all(word in line for word in words):
                found.append(int(entry.name))
    return found


def shown(answer: str) -> dict[str, Any]:
    """What ``gpuwatch show --format json`` says."""
    value = json.loads(answer)
    assert isinstance(value, dict)
    return value
