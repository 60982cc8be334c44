"""First contact: what can run here, what is missing, and the key or command that comes next."""

from __future__ import annotations

import json
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.line import Line

_MOST = 12
_MOST_LINES, _INDENT = 3, 19


@dataclass(frozen=True)
class Found:
    """One thing that `gpuwatch doctor` looked at."""

    name: str
    good: bool
    text: str
    hint: str = ""


async def look() -> tuple[Found, ...]:
    """What `gpuwatch doctor` says without importing torch; nothing where it gives no answer."""
    outcome = await commands.run("doctor", "--quick", "--format", "json", timeout=60)
    try:
        return found_in(json.loads(outcome.out))
    except (ValueError, RecursionError):
        return ()


def found_in(report: Any) -> tuple[Found, ...]:
    """The lines of a report of `gpuwatch doctor`: GPU, torch, environments."""
    report = mapping(report)
    return (*_gpus(report), *_torch(report), *_environments(report))[:_MOST]


def _gpus(report: Any) -> list[Found]:
    gpus = report.get("gpus")
    if isinstance(gpus, list) and gpus:
        names = ", ".join(dict.fromkeys(_text(mapping(gpu).get("name")) for gpu in gpus))
        return [Found("GPU", True, f"{len(gpus)} × {names}" if len(gpus) > 1 else names)]
    why = mapping(report.get("gpu_unavailable"))
    text = _text(why.get("text")) or "no NVIDIA GPU is seen"
    return [Found("GPU", False, f"workloads run on the CPU: {text}", _text(why.get("hint")))]


def _torch(report: Any) -> list[Found]:
    python = mapping(report.get("python"))
    if not python.get("path"):
        return []
    path = _text(python["path"])
    gpus = report.get("gpus")
    for gpu in map(mapping, gpus if isinstance(gpus, list) else ()):
        if refusal := mapping(gpu.get("torch")):
            return [Found("torch", False, _text(refusal.get("text")), _text(refusal.get("hint")))]
    if python.get("torch"):
        build = f" ({_text(python['torch_build'])} build)" if python.get("torch_build") else ""
        text = f"{_text(python['torch'])}{build}, not tried, in {path}"
        return [Found("torch", True, text)]
    return [
        Found(
            "torch",
            False,
            f"not in {path}: n starts a command of your own",
            f"{path} -m pip install torch torchvision",
        )
    ]


def _environments(report: Any) -> list[Found]:
    found = []
    listed = report.get("environments")
    for each in map(mapping, listed if isinstance(listed, list) else ()):
        side = mapping(each.get("without_gpu"))
        problems = side.get("problems")
        first = mapping(problems[0]) if isinstance(problems, list) and problems else {}
        name, engine = _text(each.get("env")), _text(each.get("engine"))
        if side.get("ready") is True:
            text = f"ready{f' ({engine})' if engine and name != 'bare' else ''}"
            found.append(Found(name, True, text))
        else:
            text = _text(first.get("text")) or "not ready"
            found.append(Found(name, False, text, _text(first.get("hint"))))
    return found


def _text(value: object) -> str:
    return "" if value is None else clean(value, 300)


def first_rows(
    found: tuple[Found, ...] | None, width: int, space: int, *, read_only: bool = False
) -> list[Line]:
    """What to do where nothing was recorded yet, then what is there; ``None``: it is looked at."""
    start = (
        Line(width)
        .add("  n", "key", press="n")
        .add("  starts the first one: a built-in model, or a command of your own")
    )
    rows = [
        Line(width),
        Line(width).add(" No run was recorded yet.", "strong"),
        Line(width),
        *([] if read_only else [start]),
        Line(width).add("  r", "key", press="r").add("  looks again, once something is fixed"),
        Line(width).add("  ?", "key", press="question_mark").add("  all keys"),
        Line(width),
    ]
    if found is None:
        rows.append(Line(width).add(" looking at what can run here …", "muted"))
        return rows[:space]
    for line, most in _lines(found, width, space - len(rows)).items():
        rows += _rows(line, width, most)
    return rows[:space]


def _lines(found: tuple[Found, ...], width: int, space: int) -> dict[Found, int]:
    """How many lines each has for how to fix it: the environments, which come last, before the
    GPU, that cannot be had by a command."""
    left = space - len(found)
    given = dict.fromkeys(found, 0)
    for each in reversed(found):
        wanted = len(wrap(each.hint, width - _INDENT, _MOST_LINES)) if each.hint else 0
        given[each] = max(0, min(wanted, left))
        left -= given[each]
    return given


def _rows(each: Found, width: int, most: int) -> list[Line]:
    """A mark, the name and what there is; below, in at most so many lines, how to fix it."""
    mark, role = ("✓", "good") if each.good else ("✗", "warn")
    row = Line(width).add(f" {mark} ", role).add(f"{each.name:<13} ", "strong")
    rows = [row.add(each.text, "text")]
    if each.hint and most:
        for at, line in enumerate(wrap(each.hint, width - _INDENT, most)):
            below = Line(width).to(_INDENT - 3).add(" → " if not at else "   ", "key")
            rows.append(below.add(line, "muted"))
    return rows
