"""A cluster with Slurm: a job for a study, or a step in a job that is there already."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.places.base import Place, PlaceSpec


def choose(spec: PlaceSpec, capsule: Path) -> Place:
    """The place of ``--on slurm``: with ``job=ID`` a step of that job.

    Raises:
        UsageError: an option is reserved or misspelt.
    """
    if "job" in spec.options:
        from gpuwatch.places.slurm.step import SlurmStep

        return SlurmStep(spec, capsule)
    from gpuwatch.places.slurm.place import SlurmPlace

    return SlurmPlace(spec, capsule)
