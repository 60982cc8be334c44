"""A session as it was at an earlier moment, read through the interface of its reader."""

from __future__ import annotations

from gpuwatch.session.reader import SessionReader


class PastReader:
    """What ``reader`` would have given ``t_ns`` nanoseconds after the session's start."""

    def __init__(self, reader: SessionReader, t_ns: int) -> None:
        raise NotImplementedError

    def advance(self, t_ns: int) -> None:
        """Go on to a later moment."""
        raise NotImplementedError
