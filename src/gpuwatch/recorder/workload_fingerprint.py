"""Takes the fingerprint of the workload's own process once it exists."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from gpuwatch.recorder.sources import Sources
from gpuwatch.session.writing.statements import Row, fact, without_facts

_LOOKS_SECONDS = (0.0, 0.1, 0.5, 2.0, 5.0, 15.0, 60.0)
"""Times after the start: a shell or an engine takes a moment to become the workload, and longer on
a busy machine."""


class ProcessFacts:
    """Looks a few times, and one last time when the workload reports its start."""

    def __init__(self, sources: Sources, *, container: bool) -> None:
        self._sources = sources
        self._container = container
        self._begun = time.monotonic()
        self._due = list(_LOOKS_SECONDS)

    def look(self, roots: Callable[[], Sequence[int]], *, started: bool) -> list[Row]:
        """Rows that replace those of an earlier look; empty if there is nothing to see.

        ``roots`` returns the top processes of the workload's tree; called only when a look is due.
        """
        if not self._due or not (started or time.monotonic() - self._begun >= self._due[0]):
            return []
        top = roots()
        if not top:
            return []
        if started:
            self._due.clear()
        else:
            del self._due[0]
        facts = self._sources.process_facts(top, container=self._container)
        if not facts:
            return []
        rows = (fact("process", key, value) for key, value in facts.items())
        return [without_facts("process"), *rows]
