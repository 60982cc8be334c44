"""The fields of the form, the command line that they make, and what is wrong with them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field

from gpuwatch.core.errors import UsageError
from gpuwatch.core.key_values import parse as key_values
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.shell_line import operator_in
from gpuwatch.core.text import shell
from gpuwatch.tui.new_run import parameters
from gpuwatch.workloads import names

OWN_COMMAND = "own command"
"""The choice that runs a command; every other one is a workload of gpuwatch's."""
OF_TORCHVISION = names.TORCHVISION
"""The choice that needs the name of a model."""
WORKLOADS: Mapping[str, str] = {
    OWN_COMMAND: "any program, in any language",
    **names.known(),
    OF_TORCHVISION: "any image classification model of torchvision",
}
"""Everything that can be run, with a description."""
REPEATS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "once": ((), "each once: no verdict"),
    "quick": (("--quick",), "3 blocks: describes only"),
    "full": (("--blocks", "10"), "10 blocks: a verdict"),
    "rigorous": (("--rigorous",), "20 blocks: small differences too"),
}
"""How often each environment runs: flags, and what the result can say."""

_PLACE = re.compile(r"""(?:"[^"]*"|'[^']*'|\[[^]]*\]|\S)+""")
"""Blanks within quotes and brackets belong to a place."""


@dataclass(frozen=True)
class Form:
    """The fields as they are filled in."""

    workload: str = OWN_COMMAND
    """A key of :data:`WORKLOADS`."""
    command: str = ""
    """As a shell would take it; without an effect on a workload."""
    model: str = ""
    """Name of a torchvision model."""
    ticked: tuple[str, ...] = ("bare",)
    """Environments from the list."""
    other: str = ""
    """Further environments as ``--env`` takes them, with blanks between."""
    on: str = ""
    """The places that record it, as ``--on`` takes them, with blanks between; empty: this
    machine."""
    pull: bool = False
    gpus: tuple[str, ...] | None = None
    """By index or UUID; ``None``: all, ``()``: none."""
    repeat: str = next(iter(REPEATS))
    values: Mapping[str, str] = field(default_factory=dict)
    """The fields of parameters, by name."""
    order_seed: int = 0
    """Seed for the order of runs in blocks: the plan shows the order that a start uses."""

    @property
    def own(self) -> bool:
        """Whether a command is to run, and no workload."""
        return self.workload == OWN_COMMAND

    @property
    def program(self) -> str | None:
        """The first word of the command, ``sh`` while there is none; ``None`` for a workload."""
        return next(iter(_words(self.command)), "sh") if self.own else None

    @property
    def case(self) -> str:
        """The workload's name in the command line."""
        return self.workload + (self.model.strip() if self.workload == OF_TORCHVISION else "")

    @property
    def environments(self) -> tuple[str, ...]:
        """All chosen environments, as ``--env`` takes them."""
        return (*self.ticked, *_words(self.other))

    @property
    def places(self) -> tuple[str, ...]:
        """All chosen places, as ``--on`` takes them."""
        return tuple(_PLACE.findall(self.on))

    @property
    def on_gpus(self) -> bool:
        """Whether the run may use GPUs."""
        return self.gpus != () and (self.own or self.values.get("device") != "cpu")


def problems(form: Form) -> dict[str, str]:
    """What is wrong with the fields in themselves, by the field's name."""
    found: dict[str, str] = {}
    if form.own:
        if problem := _command_problem(form.command):
            found["command"] = problem
    else:
        found |= _workload_problems(form)
    try:
        other = shlex.split(form.other)
    except ValueError as error:
        found["other"] = _split_problem(error)
    else:
        if invalid := [text for text in other if not _is_environment(text)]:
            found["other"] = f"{invalid[0]}: write KIND=IMAGE, such as docker=pytorch/pytorch"
        elif not form.environments:
            found["environments"] = "choose at least one environment"
    for place in form.places:
        try:
            key_values(place)
        except UsageError as error:
            found["on"] = str(error)
    return found


def arguments(form: Form) -> tuple[str, ...]:
    """The arguments of ``gpuwatch run`` for a form without problems."""
    found = [] if form.own else [form.case, *parameters.flags(_values(form)[0])]
    if form.environments != ("bare",):
        found += [part for text in form.environments for part in ("--env", text)]
    found += [part for text in form.places for part in ("--on", text)]
    found += ["--pull"] * form.pull
    if form.gpus is not None:
        found += ["--gpus", ",".join(form.gpus) or "none"]
    if flags := REPEATS[form.repeat][0]:
        found += [*flags, "--order-seed", str(form.order_seed)]
    return (*found, "--", *_words(form.command)) if form.own else tuple(found)


def command_line(parts: Sequence[str]) -> str:
    """``gpuwatch run`` with these arguments, as it would be typed."""
    return " ".join(map(shell, ("gpuwatch", "run", *parts)))


def _command_problem(command: str) -> str:
    try:
        if not shlex.split(command):
            return "write what to run, such as python train.py"
    except ValueError as error:
        return _split_problem(error)
    if operator := operator_in(command):
        return (
            f"{operator} needs a shell: a start puts bash -c before the command; "
            f"in quotes ({shlex.quote(operator)}) it is a plain word"
        )
    return ""


def _workload_problems(form: Form) -> dict[str, str]:
    found: dict[str, str] = {}
    if form.workload == OF_TORCHVISION and not form.model.strip():
        found["model"] = "write a model's name, such as vit_b_16"
    elif form.workload == OF_TORCHVISION and len(form.model.split()) > 1:
        found["model"] = "a model's name is one word"
    values, invalid = _values(form)
    conflict = None if invalid else parameters.conflict(values, form.case)
    return {**found, **invalid, **(dict([conflict]) if conflict else {})}


def _words(text: str) -> list[str]:
    """``text`` as a shell splits it; empty where it cannot be split."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _split_problem(error: ValueError) -> str:
    if str(error) == "No closing quotation":
        return "a quotation mark is not closed"
    return "nothing follows the backslash at the end"


def _is_environment(text: str) -> bool:
    try:
        head, *_ = key_values(text)
    except UsageError:
        return False
    return head.key.isidentifier() if head.value is None else bool(head.key and head.value)


def _values(form: Form) -> tuple[dict[str, object], dict[str, str]]:
    """The values that differ from the defaults, and what is wrong with the others."""
    values: dict[str, object] = {}
    invalid: dict[str, str] = {}
    for parameter in parameters.parameters_of(form.case):
        try:
            value = parameter.value(form.values.get(parameter.name, ""))
        except ValueError as error:
            invalid[parameter.name] = str(error)
            continue
        if value is not None:
            values[parameter.name] = value
    if data := values.get("data"):
        values["data"] = os.path.expanduser(str(data))
    return values, invalid
