"""Where a run happens, if not on this machine: gpuwatch's own places, and those of the entry point
group ``gpuwatch.places``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.installation import DISTRIBUTION, broken_package_hint
from gpuwatch.places.base import Place, PlaceSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "gpuwatch.places"

OWN = {
    "kubernetes": "gpuwatch.places.kubernetes.place:KubernetesPlace",
    "ssh": "gpuwatch.places.ssh.place:SshPlace",
    "slurm": "gpuwatch.places.slurm:choose",
}
"""Built-in places by kind. Other packages cannot replace them, and are not searched for them."""


def kinds() -> tuple[str, ...]:
    """The kinds of place that ``--on`` accepts here."""
    return tuple(sorted({*OWN, *_others()}))


def load(spec: PlaceSpec, capsule: Path) -> Place:
    """The place of ``spec``; imports only its own module. ``capsule`` is where gpuwatch
    is as one file, once the place is connected.

    Raises:
        UsageError: there is no such kind, or the place refuses its target or options.
        NotAvailable: the package of the place cannot be imported.
    """
    if spec.kind in OWN:
        value, package = OWN[spec.kind], DISTRIBUTION
    elif (entry := _others().get(spec.kind)) is not None:
        value = entry.value
        package = entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]
    else:
        raise UsageError(f"unknown place {spec.kind!r}", f"choose from: {', '.join(kinds())}")
    module, _, name = value.partition(":")
    try:
        factory = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:
        raise NotAvailable(
            f"the place {spec.kind!r} cannot be loaded: {value} of the package {package}: "
            f"{type(error).__name__}: {error}",
            broken_package_hint(package),
        ) from error
    place: Place = factory(spec, capsule)
    return place


def _others() -> dict[str, EntryPoint]:
    """Entry points of other packages, by kind."""
    # Imported here: it reads every package's metadata.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in OWN}
