"""``--plan --format json``: what a start would do, for programs."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import Cli

from ..test_errors import one_line


def asked(cli: Cli, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        cli("--record", "--plan", "--format", "json", *arguments).stdout
    )
    assert found["schema"] == 2
    return found


def test_a_plan_names_its_runs_by_block_case_and_environment(cli: Cli) -> None:
    found = asked(
        cli,
        *("mnist-cnn", "gcn", "--env", "bare", "--env", "docker=x", "--quick"),
        *("--order-seed", 7),
    )
    (part,) = found["parts"]
    assert [each["label"] for each in part["cases"]] == ["mnist-cnn", "gcn"]
    assert part["cases"][0]["parameters"] == {"steps": 100}
    assert [each["label"] for each in part["environments"]] == ["bare", "docker=x"]
    assert (part["blocks"], part["warmup_blocks"], found["order_seed"]) == (3, 1, 7)
    assert [run["index"] for run in found["runs"]] == [*range(1, 17)]
    for block in range(4):
        runs = [run for run in found["runs"] if run["block"] == block]
        cells = {(run["case"], run["environment"]) for run in runs}
        assert cells == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_what_cannot_run_says_why_at_its_run(cli: Cli) -> None:
    found = asked(cli, "--env", "bare", "--", "no-such-program")
    (run,) = found["runs"]
    (problem,) = run["problems"]
    assert "no-such-program" in problem["text"] and problem["hint"] and not run["done"]


def test_a_time_that_is_not_known_is_null_with_its_reason_and_then_known(cli: Cli) -> None:
    found = asked(cli, "--", "true")
    assert found["seconds"] is None
    assert found["reason"] == "no earlier run of true in bare that finished"
    cli("--record", "--", "true")
    found = asked(cli, "--", "true")
    assert found["seconds"] > 0 and found["reason"] is None


def test_a_format_without_a_plan_is_refused(cli: Cli) -> None:
    said = one_line(cli("--record", "--format", "json", "--", "true", code=2).stderr)
    assert "--plan" in said
