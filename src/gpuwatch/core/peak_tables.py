"""What NVIDIA publishes about its cards: arithmetic per clock, and data-sheet clocks.

Rates are dense (no sparsity) floating-point operations per clock and multiprocessor; a multiply-add
counts as two, and smaller types accumulate in FP32. ``int8`` counts integer operations.

Sources: the white papers of the architectures (Volta WP-08608, Turing WP-09183, Ampere GA100 and
GA102, Ada, Hopper, Blackwell RTX), the data sheets of the products, and the table
"Throughput of Native Arithmetic Instructions" of the CUDA programming guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass

FULL, HALF = "full", "half"


@dataclass(frozen=True)
class Rates:
    """Arithmetic of one multiprocessor in one clock."""

    cores: int
    """FP32 lanes: NVML's core count divided by this is the number of multiprocessors."""
    per_clock: Mapping[str, int | None]
    """By data type; absent: not supported; ``None``: not published."""


def _rates(cores: int, **per_clock: int | None) -> Rates:
    return Rates(cores, {"float32": 2 * cores, **per_clock})


_ADA_FULL = _rates(128, float64=4, tf32=512, bfloat16=1024, float16=1024, fp8=2048, int8=2048)
_ADA_HALF = _rates(128, float64=4, tf32=256, bfloat16=512, float16=512, fp8=1024, int8=2048)

RATES: dict[str, dict[str, Rates]] = {
    "6.0": {FULL: _rates(64, float64=64)},
    "6.1": {FULL: _rates(128, float64=8)},
    "7.0": {FULL: _rates(64, float64=64, float16=1024)},
    "7.5": {
        FULL: _rates(64, float64=4, float16=1024, int8=2048),
        HALF: _rates(64, float64=4, float16=512, int8=2048),
        "no tensor cores": _rates(64, float64=4),
    },
    "8.0": {FULL: _rates(64, float64=128, tf32=1024, bfloat16=2048, float16=2048, int8=4096)},
    "8.6": {
        FULL: _rates(128, float64=4, tf32=512, bfloat16=1024, float16=1024, int8=2048),
        HALF: _rates(128, float64=4, tf32=256, bfloat16=512, float16=512, int8=2048),
        "A10G": _rates(128, float64=4, tf32=256, bfloat16=512, float16=512, int8=1024),
    },
    "8.9": {
        FULL: _ADA_FULL,
        HALF: _ADA_HALF,
        "L40": _rates(128, float64=4, tf32=256, bfloat16=512, float16=512, fp8=1024, int8=1024),
    },
    "9.0": {
        FULL: _rates(128, float64=256, tf32=2048, bfloat16=4096, float16=4096, fp8=8192, int8=8192),
        # Reduced by an unpublished factor: only FP32 follows from cores and clock.
        "H20": _rates(
            128, float64=None, tf32=None, bfloat16=None, float16=None, fp8=None, int8=None
        ),
        "H800": _rates(
            128, float64=None, tf32=2048, bfloat16=4096, float16=4096, fp8=8192, int8=8192
        ),
    },
    "10.0": {
        FULL: _rates(
            128, float64=128, tf32=4096, bfloat16=8192, float16=8192, fp8=16384, int8=16384
        )
    },
    "10.3": {
        FULL: _rates(
            128, float64=None, tf32=4096, bfloat16=8192, float16=8192, fp8=16384, int8=None
        )
    },
    "12.0": {FULL: _ADA_FULL, HALF: _ADA_HALF},
}
"""By compute capability and variant. ``float64`` of 8.0 and 9.0 is the tensor cores' rate, twice
that of the other cores; ``half``: FP32 accumulation runs at half the speed of FP16."""

