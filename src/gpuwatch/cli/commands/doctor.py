"""Check what can run here, with and without GPU: what is missing, and the command that fixes it.

Asks every environment that gpuwatch knows (or those of --env) whether one of gpuwatch's own
workloads, or the command after --, could start in it now. Nothing is started, fetched or written.
If there are GPUs, torch is imported to see whether it can use them, unless --quick is given. Exit
code: 0 if everything named with --env can run (without --env: if bare can), else 3.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from gpuwatch import __version__, runners
from gpuwatch.cli.doctor import clock
from gpuwatch.cli.doctor.counters import bandwidth_by, executed_flop
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.cases import command_name
from gpuwatch.cli.options.environments import environments
from gpuwatch.core import paths
from gpuwatch.core.errors import ExitCode, NotAvailable
from gpuwatch.core.models import Allocation, Environment, LaunchSpec, Problem, Workload, number
from gpuwatch.core.text import document
from gpuwatch.recorder import torch_builds
from gpuwatch.recorder.allocation import limits, resolve
from gpuwatch.recorder.sources import Sources
from gpuwatch.report import doctor as report
from gpuwatch.runners import image_records
from gpuwatch.runners.interpreter import choose
from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.nvml.visible_devices import VARIABLE

PATIENCE_SECONDS = 10.0
"""Time limit in s for a runner's answer."""

_FROM_DOCKER = "gpuwatch build apptainer --base docker-daemon:gpuwatch-workloads:latest"

_LEAST_FREE_BYTES = 64 << 20
"""Space for the spool of a run whose recorder is dead."""

