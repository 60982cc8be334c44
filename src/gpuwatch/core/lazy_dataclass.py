"""``dataclass`` as in :mod:`dataclasses`, but methods are generated for the first instance only.

Compiling the methods took two thirds of the screens' import time, and a start uses few of these
classes. :func:`dataclasses.fields` of a class fails until its first instance exists. ``slots`` is
not supported.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """The class itself, or with options a decorator."""
        if cls is None:
            return lambda decorated: _defer(decorated, options)
        return _defer(cls, options)


_making = threading.RLock()
_ONLY_INIT = {"repr": False, "eq": False, "order": False, "match_args": False}
_NOT_COPIED = {"__init__", "__setstate__", "__init_subclass__", "__dict__", "__weakref__"}


def _defer(cls: Any, options: dict[str, Any]) -> Any:
    def make() -> None:
        with _making:
            if vars(cls).get("__init__") is not __init__:
                return
            # Another thread may call the class meanwhile: it must find a method all the time.
            body = {name: each for name, each in vars(cls).items() if name not in _NOT_COPIED}
            copy = type(cls)(cls.__name__, cls.__bases__, body)
            copy = dataclasses.dataclass(**{**options, **_ONLY_INIT})(copy)
            del cls.__setstate__, cls.__init_subclass__
            dataclasses.dataclass(**{**options, "init": False})(cls)
            cls.__init__ = vars(copy)["__init__"]

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        make()
        vars(cls)["__init__"](self, *arguments, **named)

    def __setstate__(self: Any, state: dict[str, Any]) -> None:
        make()
        vars(self).update(state)

    def __init_subclass__(sub: type) -> None:
        make()
        super(cls, sub).__init_subclass__()

    stand_ins = {
        "__init__": __init__,
        "__setstate__": __setstate__,
        "__init_subclass__": classmethod(__init_subclass__),
    }
    for name, method in stand_ins.items():
        if name in vars(cls):
            return dataclasses.dataclass(**options)(cls)
        setattr(cls, name, method)
    return cls
