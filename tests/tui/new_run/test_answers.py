"""Answers of gpuwatch's commands, also those that make no sense."""

from __future__ import annotations

import pytest

from gpuwatch.tui.commands import NO_ANSWER, Outcome
from gpuwatch.tui.machine import Machine, machine
from gpuwatch.tui.new_run.answers import Answers, Plan, obstacle, plan, plan_text
from gpuwatch.tui.new_run.parameters import Form, arguments


def test_what_gives_no_answer_is_named_and_prevents_no_start() -> None:
    late, form = Outcome(NO_ANSWER, "", "no answer after 60 s"), Form(command="ls")
    known = Answers(machine(late), None, plan(late), (form.runs_in, *arguments(form)))
    assert "bare can be started" in machine(late).complaint
    assert "the plan took over 60 s" in plan_text(form, known).plain
    assert obstacle(form, known) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "no json", "[]", "[" * 100_000, '{"environments": 3, "runs": 3, "parts": {}}'),
        '{"environments": [1, {"env": {}, "without_gpu": {"problems": [{"text": 5}]}}]}',
        '{"gpus": [{"id": null}], "runs": [{"environment": "a", "block": {}}], "parts": [[]]}',
        '{"parts": [{"cases": [7], "environments": [{"label": "\\u001b[2J"}], "blocks": 1e999}],'
        ' "runs": [{"environment": 99, "block": []}], "seconds": "soon"}',
    ],
)
def test_whatever_a_command_answers_nothing_is_raised(text: str) -> None:
    outcome = Outcome(0, text, "")
    found, planned = machine(outcome), plan(outcome)
    assert isinstance(found, Machine) and isinstance(planned, Plan)
    assert "\x1b" not in repr((found, planned)).replace("\\x1b", "\x1b")
