"""The noise floor: what one environment against itself says of this machine."""

from __future__ import annotations

from gpuwatch.analysis.results import Contrast, NoiseFloor


def noise_floor(label: str, contrast: Contrast, margin: float) -> NoiseFloor | None:
    """What a contrast of an environment with itself says; ``None`` where its noise is unknown."""
    raise NotImplementedError
