"""The keys of the home screen."""

from __future__ import annotations

from textual.binding import Binding, BindingType

BINDINGS: list[BindingType] = [
    Binding("n", "new", "new run", tooltip="start a run"),
    Binding("s", "stop", "stop", tooltip="stop the run or the study, after asking"),
    Binding("a", "take_up", "record on", tooltip="record on: take up a run whose recorder died"),
    Binding("q", "leave", "leave", tooltip="leave; runs go on"),
    Binding("space", "mark", "mark", tooltip="mark the session or study"),
    Binding("c", "compare", "compare", tooltip="compare what is marked, else the study"),
    Binding(
        "slash",
        "filter",
        "find",
        tooltip="find words, or status: env: name: tag: note: study:",
    ),
    Binding("l", "log", "log", tooltip="the log of the run"),
    Binding(
        "p", "processes", "processes", tooltip="the processes on the GPUs, on a page of their own"
    ),
    Binding("g", "grid", "GPUs", tooltip="all GPUs as panels with histories, and back"),
    Binding("i", "numbers", "numbers", tooltip="every number of the devices, and what they are"),
    Binding("o", "sort", "sort", tooltip="sort by started, elapsed, step time and so on"),
    Binding("d", "delete", "delete", tooltip="delete what is marked, else the row, after asking"),
    Binding("e", "export", "report", tooltip="report of what is marked, else of the study"),
    Binding("R", "label('name')", "name", tooltip="give it a name, to find it by"),
    Binding("T", "label('tags')", "tags", tooltip="its tags"),
    Binding("N", "label('note')", "note", tooltip="a note on it"),
    Binding("r", "look_again", "refresh", tooltip="read the list again"),
    Binding("O", "reverse", "reverse", show=False, tooltip="sort the other way round"),
    Binding("enter", "open", "open", show=False),
    Binding("tab", "app.focus_next", "to the next list", show=False),
    Binding("escape", "back", "back", show=False, tooltip="drop the marks, then show all again"),
]
