"""Charliecloud: the workload in an unpacked image, as a process of this machine."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Problem
from gpuwatch.core.text import shell
from gpuwatch.runners import container_launch, mounting
from gpuwatch.runners.base import Run
from gpuwatch.runners.local import Ending, LocalRun

TMP = "/tmp"  # noqa: S108 the container's own: a folder of the run
FOLDER = f"{TMP}/gpuwatch"
ARCHIVE = f"{FOLDER}/workloads.pyz"
HOME = f"{TMP}/home"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""For images that set none."""
_LIBRARIES = ("lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64")
_GET_ONE = (
    "name a folder with a root file system: --env charliecloud=FOLDER; from Docker: mkdir FOLDER "
    "&& docker create --name gpuwatch-tmp IMAGE sh && docker export gpuwatch-tmp | "
    "tar -x -C FOLDER; docker rm gpuwatch-tmp"
)


class CharliecloudRunner:
    kind = "charliecloud"
    contained = False

    def engine(self) -> str | None:
        program = shutil.which("ch-run")
        text = _output(program, "--version") if program else ""
        match = re.search(r"\d+\.\d+(\.\d+)?", text)
        return f"Charliecloud {match[0]}" if match else None

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        program = shutil.which("ch-run")
        if program is None:
            return [
                Problem(
                    "charliecloud-missing",
                    "ch-run is not on the PATH",
                    "sudo apt install charliecloud, or see hpc.github.io/charliecloud/install.html",
                )
            ]
        if lacking := {"--set-env", "--unset-env", "--bind", "--cd"} - _flags(program):
            return [
                Problem(
                    "charliecloud-too-old",
                    f"{program} has no {', '.join(sorted(lacking))}",
                    "install Charliecloud 0.25 or later",
                )
            ]
        if off := container_launch.namespaces_off("Charliecloud"):
            return [off]
        image = _image_problems(spec)
        return [
            *image,
            *_option_problems(spec),
            *container_launch.problems(spec),
            *([] if image else _mount_problems(spec)),
            *_gpu_problems(spec, image),
        ]

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        environment = spec.environment
        facts: dict[str, JSON] = {
            "user": f"{os.geteuid()}:{os.getegid()}",
            "network": "host",
            # ch-run cannot mount read-only, so record what really happens.
            "mounts": [
                f"{mount.source}:{mount.target}:rw" for mount in container_launch.mounts(spec)
            ],
        }
        if environment.python is not None:
            facts["python"] = environment.python
        if (shared := container_launch.shared_memory()) is not None:  # the workload's, too
            facts["shm_bytes"] = shared
        return Prepared(_command(spec), {"USER": _user(spec)}, facts)

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        own = folder / "tmp"
        (own / "home").mkdir(parents=True)
        own.chmod(0o1777)  # like /tmp; the run's folder keeps others out
        inside = own / FOLDER.removeprefix(f"{TMP}/")
        if spec.archive is not None or spec.hook is not None:
            inside.mkdir()
        if spec.hook is not None:
            (inside / container_launch.CHANNEL).mkdir()
            if spec.hook.archive is not None:
                shutil.copy2(spec.hook.archive, inside / container_launch.HOOK)
        if spec.archive is not None:
            shutil.copy2(spec.archive, own / ARCHIVE.removeprefix(f"{TMP}/"))
        mounting.make_points(container_launch.mounts(spec), TMP, own)
        command = list(prepared.command)
        # First, because mounts below /tmp must come after it.
        command[1:1] = ["-b", f"{own}:{TMP}"]
        return LocalRun.start(
            self.kind,
            command,
            folder=folder,
            working_directory=os.sep,
            variables={**spec.variables, **prepared.variables},
            blame=blame,
            keeps_children=spec.keeps_children,
            takes_input=spec.takes_input,
        )

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        return LocalRun.attach(handle, cursor, blame)


def blame(ending: Ending) -> str | None:
    """ch-run's error message from before it became the workload, under the same PID."""
    if not ending.code or ending.stdout_bytes:
        return None
    if missing := container_launch.not_started(ending.stderr):
        return missing
    errors = re.findall(rf"^ch-run\[{ending.pid}\]: error: (.+)", ending.stderr, re.MULTILINE)
    return errors[-1].strip() if errors else None


def _command(spec: LaunchSpec) -> tuple[str, ...]:
    """The command without the run's own ``/tmp``.

    Clears the environment first, then adds a default, the image's variables, and ours.
    """
    image, program = _image(spec), shutil.which("ch-run") or "ch-run"
    command = [program]
    flags = _flags(program)
    if "--env-no-expand" in flags:
        command.append("--env-no-expand")
    if "--home" not in flags and "--no-home" in flags:
        command.append("--no-home")  # otherwise the user's own home is mounted
    command += ["--unset-env=*", f"--set-env=PATH={PATH}"]
    if (image / "ch" / "environment").is_file():
        command.append(f"--set-env={image / 'ch' / 'environment'}")
    channel = f"{FOLDER}/{container_launch.CHANNEL}"
    variables = container_launch.inside(spec, channel, HOME=HOME)
    command += [f"--set-env={name}={value}" for name, value in variables.items()]
    for mount in container_launch.mounts(spec):
        command += ["-b", f"{mount.source}:{mount.target}"]
    if spec.hook is not None:  # the hook itself is copied: ch-run cannot mount read-only
        command += ["-b", f"{spec.hook.channel}:{channel}"]
    where = spec.working_directory if spec.workload.kind == "command" else HOME
    inside = container_launch.with_hook(spec, container_launch.command(spec, ARCHIVE), FOLDER)
    return (*command, "--cd", where, str(image), "--", *inside)


