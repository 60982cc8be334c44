"""Waits for the parts of torch that the hook needs, and acts once each is loaded."""

import sys

from .waiting import ADAPTERS

TYPE_CHECKING = False
if TYPE_CHECKING:  # every Python of the run loads this, and `typing` takes milliseconds
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def wait_for_torch() -> None:
    """Put the finder before all others, once; a program without torch pays for nothing else."""
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


PATCHES = {
    "torch._dynamo": "watch_compiler",
    "torch.autograd": "watch_backward",
    "torch.amp.grad_scaler": "watch_scaler",
    "torch.utils.data.dataloader": "watch_loader",
    "torch.optim.optimizer": "watch_optimizers",
}
"""Modules of torch, and what of :mod:`.patches` to call once each is loaded."""


class _Finder:
    """Finds the modules that are waited for as the other finders do, and wraps their loaders."""

    def __init__(self) -> None:
        self._left = PATCHES.keys() | ADAPTERS.keys()

    def find_spec(
        self, name: str, path: "Any" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in self._left:
            return None
        self._left.discard(name)
        if not self._left and self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, name)
                found: ModuleSpec = spec
                return found
        return None


class _Loader:
    """Loads a module as its own loader does, then lets the hook act."""

    def __init__(self, loader: "Any", name: str) -> None:
        self._loader = loader
        self._name = name

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._loader, name)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: "ModuleType") -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        from contextlib import suppress

        with suppress(Exception):  # if the hook cannot even be loaded, there is nobody to tell
            _act(self._name, module)


def _act(name: str, module: "ModuleType") -> None:
    from importlib import import_module

    from . import patches, tracking

    try:
        action: Callable[[ModuleType], None]
        if name in PATCHES:
            action = getattr(patches, PATCHES[name])
        else:
            action = import_module(f".adapters.{ADAPTERS[name]}", __package__).watch
        action(module)
    except Exception as error:
        tracking.leave(error)
