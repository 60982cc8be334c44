"""The matches of a search in the log, and the current one."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.text import clean
from gpuwatch.tui.log.search import Search, SearchRequest, SearchResult


class Hits:
    """The matching lines; ``post`` is called in the search's thread."""

    def __init__(self, path: Path, post: Callable[[SearchResult], None]) -> None:
        self._path = path
        self._post = post
        self._search: Search | None = None
        self._request: SearchRequest | None = None
        self._numbers: array[int] = array("q")
        self._trouble = ""
        self.at: int | None = None
        """Number of the current line."""

    @property
    def query(self) -> str:
        """The text searched for; empty: none."""
        return self._request.query if self._request is not None else ""

    @property
    def any(self) -> bool:
        return bool(self._numbers)

    def close(self) -> None:
        """Stop a running search and wait for it."""
        search, self._search = self._search, None
        if search is not None:
            search.close()

    def forget(self) -> None:
        self.close()
        self._request = self.at = None
        self._trouble = ""
        self._numbers = array("q")

    def look_for(self, query: str, stream: str | None, upto: int) -> None:
        """Search all lines up to number ``upto``."""
        self.forget()
        self._begin(SearchRequest(query, stream, -1, upto))

    def search_new(self, upto: int) -> None:
        """Search the lines that were added since, up to number ``upto``."""
        if self._request is not None and self._search is None:
            self._begin(SearchRequest(self.query, self._request.stream, self._request.upto, upto))

    def _begin(self, request: SearchRequest) -> None:
        self._request = request
        self._search = Search(self._path, request, self._post)

    def take(self, result: SearchResult, top: int) -> bool:
        """Add the lines of ``result``; returns whether the screen is to show the current line.

        A new search makes the first line from ``top`` on the current one.
        """
        if result.request != self._request:
            return False
        self.close()
        self._numbers.extend(result.hits)
        self._trouble = result.trouble
        if result.request.after >= 0 or not self._numbers:
            return False
        self.at = self._numbers[min(bisect_left(self._numbers, top), len(self._numbers) - 1)]
        return True

    def move(self, by: int, top: int) -> None:
        """Make the next or the previous line the current one; the first follows the last."""
        here = self.at if self.at is not None else top
        at = bisect_right(self._numbers, here) if by > 0 else bisect_left(self._numbers, here) - 1
        self.at = self._numbers[at % len(self._numbers)]

    def status(self) -> str:
        """The state of the search in words; empty without one."""
        if self._request is None:
            return ""
        what = f"“{clean(self.query)}”"
        if self._search is not None:
            return f"looking for {what} …"
        if self._trouble:
            return f"{what} was not looked for to the end: {clean(self._trouble)}"
        if not self._numbers:
            return f"{what} is not in the log"
        place = "" if self.at is None else f"{bisect_left(self._numbers, self.at) + 1:,} of "
        return f"{what}: {place}{len(self._numbers):,} lines"
