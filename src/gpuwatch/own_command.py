"""gpuwatch's command line for those that start it as a process of its own.

It is started by the path of its program: ``-m`` and ``-c`` would put the working folder in front of
Python's modules, and a user's ``json.py`` there would be run in place of Python's own. The
environment is left as it is, for the workload inherits it.
"""

from __future__ import annotations

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))

OWN_COMMAND: tuple[str, ...] = (sys.executable, os.path.join(_FOLDER, "__main__.py"))


NOW_PREFIX = "gpuwatch-now-"
"""How the folder's name begins of a recording of the machine that ends with its screen."""


def _capsule() -> str | None:
    try:
        with open(os.path.join(_FOLDER, "capsule"), encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return None


CAPSULE: str | None = _capsule()
"""SHA-256 of the capsule (gpuwatch/places/capsule.py) that this gpuwatch was unpacked from, in hex;
``None`` if it is installed. From a capsule it records; screens and summaries are elsewhere."""
