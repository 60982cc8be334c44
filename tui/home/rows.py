"""The state of the home screen, its rows around the list of sessions, and what stands in the place
of an empty one: what can run here, what is missing, the key or command that comes next."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from rich.cells import cell_len

from gpuwatch.analysis.summary.finding import no_field
from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import ListedSession
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import counted
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.home.list import Edit, ListOptions
from gpuwatch.tui.home.table import COMMAND_WIDTH, ORDERS
from gpuwatch.tui.machine import Machine, ask_doctor
from gpuwatch.tui.widgets.line import Line, fit, marked_rows, rule, wrap

_MOST_UNLISTED = _MOST_SAID = 3


@dataclass(frozen=True)
class HomeState:
    """Everything the home screen draws."""

    devices: Snapshot | None = None
    devices_trouble: str | None = None
    entries: tuple[ListedSession, ...] | None = None
    """All sessions; ``None`` while the list is being read."""
    items: tuple[Item, ...] = ()
    """The rows, as they were asked for."""
    how: ListOptions = field(default_factory=ListOptions)
    complaint: str | None = None
    cursor: int = 0
    """Place in ``items``."""
    marked: tuple[Path, ...] = ()
    """Sessions and folders of studies, in the order in which they were marked."""
    found: tuple[Found, ...] | None = None
    """What can run here, once it was looked at."""
    edit: Edit | None = None
    message: str = ""
    process_query: str = ""
    """What the table of processes is narrowed by."""

    @property
    def current(self) -> Item | None:
        """The row under the cursor."""
        return self.items[self.cursor] if 0 <= self.cursor < len(self.items) else None


def heading(state: HomeState, width: int) -> Line:
    """How many sessions there are, and in which order."""
    entries, how = state.entries or (), state.how
    if not entries:
        return rule("sessions", width)
    alone = sum(item.entry is not None and item.study is None for item in state.items)
    shown = alone + sum(len(item.runs) for item in state.items)
    title = f"sessions  {shown} of {len(entries)}" if how.query else f"sessions  {len(entries)}"
    studies = sum(item.entry is None for item in state.items)
    if studies:
        title += f"  in {counted(studies, 'study', 'studies')}"
        title += f" and {alone} alone" if alone else ""
    if how.query:
        title += f"  /{fit(how.query, 24)}"
    return rule(f"{title}  by {ORDERS[how.order].name} {'↓' if how.falling else '↑'}", width)


def empty_rows(state: HomeState, width: int, space: int, *, read_only: bool) -> list[Line]:
    """Why the list is empty, and what to do."""
    if state.complaint:
        return [Line(width).add(" ✗ ", "bad").add(state.complaint, "text")]
    if state.entries is None:
        return [Line(width).add(" reading the sessions …", "muted")]
    if state.entries:
        row = Line(width).add(f" nothing matches {fit(state.how.query, 30)}: ", "muted")
        row.add("Esc", "key", press="escape").add(" shows all again", "muted")
        why = no_field(state.how.query)
        return [row, *([Line(width).add(f" {why}", "warn")] if why else [])]
    return first_rows(state.found, width, space, read_only=read_only)


def waiting_rows(state: HomeState, width: int) -> list[Line]:
    """What stands in the place of the devices before the first sample, or why there is none."""
    row = Line(width).add(" gpuwatch ", "brand")
    if not state.devices_trouble:
        return [row.add("reading the devices …", "muted")]
    why = f"{state.devices_trouble} (r tries again)"
    return [row, *marked_rows(why, " ! ", "warn", width, _MOST_SAID)]


def foot_rows(state: HomeState, width: int, height: int) -> list[Line]:
    """Marked sessions that are not in the list, more of the row under the cursor, and the line
    that is written, a word, or the path."""
    rows = _unlisted(state, width)
    current = state.current
    if state.entries and current is not None:
        rows += details(current, width, 0 if height < 18 else 3 if height < 40 else 6)
    if state.edit is not None:
        why = state.edit.trouble
        written = Line(width).add(f" {state.edit.what}: ", "key")
        return [*rows, *(_said("✗ ", why, width) if why else []), written]
    if state.message:
        return [*rows, *_said("» ", state.message, width)]
    path = "" if current is None else short_path(current.path, width - 2)
    return [*rows, Line(width).add(" ").add(path, "muted")]


def details(item: Item, width: int, lines: int) -> list[Line]:
    """What the row under the cursor has no room for: why it failed, question, verdicts, name, tags,
    note, or why there are none."""
    if lines <= 0:
        return []
    of, failed = item.of, item.failed
    told: list[tuple[str, str]] = []
    if item.entry is None and item.study is not None:
        told += [("", each["text"]) for each in item.study.says]
        if item.study.question:
            told.insert(min(1, len(told)), ("asks", item.study.question))
    elif item.entry is not None and (item.entry.name or cell_len(item.ran) >= COMMAND_WIDTH):
        told.append(("", f"{item.ran} in {item.environment}"))
    if failed is not None:
        signal = failed.status_text.removeprefix("ended by ")
        in_list = failed.failure.endswith(f"({signal})")  # in its words, then
        ended = failed.failure if in_list else failed.status_text
        why = [ended] if ended else []
        why += [failed.reason] if failed.reason not in failed.status_text else []
        told.insert(0, ("✗", ": ".join(why)))
    if of.note:
        told.insert(0, ("note", " ".join(of.note.split("\n"))))
    if of.tags:
        told.insert(1 if of.note else 0, ("tags", " ".join(of.tags)))
    if of.labels_problem:
        folder = item.path if item.entry is None else item.path.parent
        told.insert(0, ("!", of.labels_problem.replace(f"{folder}/", "")))
    rows: list[Line] = []
    for label, text in told:
        for at, part in enumerate(wrap(clean(text), width - len(label) - 3, lines - len(rows))):
            row = Line(width).add(f" {label if not at else ''}", "muted").to(len(label) + 1)
            rows.append(row.add(f" {part}" if label else part, "text"))
    return rows


def _said(mark: str, text: str, width: int) -> list[Line]:
    """A word, wrapped: what it names stands at its end."""
    return marked_rows(clean(text), f" {mark}", "key", width, _MOST_SAID, "strong")


def short_path(path: Path, width: int) -> str:
    """``~/…/study/01-bare.gpuwatch``: one's own folder as ``~``, cut in the middle so that the
    file's name is whole."""
    home, text = str(Path.home()), clean(path)
    if text.startswith(f"{home}/"):
        text = f"~{text[len(home) :]}"
    if cell_len(text) <= width:
        return text
    head, _, name = text.rpartition("/")
    return fit(head, max(2, width - cell_len(name) - 1)) + f"/{name}"