def _image(spec: LaunchSpec) -> Path:
    return Path(spec.working_directory, os.path.expanduser(spec.environment.image or ""))


def _image_problems(spec: LaunchSpec) -> list[Problem]:
    if spec.environment.image is None:
        return [Problem("image-missing", "Charliecloud needs an image", _GET_ONE)]
    image = _image(spec)
    if not os.path.exists(image):
        return [Problem("image-missing", f"there is no {image}", _GET_ONE)]
    if not mounting.is_root(image):
        what = "a folder without /bin/sh" if os.path.isdir(image) else "a file, not a folder"
        return [Problem("image-invalid", f"{image} is not an image: {what}", _GET_ONE)]
    if not os.path.isdir(image / TMP.strip("/")):
        return [_no_place(image, TMP)]
    return []


def _option_problems(spec: LaunchSpec) -> list[Problem]:
    environment = spec.environment
    options = {
        "shm": environment.shm_bytes is not None,
        "memory": environment.memory_bytes is not None,
        "network": environment.network not in (None, "host"),
    }
    return [
        Problem(
            f"{name}-unsupported",
            f"Charliecloud cannot set {name}=: the workload gets the machine's own",
            f"leave {name}= out",
        )
        for name, is_set in options.items()
        if is_set
    ]


def _mount_problems(spec: LaunchSpec) -> list[Problem]:
    """ch-run creates no mount points in an image, and splits a mount at the first colon."""
    image = _image(spec)
    problems = []
    for mount in container_launch.mounts(spec):
        if ":" in mount.source + mount.target:
            problems.append(
                Problem(
                    "mount-path",
                    f"Charliecloud cannot mount {mount.source!r}: ':' is in its path",
                    "rename it, or mount it elsewhere: mount=SRC:DST",
                )
            )
        elif mount.target == TMP:
            problems.append(
                Problem(
                    "mount-hides-tmp",
                    f"{mount.source} would be mounted on /tmp, where Charliecloud's runs have "
                    "their home and gpuwatch's workloads",
                    "use another folder: mount=SRC:DST, cd FOLDER, --data DIR",
                )
            )
        elif not mounting.below(mount, TMP) and not os.path.exists(_in_image(image, mount.target)):
            problems.append(_no_place(image, mount.target, file=Path(mount.source).is_file()))
    return problems


def _no_place(image: Path, target: str, *, file: bool = False) -> Problem:
    place = image / target.lstrip("/")
    make = f"mkdir -p {shell(place.parent if file else place)}"
    touch = f" && touch {shell(place)}" if file else ""
    return Problem(
        "mount-point-missing",
        f"the image has no {target}, and Charliecloud mounts only on existing paths",
        make + touch,
    )


def _gpu_problems(spec: LaunchSpec, image_problems: list[Problem]) -> list[Problem]:
    if not spec.gpus or image_problems:
        return []
    image = _image(spec)
    has_libcuda = any(
        next((image / folder).glob(pattern), None)
        for folder in _LIBRARIES
        for pattern in ("libcuda.so.1", "*/libcuda.so.1")
    )
    if has_libcuda:
        return []
    return [
        Problem(
            "gpu-driver-missing",
            f"the image {image} has no libcuda.so.1: no workload in it finds a GPU",
            f"ch-fromhost --nvidia {shell(image)}, or take no GPU: --device cpu",
        )
    ]


def _in_image(image: Path, target: str) -> Path:
    """A path in the image, resolving links relative to the image's root."""
    at = image
    for name in Path(target).parts[1:]:
        at = at / name
        for _ in range(40):
            if not at.is_symlink():
                break
            link = os.readlink(at)
            at = image / link.lstrip("/") if link.startswith("/") else at.parent / link
    return at


def _user(spec: LaunchSpec) -> str:
    """``$USER``, which ch-run requires."""
    named = spec.variables.get("USER")
    if named:
        return named
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


@cache
def _flags(program: str) -> frozenset[str]:
    """The long options of this ch-run, which differ between versions."""
    return frozenset(re.findall(r"--[a-z][a-z-]+", _output(program, "--help")))


def _output(program: str, flag: str) -> str:
    """Output of both streams: some versions answer on stderr, and none without ``$USER``."""
    try:
        result = subprocess.run(
            [program, flag],
            env={"USER": "nobody", **os.environ},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout + result.stderr
