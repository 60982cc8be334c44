"""The keys of the live screen: all of them for the help page, those that fit for its last row."""

from __future__ import annotations

from gpuwatch.tui.live_rows import Options
from gpuwatch.tui.snapshot import Snapshot

HELP: tuple[tuple[str, str], ...] = (
    ("q", "leave; a run goes on, and the terminal says how to come back"),
    ("s", "stop the run, after asking"),
    ("Tab, ↓ or digits", "next GPU or the GPU of that number in the large gauges"),
    ("Shift+Tab or ↑", "the GPU before"),
    ("Space", "hold the view; recording goes on"),
    ("z, - and +", "length of the history: 10 s, 1 min, 5 min, all"),
    ("l", "more of the log"),
    ("i", "every number with its method, source and reason; all warnings"),
    ("o", "roofline: the run under the ceilings of compute and bandwidth"),
    ("K", "kernels: which ones took the time, after the run"),
    ("Esc", "the sessions; Enter too when the run is over"),
    ("c", "compare with its study, so far while that goes on"),
    ("t", "colours: dark, light, the terminal's own"),
    ("?", "this page"),
)


def live_keys(
    snapshot: Snapshot | None, options: Options, *, asking: bool, roofline: bool
) -> list[tuple[str, str]]:
    """What can be pressed now; ``roofline``: it is what is shown."""
    if asking:
        return [("y", "yes"), ("n", "no")]
    keys = [("q", "leave")]
    if snapshot is None:
        return [*keys, ("Esc", "sessions")]
    hold = ("Space", "go on" if options.paused else "pause")
    live = snapshot.status.live
    if roofline:
        held = [hold] if live or options.paused else []
        return [("o", "back"), *held, ("i", "numbers"), ("K", "kernels"), *keys, ("?", "help")]
    figures = [("i", "numbers")]
    if not snapshot.machine_only:
        figures.append(("o", "roofline"))
        figures += [] if live else [("K", "kernels")]
    if not live:
        keys += [*figures, ("Enter", "sessions"), ("c", "compare")]
    elif not snapshot.machine_only:
        keys.append(("s", "stop"))
    if live or options.paused:
        keys.append(hold)
    keys += [("z", "zoom"), ("l", "log")]
    if live:
        keys += figures
    if len(snapshot.gpus) > 1:
        keys.append(("Tab", "GPU"))
    if live:
        keys.append(("Esc", "sessions"))
    return [*keys, ("?", "help")]
