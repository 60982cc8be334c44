"""Profiles and counters of a session, from our own runs and from files of anyone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.hardware.kernels import family_seconds, family_table, most_time
from gpuwatch.analysis.hardware.profile import KERNELS, OPERATORS, counters_of, profile_of, why_none

PROFILE: dict[str, Any] = {
    "tool": "torch.profiler",
    "version": "2.15.0",
    "device": "cuda",
    "steps": 4,
    "step_seconds": 0.02,
    "reason": None,
    "notes": ["a note"],
    "tables": {
        OPERATORS: {
            "columns": ["Time (%)", "Total Time (ns)", "Calls", "Avg (ns)", "Name"],
            "rows": [[100.0, 5, 1, 5.0, "aten::mm"]],
            "rows_left_out": 0,
        },
        KERNELS: {
            "columns": ["Time (%)", "Total Time (ns)", "Instances", "Name"],
            "rows": [[75.0, 300, 3, "gemm"], [25.0, 100, 1, "relu"]],
            "rows_left_out": 2,
        },
    },
}


def test_a_profile_is_read_with_its_tables_and_the_kernels_come_first() -> None:
    profile = profile_of({"profile": PROFILE})
    assert profile is not None
    assert (profile.tool, profile.steps, profile.notes) == ("torch.profiler", 4, ("a note",))
    table = profile.main_table()
    assert table is not None
    assert (table.name, table.rows_left_out) == (KERNELS, 2)
    assert table.numbers("Total Time (ns)") == (300, 100)
    assert table.column("Name") == ("gemm", "relu")
    assert table.column("no such") == ()


def test_families_are_of_a_step_where_steps_are_known() -> None:
    rows = [[60.0, 300, 3, "gemm"], [5.0, 25, 2, "relu"], [5.0, 25, 3, "prelu"]]
    kernels = {**PROFILE["tables"][KERNELS], "rows": rows}
    profile = profile_of({"profile": {**PROFILE, "tables": {KERNELS: kernels}}})
    table = family_table(profile)
    assert table is not None and table.rows_left_out == 2
    assert table.rows == ((60.0, 75, 0.75, "GEMM"), (10.0, 12.5, 1.25, "other"))
    assert family_seconds(profile) == {}, "some kernels were left out"
    assert most_time(profile) == "kernels: 60 % GEMM"
    whole = {**PROFILE, "tables": {KERNELS: {**kernels, "rows_left_out": 0}}}
    profile = profile_of({"profile": whole})
    assert family_seconds(profile) == {"GEMM": 75e-9, "other": 12.5e-9}
    table = family_table(profile)
    assert table is not None and table.rows[0] == (pytest.approx(100 * 300 / 350), 75, 0.75, "GEMM")
    table = family_table(profile_of({"profile": {**whole, "steps": None}}))
    assert table is not None and table.columns[1:3] == ("Total Time (ns)", "Instances")
    assert table.rows[1][1:] == (50, 5, "other")


def test_without_a_word_of_it_there_is_no_profile_and_no_counters() -> None:
    assert profile_of({}) is None
    assert counters_of({"profile": PROFILE}) is None


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({"workload": {"kind": "machine"}}, "machine"),
        ({"workload": {"kind": "command"}}, "if it uses torch"),
        ({"workload": {"kind": "command"}, "hook": {"text": "no torch"}}, "profiled: no torch"),
        ({"workload": {"kind": "workload", "parameters": {"profile": 0}}}, "--profile 0"),
        ({"workload": {"kind": "workload"}}, "still going"),
        ({"workload": {"kind": "workload"}, "result": {}}, "ended before"),
        ({"workload": {"kind": "workload"}, "result": {}, "end": {}}, "has no profile"),
        ({"profile": {"reason": "CUPTI is busy"}}, "CUPTI is busy"),
        ({}, "still going"),
    ],
)
def test_a_session_without_a_profile_says_why(meta: dict[str, Any], told: str) -> None:
    assert told in why_none(meta)[0]


def test_the_command_that_profiles_a_program_keeps_its_options() -> None:
    words = ["python3", "my train.py", "--lr", "3e-4"]
    _, again = why_none({"workload": {"kind": "command", "arguments": words}})
    assert (again or "").startswith("gpuwatch run --profile 4 -- python3 'my train.py' --lr 3e-4")


def test_what_has_the_wrong_type_is_dropped_and_the_rest_stays() -> None:
    kernels = {
        "columns": ["Time (%)", "Name"],
        "rows": [["much", "gemm"], [True, 3], [1.0], "row", [float("nan"), None]],
        "rows_left_out": -4,
    }
    tables = {KERNELS: kernels, "x": 3, "y": {"columns": []}}
    profile = profile_of({"profile": {**PROFILE, "steps": "4", "tables": tables, "notes": [1]}})
    assert profile is not None
    assert (profile.steps, profile.notes, set(profile.tables)) == (None, (), {KERNELS})
    assert profile.tables[KERNELS].rows == ((None, "gemm"), (None, 3), (None, None))
    assert profile.tables[KERNELS].rows_left_out == 0


def test_counters_tell_steps_from_totals_of_an_import() -> None:
    kernel = {"name": "gemm", "launches": 2, "flop": 8e9, "dram_read_bytes": -1}
    ours = counters_of({"counters": {"tool": "ncu", "steps": 2, "flop_per_step": 4e9}})
    theirs = counters_of({"counters": {"tool": "ncu", "flop": 8e9, "kernels": [kernel, {}, 3]}})
    assert ours is not None and theirs is not None
    assert (ours.steps, ours.flop_per_step, ours.flop) == (2, 4e9, None)
    assert (theirs.steps, theirs.flop_per_step, theirs.flop) == (None, None, 8e9)
    assert [(k.name, k.launches, k.dram_read_bytes) for k in theirs.kernels] == [("gemm", 2, None)]


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(["tables", "columns", "rows", "kernels", "notes", "steps", "tool", KERNELS])


@given(st.recursive(JSONS, lambda inner: st.dictionaries(KEYS, inner), max_leaves=12))
def test_any_json_is_read_without_an_error(value: Any) -> None:
    profile_of({"profile": value})
    profile_of({"profile": {"tables": {KERNELS: value}}})
    counters_of({"counters": value})
