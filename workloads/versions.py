"""Versions inside the environment; another library version can choose other kernels."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata

import torch


def versions() -> dict[str, str]:
    """Keys of the ``versions`` event; includes torchvision even if the workload does not use it."""
    build = torch.__config__.show()
    result = {
        "torch": torch.__version__,
        "torchvision": _installed("torchvision"),
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": _cudnn(),
        "blas": _first(r"BLAS_INFO=(\w+)", build),
        "blas_version": _first(r"Math Kernel Library Version (\S+)", build)
        or _first(r"OpenBLAS (\S+)", build),
        "mkldnn": _first(r"MKL-DNN v?(\S+)", build),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "onednn_isa": _onednn_isa(),
        "threads": str(torch.get_num_threads()),
        "libc": " ".join(part for part in platform.libc_ver() if part),
    }
    return {key: str(value) for key, value in result.items() if value}


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cudnn() -> str | None:
    """cuDNN's version in its own notation: 9.26.0 for the number 92600."""
    try:
        number: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        return f"unusable: {str(error).splitlines()[0]}"
    if not number:
        return None
    scale = 10000 if number >= 90000 else 1000
    return f"{number // scale}.{number % scale // 100}.{number % 100}"


def _onednn_isa() -> str | None:
    """The instruction set that oneDNN uses, within ``ONEDNN_MAX_CPU_ISA``, in its own words.

    Only its verbose mode tells, on standard output, some ten lines: they go to a pipe.
    """
    onednn = torch.backends.mkldnn
    if not onednn.is_available():  # type: ignore[no-untyped-call]
        return None
    told, telling = os.pipe()
    stdout = os.dup(1)
    os.dup2(telling, 1)
    try:
        with onednn.verbose(onednn.VERBOSE_ON):  # type: ignore[no-untyped-call]
            torch.zeros(16, 16).to_mkldnn()
    except RuntimeError:
        return None
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(telling)
        with open(told, "rb") as lines:
            text = lines.read().decode()
    return _first(r"cpu,isa:(.+)", text)


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1].rstrip(",") if match else None
