from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import gpuwatch.telemetry

ROOM = Path(gpuwatch.telemetry.__path__[0])
ALLOWED = {"pynvml", "psutil"}
COMMON = {
    "gpuwatch.core.lazy_dataclass",
    "gpuwatch.core.errors",
    "gpuwatch.core.metrics",
    "gpuwatch.core.models",
    "gpuwatch.core.peaks",
    "gpuwatch.core.peak_tables",
    "gpuwatch.core.processes",
    "gpuwatch.core.parent_death",
    "gpuwatch.core.aggregate",
    "gpuwatch.core.units",
    "gpuwatch.core.users",
}


def test_the_room_imports_only_what_it_may() -> None:
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                if top == "gpuwatch":
                    assert name in COMMON or name.startswith("gpuwatch.telemetry"), path
                else:
                    assert top in ALLOWED or top in sys.stdlib_module_names, (path, name)


def test_importing_the_room_does_not_load_the_binding() -> None:
    code = (
        "import sys, gpuwatch.telemetry.nvml.source, gpuwatch.telemetry.process.workload;"
        "import gpuwatch.telemetry.host.fingerprint;"
        "print([name for name in ('pynvml', 'psutil', 'numpy') if name in sys.modules])"
    )
    env = {"PYTHONPATH": str(ROOM.parents[1])}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert told.stdout.strip() == "[]", told.stderr
