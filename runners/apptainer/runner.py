"""Apptainer and Singularity: the workload in an image, as a process of this machine."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Problem
from gpuwatch.core.units import binary
from gpuwatch.runners import container_launch, image_records, mounting
from gpuwatch.runners.apptainer import command, images, preflight, spython_client
from gpuwatch.runners.apptainer import engine as engines
from gpuwatch.runners.apptainer.engine import Engine
from gpuwatch.runners.base import Run
from gpuwatch.runners.local import Ending, LocalRun

_FATAL = re.compile(r"^(?:\x1b\[\d+m)?FATAL: {1,3}(?:\x1b\[0m)? +(.+)", re.MULTILINE)
"""The launcher's error format: padded, and in colour until it has looked for a terminal."""

_LIMIT = "memory-limit"
"""File in the run's folder that holds the limit in bytes."""


class ApptainerRunner:
    kind = "apptainer"
    contained = False

    def engine(self) -> str | None:
        engine = engines.find()
        return str(engine) if engine else None

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        return preflight.problems(spec)

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        engine = _engine()
        image = images.image_of(spec.environment, spec.working_directory)
        if image.uri and not os.path.exists(image.path):
            _pull(image, spec, say)
        return Prepared(
            command.build(spec, engine, image.path),
            command.variables(spec, engine),
            {
                "image": spec.environment.image or str(image.path),
                **images.facts(image, say),
                **_facts(spec),
            },
        )

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        home, scratch = folder / "home", folder / "scratch"
        home.mkdir(mode=0o700)
        # The engine itself only adds mount points that the image lacks; one in the image's /tmp
        # is hidden by ours.
        for root, name in command.SCRATCH.items():
            own = scratch / name
            own.mkdir(parents=True)
            own.chmod(0o1777)  # like /tmp; the run's folder keeps others out
            mounting.make_points(container_launch.mounts(spec), root, own)
        if spec.environment.memory_bytes is not None:
            output.write_text(folder / _LIMIT, str(spec.environment.memory_bytes))
        return LocalRun.start(
            self.kind,
            command.with_folders(prepared.command, home, scratch),
            folder=folder,
            working_directory=os.sep,
            variables={**command.outside(spec.variables), **prepared.variables},
            blame=blame,
            remark=partial(limited, folder),
            pid_namespace=True,
            takes_input=spec.takes_input,
        )

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        folder = Path(str(handle["folder"]))
        return LocalRun.attach(handle, cursor, blame, partial(limited, folder))


def blame(ending: Ending) -> str | None:
    """The launcher's error message, if the workload never started.

    Every launcher failure exits with 255 and prints ``FATAL:`` on stderr. A workload can end the
    same way, but usually has written to stdout by then.
    """
    if missing := container_launch.not_started(ending.stderr):
        return missing
    if ending.code != 255 or ending.stdout_bytes:
        return None
    errors = _FATAL.findall(ending.stderr)
    return errors[-1].strip() if errors else None


def limited(folder: Path, ending: Ending) -> str | None:
    """A note on the memory limit of a workload killed by SIGKILL.

    Whether the limit was the cause is unknown: the engine removes the control group, and with it
    the counters, as soon as the workload is dead.
    """
    if ending.signal != signal.SIGKILL and ending.code != 128 + signal.SIGKILL:
        return None
    try:
        limit = int((folder / _LIMIT).read_text())
    except (OSError, ValueError):
        return None
    return f"its memory was limited to {binary(limit)}, which may be why it was killed"


def _engine() -> Engine:
    engine = engines.find()
    if engine is None:
        raise NotAvailable("neither apptainer nor singularity answers", spython_client.INSTALL)
    return engine


def _pull(image: images.Image, spec: LaunchSpec, say: Callable[[str], None]) -> None:
    """Fetch the image and record the cost.

    Raises:
        NotAvailable: it could not be fetched.
    """
    missing = images.problem(image, spec.environment, Path(_engine().program).name)
    if missing is not None:
        raise NotAvailable(missing.text, missing.hint)
    assert image.uri is not None
    paths.private_folder(image.path.parent)
    say(f"fetching {image.uri}")
    began = time.monotonic()
    spython_client.pull(image.uri, image.path, say)
    seconds = time.monotonic() - began
    header = images.read_header(image.path)
    if header is not None:
        image_records.remember(header.id, "pull", seconds, source=image.uri)


def _facts(spec: LaunchSpec) -> dict[str, JSON]:
    environment = spec.environment
    facts: dict[str, JSON] = {
        "user": f"{os.geteuid()}:{os.getegid()}",
        "network": environment.network or "host",
        "mounts": [str(mount) for mount in container_launch.mounts(spec)],
        # The container's own tmpfs, of the kernel's default size.
        "shm_bytes": os.sysconf("SC_PHYS_PAGES") // 2 * os.sysconf("SC_PAGE_SIZE"),
    }
    if environment.python is not None:
        facts["python"] = environment.python
    if environment.memory_bytes is not None:
        facts["memory_limit_bytes"] = environment.memory_bytes
    if spec.gpus:
        facts["gpu_request"] = "--nv"
    return facts
