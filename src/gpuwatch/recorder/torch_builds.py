"""Whether the torch of bare runs can use each GPU; if not, why, and which build would."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, LaunchSpec, Problem
from gpuwatch.core.text import clean, shell
from gpuwatch.runners.interpreter import choose
from gpuwatch.telemetry.nvml.fields import Fact
from gpuwatch.workloads.architectures import build_for, is_too_old, oldest_driver, runs_on

PATIENCE_SECONDS = 60.0
"""Time limit in s for importing torch, which is slow from a network home."""

_PROBE = """
import json, sys, torch
reason = None
try:
    torch.cuda.init()
except Exception as error:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.get_arch_list(), reason]))
"""


_PLACE = (
    "import importlib.util as u, json; s = u.find_spec('torch'); print(json.dumps(s and s.origin))"
)

_ASSIGNMENT = re.compile(r"^(\w+)[^=\n]*= *(?:None|['\"]([^'\"\n]*)['\"])", re.MULTILINE)
"""A line of ``version.py``: ``cuda: Optional[str] = '13.2'``."""


@dataclass(frozen=True)
class TorchBuild:
    """A build of torch, as described by itself."""

    version: str
    cuda: str | None
    """The CUDA version it is built for; ``None``: CPU only."""
    architectures: tuple[str, ...]
    """``sm_80``, ``compute_90``: the architectures it has code for; empty if not known."""
    refusal: str | None
    """CUDA's own reason for not starting; ``None``: it starts, or was not tried."""


def read(package: Path) -> TorchBuild | None:
    """Read the build from the package's files, without running them; ``None`` if they do not name
    it, or if it is built for another vendor's GPUs."""
    try:
        text = (package / "version.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    facts = dict(_ASSIGNMENT.findall(text))
    if not facts.get("__version__") or "cuda" not in facts or facts.get("hip") or facts.get("xpu"):
        return None
    return TorchBuild(facts["__version__"], facts["cuda"] or None, (), None)


def obstacles(
    spec: LaunchSpec, look: Callable[[tuple[str, ...]], Sequence[dict[str, Fact]]]
) -> list[Problem]:
    """Why torch cannot use the GPUs of a bare run of one of gpuwatch's own workloads, as far as its
    files and ``look``, the facts of GPUs, tell. Torch is not imported."""
    bare = spec.environment.kind == "bare" and spec.workload.kind == "workload"
    if not bare or not spec.gpus:
        return []
    python = choose(spec.environment.python, {**spec.variables, **spec.environment.variables}).path
    place = answer([python, "-c", _PLACE], 30)
    build = read(Path(place).parent) if place else None
    if build is None:
        return []
    found = [verdict(build, gpu, python) for gpu in look(spec.gpus)]
    return list(dict.fromkeys(problem for problem in found if problem is not None))


def answer(command: Sequence[str], patience: float) -> JSON:
    """What a command prints as JSON, on its last line; ``None`` if that fails, or takes more than
    ``patience`` seconds."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, cwd=os.sep, check=True
        )
        return json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def probe(python: str) -> TorchBuild | None:
    """Import torch in the interpreter and ask it; ``None`` if it does not answer."""
    if (told := answer([python, "-c", _PROBE], PATIENCE_SECONDS)) is None:
        return None
    version, cuda, architectures, refusal = told
    return TorchBuild(version, cuda, tuple(architectures), refusal)


def fails(python: str) -> Problem:
    """The problem of a torch that cannot be imported."""
    return Problem(
        "torch-fails",
        f"torch cannot be imported by {python}",
        f"see why: {shell(python)} -c 'import torch'",
    )


def verdict(build: TorchBuild, facts: Mapping[str, Fact], python: str) -> Problem | None:
    """Why this torch cannot use a GPU with these ``facts``; ``None``: it can."""
    known = (facts.get(key) for key in ("compute.capability", "driver.version"))
    capability, driver = (None if fact is None else str(fact) for fact in known)
    major, _, minor = (capability or "").partition(".")
    pair = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
    fitting = build_for(pair, driver)
    if fitting is None:
        hint = "train on the CPU: --device cpu, or on a newer GPU"
    else:
        hint = f"install into {python}: {fitting}; or take the CPU: --device cpu"
    torch = f"torch {build.version}"
    if build.cuda is None:
        return Problem("torch-without-cuda", f"{torch} is built for the CPU alone", hint)
    if pair is not None and not runs_on(pair, build.architectures):
        codes = " ".join(build.architectures)
        text = f"{torch} has no code for compute capability {capability}, only for {codes}"
        return Problem("torch-without-architecture", text, hint)
    if is_too_old(driver, build.cuda):
        least = f"{oldest_driver(build.cuda)} or later"
        text = f"{torch} is built for CUDA {build.cuda}, which needs driver {least}, not {driver}"
        return Problem("driver-too-old", text, f"update the driver to {least}, or {hint}")
    if build.refusal is not None:
        text = f"{torch} cannot start CUDA: {clean(build.refusal, 300)}"
        return Problem("cuda-refused", text, "see whether nvidia-smi works")
    return None
