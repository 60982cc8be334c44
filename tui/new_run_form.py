"""What the form of a new run means: its command line, or what is wrong with it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

OWN_COMMAND = "own command"
"""The choice of the list that is no built-in workload."""


@dataclass(frozen=True)
class Form:
    """The fields as they were filled in."""

    workload: str = ""
    environments: str = "bare"
    steps: str = ""
    batch_size: str = ""
    flags: str = ""
    command: str = ""


@dataclass(frozen=True)
class Problem:
    """A field that cannot be used as it is."""

    field: str
    text: str


def arguments(form: Form) -> tuple[str, ...] | Problem:
    """The arguments behind ``gpuwatch --record --detach``, or the first problem."""
    environments = _split(form.environments)
    if environments is None:
        return Problem("environments", "environment: a quotation mark is not closed")
    if not environments:
        return Problem("environments", "environment: write bare, or KIND=IMAGE")
    for text in environments:
        kind, equals, image = text.split(",")[0].partition("=")
        if not kind or (equals and not image):
            return Problem("environments", f"environment {text!r}: write KIND or KIND=IMAGE")
    chosen = [part for text in environments for part in ("--env", text)]
    if form.workload == OWN_COMMAND:
        words = _split(form.command)
        if words is None:
            return Problem("command", "command: a quotation mark is not closed")
        if not words:
            return Problem("command", "command: write what to run, such as python3 train.py")
        return (*chosen, "--", *words)
    if not form.workload:
        return Problem("workload", "choose a workload")
    found = [form.workload]
    for field, flag, text in (
        ("steps", "--steps", form.steps.strip()),
        ("batch_size", "--batch-size", form.batch_size.strip()),
    ):
        if text:
            if not (text.isascii() and text.isdigit() and int(text) > 0):
                name = flag[2:].replace("-", " ")
                return Problem(field, f"{name}: write a whole number of at least 1")
            found += [flag, str(int(text))]
    flags = _split(form.flags)
    if flags is None:
        return Problem("flags", "more flags: a quotation mark is not closed")
    if flags and not flags[0].startswith("-"):
        return Problem("flags", f"more flags: {flags[0]!r} is no flag, write --name value")
    if "--" in flags:
        return Problem("flags", "more flags: for a command of your own choose it in the list")
    return (*found, *flags, *chosen)


def command_line(parts: tuple[str, ...]) -> str:
    """What someone would type for the same."""
    return shlex.join(("gpuwatch", "--record", "--detach", *parts))


def _split(text: str) -> list[str] | None:
    try:
        return shlex.split(text)
    except ValueError:
        return None