_VARIANTS: dict[str, tuple[tuple[str, str], ...]] = {
    "7.5": (
        (r"GeForce RTX 20\d\d.*", HALF),
        (r"(GeForce )?(GTX 16\d\d|MX\d+|T\d{3,4}\b).*", "no tensor cores"),
        (r"(Quadro |TITAN )RTX.*|T4G?|T10|T40.*", FULL),
    ),
    "8.6": (
        (r"GeForce RTX .*", HALF),
        (r"A10G", "A10G"),
        (r"A2|A10|A16|A40|RTX A\d{3,4}.*", FULL),
    ),
    "8.9": (
        (r"GeForce RTX .*", HALF),
        (r"L40|L20", "L40"),
        (r"L4|L40S|RTX \d{4} (SFF )?Ada Generation.*", FULL),
    ),
    "9.0": ((r"H20\b.*", "H20"), (r"H800.*", "H800"), (r".*", FULL)),
    "12.0": ((r"GeForce RTX .*", HALF), (r"RTX PRO .*", FULL)),
}
"""Variant by product name without maker; the first pattern that matches the full name counts."""

UNIFIED = frozenset({"5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1"})
"""Compute capabilities of chips that share the host's memory: Jetson, DRIVE, Thor, GB10."""


@dataclass(frozen=True)
class Sheet:
    """A product's data sheet."""

    boost: int
    """MHz: the boost clock."""
    bandwidth: float
    """GB/s."""
    tensor: int | None = None
    """MHz: the clock of tensor-core figures (except FP64), if the maker quotes a different one."""
    implied: bool = False
    """The maker gives no clock: these follow from the sheet's FLOP/s."""


SHEETS: tuple[tuple[str, Sheet], ...] = (
    (r"V100-SXM2-\d+GB", Sheet(1530, 900)),
    (r"V100-PCIE-\d+GB", Sheet(1380, 900)),
    (r"V100S-PCIE-32GB", Sheet(1597, 1134)),
    (r"T4", Sheet(1590, 320)),
    (r"A30", Sheet(1440, 933)),
    (r"A100-(SXM4|PCIE)-40GB", Sheet(1410, 1555)),
    (r"A100-SXM4-80GB", Sheet(1410, 2039)),
    (r"A100 80GB PCIe", Sheet(1410, 1935)),
    (r"A10", Sheet(1695, 600)),
    (r"A10G", Sheet(1710, 600)),
    (r"A40", Sheet(1740, 696)),
    (r"GeForce RTX 3090", Sheet(1695, 936)),
    (r"GeForce RTX 4090", Sheet(2520, 1008)),
    (r"L4", Sheet(2040, 300)),
    (r"L40", Sheet(2490, 864)),
    (r"L40S", Sheet(2520, 864)),
    (r"H100 80GB HBM3", Sheet(1980, 3352, tensor=1830)),
    (r"H100 PCIe", Sheet(1755, 2039, tensor=1620)),
    (r"H200", Sheet(1980, 4800, tensor=1830)),
    (r"B200", Sheet(1965, 7700, tensor=1850, implied=True)),
    (r"GeForce RTX 5090", Sheet(2407, 1792)),
)
"""By product name without maker; H100's two clocks are from table 3 of the Hopper white paper."""


def product_of(name: str) -> str:
    """The product name without maker and old family: ``V100-SXM2-16GB``, ``GeForce ...``."""
    return re.sub(r"^(NVIDIA\s+)?(Tesla\s+)?", "", name.strip(), flags=re.IGNORECASE)


def is_virtual(name: str) -> bool:
    """Whether this is a vGPU, a share of a card: ``GRID T4-16C``, ``NVIDIA A40-8Q``."""
    product = product_of(name)
    return product.startswith("GRID ") or re.search(r"-\d+[ABCQ]$", product) is not None


def rates_of(capability: str, name: str) -> Rates | None:
    """Arithmetic per clock of a product; FP32 and FP64 only if its variant is unknown.

    ``None``: the architecture is not in the table, or a mining card (CMP) has reduced rates.
    """
    product = product_of(name)
    variants = RATES.get(capability)
    if variants is None or product.startswith("CMP"):
        return None
    for pattern, variant in _VARIANTS.get(capability, ((r".*", FULL),)):
        if re.fullmatch(pattern, product):
            return variants[variant]
    full = variants[FULL]
    variant_free = {"float32", "float64"}
    return Rates(
        full.cores,
        {key: rate if key in variant_free else None for key, rate in full.per_clock.items()},
    )


def sheet_of(name: str) -> Sheet | None:
    """The data sheet of the product with exactly this name."""
    product = product_of(name)
    return next((sheet for pattern, sheet in SHEETS if re.fullmatch(pattern, product)), None)
