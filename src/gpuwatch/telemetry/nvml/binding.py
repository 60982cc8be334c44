"""The Python binding of NVML, ``pynvml``, with one way to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuwatch.telemetry.nvml.errors import FUNCTION_NOT_FOUND, UNREADABLE


class Binding:
    """``pynvml``, whose functions raise ``NVMLError`` and nothing else.

    One that the installed binding lacks fails like one missing in the driver. An answer that the
    binding cannot turn into Python's types (a name that is no text, a list of billions) is
    ``UNREADABLE``.
    """

    def __init__(self, module: Any, notice: str | None = None) -> None:
        self.notice = notice
        """What to tell of the library that is loaded, if anything."""
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if not name.startswith("nvml") or not (found is None or callable(found)):
            return getattr(self._module, name)
        guarded = self._guarded(found)
        setattr(self, name, guarded)
        return guarded

    def _guarded(self, function: Callable[..., Any] | None) -> Callable[..., Any]:
        error_type = self._module.NVMLError

        def guarded(*arguments: Any) -> Any:
            if function is None:
                raise error_type(FUNCTION_NOT_FOUND)
            try:
                return function(*arguments)
            except error_type:
                raise
            except Exception as error:
                raise error_type(UNREADABLE) from error

        return guarded
