"""What a search of the log has found, and where one stands among it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.text import clean
from gpuwatch.tui.log.search import Found, Search, Wanted


class Hits:
    """``post`` is called in the search's thread."""

    def __init__(self, path: Path, post: Callable[[Found], None]) -> None:
        self._path = path
        self._post = post
        self._search: Search | None = None
        self._wanted: Wanted | None = None
        self._found: array[int] = array("q")
        self._trouble = ""
        self.at: int | None = None
        """Number of the line that one stands on."""

    @property
    def query(self) -> str:
        """What is looked for; empty: nothing."""
        return self._wanted.query if self._wanted is not None else ""

    @property
    def any(self) -> bool:
        return bool(self._found)

    def close(self) -> None:
        """End the search, if one goes on, and wait for it."""
        search, self._search = self._search, None
        if search is not None:
            search.close()

    def forget(self) -> None:
        self.close()
        self._wanted = self.at = None
        self._trouble = ""
        self._found = array("q")

    def look_for(self, query: str, stream: str | None, upto: int) -> None:
        """Search everything up to the line ``upto``."""
        self.forget()
        self._begin(Wanted(query, stream, -1, upto))

    def go_on(self, upto: int) -> None:
        """Search what came since."""
        if self._wanted is not None and self._search is None:
            self._begin(Wanted(self.query, self._wanted.stream, self._wanted.upto, upto))

    def _begin(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._search = Search(self._path, wanted, self._post)

    def take(self, found: Found, top: int) -> bool:
        """Take what was found; returns whether to go to it: of a new search the first from ``top``
        on."""
        if found.wanted != self._wanted:
            return False
        self.close()
        self._found.extend(found.hits)
        self._trouble = found.trouble
        if found.wanted.after >= 0 or not self._found:
            return False
        self.at = self._found[min(bisect_left(self._found, top), len(self._found) - 1)]
        return True

    def move(self, by: int, top: int) -> None:
        """To the next one, or the one before; from the last on to the first."""
        here = self.at if self.at is not None else top
        at = bisect_right(self._found, here) if by > 0 else bisect_left(self._found, here) - 1
        self.at = self._found[at % len(self._found)]

    def words(self) -> str:
        """How the search stands; empty without one."""
        if self._wanted is None:
            return ""
        what = f"“{clean(self.query)}”"
        if self._search is not None:
            return f"looking for {what} …"
        if self._trouble:
            return f"{what} was not looked for to the end: {clean(self._trouble)}"
        if not self._found:
            return f"{what} is not in the log"
        place = "" if self.at is None else f"{bisect_left(self._found, self.at) + 1:,} of "
        return f"{what}: {place}{len(self._found):,} lines"
