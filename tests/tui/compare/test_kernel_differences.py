"""The kernels of two runs: order, differences, kernels of one run only, missing profiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwatch.analysis.hardware.profile import KERNELS, profile_of
from gpuwatch.tui.compare.kernel_differences import Side, kernel_difference_rows
from gpuwatch.tui.compare.screen import CompareScreen

from ..harness import running, screen_text, shows
from ..live.test_kernels import HOSTILE
from ..sessions import finished

Make = Callable[..., Path]


def profile(*kernels: tuple[Any, Any, str], steps: Any = 4, left_out: int = 0) -> dict[str, Any]:
    """A stored profile; ``kernels``: nanoseconds over all steps, launches, name."""
    return {
        "tool": "torch.profiler",
        "steps": steps,
        "tables": {
            KERNELS: {
                "columns": ["Total Time (ns)", "Instances", "Name"],
                "rows": [list(each) for each in kernels],
                "rows_left_out": left_out,
            }
        },
    }


BARE = profile((4e6, 8, "gemm"), (8e6, 40, "winograd"), (4e5, 4, "relu"))
DOCKER = profile((5e6, 8, "gemm"), (9e6, 4, "implicit_gemm"), (4e5, 4, "relu"))


def side(label: str, stored: dict[str, Any] | None) -> Side:
    why = ("the run was asked not to profile (--profile 0)", "run it without --profile 0")
    return Side(label, None if stored is None else profile_of({"profile": stored}), why)


def rows(first: Any, second: Any, width: int = 80, sentences: tuple[str, ...] = ()) -> list[str]:
    found = kernel_difference_rows((side("bare", first), side("docker", second)), sentences, width)
    return ["".join(text for text, _ in row) for row in found]


def row_of(text: list[str], name: str) -> list[str]:
    return next(row for row in text if row.endswith(name)).split()


def test_kernels_stand_by_their_time_per_step_with_the_difference_and_launches() -> None:
    text = rows(BARE, DOCKER)
    names = [row.split()[-1] for row in text[-4:]]
    assert names == ["implicit_gemm", "winograd", "gemm", "relu"]
    assert row_of(text, "  gemm") == ["1.00", "ms", "1.25", "ms", "+250", "µs", "2", "gemm"]
    assert row_of(text, "relu") == ["100", "µs", "100", "µs", "0", "1", "relu"]
    total = next(row for row in text if row.endswith("all of them"))
    assert total.split()[:6] == ["3.10", "ms", "3.60", "ms", "+500", "µs"]
    assert "+25.0 %" in next(row for row in rows(BARE, DOCKER, 120) if row.endswith("  gemm"))


def test_what_ran_in_one_alone_has_its_side_and_no_launches_in_the_other() -> None:
    text = rows(BARE, DOCKER)
    assert row_of(text, "winograd")[2:] == ["—", "◂", "only", "10", "to", "0", "winograd"]
    assert row_of(text, "implicit_gemm")[:3] == ["—", "2.25", "ms"]
    assert row_of(text, "implicit_gemm")[3:] == ["only", "▸", "0", "to", "1", "implicit_gemm"]


def test_what_a_shortened_table_lacks_is_not_said_to_have_run_in_one_alone() -> None:
    text = rows(BARE, profile((5e6, 8, "gemm"), left_out=7))
    assert "only" not in "".join(text)
    assert row_of(text, "winograd")[2:6] == ["—", "—", "10", "to"]
    assert any("docker: 7 more were not kept" in row for row in text)


def test_without_a_profile_the_reason_and_what_gives_one_stand_there() -> None:
    text = rows(BARE, None)
    assert " ! docker: the run was asked not to profile (--profile 0)" in text
    assert " → run it without --profile 0" in text
    assert any(row.endswith("gemm") for row in text), "the other side's are shown"
    assert rows(None, None) == [
        " docker against bare",
        " ! bare and docker: the run was asked not to profile (--profile 0)",
        " → run it without --profile 0",
    ]


def test_totals_are_compared_where_steps_are_not_known() -> None:
    text = rows(BARE, profile((5e6, 8, "gemm"), steps=None))
    assert any("over all of each profile" in row for row in text)
    assert row_of(text, "  gemm")[:4] == ["4.00", "ms", "5.00", "ms"]


def test_wrong_types_and_hostile_names_do_no_harm() -> None:
    odd = profile((None, "x", HOSTILE), ("8", None, None), (float("inf"), 1, "gemm"))
    for width in (40, 80, 160):
        text = "\n".join(rows(BARE, odd, width, (f"told {HOSTILE}",)))
        assert "\x1b" not in text and "\u202e" not in text
    assert rows({"tables": {KERNELS: {"columns": ["x"], "rows": [[1]]}}}, DOCKER)


def test_without_times_kernels_stand_by_their_launches_and_derived_times_say_so() -> None:
    text = rows(
        profile((None, 8, "gemm"), (None, 24, "winograd")),
        {**profile((None, 16, "implicit_gemm"), steps=None), "time_source": "derived from DRAM"},
    )
    names = [row.split()[-1] for row in text[-3:]]
    assert names == ["winograd", "implicit_gemm", "gemm"]
    assert row_of(text, "winograd")[2:] == ["◂", "only", "24", "to", "0", "winograd"]
    assert "kernel times counted, derived from DRAM" in " ".join(" ".join(text).split())


async def test_k_compares_each_with_the_baseline_and_the_arrows_take_the_next(
    session: Make,
) -> None:
    paths = [
        session(f"0{at}-{name}", environment=name, meta={**finished(), **more}, alive=False)
        for at, (name, more) in enumerate(
            (("bare", {"profile": BARE}), ("docker", {"profile": DOCKER}), ("conda", {})), 1
        )
    ]
    async with running(lambda: CompareScreen(paths), (100, 30)) as (app, pilot):
        await shows(pilot, "against")
        await pilot.press("k", shows="docker against bare   1 of 2")
        assert "implicit_gemm" in screen_text(app)
        await pilot.press("right", shows="conda against bare   2 of 2")
        assert "conda: the run ended before its last timed step" in screen_text(app)
        await pilot.press("left", shows="docker against bare   1 of 2")
        await pilot.press("k", shows="gpuwatch compare  docker and conda against bare")
