"""Machines elsewhere that a screen shows: ``gpuwatch --on PLACE``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from gpuwatch.cli.place.sending import somebody_is_there
from gpuwatch.cli.say import say
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.places import capsule, load, spec
from gpuwatch.places.base import NeedsPerson, Place
from gpuwatch.places.machines import Machines, temporary_folder

_AT_ONCE = 16
"""Connections that are made at the same time."""


@contextmanager
def watched(places: Sequence[str]) -> Iterator[Machines]:
    """Record the machines that ``places`` name, within the block.

    Raises:
        UsageError: a place is misspelt, or names no machine.
    """
    with temporary_folder() as folder:
        archive = folder / "gpuwatch.pyz"
        loaded = [(name, load(spec.parse(name), archive)) for name in dict.fromkeys(places)]
        for name, place in loaded:
            if not place.names_machine:
                raise UsageError(
                    f"{name} names no machine", "name a host or a job: ssh=HOST, or slurm,job=ID"
                )
        capsule.build(archive)
        _connect([place for _, place in loaded])
        with Machines(loaded, folder) as machines:
            yield machines


def _connect(places: Sequence[Place]) -> None:
    """Reach the places while a person can still be asked for a password. Those that cannot be
    reached are tried again later."""
    say(f"reaching {len(places)} machine{'s' * (len(places) > 1)} ...")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ask = [place for place in pool.map(_that_asks, places) if place is not None]
    for place in ask if somebody_is_there() else ():
        try:
            place.connect(person=True)
        except NotAvailable as error:
            say(f"{error}")


def _that_asks(place: Place) -> Place | None:
    """The place, if it asks for something that only a person knows."""
    try:
        place.connect(person=False)
    except NeedsPerson:
        return place
    except NotAvailable:
        return None
    return None
