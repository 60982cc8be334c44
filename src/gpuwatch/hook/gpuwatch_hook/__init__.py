"""The package of the hook, and what a training program may tell by itself.

    import gpuwatch_hook as g

    with g.step(samples=64):
        with g.phase("encoder"):
            ...

Within a run of gpuwatch these are the steps and phases, instead of those that the hook sees.
``gpuwatch/hook/outside/gpuwatch_hook.py``, copied beside a program, stands in for this elsewhere,
and does nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> "Any":
    """What a program tells, loaded late: every Python of a run loads this module."""
    if name not in ("step", "phase", "flop", "plan"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import own

    return getattr(own, name)
