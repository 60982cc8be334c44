"""What the form of a new run means: its command line, or what is wrong with it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.shell_line import operator_in
from gpuwatch.core.text import shell
from gpuwatch.tui.new_run import fields
from gpuwatch.workloads import names

OWN_COMMAND = "own command"
"""The choice of the list that is no workload of gpuwatch's."""
OF_TORCHVISION = names.TORCHVISION
"""The choice that needs the name of a model."""
REPEATS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "once": ((), "each once: no verdict"),
    "quick": (("--quick",), "3 blocks: describes only"),
    "full": (("--blocks", "7"), "7 blocks: a verdict"),
    "rigorous": (("--rigorous",), "20 blocks: small differences too"),
}
"""How often everything is run: flags, and what that gives."""


@dataclass(frozen=True)
class Form:
    """The fields as they were filled in."""

    workload: str = next(iter(names.BUILT_IN))
    model: str = ""
    """Of torchvision."""
    command: str = ""
    ticked: tuple[str, ...] = ("bare",)
    """Environments from the list."""
    other: str = ""
    """Further environments as ``--env`` takes them, with blanks between."""
    pull: bool = False
    gpus: tuple[str, ...] | None = None
    """By index or UUID; ``None``: all, ``()``: none."""
    repeat: str = next(iter(REPEATS))
    values: Mapping[str, str] = field(default_factory=dict)
    """What was typed, by the parameter's name."""
    order_seed: int = 0
    """Of the order in blocks, so that the order that is shown is the one that is run."""

    @property
    def own(self) -> bool:
        """Whether a command of one's own is to run."""
        return self.workload == OWN_COMMAND

    @property
    def program(self) -> str | None:
        """Of a command of one's own its first word, empty while there is none; else ``None``."""
        return next(iter(words(self.command) or ()), "") if self.own else None

    @property
    def case(self) -> str:
        """The workload's name as the command line has it."""
        return self.workload + (self.model.strip() if self.workload == OF_TORCHVISION else "")

    @property
    def environments(self) -> tuple[str, ...]:
        """All that are asked for, as ``--env`` takes them."""
        return (*self.ticked, *(words(self.other) or ()))

    @property
    def on_gpus(self) -> bool:
        """Whether GPUs are to be used where there are any."""
        return self.gpus != () and (self.own or self.values.get("device") != "cpu")


def problems(form: Form) -> dict[str, str]:
    """What cannot be used as it is, by the name of the field."""
    found: dict[str, str] = {}
    if form.own:
        command = words(form.command)
        if not command:
            found["command"] = _unclosed(command) or "write what to run, such as python3 train.py"
        elif operator := operator_in(form.command):
            found["command"] = (
                f"{operator} is for a shell: Enter writes bash -c around it all; in quotes "
                f"({shlex.quote(operator)}) it is a word"
            )
    elif form.workload == OF_TORCHVISION and not form.model.strip():
        found["model"] = "write a model's name, such as vit_b_16"
    elif form.workload == OF_TORCHVISION and len(form.model.split()) > 1:
        found["model"] = "a model's name is one word"
    other = words(form.other)
    if other is None:
        found["other"] = str(_unclosed(other))
    elif wrong := [text for text in other if not _is_environment(text)]:
        found["other"] = f"{wrong[0]}: write KIND=IMAGE, such as docker=pytorch/pytorch"
    if not found.get("other") and not form.environments:
        found["where"] = "tick at least one environment"
    if not form.own:
        values, wrong_values = _values(form)
        found |= wrong_values
        if not wrong_values and (clash := fields.clash(values)):
            found[clash[0]] = clash[1]
    return found


def arguments(form: Form) -> tuple[str, ...]:
    """What stands behind ``gpuwatch run`` for a form without problems."""
    found = [] if form.own else [form.case, *fields.flags(_values(form)[0])]
    if form.environments != ("bare",):
        found += [part for text in form.environments for part in ("--env", text)]
    found += ["--pull"] * form.pull
    if form.gpus is not None:
        found += ["--gpus", ",".join(form.gpus) or "none"]
    if flags := REPEATS[form.repeat][0]:
        found += [*flags, "--order-seed", str(form.order_seed)]
    return (*found, "--", *(words(form.command) or ())) if form.own else tuple(found)


def command_line(parts: Sequence[str]) -> str:
    """What someone would type for the same."""
    return " ".join(map(shell, ("gpuwatch", "run", *parts)))


def words(text: str) -> list[str] | None:
    """``text`` as a shell splits it; ``None``: a quotation mark is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _unclosed(found: list[str] | None) -> str | None:
    return "a quotation mark is not closed" if found is None else None


def _is_environment(text: str) -> bool:
    kind, equals, image = text.split(",")[0].partition("=")
    return bool(kind) and (bool(image) if equals else kind.isidentifier())


def _values(form: Form) -> tuple[dict[str, object], dict[str, str]]:
    """The values that are no defaults, and why those that are none are none."""
    values: dict[str, object] = {}
    wrong: dict[str, str] = {}
    for each in fields.taken(form.case):
        try:
            value = each.value(form.values.get(each.name, ""))
        except ValueError as error:
            wrong[each.name] = str(error)
            continue
        if value is not None:
            values[each.name] = value
    if data := values.get("data"):
        values["data"] = os.path.expanduser(str(data))
    return values, wrong
