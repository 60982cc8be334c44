"""NVIDIA cards: what NVML says of them, and what their data sheets say.

Clocks are from published outputs of ``nvidia-smi -q`` (Max Clocks: SM, Memory), each with its
place; bus widths and cores, which it does not print, from published outputs of ``deviceQuery`` and
the white papers. Sheet figures are dense, with sums in FP32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Card:
    name: str
    capability: str
    sm: int
    """MHz"""
    memory: int
    """MHz"""
    width: int
    cores: int
    printed: str
    """Where the clocks were printed."""
    sheet: Mapping[str, float]
    """TFLOP/s, TOP/s, and GB/s of ``bandwidth``, in NVIDIA's data sheet or white paper."""
    clock: int
    """MHz of the sheet."""
    tensor_clock: int | None = None
    rounded: float = 0.01
    """How far the sheet's own rounding may take it."""
    absent: frozenset[str] = field(default_factory=frozenset)

    @property
    def attributes(self) -> dict[str, object]:
        return {
            "compute.capability": self.capability,
            "clock.sm.max": self.sm * 1_000_000,
            "clock.memory.max": self.memory * 1_000_000,
            "memory.bus.width": self.width,
            "core.count": self.cores,
        }


_TELEGRAF = "influxdata/telegraf plugins/inputs/nvidia_smi/testdata"

CARDS = (
    Card(
        "Tesla V100-SXM2-16GB", "7.0", 1530, 877, 4096, 5120,
        "NVIDIA/nvidia-docker issue 914",
        {"bandwidth": 900, "float64": 7.8, "float32": 15.7, "float16": 125}, 1530,
        absent=frozenset({"tf32", "bfloat16", "fp8", "int8"}),
    ),
    Card(
        "Tesla T4", "7.5", 1590, 5001, 256, 2560,
        f"{_TELEGRAF}/tesla-t4.xml",
        {"bandwidth": 320, "float32": 8.1, "float16": 65, "int8": 130}, 1590,
        absent=frozenset({"tf32", "bfloat16", "fp8"}),
    ),
    Card(
        "NVIDIA A100-SXM4-40GB", "8.0", 1410, 1215, 5120, 6912,
        "NVIDIA/nvidia-docker issue 1648 (device 20B0)",
        {"bandwidth": 1555, "float64": 19.5, "float32": 19.5, "tf32": 156, "bfloat16": 312,
         "float16": 312, "int8": 624}, 1410,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA A100-SXM4-80GB", "8.0", 1410, 1593, 5120, 6912,
        "a log of 2024-11-14, driver 555.42.02, GPU-31515c3d-1414-7c2c-004a-f86a898946ac",
        {"bandwidth": 2039, "float64": 19.5, "float32": 19.5, "tf32": 156, "bfloat16": 312,
         "float16": 312, "int8": 624}, 1410,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA A10G", "8.6", 1710, 6251, 384, 10240,
        f"{_TELEGRAF}/a10g.xml",
        {"bandwidth": 600, "float32": 35, "tf32": 35, "bfloat16": 70, "float16": 70,
         "int8": 140}, 1710,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA L4", "8.9", 2040, 6251, 192, 7424,
        "a log of 2024-11-12, driver 550.90.07, GPU-453f8851-d1a3-e72d-4d85-3ef04418205b",
        {"bandwidth": 300, "float32": 30.3, "tf32": 60, "bfloat16": 121, "float16": 121,
         "fp8": 242.5, "int8": 242.5}, 2040,
    ),
    Card(
        "NVIDIA L40S", "8.9", 2520, 9001, 384, 18176,
        "thamada/nvidia-smi nvsim/L40S_smi.py, L40S_deviceQuery.py",
        {"bandwidth": 864, "float32": 91.6, "tf32": 183, "bfloat16": 362.05, "float16": 362.05,
         "fp8": 733, "int8": 733}, 2520,
        # Its 362.05 is at 2490 MHz, its 91.6, 183 and 733 at 2520 MHz.
        rounded=0.02,
    ),
    Card(
        "NVIDIA GeForce RTX 3090", "8.6", 2100, 9751, 384, 10496,
        f"{_TELEGRAF}/rtx-3090-v12.xml",
        {"bandwidth": 936, "float32": 35.6, "tf32": 35.6, "bfloat16": 71, "float16": 71,
         "int8": 284}, 1695,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA GeForce RTX 4090", "8.9", 3105, 10501, 384, 16384,
        "a log of GPU-b9029ae5-75ac-6ded-3592-fc695a3f8c1a, VBIOS 95.02.47.00.01",
        {"bandwidth": 1008, "float32": 82.6, "tf32": 82.6, "bfloat16": 165.2, "float16": 165.2,
         "fp8": 330.3, "int8": 660.6}, 2520,
    ),
    Card(
        "NVIDIA GeForce RTX 5090", "12.0", 3090, 14001, 512, 21760,
        "thamada/gls gls/RTX5090_smi.py, RTX5090_deviceQuery.py",
        {"bandwidth": 1792, "float32": 104.8, "tf32": 104.8, "bfloat16": 209.5,
         "float16": 209.5, "fp8": 419, "int8": 838}, 2407,
    ),
    Card(
        "NVIDIA H100 80GB HBM3", "9.0", 1980, 2619, 5120, 16896,
        "thamada/nvidia-smi nvsim/H100SXMx8_smi.py, H100SXMx8_deviceQuery.py",
        {"bandwidth": 3352, "float64": 66.9, "float32": 66.9, "tf32": 494.7, "bfloat16": 989.4,
         "float16": 989.4, "fp8": 1978.9, "int8": 1978.9}, 1980, tensor_clock=1830,
    ),
    Card(
        "NVIDIA H200", "9.0", 1980, 3201, 6144, 16896,
        "awslabs/amazon-eks-ami pull request 1985; thamada/gls gls/H200_deviceQuery.py",
        {"bandwidth": 4800, "float64": 67, "float32": 67, "tf32": 494.7, "bfloat16": 989.4,
         "float16": 989.4, "fp8": 1978.9, "int8": 1978.9}, 1980, tensor_clock=1830,
    ),
)  # fmt: skip

WITHOUT_OUTPUT = ("NVIDIA H100 PCIe", "NVIDIA B200")
"""No output of ``nvidia-smi -q`` was found for them: nothing to compute from."""