_VERSIONS = (
    "import json, platform, importlib.metadata as m, importlib.util as u\n"
    "def v(n):\n"
    "    try: return m.version(n)\n"
    "    except m.PackageNotFoundError: return None\n"
    "torch = u.find_spec('torch')\n"
    "place = torch and torch.origin\n"
    "print(json.dumps([platform.python_version(), v('torch'), v('torchvision'), place]))"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--env",
        action="append",
        metavar="KIND[=IMAGE][,...]",
        help="check this environment, repeatable (default: every kind)",
    )
    parser.add_argument("--images", action="store_true", help="also check the local images")
    parser.add_argument(
        "--quick", action="store_true", help="do not import torch, only read its files"
    )
    parser.add_argument("--gpus", metavar="INDEX|UUID,...", help="the GPUs to check, or none")
    parser.add_argument(
        "--on", metavar="PLACE", help="check there: ssh=HOST, slurm,OPTION=VALUE, kubernetes"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    # The name of this place where doctor runs here for a doctor that asks for its clock, too.
    parser.add_argument("--asked-on", default="", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if arguments.on is not None:
        from gpuwatch.cli.place.checking import doctor

        words = _words(arguments, command)
        return doctor(arguments.on, words, as_json=arguments.format == "json")
    if arguments.asked_on:
        clock.tell()
    launch.need_linux()
    texts = arguments.env or sorted(runners.kinds(aliases=False), key=lambda kind: kind != "bare")
    gpus = launch.gpus(arguments.gpus)
    # A runner's own output must not mix with ours, and one that hangs may restore stdout late.
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        local_images = images(PATIENCE_SECONDS) if arguments.images else []
        texts = list(dict.fromkeys((*texts, *local_images)))
        requested = list(zip(texts, environments(texts), strict=True))
        workload = Workload("mnist-cnn", "workload")  # any of gpuwatch's own
        if command:
            workload = Workload(command_name(command), "command", command)
        result = _report(requested, gpus, workload, quick=arguments.quick)
        result = replace(result, offered=frozenset(local_images))
    required = [check for check in result.environments if check.text in (arguments.env or ["bare"])]
    ready = all(check.ready for check in required)
    if arguments.format == "json":
        text = json.dumps(report.as_json(result, ready=ready), indent=2, ensure_ascii=False)
        out.write(document(text) + "\n")
    else:
        out.write(report.terminal(result, arguments.asked_on))
    return ExitCode.DONE if ready else ExitCode.NOT_AVAILABLE


def _words(arguments: argparse.Namespace, command: tuple[str, ...]) -> list[str]:
    """The command line without ``--on``."""
    words = [word for text in arguments.env or () for word in ("--env", text)]
    words += ["--images"] * arguments.images + ["--quick"] * arguments.quick
    words += ["--gpus", arguments.gpus] if arguments.gpus is not None else []
    words += ["--format", arguments.format]
    return [*words, *(("--", *command) if command else ())]


def _report(
    requested: Sequence[tuple[str, Environment]],
    gpus: tuple[str, ...] | None,
    workload: Workload,
    *,
    quick: bool,
) -> report.Report:
    with contextlib.closing(Sources.open(gpus or None, workload=False)) as sources:
        devices = [device for device in sources.devices if device.kind == "gpu"]
        measured = [bandwidth_by(device, sources.channels) for device in devices]
        reason = sources.no_gpu
    given, unusable = _given(gpus)
    reason = reason or unusable
    driver = next((device.attributes.get("driver.version") for device in devices), None)
    bare = next((env for _, env in requested if env.kind == "bare"), None)
    of_ours = workload.kind == "workload"
    python, build = _python(
        bare.python if bare else None, try_torch=bool(bare and devices and of_ours) and not quick
    )
    refusals = [_refusal(python, build, device) if of_ours else None for device in devices]
    checked = _ask(requested, given, workload)
    if of_ours:
        of_given = [
            refusal
            for device, refusal in zip(devices, refusals, strict=True)
            if device.uuid in given.gpus
        ]
        checked = tuple(_with_torch(check, of_given, tried=python.torch_tried) for check in checked)
    return report.Report(
        gpuwatch=__version__,
        system=f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs",
        environments=checked,
        gpus=tuple(
            report.Gpu(
                device.id,
                device.name,
                device.uuid,
                number(device.attributes.get("memory.total")),
                _text(device.attributes.get("compute.capability")),
                torch=refusal,
                bandwidth_by=by if isinstance(by, str) else None,
                bandwidth=by if isinstance(by, Problem) else None,
            )
            for device, refusal, by in zip(devices, refusals, measured, strict=True)
        ),
        executed_flop=executed_flop() if devices else None,
        driver=None if driver is None else str(driver),
        gpu_reason=reason,
        python=python,
        studies=_folder(paths.data_home(), "XDG_DATA_HOME"),
        runs=_folder(paths.runs_home(), "XDG_STATE_HOME"),
    )


def _given(gpus: tuple[str, ...] | None) -> tuple[Allocation, Problem | None]:
    """The resources that a run would get, and why it would get no GPU.

    Raises:
        NotAvailable: the GPUs of --gpus are not there.
    """
    try:
        given = resolve(gpus, os.environ)
    except NotAvailable as error:
        if gpus is not None:
            raise
        return Allocation(limits=limits()), Problem("gpus-unclear", error.message, error.hint)
    if given.gpus or not given.gpus_chosen:
        return given, None
    if gpus == ():
        return given, Problem("gpus-none", "--gpus none was given", "leave --gpus out")
    value = os.environ[VARIABLE]
    return given, Problem("gpus-hidden", f"{VARIABLE}={value} hides every GPU", f"unset {VARIABLE}")


def _ask(
    requested: Sequence[tuple[str, Environment]], given: Allocation, workload: Workload
) -> tuple[report.EnvironmentCheck, ...]:
    """Check all environments at the same time."""
    questions = {
        text: partial(_checked, text, environment, given, workload)
        for text, environment in requested
    }
    found = answers(questions, PATIENCE_SECONDS)
    return _with_dockers_image(
        [
            found.get(text) or _silent(text, environment, bool(given.gpus))
            for text, environment in requested
        ]
    )


def _checked(
    text: str, environment: Environment, given: Allocation, workload: Workload
) -> report.EnvironmentCheck:
    spec = LaunchSpec(
        workload=workload,
        environment=environment,
        archive=None,
        working_directory=os.getcwd(),
        variables=dict(os.environ),
        gpus_chosen=given.gpus_chosen,
        limits=given.limits,
    )
    with_gpus = replace(spec, gpus=given.gpus)
    return report.EnvironmentCheck(
        text,
        environment,
        runners.engine(environment.kind),
        without_gpu=tuple(runners.check(spec)),
        with_gpu=tuple(runners.check(with_gpus)) if given.gpus else None,
    )


def _with_dockers_image(
    checks: Sequence[report.EnvironmentCheck],
) -> tuple[report.EnvironmentCheck, ...]:
    """Suggest building Apptainer's image from Docker's, if Docker has the workloads' image."""
    own = [check for check in checks if check.environment.image is None]
    if not any(check.environment.kind == "docker" and not check.without_gpu for check in own):
        return tuple(checks)

    def fixed(problems: Sequence[Problem]) -> tuple[Problem, ...]:
        return tuple(
            replace(problem, hint=_FROM_DOCKER) if problem.code == "image-missing" else problem
            for problem in problems
        )

    return tuple(
        replace(
            check,
            without_gpu=fixed(check.without_gpu),
            with_gpu=None if check.with_gpu is None else fixed(check.with_gpu),
        )
        if check in own and check.environment.kind in ("apptainer", "singularity")
        else check
        for check in checks
    )


def _silent(text: str, environment: Environment, with_gpu: bool) -> report.EnvironmentCheck:
    problem = Problem(
        "no-answer",
        f"its engine did not answer within {PATIENCE_SECONDS:g} s",
        "see whether the engine is stuck, or choose another --env",
    )
    return report.EnvironmentCheck(
        text, environment, None, (problem,), (problem,) if with_gpu else None
    )


def _with_torch(
    check: report.EnvironmentCheck, refusals: Sequence[Problem | None], *, tried: bool
) -> report.EnvironmentCheck:
    """Add torch's problems to a bare check: on GPUs it is ready only if torch can use them all."""
    if check.environment.kind != "bare" or check.with_gpu != ():
        return check
    problems = tuple(dict.fromkeys(filter(None, refusals)))
    return replace(check, with_gpu=problems if problems or tried else None)


def _python(
    requested: str | None, *, try_torch: bool
) -> tuple[report.Python, torch_builds.TorchBuild | None]:
    """The interpreter of bare runs with its package versions, and its build of torch.

    The build is read from torch's files or, with ``try_torch``, from the imported torch.
    """
    chosen = choose(requested, os.environ)
    told = torch_builds.answer([chosen.path, "-c", _VERSIONS], PATIENCE_SECONDS)
    version, torch, torchvision, place = told or (None, None, None, None)
    build = torch_builds.read(Path(place).parent) if place else None
    kind = None if build is None else f"CUDA {build.cuda}" if build.cuda else "CPU"
    tried = bool(try_torch and torch)
    python = report.Python(chosen.path, chosen.origin, version, torch, torchvision, kind, tried)
    return python, torch_builds.probe(chosen.path) if tried else build


def _refusal(
    python: report.Python, build: torch_builds.TorchBuild | None, device: Device
) -> Problem | None:
    if build is None:
        return torch_builds.fails(python.path) if python.torch_tried else None
    return torch_builds.verdict(build, device.attributes, python.path)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _folder(path: Path, variable: str) -> report.Folder:
    """Whether the folder, or its nearest existing parent, is writable; and the free space."""
    existing = next(place for place in (path, *path.parents) if place.exists())
    try:
        free: int | None = shutil.disk_usage(existing).free
    except OSError:
        free = None
    problem = None
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        problem = Problem(
            "not-writable",
            f"{path} cannot be written: {existing} is not writable",
            f"set {variable} to a folder of yours, or give --out DIR to every recording"
            if variable == "XDG_DATA_HOME"
            else f"set {variable} to a folder of yours",
        )
    elif free is not None and free < _LEAST_FREE_BYTES:
        problem = Problem(
            "disk-full",
            f"{path} has {free >> 20} MiB left",
            f"free some space there, or set {variable} to another folder",
        )
    return report.Folder(str(path), free, problem)


Answer = TypeVar("Answer")

MOST = 12
"""Most images listed of one kind, newest first."""
_STOREHOUSE = "/var/tmp/{user}.ch"  # noqa: S108 where Charliecloud keeps images by default


def images(patience: float) -> list[str]:
    """``docker=NAME``, ``apptainer=FILE.sif``, ``charliecloud=FOLDER``, by kind; at most `MOST` of
    each. A kind that does not answer within ``patience`` s contributes none.

    gpuwatch's default images are left out.
    """
    finders: Mapping[str, Callable[[], list[str]]] = {
        "apptainer": _sif_files,
        "charliecloud": _root_folders,
        "docker": _docker,
    }
    found = answers(finders, patience)
    named = {
        kind: [text for text in texts if text.isprintable() and "," not in text][:MOST]
        for kind, texts in found.items()
    }
    return [f"{kind}={image}" for kind in finders for image in named.get(kind, ())]


def answers(questions: Mapping[str, Callable[[], Answer]], patience: float) -> dict[str, Answer]:
    """The answers to questions that are asked at the same time, so that one that hangs delays none
    of the others; without those that fail, or are not there after ``patience`` s."""
    found: dict[str, Answer] = {}

    def ask(key: str, question: Callable[[], Answer]) -> None:
        with contextlib.suppress(Exception, SystemExit):
            found[key] = question()

    threads = [threading.Thread(target=ask, args=each, daemon=True) for each in questions.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def _docker() -> list[str]:
    from gpuwatch.runners.docker import client
    from gpuwatch.runners.docker.images import DEFAULT_IMAGE

    with client.connect().client() as api:
        listed = sorted(api.images(), key=lambda image: -image["Created"])
    names = [name for image in listed for name in image.get("RepoTags") or ()]
    short = [name.removesuffix(":latest") for name in names if "<none>" not in name]
    return [name for name in short if name != DEFAULT_IMAGE]


def _sif_files() -> list[str]:
    """SIF files in the working directory, and those that gpuwatch fetched."""
    home = image_records.images_home()
    fetched = [path for path in home.glob("*.sif") if path.name != "workloads.sif"]
    return [str(path) for path in _newest([*Path().glob("*.sif"), *fetched])]


def _root_folders() -> list[str]:
    """Image folders in the working directory and in Charliecloud's own storage."""
    storage = os.environ.get("CH_IMAGE_STORAGE") or _STOREHOUSE.format(
        user=os.environ.get("USER", "")
    )
    folders = [*Path().glob("*/"), *Path(storage, "img").glob("*/")]
    return [str(path) for path in _newest(folders) if _is_root(path)]


def _is_root(folder: Path) -> bool:
    shells = (folder / name for name in ("bin/sh", "usr/bin/sh"))
    return (folder / "etc").is_dir() and any(map(os.path.lexists, shells))


def _newest(paths: Iterable[Path]) -> list[Path]:
    dated = []
    for path in paths:
        with contextlib.suppress(OSError):
            dated.append((-path.stat().st_mtime, path))
    return [path for _, path in sorted(dated)]
