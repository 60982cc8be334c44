"""Make a session from the output of nsys, ncu or nvprof, to inspect and compare it.

All FILEs belong to one run: a summary of times, and optional counters. Recognised by their headers:
`nsys stats` reports (CSV or text), `ncu --csv` (pages details and raw), nvprof's summaries,
metrics and events (CSV or text). The session's path goes to standard output.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.say import put, say
from gpuwatch.core import paths
from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import clean, to_paste
from gpuwatch.session.study.short_name import short_name

_LONGEST_LABEL = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--label", help="name of the run (default: the first file's name)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of studies")
    parser.add_argument(
        "--device-name", metavar="NAME", help="name of the GPU, if the files lack it"
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    from gpuwatch.profiles.files import load
    from gpuwatch.profiles.merge import merge
    from gpuwatch.profiles.save import save

    profiles = [load(path) for path in arguments.file]
    label = arguments.label
    label = clean(arguments.file[0].stem, _LONGEST_LABEL) if label is None else clean(label)
    if not label.strip() or len(label) > _LONGEST_LABEL:
        raise UsageError(
            f"the label must have 1 to {_LONGEST_LABEL} characters", "give a name: --label NAME"
        )
    device = arguments.device_name
    if device is not None and not clean(device).strip():
        raise UsageError("empty --device-name", "name the GPU, or omit --device-name")
    imported = merge(profiles, device and clean(device, 200).strip())
    path = save(arguments.out or paths.data_home(), label.strip(), profiles, imported)
    paths.remember_study(path.parent.resolve())
    notes = [*imported.profile["notes"], *((imported.counters or {}).get("notes", ()))]
    for note in notes:
        print(f"note: {clean(note, 600)}", file=sys.stderr)
    put(path)
    name = short_name(path)
    say(f"its figures: {to_paste('show', name)}, {to_paste('kernels', name)}")
    return 0
