"""Runs an NVML source for a test: one JSON question a line on stdin, one answer on stdout."""

import json
import sys
import time
from dataclasses import asdict

from gpuwatch.telemetry.nvml.source import NvmlSource, Unavailable, open_nvml


def answer(source: NvmlSource, question: str) -> object:
    if question == "sample":
        start = time.perf_counter()
        values = source.sample()
        return [list(values), time.perf_counter() - start]
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
    start = time.perf_counter()
    source.close()
    return time.perf_counter() - start


def main() -> None:
    options = json.loads(sys.argv[1])
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
