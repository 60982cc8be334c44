"""Runs an NVML source for a test: one JSON question a line on stdin, one answer on stdout.

Nothing is left out of a sample because the machine is slow, unless a test shortens the patience.
"""

import json
import resource
import sys
from dataclasses import asdict
from pathlib import Path

from gpuwatch.telemetry.nvml import selection, unified
from gpuwatch.telemetry.nvml import source as nvml_source
from gpuwatch.telemetry.nvml.source import NvmlSource, Unavailable, open_nvml

_PATIENCE_S = 3600.0


def answer(source: NvmlSource, question: str) -> object:
    if question == "sample":
        return list(source.sample())
    if question == "drain":
        changes, events = source.drain()
        return [[asdict(change.channel) for change in changes], [asdict(e) for e in events]]
    if question == "processes":
        return {
            gpu: None if listed is None else [asdict(process) for process in listed]
            for gpu, listed in source.processes().items()
        }
    if question == "shares":
        return {gpu: asdict(shares) for gpu, shares in source.process_shares().items()}
    if question == "waiting":
        return source._xid.waiting
    if question == "be patient":
        nvml_source.SAMPLE_PATIENCE_S = _PATIENCE_S
        return None
    return source.close()


def main() -> None:
    options = json.loads(sys.argv[1])
    if (folder := options.pop("kernel_gpus", None)) is not None:
        selection.KERNEL_GPUS = Path(folder)
    if (file := options.pop("meminfo", None)) is not None:
        unified.MEMINFO = Path(file)
    if (most := options.pop("most_memory", None)) is not None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    nvml_source.SAMPLE_PATIENCE_S = options.pop("sample_patience_s", _PATIENCE_S)
    try:
        opened = open_nvml(**options)
    except ValueError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    if isinstance(opened, Unavailable):
        print(json.dumps({"unavailable": asdict(opened)}), flush=True)
        return
    shown = {
        "devices": [asdict(device) for device in opened.devices],
        "channels": [asdict(channel) for channel in opened.channels],
    }
    print(json.dumps(shown), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(opened, line.strip())), flush=True)


main()
