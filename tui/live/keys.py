"""The keys of the live screen: all of them for the help page, those that fit for its last row."""

from __future__ import annotations

from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.live.rows import Options

_OWN: tuple[tuple[str, str], ...] = (
    ("", "the run"),
    ("s", "stop the run, after asking"),
    ("e", "write the study's report"),
    ("Esc", "one level back, in the end to the sessions"),
    ("q", "leave; a run goes on, and the terminal says how to come back"),
    ("", "what is shown"),
    ("g", "all GPUs, and back to one"),
    ("Tab, ↓ or digits", "next GPU, the one below, or the GPU of that number"),
    ("Shift+Tab or ↑", "the GPU before, the one above"),
    ("Enter", "of all GPUs the chosen one; when the run is over: the sessions"),
    ("m and M", "pick a metric for a graph: the next, the one before; Esc takes it away"),
    ("z, - and +", "length of the history: 10 s, 1 min, 5 min, all"),
    ("Space", "hold the view, recording goes on; when the run is over: play, and stop"),
    ("", "pages"),
    ("l", "the log: both streams, search"),
    ("p", "processes: who uses the GPUs, and how much"),
    ("i", "every number with its method, source and reason; all warnings"),
    ("o", "roofline: the run under the ceilings of compute and bandwidth"),
    ("K", "kernels: which ones took the time, after the run"),
    ("c", "compare with its study, so far while that goes on"),
)
_TIME: tuple[tuple[str, str], ...] = (
    ("", "time"),
    ("← →", "a column of the history back or on; of a run that goes on: look back"),
    ("Shift+← Shift+→", "ten columns"),
    ("[ ]", "the event before, the next one; epochs only where there are no others"),
    ("Home End", "the start, the end: of a run that goes on that is now"),
    ("< >", "play slower, faster: 1/4 to 64 times, or as fast as it draws"),
)
"""The mouse goes to a moment too: on the time axis and on the bar of the whole session."""
HELP = (*_OWN, *_TIME)


def live_keys(snapshot: Snapshot | None, options: Options, view: View) -> list[tuple[str, str]]:
    """What can be pressed now, what matters most first; ``view``: what is looked at."""
    keys = [("q", "leave")]
    if snapshot is None:
        return [*keys, ("Esc", "sessions")]
    live = snapshot.goes_on
    if view.at is not None:
        hold = [("Space", "stop" if view.playing else "play")]
    else:
        hold = [("Space", "play" if not live else "go on" if options.paused else "pause")]
    if view.roofline:
        return [("o", "back"), *hold, ("i", "numbers"), ("K", "kernels"), *keys, ("?", "help")]
    if view.at is not None:
        end = "now" if live else "all"
        speed = [("<", "slower"), (">", "faster")]
        return [("←→", "time"), *hold, *speed, ("End", end), ("[", "event"), *keys, ("?", "help")]
    several = len(snapshot.gpus) > 1
    if view.grid:
        keys = [("g", "one GPU"), ("Enter", "open"), ("Tab", "next"), *keys, *hold, ("z", "zoom")]
        return [*keys, ("?", "help")]
    metric = [("m", "metric")] if snapshot.metrics else []
    pages = [*metric, ("i", "numbers"), ("p", "processes")]
    if not snapshot.machine_only:
        pages = [("l", "log"), *metric, ("i", "numbers"), ("o", "roofline"), ("p", "processes")]
        pages += [] if live else [("K", "kernels")]
    shown = [("g", "GPUs")] if several else []
    shown += [*hold, ("z", "zoom")]
    if not live:
        keys += [("Enter", "sessions"), ("c", "compare"), *pages, *shown, ("e", "report")]
        return [*keys, ("?", "help")]
    if not snapshot.machine_only:
        keys.append(("s", "stop"))
    return [*keys, *shown, *pages, ("Esc", "sessions"), ("?", "help")]
