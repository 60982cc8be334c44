"""First contact: what can run here, what is missing, and the key or command that comes next."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.tui.machine import Machine, Refusal, ask_doctor
from gpuwatch.tui.widgets.line import Line, wrap

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
    """GPU, torch and environments of this machine; nothing where doctor gives no answer."""
    found = await ask_doctor("--format", "json")
    return () if found.complaint else found_in(found)


def found_in(machine: Machine) -> tuple[Found, ...]:
    """What to say of a machine."""
    names = ", ".join(dict.fromkeys(gpu.name for gpu in machine.gpus))
    many = f"{len(machine.gpus)} × " if len(machine.gpus) > 1 else ""
    why = machine.no_gpu or Refusal("no NVIDIA GPU is seen")
    no_gpu = Found("GPU", False, f"workloads run on the CPU: {why.text}", why.hint)
    found = [Found("GPU", True, f"{many}{names}") if machine.gpus else no_gpu]
    refused = next((gpu.torch for gpu in machine.gpus if gpu.torch), None)
    path = machine.python
    if path and refused is not None:
        found.append(Found("torch", False, refused.text, refused.hint))
    elif path and machine.torch:
        found.append(Found("torch", True, f"{machine.torch}, not tried, in {path}"))
    elif path:
        text = f"not in {path}: n starts a command of your own"
        found.append(Found("torch", False, text, f"{path} -m pip install torch torchvision"))
    for each in machine.environments:
        refusal = each.without_gpu
        engine = f" ({each.engine})" if each.engine and each.text != "bare" else ""
        ready = Found(each.text, True, f"ready{engine}")
        found.append(Found(each.text, False, refusal.text, refusal.hint) if refusal else ready)
    return tuple(found[:_MOST])


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
