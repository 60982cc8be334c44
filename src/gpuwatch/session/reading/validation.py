"""What a reader says of a file that holds values of the wrong type: one error, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import isfunction
from pathlib import Path

from gpuwatch.core.errors import NotASession
from gpuwatch.core.models import JSON

_WRONG = (ArithmeticError, LookupError, TypeError, ValueError)
"""What making rows of values raises where these are not what a recorder writes."""


class Validated:
    """A reader whose public methods, also those of its subclasses, raise :class:`NotASession`
    where the file holds values that no recorder writes."""

    path: Path

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, _told(method))


def _told(method: Callable[..., JSON]) -> Callable[..., JSON]:
    @wraps(method)
    def read(self: Validated, *values: JSON, **named: JSON) -> JSON:
        try:
            return method(self, *values, **named)
        except _WRONG as error:
            raise NotASession(
                f"{self.path} holds values that no recorder writes",
                "copy it again from where it was recorded, with its file ending in -journal if "
                "there is one; it may have been tampered with",
            ) from error

    return read


def whole(value: JSON) -> int:
    """An integer as it is; whatever else is none raises ``TypeError``."""
    if not isinstance(value, int):
        raise TypeError(f"no integer: {type(value).__name__}")
    return value


def in_order(numbers: Iterable[JSON], after: int) -> None:
    """Raises ``ValueError`` unless each is larger than the one before it, the first than ``after``:
    what is read piece by piece would never end."""
    for n in numbers:
        if whole(n) <= after:
            raise ValueError("rows that are not in order")
        after = n
