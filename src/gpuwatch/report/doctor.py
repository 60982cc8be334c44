"""The findings of ``gpuwatch doctor``, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Environment, Problem, those
from gpuwatch.core.text import clean, shell, whole_words
from gpuwatch.report.tables import table

COLUMNS = 80
_LONGEST_LABEL, _LONGEST_ENGINE = 30, 22


@dataclass(frozen=True)
class EnvironmentCheck:
    """The runner's check of one environment: problems for a run with and without GPU."""

    text: str
    """The value of ``--env``."""
    environment: Environment
    engine: str | None
    """Product and version; ``None``: not installed."""
    without_gpu: tuple[Problem, ...]
    with_gpu: tuple[Problem, ...] | None
    """``None``: not checked, see :attr:`Report.gpu_reason`; if that is ``None`` too, unknown,
    since the torch of bare runs was not tried."""

    @property
    def ready(self) -> bool:
        """Whether a run can start in it, with the GPUs it would get."""
        return not (self.without_gpu if self.with_gpu is None else self.with_gpu)

    @property
    def only_there(self) -> bool:
        """Whether an image of the user's is there, into which nobody looked."""
        return not self.without_gpu and self.environment.image is not None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, each once."""
        return tuple(dict.fromkeys((*self.without_gpu, *(self.with_gpu or ()))))


@dataclass(frozen=True)
class Gpu:
    id: str
    name: str
    uuid: str | None
    memory_bytes: float | None
    capability: str | None
    """Compute capability, ``9.0``."""
    torch: Problem | None
    """Why the torch of bare runs cannot use it; ``None``: it can, or this was not checked, see
    :attr:`Python.torch` and :attr:`Python.torch_tried`."""
    bandwidth_by: str | None
    """The counter that measures its memory bandwidth; ``None``: see ``bandwidth``."""
    bandwidth: Problem | None


@dataclass(frozen=True)
class Python:
    """The interpreter for bare runs of gpuwatch's own workloads."""

    path: str
    origin: str
    version: str | None
    torch: str | None
    torchvision: str | None
    torch_build: str | None
    """``CUDA 13.2`` or ``CPU``, from torch's files; ``None``: not known."""
    torch_tried: bool
    """Whether torch was imported to see which GPUs it can use."""


@dataclass(frozen=True)
class Folder:
    path: str
    free_bytes: int | None
    problem: Problem | None


@dataclass(frozen=True)
class Report:
    gpuwatch: str
    system: str
    environments: tuple[EnvironmentCheck, ...]
    gpus: tuple[Gpu, ...]
    driver: str | None
    gpu_reason: Problem | None
    """Why the environments were not checked with GPUs; ``None``: they were."""
    executed_flop: Problem | None
    """Why ``--counters`` cannot count executed FLOP; ``None``: it can, or there is no GPU."""
    python: Python
    studies: Folder
    runs: Folder
    offered: frozenset[str] = frozenset()
    """Texts of the environments that ``--images`` added."""


def as_json(report: Report, *, ready: bool) -> dict[str, JSON]:
    """As in ``docs/json.md``; ``ready``: whether everything asked for can run."""
    return {
        "schema": JSON_SCHEMA,
        "ready": ready,
        **those(report, "gpuwatch", "system"),
        "environments": [_environment(each, report.gpu_reason) for each in report.environments],
        "gpus": [asdict(gpu) for gpu in report.gpus],
        "driver": report.driver,
        "gpu_unavailable": asdict(report.gpu_reason) if report.gpu_reason else None,
        "executed_flop": asdict(report.executed_flop) if report.executed_flop else None,
        "python": asdict(report.python),
        "studies": asdict(report.studies),
        "runs": asdict(report.runs),
    }


def _environment(each: EnvironmentCheck, gpu_reason: Problem | None) -> dict[str, JSON]:
    with_gpu: dict[str, JSON] = {"ready": None, "problems": [], "reason": None}
    if each.with_gpu is not None:
        with_gpu |= _answer(each.with_gpu)
    else:
        with_gpu["reason"] = gpu_reason.text if gpu_reason else "its torch was not tried"
    return {
        "label": each.environment.label,
        "env": each.text,
        "kind": each.environment.kind,
        "image": each.environment.image,
        "engine": each.engine,
        "ready": each.ready,
        "without_gpu": _answer(each.without_gpu),
        "with_gpu": with_gpu,
    }


def _answer(problems: Sequence[Problem]) -> dict[str, JSON]:
    return {"ready": not problems, "problems": [asdict(problem) for problem in problems]}


