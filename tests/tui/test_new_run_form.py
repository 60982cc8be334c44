"""What the form of a new run turns into."""

from __future__ import annotations

import pytest

from gpuwatch.tui.new_run_form import OWN_COMMAND, Form, Problem, arguments, command_line


def test_empty_fields_leave_the_defaults() -> None:
    assert arguments(Form("mnist-cnn")) == ("mnist-cnn", "--env", "bare")


def test_every_field_has_its_place() -> None:
    form = Form("gcn", "bare docker=img,shm=1g", " 20 ", "0064", "--dtype bfloat16")
    assert arguments(form) == (
        *("gcn", "--steps", "20", "--batch-size", "64", "--dtype", "bfloat16"),
        *("--env", "bare", "--env", "docker=img,shm=1g"),
    )


def test_a_command_keeps_its_quotes() -> None:
    form = Form(OWN_COMMAND, command="sh -c 'echo \"a b\"'")
    parts = arguments(form)
    assert parts == ("--env", "bare", "--", "sh", "-c", 'echo "a b"')
    assert command_line(parts).endswith("""-- sh -c 'echo "a b"'""")


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (Form(""), "workload"),
        (Form("gcn", ""), "environments"),
        (Form("gcn", "docker="), "environments"),
        (Form("gcn", "=x"), "environments"),
        (Form("gcn", "'bare"), "environments"),
        (Form("gcn", steps="0"), "steps"),
        (Form("gcn", steps="-3"), "steps"),
        (Form("gcn", steps="²"), "steps"),
        (Form("gcn", batch_size="1.5"), "batch_size"),
        (Form("gcn", flags="dtype"), "flags"),
        (Form("gcn", flags="--x '"), "flags"),
        (Form("gcn", flags="--lr 1 -- ls"), "flags"),
        (Form(OWN_COMMAND), "command"),
        (Form(OWN_COMMAND, command="'"), "command"),
    ],
)
def test_what_cannot_be_meant_is_a_problem_of_its_field(form: Form, field: str) -> None:
    found = arguments(form)
    assert isinstance(found, Problem) and found.field == field and found.text
