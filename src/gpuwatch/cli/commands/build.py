"""Build the image in which gpuwatch's workloads run, for Docker or for Apptainer.

gpuwatch's recipes take a base image with Python and torch, check it, add torchvision if only that
is missing, and compile its modules. Any image with torch also works unbuilt: --env KIND=IMAGE.

  gpuwatch build docker --pull                     from the recipe's base, fetched if missing
  gpuwatch build docker --base IMAGE               from an image that Docker has
  gpuwatch build docker --push ghcr.io/me/torch    and push it, for --on kubernetes,image=...
  gpuwatch build apptainer --base docker-daemon:gpuwatch-workloads:latest
  gpuwatch build apptainer --base FILE.sif --out workloads.sif
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import deque
from pathlib import Path

from gpuwatch.core.errors import ExitCode, GpuwatchError, UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.signals import interruptible
from gpuwatch.core.text import clean
from gpuwatch.core.units import binary
from gpuwatch.runners.image_records import BuiltImage

_LAST_LINES = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", choices=("docker", "apptainer"), metavar="docker|apptainer")
    parser.add_argument(
        "--base",
        metavar="BASE",
        help="the image to build on; for apptainer also FILE.sif, docker-daemon:NAME:TAG, "
        "docker-archive:FILE (default: PyTorch's own image)",
    )
    parser.add_argument("--pull", action="store_true", help="fetch the base if it is missing")
    parser.add_argument("--tag", metavar="NAME", help="docker: the image's name")
    parser.add_argument("--no-cache", action="store_true", help="docker: repeat every step")
    parser.add_argument(
        "--push", metavar="REGISTRY/NAME", help="docker: push it to a registry, under this name"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="apptainer: the SIF file")
    parser.add_argument(
        "--compress",
        choices=("gzip", "lz4", "zstd", "none"),
        help="apptainer: compression of the SIF; none is fastest (default: the engine's own)",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    docker = arguments.engine == "docker"
    foreign = ("out", "compress") if docker else ("tag", "no_cache", "push")
    for name in foreign:
        if getattr(arguments, name):
            raise UsageError(
                f"--{name.replace('_', '-')} is not for {arguments.engine}",
                "see `gpuwatch build --help`",
            )
    progress = TerminalProgress() if sys.stderr.isatty() else PlainProgress()
    try:
        with interruptible():
            built = _docker(arguments, progress) if docker else _apptainer(arguments, progress)
    except (GpuwatchError, KeyboardInterrupt):
        progress.failed()
        raise
    progress.done()
    _report(arguments, built)
    return ExitCode.DONE


def _docker(arguments: argparse.Namespace, progress: PlainProgress) -> BuiltImage:
    from gpuwatch.runners.docker.build import build

    return build(
        arguments.base,
        arguments.tag,
        progress,
        pull=arguments.pull,
        cache=not arguments.no_cache,
        push=arguments.push,
    )


def _apptainer(arguments: argparse.Namespace, progress: PlainProgress) -> BuiltImage:
    from gpuwatch.runners.apptainer.build import build

    return build(
        arguments.base, arguments.out, progress, pull=arguments.pull, compression=arguments.compress
    )


def _report(arguments: argparse.Namespace, built: BuiltImage) -> None:
    if arguments.format == "json":
        from dataclasses import asdict

        from gpuwatch.report.json import dumps

        sys.stdout.write(
            dumps({"schema": JSON_SCHEMA, "engine": arguments.engine, **asdict(built)})
        )
        return
    facts = [built.image]
    if built.id:
        facts.append(re.sub(r"^sha256:(.{12}).*", r"\1", built.id))
    facts.append(f"{built.seconds:.1f} s" + (", from the cache" if built.cached else ""))
    if built.layers is not None:
        facts.append(f"{built.layers} layers")
    print("  ".join([*facts, binary(built.bytes)]))
    if built.pushed:
        print(f"pushed {built.pushed}")


class PlainProgress:
    """Prints every line of a build as it comes, to the stderr of construction time."""

    def __init__(self) -> None:
        self._stream = sys.stderr

    def step(self, text: str) -> None:
        self._write(f"{clean(text)}\n")

    def line(self, text: str) -> None:
        self._write(f"  {clean(text)}\n")

    def done(self) -> None:
        """The build is over."""

    def failed(self) -> None:
        """The build failed; its output has been printed already."""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class TerminalProgress(PlainProgress):
    """Shows one line per step, rewritten with the step's latest output."""

    def __init__(self) -> None:
        super().__init__()
        self._step: str | None = None
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def step(self, text: str) -> None:
        self.done()
        self._step = clean(text)
        self._last.clear()
        self._rewrite(self._step)

    def line(self, text: str) -> None:
        self._last.append(clean(text))
        step = f"{self._step.partition(' : ')[0]}  " if self._step else ""
        self._rewrite(step + self._last[-1])

    def done(self) -> None:
        if self._step is not None:
            self._rewrite(self._step)
            self._write("\n")
            self._step = None

    def failed(self) -> None:
        self.done()
        for line in self._last:
            self._write(f"  {line}\n")

    def _rewrite(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r\x1b[K{text[:width]}")