def terminal(report: Report, on: str = "") -> str:
    """The report in 80 columns; only commands may be longer, so that they can be copied. ``on``:
    the place that this is, for who reads it elsewhere."""
    rows = [
        [
            clean(each.environment.label, _LONGEST_LABEL),
            clean(each.engine or "no answer", _LONGEST_ENGINE),
            "image is here" if each.only_there else _word(each.without_gpu),
            _with_gpu(each, report.gpu_reason),
        ]
        for each in report.environments
    ]
    head = ["environment", "engine", "without GPU", "with GPU"]
    parts = [f"gpuwatch {report.gpuwatch} on {clean(report.system, 60)}", ""]
    parts += [table(head, rows, left=len(head)), ""]
    if any(each.only_there for each in report.environments):
        parts += ["image is here: Python and torch in it were not checked, which `next` does", ""]
    for each in report.environments:
        for problem in each.problems:
            only = "" if problem in each.without_gpu else " with GPU"
            parts += _problem(f"{each.environment.label}{only}", problem)
    if any(each.problems for each in report.environments):
        parts.append("")
    parts += [*_machine(report), "", f"next: {_next(report, on)}"]
    return "\n".join(parts) + "\n"


def _next(report: Report, on: str) -> str:
    """The next step: a run in the ready environments, else the fix of the first problem."""
    there = f" --on {shell(on)}" if on else ""
    able = [each for each in report.environments if each.ready]
    ready = [each for each in able if each.text not in report.offered] or able[:1]
    if not ready:
        cpu = [each for each in report.environments if not each.without_gpu]
        if not cpu:
            hints = [p.hint for each in report.environments for p in each.problems if p.hint]
            hint = clean(hints[0]) if hints else "gpuwatch --help"
            return f"on {on}: {hint}" if on else hint
        return _run(cpu, f"{there} --gpus none")
    reason = "" if report.gpu_reason is None else report.gpu_reason.code
    return _run(ready, there + " --gpus none" * (reason in ("gpus-none", "gpus-unclear")))


def _run(environments: Sequence[EnvironmentCheck], options: str) -> str:
    images = [each.text for each in environments if each.only_there]
    texts = images or [each.text for each in environments]
    chosen = "" if texts == ["bare"] else "".join(f" --env {shell(text)}" for text in texts)
    if images:
        return f"gpuwatch --record{chosen}{options} -- python3 -c 'import torch, torchvision'"
    return f"gpuwatch run mnist-cnn{chosen}{options}"


def _with_gpu(each: EnvironmentCheck, reason: Problem | None) -> str:
    if each.with_gpu is None and reason is None:
        return "not tried"
    if each.with_gpu is None:
        return "not asked" if reason and reason.code != "no-gpu" else "no GPU"
    return _word(each.with_gpu)


def _word(problems: Sequence[Problem]) -> str:
    if not problems:
        return "yes"
    return "no image" if {problem.code for problem in problems} == {"image-missing"} else "no"


def _machine(report: Report) -> list[str]:
    lines = []
    if report.gpu_reason is not None:
        lines += _problem("GPU", report.gpu_reason)
    alike = grouped(((gpu.name, gpu.memory_bytes, gpu.capability), gpu.id) for gpu in report.gpus)
    for (name, size, capability), ids in alike.items():
        known = [name, units.binary(size), f"driver {report.driver or '?'}"]
        known += [f"compute capability {capability}"] if capability else []
        several = f": {len(ids)} x" if len(ids) > 1 else ""
        lines += _wrapped(f"GPU: {', '.join(ids)}{several} {', '.join(known)}")
    lines += _counters(report)
    python = report.python
    version = f"Python {python.version}" if python.version else "no Python that runs"
    build = f" ({python.torch_build} build)" if python.torch_build else ""
    packages = [
        f"torch {python.torch}{build}" if python.torch else "no torch",
        f"torchvision {python.torchvision}" if python.torchvision else "no torchvision",
    ]
    lines += _wrapped(f"Python: {python.path} ({python.origin}): {', '.join([version, *packages])}")
    for name, folder in (("studies", report.studies), ("detached runs", report.runs)):
        if folder.problem is not None:
            lines += _problem(name, folder.problem)
        else:
            free = units.binary(folder.free_bytes)
            lines += _wrapped(f"{name}: {folder.path}: writable, {free} free")
    return lines


def _counters(report: Report) -> list[str]:
    """What is measured on each GPU, and what would measure more; equal GPUs share a line."""
    lines: list[str] = []
    answers = ((gpu.bandwidth_by or gpu.bandwidth, gpu.id) for gpu in report.gpus)
    for answer, ids in grouped(each for each in answers if each[0] is not None).items():
        name = f"memory bandwidth of {', '.join(ids)}"
        if isinstance(answer, Problem):
            lines += _problem(f"{name}: not measured", answer)
        else:
            lines += _wrapped(f"{name}: measured by {answer}")
    if report.gpus and report.executed_flop is None:
        lines += _wrapped("executed FLOP: --counters can count them with ncu")
    elif report.executed_flop is not None:
        lines += _problem("executed FLOP", report.executed_flop)
    return lines


def _problem(name: str, problem: Problem) -> list[str]:
    """The problem, and the command that fixes it on a separate line."""
    lines = _wrapped(f"{name}: {problem.text}")
    return [*lines, f"    Fix: {clean(problem.hint)}"] if problem.hint else lines


def _wrapped(text: str) -> list[str]:
    return whole_words(clean(text), COLUMNS)
