from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gpuwatch.telemetry

ROOM = Path(gpuwatch.telemetry.__path__[0])


def test_importing_the_room_does_not_load_the_binding() -> None:
    code = (
        "import sys, gpuwatch.telemetry.nvml.source, gpuwatch.telemetry.process.workload;"
        "import gpuwatch.telemetry.host.fingerprint;"
        "print([name for name in ('pynvml', 'psutil', 'numpy') if name in sys.modules])"
    )
    env = {"PYTHONPATH": str(ROOM.parents[1])}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert told.stdout.strip() == "[]", told.stderr
