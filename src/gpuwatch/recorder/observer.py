"""Who is told what a recorder does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


class Observer:
    """Follows one command of a recorder. Each method is called when that happens; by default
    only messages are passed on."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """``show`` gets the messages for people, each one line."""
        self._show = show
        self._shown: set[str] = set()

    def message(self, text: str) -> None:
        """Something that people should know."""
        self._shown.add(text)
        self._show(text)

    def message_once(self, text: str) -> None:
        """A message that may apply to many runs, shown with the first."""
        if text not in self._shown:
            self.message(text)

    def study_created(self, folder: Path) -> None:
        """The study's folder exists, or is resumed."""

    def next_run(self, text: str) -> None:
        """One of several runs comes next; ``text`` says which, and how long the rest takes."""

    def session_created(self, path: Path) -> None:
        """A run has started, and its session exists."""

    def summary_written(self, text: str) -> None:
        """The summary was rewritten; ``text`` is its short form."""
