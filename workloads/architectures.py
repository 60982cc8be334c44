"""Which builds of torch run on which GPU, by version numbers alone; torch is not loaded."""

from __future__ import annotations

import re
from collections.abc import Sequence

Capability = tuple[int, int]
"""A GPU's compute capability: major, minor."""

OLDEST = (5, 0)
"""The oldest GPU with code in any torch from 2.6 on."""

OLDEST_OF_CUDA_13 = (7, 5)
"""CUDA 13 compiles for Turing and later (its release notes, "deprecated architectures")."""

_NEWEST_MAJOR = 12
"""Blackwell's; a later GPU only needs a torch with code for it, nothing else is known."""

_LAST_CUDA_12 = "2.15"
"""The first torch without a build for CUDA 12.6, the last one for Maxwell, Pascal and Volta."""

_DRIVERS = {11: 450, 12: 525, 13: 580}
"""The oldest driver branch for each major version of CUDA (CUDA Compatibility, minor versions)."""


def runs_on(capability: Capability, built_for: Sequence[str]) -> bool:
    """Whether code for these architectures (``sm_80``, ``compute_90``) runs on a GPU.

    Machine code runs on its own major version from its minor version on, or only on that version if
    it is architecture-specific (``sm_90a``). Intermediate code runs on all later versions (CUDA C++
    Programming Guide, binary and PTX compatibility).
    """
    any_known = False
    for architecture in built_for:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", architecture)
        if not match:
            continue
        any_known = True
        version = int(match[2]), int(match[3])
        if match[4] == "a":
            fits = capability == version
        elif match[1] == "compute":
            fits = capability >= version
        else:
            fits = capability[0] == version[0] and capability >= version
        if fits:
            return True
    return not any_known


def oldest_driver(cuda: str | None) -> int | None:
    """The oldest driver branch for a build with this CUDA (``13.2``); None if unknown."""
    major = re.match(r"\d+", cuda or "")
    return _DRIVERS.get(int(major[0])) if major else None


def is_too_old(driver: str | None, cuda: str | None) -> bool:
    """Whether a driver (``575.57.08``) is known to be too old for a build with ``cuda``."""
    least, branch = oldest_driver(cuda), re.match(r"\d+", driver or "")
    return least is not None and branch is not None and int(branch[0]) < least


def build_for(capability: Capability | None, driver: str | None) -> str | None:
    """The build of torch for this GPU and driver, in words; None if no build fits."""
    if capability is not None and capability < OLDEST:
        return None
    old_driver = is_too_old(driver, "13")
    if capability is not None and capability[0] > _NEWEST_MAJOR:
        return (
            "a newer torch than this, with code for compute capability {}.{} (a nightly build "
            "where no release has it)".format(*capability)
        )
    if capability is not None and capability >= (10, 0):
        return "torch 2.7 or later, built for CUDA 12.8 or later" + (
            f" (its default build needs driver {_DRIVERS[13]} or later)" if old_driver else ""
        )
    if old_driver or (capability is not None and capability < OLDEST_OF_CUDA_13):
        return f"torch before {_LAST_CUDA_12}, built for CUDA 12.6"
    return "torch's default build"
