"""Step lines: what is read, and what is refused."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.step_lines import PREFIX, Malformed, Report, Step, pack, parse


def line(**body: Any) -> str:
    return PREFIX + json.dumps({"event": "step", **body})


def step(**body: Any) -> Step:
    parsed = parse(line(**body))
    assert isinstance(parsed, Step)
    return parsed


def test_a_single_step() -> None:
    parsed = step(step=12, samples=64, seconds=0.0051)
    assert (parsed.step, parsed.count, parsed.samples, parsed.seconds) == (12, 1, 64, (0.0051,))


def test_a_batch_carries_the_time_of_every_step() -> None:
    parsed = step(step=20, count=3, seconds=[0.1, 0.2, 0.3], loss=[3, 2, 1])
    assert parsed.seconds == (0.1, 0.2, 0.3)
    assert parsed.loss == (3.0, 2.0, 1.0)


def test_one_time_for_a_batch_is_no_time_of_a_step() -> None:
    assert step(step=20, count=20, seconds=0.1).seconds is None


def test_a_loss_may_be_nan() -> None:
    parsed = parse(PREFIX + '{"event": "step", "step": 1, "loss": NaN}')
    assert isinstance(parsed, Step)
    assert parsed.loss is not None and math.isnan(parsed.loss[0])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"step": "one"},
        {"step": True},
        {"step": -1},
        {"step": 1, "count": 0},
        {"step": 1, "count": 2_000_000},
        {"step": 1, "seconds": -0.1},
        {"step": 1, "seconds": "fast"},
        {"step": 3, "count": 3, "seconds": [0.1, 0.2]},
        {"step": 1, "seconds": 1e300},
        {"step": 1, "samples": -64},
        {"step": 1, "samples": 1e300},
        {"step": 1, "flop": -1e12},
        {"step": 1, "bytes": 1e40},
        {"step": 1, "total_steps": -5},
        {"step": 1, "phases": {"data": -0.1}},
        {"step": 1, "phases": [1]},
        {"step": 1, "phases": {"data": "x"}},
        {"step": 1, "partial": 3},
        {"step": 1, "flop": 10**400},
    ],
)
def test_nonsense_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        parse(line(**body))


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"event": 3}', "[" * 100_000, "nan"])
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse(PREFIX + text)


def test_other_events_are_reports() -> None:
    parsed = parse(PREFIX + '{"event": "count", "flop_per_step": 1e9}')
    assert parsed == Report("count", {"event": "count", "flop_per_step": 1e9})
    assert isinstance(parsed, Report) and parsed.known


@pytest.mark.parametrize(
    ("event", "key", "value"),
    [
        ("startup", "import_seconds", -4.0),
        ("startup", "model_seconds", 1e300),
        ("count", "flop_per_step", -1e12),
        ("count", "bytes_per_step", 10**400),
        ("count", "samples", 1e300),
        ("run", "batch_size", -64),
        ("counters", "dram_read_bytes_per_step", -1),
        ("end", "user_seconds", -0.5),
    ],
)
def test_an_amount_that_cannot_be_is_unknown_and_the_rest_of_its_line_is_kept(
    event: str, key: str, value: float
) -> None:
    parsed = parse(PREFIX + json.dumps({"event": event, key: value, "model": "mine"}))
    assert isinstance(parsed, Report)
    assert parsed.body == {"event": event, key: None, "model": "mine"}
    (wrong,) = parsed.wrong
    assert wrong.startswith(f'"{key}" must ')


def test_a_report_with_an_amount_that_cannot_be_is_told_in_the_session() -> None:
    text = PREFIX + '{"event": "startup", "import_seconds": -4, "model_seconds": 2}\n'
    rows = Intake(0).take([Output(5, "stdout", text.encode())])
    ((_, kept),) = [values for sql, values in rows if "startup" in map(str, values)]
    assert json.loads(str(kept)) == {"import_seconds": None, "model_seconds": 2, "t": 5}
    (told,) = [values for _, values in rows if "malformed-step" in values]
    assert any("startup: " in str(each) and "not be negative" in str(each) for each in told)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(Malformed):
        parse(PREFIX + text)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["step", "count", "seconds", "loss", "samples", "phases", "partial"]), JSONS
    )
)
def test_any_step_is_read_or_refused(body: dict[str, Any]) -> None:
    try:
        parsed = parse(line(**body))
    except Malformed:
        return
    assert isinstance(parsed, Step)
    assert parsed.seconds is None or len(parsed.seconds) == parsed.count
    assert parsed.samples is None or parsed.samples >= 0


def test_numbers_are_stored_as_little_endian_doubles() -> None:
    assert pack((1.0,)) == b"\x00\x00\x00\x00\x00\x00\xf0\x3f"
    assert pack(None) is None
