"""Values of JSON as the types that data classes declare."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gpuwatch.core.models import JSON, number

Kind = TypeVar("Kind")


def typed(kind: type[Kind], value: JSON) -> Kind:
    """``value`` as a ``kind``: a plain type or a data class, whose fields are plain types, data
    classes, one of them or ``None``, tuples, or mappings by text. A data class is made of an
    object, of which keys without a field are left out. A bool is no number, every number is finite,
    and text is Unicode.

    Raises:
        ValueError, TypeError: it is none.
    """
    found: Kind = _of(kind, value)
    return found


def _of(kind: Any, value: JSON) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else _of(parts[0], value)
    if origin is tuple and type(value) is list:
        return tuple(_of(parts[0], each) for each in value)
    if origin is Mapping and type(value) is dict:
        return {_of(str, key): _of(parts[1], each) for key, each in value.items()}
    if kind is Any and (value is None or type(value) in (str, bool, int, float)):
        return value if value is None else _of(type(value), value)
    if kind is float and number(value) is not None:
        return float(value)
    if kind is str and type(value) is str:
        value.encode()  # refuses lone surrogates
        return value
    if type(value) is kind and (kind is bool or (kind is int and number(value) is not None)):
        return value
    if type(value) is dict and (fields := _fields(kind)):
        known = fields.keys() & value.keys()
        return kind(**{name: _of(fields[name], value[name]) for name in known})
    raise TypeError(f"{value!r:.50} is not of type {kind}")


_fields = cache(get_type_hints)
