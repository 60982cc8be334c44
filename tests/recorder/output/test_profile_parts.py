"""A profile in parts becomes one; what anyone may print is bounded."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.step_lines import MOST_ROWS, MOST_TABLES, PREFIX, add_part


def part(table: str | None = "cpu_op_sum", **keys: Any) -> dict[str, Any]:
    return {
        "tool": "torch.profiler", "steps": 4, "table": table, "columns": ["Calls", "Name"],
        "rows": [[1, "a"]], "rows_left_out": 0, **keys,
    }  # fmt: skip


def test_rows_of_a_table_are_appended_and_those_left_out_added_up() -> None:
    profile = add_part({}, part(rows=[[3, "a"], [2, "b"]]))
    profile = add_part(profile, part("cuda_gpu_kern_sum"))
    profile = add_part(profile, part(rows=[[1, "c"]], rows_left_out=5, notes=["x"]))
    assert profile["tables"]["cpu_op_sum"] == {
        "columns": ["Calls", "Name"],
        "rows": [[3, "a"], [2, "b"], [1, "c"]],
        "rows_left_out": 5,
    }
    assert set(profile["tables"]) == {"cpu_op_sum", "cuda_gpu_kern_sum"}
    assert profile["notes"] == ["x"] and "rows" not in profile


def test_a_reason_without_a_table_is_a_profile_without_tables() -> None:
    profile = add_part({}, part(None, reason="CUPTI is busy", columns=[], rows=[]))
    assert (profile["reason"], profile["tables"]) == ("CUPTI is busy", {})


def test_a_program_that_prints_for_ever_fills_no_session() -> None:
    profile: dict[str, Any] = {}
    for _ in range(3):
        profile = add_part(profile, part(rows=[[1, "a"]] * (MOST_ROWS - 100)))
    table = profile["tables"]["cpu_op_sum"]
    assert len(table["rows"]) == MOST_ROWS
    assert table["rows_left_out"] == 2 * MOST_ROWS - 300
    for number in range(MOST_TABLES + 10):
        profile = add_part(profile, part(f"table {number}"))
    assert len(profile["tables"]) == MOST_TABLES


def test_parts_go_on_in_a_recorder_that_takes_the_run_up() -> None:
    def lines(*parts: dict[str, Any]) -> list[Output]:
        text = "".join(f"{PREFIX}{json.dumps({'event': 'profile', **each})}\n" for each in parts)
        return [Output(5, "stdout", text.encode())]

    (sql, (key, value)), *_ = Intake(0).take(lines(part(rows=[[3, "a"]])))
    assert (key, sql.split()[0]) == ("profile", "INSERT")
    kept = {"profile": json.loads(str(value))}
    (_, (_, again)), *rest = Intake(0, kept).take(lines(part(rows=[[2, "b"]])))
    assert json.loads(str(again))["tables"]["cpu_op_sum"]["rows"] == [[3, "a"], [2, "b"]]
    assert rest == [], "a part is no log line"


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["table", "columns", "rows", "rows_left_out", "tables", "x"]),
            JSONS | st.just("cpu_op_sum") | st.just(["Name"]) | st.just([["a"]]),
        )
    )
)
def test_any_parts_are_put_together_without_an_error(parts: list[dict[str, Any]]) -> None:
    profile: dict[str, Any] = {}
    for each in parts:
        profile = add_part(profile, each)
    assert isinstance(profile.get("tables", {}), dict)
