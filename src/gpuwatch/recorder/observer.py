"""The interface for following what a recorder does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


class Observer:
    """Follows one command of a recorder: each method reports an event. By default only messages
    are passed on."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """``show`` gets each message for the user, on one line."""
        self._show = show
        self._shown: set[str] = set()

    def message(self, text: str) -> None:
        """A message for the user."""
        self._shown.add(text)
        self._show(text)

    def message_once(self, text: str) -> None:
        """A message for the user that is the same for many runs; shown with the first."""
        if text not in self._shown:
            self.message(text)

    def study_created(self, folder: Path) -> None:
        """The study's folder exists, or is resumed."""

    def next_run(self, text: str) -> None:
        """One of several runs comes next; ``text`` says which, and how long the rest takes."""

    def session_created(self, path: Path) -> None:
        """A run has started, and its session exists."""

    def reached(self, text: str) -> None:
        """Every minute of a run: how far it is."""

    def summary_written(self, text: str) -> None:
        """The summary was rewritten; ``text`` is its short form."""
