"""What is chosen by its kind: gpuwatch's own, and that of other packages by entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from gpuwatch.core.errors import GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.installation import DISTRIBUTION, broken_package_hint
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Plugins:
    """One group of them."""

    group: str
    """The group of entry points."""
    what: str
    """A word for one of them, for errors."""
    own: Mapping[str, str]
    """``MODULE:NAME`` of the built-in ones by kind. Other packages cannot replace them, and are not
    searched for them."""

    def others(self) -> dict[str, EntryPoint]:
        """Entry points of other packages, by kind."""
        # Imported here: it pulls in e-mail and archive modules and reads every package's metadata.
        from importlib.metadata import entry_points

        found = entry_points(group=self.group)
        return {entry.name: entry for entry in found if entry.name not in self.own}

    def make(self, kind: str, *arguments: object) -> JSON:
        """What the class or function of this kind makes; imports only its own module.

        Raises:
            UsageError: there is no such kind.
            NotAvailable: it cannot be imported or made.
        """
        if kind in self.own:
            value, package = self.own[kind], DISTRIBUTION
        elif (entry := self.others().get(kind)) is not None:
            value = entry.value
            package = entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]
        else:
            kinds = ", ".join(sorted({*self.own, *self.others()}))
            raise UsageError(f"unknown {self.what} {kind!r}", f"choose from: {kinds}")
        module, _, name = value.partition(":")
        try:
            return getattr(import_module(module), name)(*arguments)
        except GpuwatchError:
            raise
        except (Exception, SystemExit) as error:
            raise NotAvailable(
                f"the {self.what} {kind!r} cannot be loaded: {value} of the package {package}: "
                f"{error_text(error)}",
                broken_package_hint(package),
            ) from error


def error_text(error: BaseException) -> str:
    """An unexpected exception, on one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
