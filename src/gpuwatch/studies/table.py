"""Strict reading of TOML: each key is read with its type, and unknown keys are errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.models import JSON, number
from gpuwatch.core.paths import read_regular

LARGEST = 256 * 1024
"""Maximum file size in bytes."""
_LONGEST_SHOWN = 60
_SEE = "`gpuwatch study --show multi-environment` shows a whole file"


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        StorageError: it is missing or cannot be read.
        UsageError: it is too large, or not text.
    """
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            raise StorageError(f"{path} {what}", "see `gpuwatch study --list` for the presets")
        data = read_regular(path, LARGEST)
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error.strerror}", "check its permissions"
        ) from error
    if len(data) > LARGEST:
        raise UsageError(
            f"{path} is larger than {LARGEST >> 10} KiB, too large for a study file", _SEE
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})", _SEE) from None


def parse(text: str, where: str) -> Table:
    """The top-level table of a file's text.

    Raises:
        UsageError: it is not TOML (with line and column), or has a value that cannot be used.
    """
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{where} is nested too deep for a study file", _SEE) from None
    except ValueError as error:
        end = f"line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))}"
        what = str(error).replace("end of document", end)
        raise UsageError(f"{where} is not TOML: {what}", _SEE) from None
    _check_values(values, where)
    return Table(values, where)


def _check_values(values: JSON, where: str) -> None:
    """Refuse values that TOML allows but that cannot be passed to a program."""
    pending = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and "\0" in value:
            raise UsageError(f"{where} holds a text with a NUL character", "leave it out")
        elif isinstance(value, int) and value.bit_length() > 63:
            raise UsageError(f"{where} holds an integer of more than 64 bits", "leave it out")


class Table:
    """One table of a file; ``where`` is its name in errors.

    Each method returns the value of a key, ``None`` (or empty) if it is missing, and raises
    UsageError if it has another type or is out of range.
    """

    def __init__(self, values: dict[str, JSON], where: str) -> None:
        self.where = where
        self._values = values
        self._asked: list[str] = []

    def refuse(self, what: str, hint: str) -> UsageError:
        """Create an error about this table."""
        return UsageError(f"{self.where}: {what}", hint)

    def text(self, key: str, longest: int) -> str | None:
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, "must be a string", f'{key} = "..."')
        if len(value) > longest:
            raise self.refuse(f"{key} is longer than {longest} characters", "shorten it")
        return value

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """A list of texts, or a single text; not empty if the key is present."""
        value = self.value(key)
        if value is None:
            return ()
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(
            isinstance(text, str) and text.strip() for text in listed
        ):
            raise self._wrong(key, "must be a list of strings", example)
        if not listed:
            raise self.refuse(f"{key} is empty", f"write {example}")
        return tuple(listed)

    def switch(self, key: str) -> bool:
        value = self.value(key)
        if not isinstance(value, (bool, type(None))):
            raise self._wrong(key, "must be true or false", f"{key} = true")
        return bool(value)

    def integer(self, key: str, least: int, most: int) -> int | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, f"must be an integer from {least} to {most}", f"{key} = {least}")
        return value

    def quantity(self, key: str, example: str) -> str | None:
        """A number, or a text with a unit, as text."""
        value = self.value(key)
        if value is not None and not isinstance(value, str) and number(value) is None:
            raise self._wrong(key, "must be a number, or a string with its unit", example)
        return None if value is None else str(value)

    def items(self, key: str) -> dict[str, JSON]:
        """The keys and values of a nested table, unchecked."""
        value = self.value(key)
        if not isinstance(value, (dict, type(None))):
            raise self._wrong(key, "must be a table", f"{key} = {{ ... }}")
        return dict(value or {})

    def tables(self, key: str) -> tuple[Table, ...]:
        """The tables of an array of tables."""
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self._wrong(key, "must be an array of tables", f"[[{key}]]")
        return tuple(
            Table(each, f"{self.where}, {key} {place}") for place, each in enumerate(value, 1)
        )

    def value(self, key: str) -> JSON:
        """The unchecked value."""
        self._asked.append(key)
        return self._values.get(key)

    def done(self, elsewhere: Sequence[str] = (), hint: str = "") -> None:
        """Raise an error if a key was never read; ``hint`` is for the keys ``elsewhere``."""
        for key in self._values:
            if key in self._asked:
                continue
            if key in elsewhere:
                raise self.refuse(f"{key} does not belong here", hint)
            close = get_close_matches(key, self._asked, n=1)
            raise self.refuse(
                f"unknown key {key!r}",
                f"did you mean {close[0]}?" if close else f"known: {', '.join(self._asked)}",
            )

    def _wrong(self, key: str, what: str, example: str) -> UsageError:
        value = repr(self._values[key])
        if len(value) > _LONGEST_SHOWN:
            value = value[:_LONGEST_SHOWN] + "..."
        return self.refuse(f"{key} {what}, not {value}", f"write {example}")
