"""What gpuwatch reads against work that is known: the table of docs/validation.md.

    python benchmarks/validate.py [--seconds 10] [--python PYTHON]

Records a large copy and a large matrix product (``known_work.py``) and holds the figures of the
sessions against the known bytes and FLOP; the energy counter against the integral of power, over
the same steps; and, where ``ncu`` may count, its DRAM bytes and FLOP of one call. A row without a
figure says why.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpuwatch.session.reading.reader import SessionReader

KNOWN = Path(__file__).with_name("known_work.py")
GPUWATCH = (sys.executable, "-m", "gpuwatch")
_NCU = "dram__bytes_read.sum,dram__bytes_write.sum"
_LAUNCHES = 4


def record(python: str, folder: Path, seconds: float, work: str) -> Path:
    """Record the known work at 10 Hz; the session's path."""
    command = (python, str(KNOWN), work, "--seconds", str(seconds))
    subprocess.run(
        [*GPUWATCH, "--record", "--quiet", "--interval", "0.1", "--out", folder, "--", *command],
        check=True,
    )
    return max(folder.rglob("*.gpuwatch"), key=lambda path: path.stat().st_mtime)


def figures(session: Path) -> dict[str, Any]:
    """``gpuwatch show --format json`` of a session."""
    done = subprocess.run(
        [*GPUWATCH, "show", "--format", "json", session], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def known_rate(session: Path, what: str) -> float:
    """Known work over time, from the step lines alone: FLOP/s or By/s."""
    with SessionReader(session) as reader:
        steps = list(reader.all_steps())[1:]
    return sum(getattr(row, what) or 0 for row in steps) / sum(
        sum(row.seconds or ()) for row in steps
    )


def by_ncu(python: str, work: str) -> tuple[float | None, str]:
    """DRAM bytes of one call of the known work, and its kernel; or why they are unknown."""
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if ncu is None:
        return None, "ncu is not installed"
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--metrics", _NCU]
    command += ["--launch-count", str(_LAUNCHES), "--launch-skip", "4"]
    command += [python, str(KNOWN), work, "--seconds", "0.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    table = done.stdout[done.stdout.find('"ID"') :]
    if not table.startswith('"ID"'):
        return None, (done.stdout + done.stderr).strip().splitlines()[-1][:200]
    launches = list(csv.DictReader(io.StringIO(table)))[1:]
    moved = sum(float(row[name].replace(",", "")) for row in launches for name in _NCU.split(","))
    kernels = " and ".join({row["Kernel Name"][:60] for row in launches})
    return moved / len(launches), f"GPM over calls; ncu of {kernels}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the sessions there")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = flags.keep or Path(temporary)
        copy = record(flags.python, folder, flags.seconds, "copy")
        product = record(flags.python, folder, flags.seconds, "product")
        shown = {path: figures(path) for path in (copy, product)}
        used = [device for device in shown[copy]["devices"] if device["used"]]
        print(f"{datetime.now(timezone.utc):%Y-%m-%d}: " + "; ".join(d["name"] for d in used))
        print("\n| figure | gpuwatch | known | ratio | by |\n| --- | ---: | ---: | ---: | --- |")
        for name, path, metric, what in (
            ("measured bandwidth of a copy, B/s", copy, "hw.gpu.memory.bandwidth", "bytes"),
            ("counted bytes of a copy, B/s", copy, "gpuwatch.bytes.rate", "bytes"),
            ("counted FLOP/s of a product", product, "gpuwatch.flop.rate", "flop"),
        ):
            statistic = shown[path]["metrics"][metric]
            told = statistic["reason"] or f"{statistic['method']}: {statistic['source']}"
            row(name, statistic["mean"], known_rate(path, what), told)
        for path, work in ((copy, "copy"), (product, "product")):
            energy, window = shown[path]["efficiency"]["energy"]["gpu"], shown[path]["window"]
            power = shown[path]["metrics"]["hw.gpu.power"]["mean"]
            by_power = None if power is None else power * window["seconds"]
            row(f"energy of a {work}, J", energy["value"], by_power, energy["source"] or "")
            per_call, told = by_ncu(flags.python, work)
            bandwidth = shown[path]["metrics"]["hw.gpu.memory.bandwidth"]["mean"]
            shares = bandwidth / known_rate(path, "samples") if bandwidth else None
            row(f"DRAM bytes of one {work}", shares, per_call, told)
    return 0


def row(name: str, read: float | None, known: float | None, by: str) -> None:
    """One line of the table; a dash is unknown."""
    ratio = f"{read / known:.3f}" if read is not None and known else "-"
    cells = ["-" if value is None else f"{value:.4g}" for value in (read, known)]
    print(f"| {name} | {cells[0]} | {cells[1]} | {ratio} | {by} |")


if __name__ == "__main__":
    sys.exit(main())
