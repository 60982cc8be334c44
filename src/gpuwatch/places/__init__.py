"""Where a run happens, if not on this machine: gpuwatch's own places, and those of the entry point
group ``gpuwatch.places``."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.plugins import Plugins
from gpuwatch.places.base import Place, PlaceSpec

_PLACES = Plugins(
    "gpuwatch.places",
    "place",
    {
        "kubernetes": "gpuwatch.places.kubernetes.place:KubernetesPlace",
        "ssh": "gpuwatch.places.ssh.place:SshPlace",
        "slurm": "gpuwatch.places.slurm:choose",
    },
)


def kinds() -> tuple[str, ...]:
    """The kinds of place that ``--on`` accepts here."""
    return tuple(sorted({*_PLACES.own, *_PLACES.others()}))


def load(spec: PlaceSpec, capsule: Path) -> Place:
    """The place of ``spec``; imports only its own module. ``capsule`` is where gpuwatch
    is as one file, once the place is connected.

    Raises:
        UsageError: there is no such kind, or the place refuses its target or options.
        NotAvailable: the package of the place cannot be imported.
    """
    place: Place = _PLACES.make(spec.kind, spec, capsule)
    return place
