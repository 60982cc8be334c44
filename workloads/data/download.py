"""Downloads data sets with torchvision's own classes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from urllib.error import URLError

from ..failures import EnvironmentFailure


def fetch(name: str, folder: Path) -> None:
    """Download torchvision's data set ``name`` (``MNIST``, ``CIFAR10``) into ``folder``.

    Raises:
        EnvironmentFailure: torchvision is missing, or the data cannot be fetched or written.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise EnvironmentFailure(
            f"--download needs torchvision ({error})", "PYTHON -m pip install torchvision"
        ) from error
    try:
        with contextlib.redirect_stdout(sys.stderr):
            getattr(datasets, name)(str(folder), download=True)
    except (URLError, OSError, RuntimeError) as error:
        raise EnvironmentFailure(
            f"{name} could not be fetched into {folder}: {str(error) or repr(error)}",
            "check the network and the folder, fetch it elsewhere and give --data DIR, "
            "or leave both out for synthetic data",
        ) from error
