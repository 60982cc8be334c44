"""A stand-in for NVIDIA's driver library, so that the real ``pynvml`` runs without a GPU.

``FakeDriver`` compiles ``libnvidia-ml.so.1``, for tests that ask for it ``libcuda.so.1`` too, and
writes the file from which it answers. A program started with ``FakeDriver.env`` sees the GPUs;
every change takes effect in it within a few milliseconds, while it runs::

    driver = FakeDriver(tmp_path, gpus=8)
    process = subprocess.Popen([sys.executable, "-m", "gpuwatch", ...], env=driver.env)
    driver.set(gpu=0, utilization=73)
    driver.fail("nvmlDeviceGetPowerUsage", NOT_SUPPORTED, gpu=0)
    driver.lose(3)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SUCCESS = 0
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
VERSION_MISMATCH = 18
UNKNOWN = 999

_SOURCES = Path(__file__).parent
_LONGEST = 120
"""How long a text the library keeps, in bytes; it would cut a longer one without a word."""

_MACHINE: dict[str, object] = {"driver": "575.57.08", "nvml": "12.575.57.08", "cuda": 12090}
_GPU: dict[str, object] = {
    "name": "NVIDIA H100 80GB HBM3",
    "utilization": 40,  # percent
    "memory_busy": 25,  # percent of time
    "memory_total": 85520809984,  # bytes
    "memory_used": 12 * 2**30,  # bytes, without the reserve
    "memory_reserved": 680 * 2**20,  # bytes
    "power": 251_000,  # milliwatts: nvmlDeviceGetPowerUsage
    "power_instant": 252_500,  # field 186
    "power_average": 250_500,  # field 185
    "power_limit": 700_000,
    "energy": 5_000_250,  # millijoules
    "temperature": 47,
    "temperature_slowdown": 89,
    "temperature_max": 87,
    "clock_sm": 1755,  # MHz
    "clock_memory": 2619,
    "max_clock_sm": 1980,
    "max_clock_memory": 2619,
    "pcie_transmit": 120_000,  # KB/s
    "pcie_receive": 340_000,
    "pcie_generation": 5,
    "pcie_width": 16,
    "encoder": 0,  # percent of time
    "decoder": 0,
    "bus_width": 5120,  # bits
    "cores": 16896,
    "compute_capability": "9.0",
    "architecture": 9,
    "performance": 0,
    "persistence": 1,
    "compute_mode": 0,
    "ecc": 1,
    "ecc_corrected": 0,
    "ecc_uncorrected": 0,
    "clocks_event_reasons": 1,  # bits: the GPU is idle
    "event_types": 8,  # bits: Xid errors are told
    "mig_answers": 0,  # 1: calls on a MIG device answer for its whole GPU
}


def build(folder: Path) -> Path:
    """Compile the library into ``folder``; returns the directory for ``LD_LIBRARY_PATH``.

    Compiled once per version of the source, so one folder may serve many tests. Raises
    ``RuntimeError`` without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("the fake driver needs a C compiler (gcc)")
    parts = sorted(_SOURCES.glob("*.[ch]"))
    source = b"".join(part.read_bytes() for part in parts)
    # The name by which the loader knows a library that is loaded, as the real one has it.
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Wl,-soname,libnvidia-ml.so.1"]
    known_by = hashlib.sha256(source + " ".join(flags).encode()).hexdigest()
    target = folder / f"fake-nvml-{known_by[:16]}"
    library = target / "libnvidia-ml.so.1"
    if not library.exists():
        target.mkdir(parents=True, exist_ok=True)
        partial = target / f"partial-{os.getpid()}.so"
        units = [part for part in parts if part.suffix == ".c"]
        subprocess.run([compiler, *flags, "-o", partial, *units, "-lpthread"], check=True)
        (target / "cuda").mkdir(exist_ok=True)
        link = target / "cuda" / f"partial-{os.getpid()}"
        link.symlink_to("../libnvidia-ml.so.1")
        link.replace(target / "cuda/libcuda.so.1")
        partial.replace(library)
    return target


def uuid(gpu: int) -> str:
    """The UUID that GPU number ``gpu`` has unless a test sets another."""
    return f"GPU-{gpu:08x}-1111-2222-3333-{gpu:012x}"


