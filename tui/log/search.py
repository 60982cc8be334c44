"""Searches a whole log for a text, in a thread."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.log.rows import is_hit, text_of

_LINES_AT_ONCE = 500


@dataclass(frozen=True)
class SearchRequest:
    """The text and the lines to search."""

    query: str
    stream: str | None
    after: int
    """Number of the line before the first one to search."""
    upto: int


@dataclass(frozen=True)
class SearchResult:
    """The lines that contain the text."""

    request: SearchRequest
    hits: tuple[int, ...]
    """Numbers of the lines, in order."""
    upto: int
    """Number of the last line searched."""
    trouble: str = ""
    """Why the search ended early; empty if it did not."""


class Search:
    """One search; ``post`` is called in its thread when it is done."""

    def __init__(
        self, path: Path, request: SearchRequest, post: Callable[[SearchResult], None]
    ) -> None:
        self._path = path
        self._request = request
        self._post = post
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-search", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the search and wait for its thread."""
        self._stopped.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        request = self._request
        at, hits, trouble = request.after + 1, array("q"), ""
        try:
            with SessionReader(self._path) as reader:
                while not self._stopped.is_set():
                    lines = reader.log_lines(
                        at, _LINES_AT_ONCE, stream=request.stream, upto=request.upto
                    )
                    hits.extend(line.n for line in lines if is_hit(text_of(line), request.query))
                    at = lines[-1].n + 1 if lines else at
                    if len(lines) < _LINES_AT_ONCE:
                        break
        except GpuwatchError as error:
            trouble = error.message
        if not self._stopped.is_set():
            self._post(SearchResult(request, tuple(hits), max(request.after, at - 1), trouble))