def _unlisted(state: HomeState, width: int) -> list[Line]:
    if not state.marked or not state.entries:
        return []
    listed = {item.path for item in state.entries}
    listed |= {item.path.parent for item in state.entries}
    return [
        Line(width)
        .add(f" {place} ", "key")
        .add("not listed: ", "muted")
        .add(clean(f"{path.parent.name}/{path.name}"))
        for place, path in enumerate(state.marked, 1)
        if path not in listed
    ][:_MOST_UNLISTED]


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
    # Why stands where the GPUs would be.
    hint = machine.no_gpu.hint if machine.no_gpu else ""
    no_gpu = Found("GPU", False, "none: runs use the CPU", hint)
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
    start = Line(width).add("  n", "key", press="n")
    start.add("  starts the first one: a built-in model, or a command of your own")
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
    for each, mend in _mends(found, width, space - len(rows)).items():
        rows += _rows(each, width, mend)
    return rows[:space]


def _mends(found: tuple[Found, ...], width: int, space: int) -> dict[Found, list[str]]:
    """How to fix each, in lines: the environments, which come last, before the GPU, that cannot be
    had by a command. A command that does not fit is not cut."""
    left = space - len(found)
    mends: dict[Found, list[str]] = {each: [] for each in found}
    for each in reversed(found):
        most = max(0, min(_MOST_LINES, left))
        lines = wrap(each.hint, width - _INDENT, most + 1) if each.hint else []
        mends[each] = lines if len(lines) <= most else ["`gpuwatch doctor` says how"][:most]
        left -= len(mends[each])
    return mends


def _rows(each: Found, width: int, mend: list[str]) -> list[Line]:
    """A mark, the name and what there is; below, how to fix it."""
    mark, role = ("✓", "good") if each.good else ("✗", "warn")
    row = Line(width).add(f" {mark} ", role).add(f"{each.name:<13} ", "strong")
    rows = [row.add(each.text, "text")]
    for at, line in enumerate(mend):
        below = Line(width).to(_INDENT - 3).add(" → " if not at else "   ", "key")
        rows.append(below.add(line, "muted"))
    return rows
