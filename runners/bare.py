"""The bare machine, without a container."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from gpuwatch.core.interpreter import script, users_command
from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Problem
from gpuwatch.core.text import shell
from gpuwatch.runners import container_launch
from gpuwatch.runners.base import Run
from gpuwatch.runners.interpreter import REQUESTED, Interpreter, activation, candidates, choose
from gpuwatch.runners.local import LocalRun


class BareRunner:
    kind = "bare"
    contained = False

    def engine(self) -> str | None:
        return f"{platform.system()} {platform.release()}"

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        environment = spec.environment
        image_options = (environment.image, environment.mounts, environment.shm_bytes)
        limits = (environment.memory_bytes, environment.network)
        if any(image_options) or any(limits):
            return [
                Problem(
                    "bare-options",
                    "the bare environment takes no image, mount, shm, memory or network",
                    "leave them out: --env bare[,label=NAME][,set=VAR=VALUE][,python=PATH]",
                )
            ]
        if spec.workload.kind == "command":
            return _command_problems(_command(spec), spec)
        chosen = choose(environment.python, _variables(spec))
        return _interpreter_problems(chosen, spec.variables.get("GPUWATCH_POD_IMAGE"))

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        own = {**spec.environment.variables, **_hook_variables(spec)}
        variables = container_launch.gpu_variables(spec) if spec.gpus_chosen else {}
        if spec.workload.kind == "command":
            command = _command(spec)
            if command == spec.workload.arguments:
                return Prepared(command, {**variables, **own})
            return Prepared(
                command,
                {**variables, **activation(command[0], _variables(spec)), **own},
                {"python": command[0], "python_origin": REQUESTED},
            )
        interpreter = choose(spec.environment.python, _variables(spec))
        assert spec.archive is not None
        if interpreter.passed_over:
            say(
                f"the workload runs with {interpreter.path} ({interpreter.origin}): "
                f"{interpreter.passed_over} lacks torch or torchvision"
            )
        return Prepared(
            (interpreter.path, spec.archive, spec.workload.word, *spec.workload.arguments),
            {**variables, **activation(interpreter.path, _variables(spec)), **own},
            {"python": interpreter.path, "python_origin": interpreter.origin},
        )

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        return LocalRun.start(
            self.kind,
            prepared.command,
            folder=folder,
            working_directory=spec.working_directory,
            variables={**spec.variables, **prepared.variables},
            keeps_children=spec.keeps_children,
            takes_input=spec.takes_input,
        )

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        return LocalRun.attach(handle, cursor)


def _variables(spec: LaunchSpec) -> dict[str, str]:
    """The caller's variables, and those of ``set=``."""
    return {**spec.variables, **spec.environment.variables}


def _hook_variables(spec: LaunchSpec) -> dict[str, str]:
    """What puts the hook into every Python that the command starts."""
    hook = spec.hook
    if hook is None:
        return {}
    variables = container_launch.hook_variables(hook, hook.channel)
    if hook.archive is None:
        return variables
    before = _variables(spec).get("PYTHONPATH")
    path = f"{hook.archive}:{before}" if before else hook.archive
    return {**variables, "PYTHONPATH": path}


def _command(spec: LaunchSpec) -> tuple[str, ...]:
    """The user's command, with the interpreter of ``python=``."""
    python = spec.environment.python
    if python is not None:
        ((python, _),) = candidates(python, spec.variables)
    return users_command(spec.workload, python)


def _command_problems(command: Sequence[str], spec: LaunchSpec) -> list[Problem]:
    program, file = command[0], script(command)
    where = os.path.join(spec.working_directory, program) if os.sep in program else program
    if shutil.which(where, path=_variables(spec).get("PATH")):
        path = None if file is None else Path(spec.working_directory, file)
        return [] if path is None or os.path.exists(path) else [_missing(path)]
    if os.sep in program and os.path.isdir(where):
        return [Problem("command-is-folder", f"{program} is a folder", "name a program in it")]
    if os.sep in program and os.path.exists(where):
        return [
            Problem(
                "command-not-executable",
                f"{program} is not executable",
                f"chmod +x {shell(program)}",
            )
        ]
    seen = " that you may see" if os.sep in program else ""
    text = f"there is no command {program!r}{seen}"
    return [Problem("command-missing", text, "check its name and the PATH")]


def _missing(file: Path) -> Problem:
    hint = "check its name"
    with contextlib.suppress(OSError):  # no folder, or one that cannot be listed
        for close in get_close_matches(file.name, os.listdir(file.parent), n=1):
            hint = f"did you mean {close}?"
    return Problem("script-missing", f"there is no file {file}", hint)


def _interpreter_problems(interpreter: Interpreter, image: str | None) -> list[Problem]:
    """``image``: of the pod that it is in, which is gone after the run."""
    if not interpreter.missing:
        return []
    if interpreter.missing == ("python",):
        return [
            Problem(
                "python-missing",
                f"{interpreter.path} is not a working Python 3.10 or later",
                "choose another with --python PATH",
            )
        ]
    packages = " ".join(interpreter.missing)
    if image is not None:
        text = f"the image {image} has no {packages}"
        return [Problem("torch-missing", text, "name another: --on kubernetes,image=IMAGE")]
    return [
        Problem(
            "torch-missing",
            f"{interpreter.path} ({interpreter.origin}) lacks {packages}",
            f"{interpreter.path} -m pip install {packages}, or choose another with --python PATH",
        )
    ]
