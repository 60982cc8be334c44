from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field, fields, replace
from pathlib import Path

import pytest

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    marks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Pickled:
    x: int


def _is_made(cls: type) -> bool:
    return "__dataclass_fields__" in vars(cls)


def test_a_class_gets_its_methods_with_its_first_instance() -> None:
    assert not _is_made(Point)
    point = Point(1)
    assert _is_made(Point)
    assert repr(point) == "Point(x=1, y=2, marks=[])"
    assert point == Point(1) != Point(1, 3)
    assert replace(point, x=5) == Point(5)
    assert [each.name for each in fields(point)] == ["x", "y", "marks"]
    with pytest.raises(FrozenInstanceError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="missing 1 required"):
        Point()  # type: ignore[call-arg]


def test_threads_that_make_its_first_instances_together_all_get_one() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            _made_by_threads()
    finally:
        sys.setswitchinterval(before)


def _made_by_threads() -> None:
    @dataclass(frozen=True)
    class Shared:
        x: int
        y: int = 2
        marks: list[str] = field(default_factory=list)

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(Shared, range(32)))
    assert [each.x for each in made] == list(range(32))


def test_one_of_its_instances_may_come_from_elsewhere_first() -> None:
    sent = pickle.dumps(Pickled(7))
    come = f"from {__name__} import Pickled; import pickle; p = pickle.loads({sent!r}); "
    command = [sys.executable, "-c", come + "assert p == Pickled(7), p"]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)


def test_fields_of_a_base_are_its_heirs_too_whichever_way_each_is_made() -> None:
    @dataclass
    class Base:
        first: int

    @dataclass
    class Deferred(Base):
        second: int

    @dataclasses.dataclass
    class AtOnce(Deferred):
        third: int

    class Plain(Base):
        pass

    assert AtOnce(1, 2, 3) == AtOnce(first=1, second=2, third=3)
    assert Deferred(1, 2).second == 2
    assert Plain(4).first == 4


def test_what_is_done_after_the_fields_are_set_is_done_for_the_first_too() -> None:
    @dataclass
    class Checked:
        x: int

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("negative")

    with pytest.raises(ValueError, match="negative"):
        Checked(-1)
    assert Checked(1).x == 1
