"""Folders of data: uniform errors, and downloads with torchvision's own classes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from urllib.error import URLError

from ..failures import EnvironmentFailure, UsageFailure, install


def fetch(name: str, folder: Path) -> None:
    """Download torchvision's data set ``name`` (``MNIST``, ``CIFAR10``) into ``folder``.

    Raises:
        EnvironmentFailure: torchvision is missing, or the data cannot be fetched or written.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise EnvironmentFailure(
            f"--download needs torchvision ({error})", install("torchvision")
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


SHOWN = 6


def contents(folder: Path) -> str:
    """A folder's contents in a few words, for a message."""
    if not folder.exists():
        return "no such folder"
    if not folder.is_dir():
        return "a file, not a folder"
    try:
        names = sorted(p.name + ("/" if p.is_dir() else "") for p in folder.iterdir())
    except OSError as error:
        return f"a folder that cannot be read ({error.strerror})"
    if not names:
        return "an empty folder"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def wrong_shape(folder: Path, expected: str, hint: str) -> UsageFailure:
    """The error for a folder without the data that a workload reads."""
    return UsageFailure(
        f"--data {folder}: expected {expected}; found {contents(folder)}",
        f"{hint}, or leave --data out for synthetic data",
    )


def broken(path: Path, reason: str) -> UsageFailure:
    """The error for a file that exists but cannot be used."""
    return UsageFailure(
        f"{path}: {reason}", "fetch the file again, or leave --data out for synthetic data"
    )
