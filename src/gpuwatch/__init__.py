"""gpuwatch: launch, watch, record and compare training runs on a GPU machine.

``gpuwatch.load(path)`` reads what was recorded into arrays and tables.
"""

from __future__ import annotations

# Not from typing, which takes longer to import than the first picture on a terminal to draw.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gpuwatch.notebook import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """``load`` on first use: a command that does not need numpy must not load it."""
    if name == "load":
        from gpuwatch.notebook import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
