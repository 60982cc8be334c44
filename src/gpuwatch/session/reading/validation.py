"""Raises one error, in one place, for files with values of a wrong type."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from pathlib import Path

from gpuwatch.core.errors import NotASession
from gpuwatch.core.models import JSON
from gpuwatch.session.reading import limits

_WRONG = (ArithmeticError, LookupError, TypeError, ValueError)
"""Errors from building rows out of values that no recorder writes."""


class Validated:
    """Base of readers: all public methods, also of subclasses, raise :class:`NotASession` if the
    file holds values that no recorder writes."""

    path: Path

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, _validated(method))


def _validated(method: Callable[..., JSON]) -> Callable[..., JSON]:
    @wraps(method)
    def read(self: Validated, *values: JSON, **named: JSON) -> JSON:
        with _told(self.path):
            return method(self, *values, **named)

    @wraps(method)
    def piece_by_piece(self: Validated, *values: JSON, **named: JSON) -> JSON:
        with _told(self.path):
            yield from method(self, *values, **named)

    return piece_by_piece if isgeneratorfunction(method) else read


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except _WRONG as error:
        raise NotASession(
            f"{path} holds values that no recorder writes",
            "copy it again from where it was recorded, with its file ending in -journal if "
            "there is one; it may have been tampered with",
        ) from error


def whole(value: JSON) -> int:
    """Return an integer unchanged; raise ``TypeError`` for anything else."""
    if not isinstance(value, int):
        raise TypeError(f"not an integer: {type(value).__name__}")
    return value


def in_order(numbers: Iterable[JSON], after: int) -> None:
    """Raise ``ValueError`` unless the numbers rise, starting above ``after``: reading
    piece by piece would never end otherwise."""
    for n in numbers:
        if whole(n) <= after:
            raise ValueError("rows that are not in order")
        after = n


def floats(blob: object) -> tuple[float, ...] | None:
    """Decode a blob of little-endian doubles; ``None`` if it is missing or invalid."""
    if not isinstance(blob, bytes) or len(blob) % 8 or len(blob) > limits.OF_A_LINE:
        return None
    return tuple(array("d", blob))