class FakeDriver:
    """A driver with ``gpus`` identical GPUs, each of whose answers can be changed at any time."""

    def __init__(self, folder: Path, gpus: int = 1) -> None:
        cache = Path(tempfile.gettempdir()) / f"fake-nvml-{os.getuid()}"
        self._library = build(cache)
        self._state_file = folder / "fake-nvml-state"
        self._machine: dict[str, object] = dict(_MACHINE)
        self._gpus: dict[int, dict[str, object]] = {}
        self._returns: dict[tuple[str, int | None], int] = {}
        self._delays: dict[tuple[str, int | None], float] = {}
        self._processes: dict[int, list[tuple[int, int | None, str]]] = {}
        self._gpm: dict[tuple[int, int], dict[int, float]] = {}
        self._lost: set[int] = set()
        self._cuda = False
        self.resize(gpus)

    @property
    def variables(self) -> dict[str, str]:
        """By which a program finds this driver, before any real one."""
        rest = os.environ.get("LD_LIBRARY_PATH")
        path = f"{self._library}:{rest}" if rest else str(self._library)
        if self._cuda:
            path = f"{self._library / 'cuda'}:{path}"
        return {"LD_LIBRARY_PATH": path, "FAKE_NVML_STATE": str(self._state_file)}

    @property
    def env(self) -> dict[str, str]:
        """This process's environment, in which a program finds this driver."""
        return {**os.environ, **self.variables}

    def install(self, root: Path) -> None:
        """Put the driver, as it is now, into a root file system, where programs find it without
        any variable."""
        shutil.copy(self._library / "libnvidia-ml.so.1", root / "usr/lib")
        shutil.copy(self._state_file, root / "etc/fake-nvml-state")

    def resize(self, gpus: int) -> None:
        """Have this many GPUs, at most 16."""
        self._machine["gpus"] = gpus
        for gpu in range(gpus):
            self._gpus.setdefault(
                gpu, _GPU | {"uuid": uuid(gpu), "pci_bus_id": f"00000000:{0x18 + gpu:02X}:00.0"}
            )
        self._write()

    def set(self, gpu: int | None = None, **values: object) -> None:
        """Set values, in NVML's own units, of one GPU or of all: ``set(gpu=0, utilization=73)``.

        ``fan`` gives a GPU a fan of its own, with its speed in percent.
        """
        for number in self._gpus if gpu is None else (gpu,):
            self._gpus[number].update(values)
        self._write()

    def cuda(self, *order: int) -> None:
        """Answer as ``libcuda.so.1`` too, which counts the GPUs in this order; programs that are
        started from now on find it."""
        self._cuda = True
        self.set_machine(cuda_order=",".join(map(str, order)))

    def set_machine(self, **values: object) -> None:
        """Set ``driver``, ``nvml`` or ``cuda`` (12090 is 12.9)."""
        self._machine.update(values)
        self._write()

    def init(self, code: int) -> None:
        """Make ``nvmlInit`` answer ``code``: 9 driver not loaded, 18 version mismatch, 0 fine."""
        self.fail("nvmlInit", code)

    def fail(self, function: str, code: int, gpu: int | None = None) -> None:
        """Make a function answer ``code``, on one GPU or on all.

        Without a version suffix all versions of the function are meant. One field of
        ``nvmlDeviceGetFieldValues`` is ``nvmlDeviceGetFieldValues:186``.
        """
        self._returns[function, gpu] = code
        self._write()

    def work(self, function: str, gpu: int | None = None) -> None:
        """Undo :meth:`fail` and :meth:`delay` for the same function and GPU."""
        self._returns.pop((function, gpu), None)
        self._delays.pop((function, gpu), None)
        self._write()

    def delay(self, function: str, seconds: float, gpu: int | None = None) -> None:
        """Make a function take this long; undoing it also lets go a call in progress."""
        self._delays[function, gpu] = seconds
        self._write()

    def load(self, period: float, busy: float) -> None:
        """A load that is busy for ``busy`` of every ``period`` seconds, on all GPUs: what was set
        for utilization and power is that of busy time, else they are 0 and 60 W.
        """
        self.set(load=f"{round(period * 1e6)} {round(busy * 1e6)}", power_idle=60_000)

    def lose(self, gpu: int) -> None:
        """The GPU falls off the bus: every call on it answers 15."""
        self._lost.add(gpu)
        self._write()

    def restore(self, gpu: int) -> None:
        """Undo :meth:`lose`."""
        self._lost.discard(gpu)
        self._write()

    def xid(self, gpu: int, number: int) -> None:
        """The driver reports an Xid error."""
        before = self._gpus[gpu].get("xids")
        self.set(gpu, xids=number if before is None else f"{before},{number}")

    def processes(self, gpu: int, *processes: tuple[int, int | None, str]) -> None:
        """The processes on a GPU: ``(pid, bytes or None, "compute" or "graphics")``."""
        self._processes[gpu] = list(processes)
        self._write()

    def gpm(self, rates: Mapping[int, float], gpu: int | None = None, instance: int = 0) -> None:
        """Offer GPM on one GPU or on all, with metrics by number in NVML's units: ``{10: 45.5}``.

        Metrics that were never given a rate are not supported; ``instance`` is a GPU instance of
        MIG. ``set(gpm=0)`` takes GPM away.
        """
        for number in self._gpus if gpu is None else (gpu,):
            self._gpm.setdefault((number, instance), {}).update(rates)
            self._gpus[number]["gpm"] = 1
        self._write()

    def _write(self) -> None:
        lines = [f"{key} {value}" for key, value in self._machine.items()]
        for gpu, values in self._gpus.items():
            lines += [f"gpu {gpu} {key} {value}" for key, value in values.items()]
        for gpu, processes in self._processes.items():
            lines += [
                f"process {gpu} {kind} {pid} {'-' if size is None else size}"
                for pid, size, kind in processes
            ]
        for (function, where), code in self._returns.items():
            lines.append(f"return {function} {code} {'*' if where is None else where}")
        for (function, where), seconds in self._delays.items():
            micros = round(seconds * 1e6)
            lines.append(f"delay {function} {micros} {'*' if where is None else where}")
        for (gpu, instance), rates in self._gpm.items():
            part = f"{gpu}/{instance}" if instance else f"{gpu}"
            lines += [f"gpm {part} {metric} {rate}" for metric, rate in rates.items()]
        lines += [f"lost {gpu}" for gpu in sorted(self._lost)]
        assert max(map(len, lines), default=0) < _LONGEST, "longer than the library reads"
        partial = self._state_file.with_suffix(".partial")
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
        partial.replace(self._state_file)
