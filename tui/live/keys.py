"""The keys of the live screen."""

from __future__ import annotations

from textual.binding import Binding, BindingType

BINDINGS: list[BindingType] = [
    Binding("q", "leave", "leave", tooltip="leave; a run goes on"),
    Binding("s", "stop", "stop", tooltip="stop the run, after asking"),
    Binding("escape", "gauges", "back", tooltip="back to the gauges"),
    Binding("enter", "over", "sessions", tooltip="to the sessions, after the run"),
    Binding("enter", "open_gpu", "open", tooltip="open the selected GPU"),
    Binding("c", "compare", "compare", tooltip="compare the study, so far while it goes on"),
    Binding("space", "pause", "pause", tooltip="hold the view, or go on; recording goes on"),
    Binding("space", "play", "play", tooltip="play from here, or stop playing"),
    Binding(
        "left", "step(-1)", "earlier", tooltip="a column of the history back; End returns to now"
    ),
    Binding("end", "to_now", "now", tooltip="to the end, or to now"),
    Binding("g", "grid", "GPUs", tooltip="all GPUs, and back to one"),
    Binding("z", "zoom(0)", "zoom", tooltip="length of the history: 10 s, 1 min, 5 min, all"),
    Binding("l", "log", "log", tooltip="the log: both streams, search"),
    Binding("p", "processes", "processes", tooltip="who uses the GPUs, and how much"),
    Binding("m", "metric(1)", "metric", tooltip="pick a metric for a graph; Esc takes it away"),
    Binding("i", "numbers", "numbers", tooltip="every number with its method, source and reason"),
    Binding(
        "o", "roofline", "roofline", tooltip="the run under its compute and bandwidth ceilings"
    ),
    Binding("r", "ranks", "ranks", tooltip="the ranks of the run, and which is slower"),
    Binding("K", "kernels", "kernels", tooltip="which kernels took the time, after the run"),
    Binding("e", "export", "report", tooltip="write the study's report"),
    Binding("M", "metric(-1)", "metric before", show=False),
    Binding("minus", "zoom(1)", "longer history", show=False),
    Binding("plus,equals_sign", "zoom(-1)", "shorter history", show=False),
    Binding("tab", "select(1)", "next GPU", show=False, priority=True),
    Binding("shift+tab", "select(-1)", "GPU before", show=False, priority=True),
    Binding("down,j", "row(1)", "GPU below", show=False),
    Binding("up,k", "row(-1)", "GPU above", show=False),
    *(Binding(str(digit), f"gpu({digit})", show=False) for digit in range(10)),
    Binding("right", "step(1)", "later", show=False, tooltip="a column of the history on"),
    Binding("shift+left", "step(-10)", "ten columns back", show=False),
    Binding("shift+right", "step(10)", "ten columns on", show=False),
    Binding("left_square_bracket", "event(-1)", "event before", show=False),
    Binding("right_square_bracket", "event(1)", "next event", show=False),
    Binding("home", "start", "start", show=False, tooltip="to the start of the session"),
    Binding("less_than_sign", "speed(-1)", "slower", show=False, tooltip="play slower, to 1/4"),
    Binding(
        "greater_than_sign",
        "speed(1)",
        "faster",
        show=False,
        tooltip="play faster, as fast as it draws",
    ),
    Binding("escape", "back", "back", show=False, tooltip="back, in the end to the sessions"),
]
"""The mouse goes to a moment too: on a history, the time axis, and the bar of the whole session."""
