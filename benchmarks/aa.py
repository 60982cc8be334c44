"""gpuwatch against itself: real studies without a difference, and one with a known slowdown.

    python benchmarks/aa.py [--studies 20] [--blocks 7] [--steps 60] [--slowdown 0.05]
    python benchmarks/aa.py [--studies 20] [--blocks 7] -- python benchmarks/arithmetic.py

With a command behind ``--`` only one environment against itself.

Runs one environment against itself by the real command and counts what is wrongly said. Then the
same against an interpreter that makes every training step longer by a fixed share: after each step
of the optimizer it computes on for that share of the time since the one before, which is a little
more than the step that is reported. Prints a Markdown table.
Exit code 1 where no difference was called SLOWER or FASTER, or where the slowdown was not found.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

GPUWATCH = (sys.executable, "-m", "gpuwatch")

SLOWER = """\
import sys
import time

if any(argument.endswith(".pyz") for argument in sys.orig_argv):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    started = time.perf_counter()

    def slow(*_):
        global started
        now = time.perf_counter()
        end = now + {share} * (now - started)
        while time.perf_counter() < end:
            pass
        started = time.perf_counter()

    register_optimizer_step_post_hook(slow)
"""


def slowed_python(folder: Path, share: float) -> Path:
    """An interpreter whose training steps take ``share`` longer, made in ``folder``."""
    (folder / "sitecustomize.py").write_text(SLOWER.format(share=share))
    python = folder / "python"
    path = f"{folder}${{PYTHONPATH:+{os.pathsep}$PYTHONPATH}}"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def study(arguments: argparse.Namespace, out: Path, *environments: str) -> dict[str, Any]:
    """Record a study of two environments; the verdict of its only contrast."""
    command = [*GPUWATCH, "--record", "--quiet", "--blocks", str(arguments.blocks)]
    command += ["--cool-down", arguments.cool_down, "--out", str(out)]
    for environment in environments:
        command += ["--env", environment]
    if arguments.command:
        command += ["--", *arguments.command]
    else:
        command += [arguments.workload, "--device", arguments.device, "--profile", "0"]
        command += ["--steps", str(arguments.steps)]
    subprocess.run(command, check=True)
    summary = json.loads((newest(out) / "summary.json").read_text())
    found: dict[str, Any] = summary["questions"][0]["contrasts"][0]["verdict"]
    return found


def newest(out: Path) -> Path:
    return max(
        (path.parent for path in out.glob("*/summary.json")), key=lambda p: p.stat().st_mtime
    )


def row(name: str, verdict: dict[str, Any]) -> str:
    change = verdict["change"]
    told = (
        "—"
        if change is None
        else f"{change['estimate']:+.2%} ({change['low']:+.2%} to {change['high']:+.2%})"
    )
    noise = "—" if verdict["noise"] is None else f"{verdict['noise']:.2%}"
    return f"| {name} | {verdict['kind']} | {told} | {noise} | {'; '.join(verdict['reasons'])} |"


def main() -> int:
    """Run the studies, print the table and the count."""
    parser = argparse.ArgumentParser(description="Real A/A studies and an injected slowdown.")
    parser.add_argument("--studies", type=int, default=20, help="studies without a difference")
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--steps", type=int, default=60, help="timed steps of each run")
    parser.add_argument("--slowdown", type=float, default=0.05, help="share of each step")
    parser.add_argument("--cool-down", default="2s", metavar="TIME")
    parser.add_argument("--workload", default="mnist-cnn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="keep the studies here (default: thrown away)")
    parser.add_argument("command", nargs="*", help="in place of the workload")
    arguments = parser.parse_args()
    what = f"{arguments.workload} on {arguments.device}, {arguments.steps} steps"
    what = " ".join(arguments.command) or what
    with tempfile.TemporaryDirectory() as temporary:
        out = arguments.out or Path(temporary, "studies")
        print(
            f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, "
            f"{what}, {arguments.blocks} blocks, margin 1 %\n"
        )
        print(
            "| study | verdict | change (95 %) | noise | why not |\n"
            "| --- | --- | ---: | ---: | --- |"
        )
        found = []
        for number in range(1, arguments.studies + 1):
            found.append(study(arguments, out, "bare", "bare"))
            print(row(f"A/A {number}", found[-1]), flush=True)
        slowed = None
        if not arguments.command:
            python = slowed_python(Path(temporary), arguments.slowdown)
            slowed = study(arguments, out, "bare", f"bare,python={python}")
            print(row(f"{arguments.slowdown:+.1%}", slowed))
    counts = Counter(verdict["kind"] for verdict in found)
    excluded = sum(
        verdict["change"] is not None
        and not verdict["change"]["low"] <= 0 <= verdict["change"]["high"]
        for verdict in found
    )
    told = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"\nWithout a difference: {told}; zero outside of the 95 % interval in {excluded}.")
    wrong = counts["slower"] + counts["faster"]
    return 1 if wrong or (slowed is not None and slowed["kind"] != "slower") else 0


if __name__ == "__main__":
    sys.exit(main())
