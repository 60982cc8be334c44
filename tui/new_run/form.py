"""The fields of the form, the command line that they make, and what is wrong with them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
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
_VARIABLE = re.compile(r"[A-Za-z_]\w*=", re.ASCII)

_PLACE = re.compile(r"""(?:"[^"]*"|'[^']*'|\[[^]]*\]|\S)+""")
"""Blanks within quotes and brackets belong to a place."""


@dataclass(frozen=True)
class Form:
    """The fields as they are filled in."""

    workload: str = OWN_COMMAND
    """A key of :data:`WORKLOADS`."""
    command: str = ""
    """As a shell would take it; without an effect on a workload."""
    folder: str = ""
    """Where a command runs; empty: where gpuwatch does. Without an effect on a workload."""
    variables: str = ""
    """``NAME=VALUE`` with blanks between, as a shell would take them, for a command."""
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
    def runs_in(self) -> str:
        """The folder in which gpuwatch is to be started; empty: here."""
        return os.path.expanduser(self.folder.strip()) if self.own else ""

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
        found |= _command_problems(form)
    else:
        found |= _workload_problems(form)
    if problem := _unsplit(form.other):
        found["other"] = problem
    elif invalid := [text for text in _words(form.other) if not _is_environment(text)]:
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
    given = "".join(f",set={name}={_quoted(value)}" for name, value in _variables(form))
    if given or form.environments != ("bare",):
        found += [part for text in form.environments for part in ("--env", text + given)]
    found += [part for text in form.places for part in ("--on", text)]
    found += ["--pull"] * form.pull
    if form.gpus is not None:
        found += ["--gpus", ",".join(form.gpus) or "none"]
    if flags := REPEATS[form.repeat][0]:
        found += [*flags, "--order-seed", str(form.order_seed)]
    return (*found, "--", *_words(form.command)) if form.own else tuple(found)


def command_line(form: Form) -> str:
    """``gpuwatch run`` for a form without problems, as it would be typed."""
    there = f"cd {shell(form.runs_in)} && " if form.runs_in else ""
    return there + " ".join(map(shell, ("gpuwatch", "run", *arguments(form))))


def _command_problems(form: Form) -> dict[str, str]:
    found: dict[str, str] = {}
    operator = operator_in(form.command)
    if problem := _unsplit(form.command):
        found["command"] = problem
    elif not _words(form.command):
        found["command"] = "write what to run, such as python train.py"
    elif operator:
        found["command"] = (
            f"{operator} needs a shell: a start puts bash -c before the command; "
            f"in quotes ({shlex.quote(operator)}) it is a plain word"
        )
    if form.runs_in and not os.path.isdir(form.runs_in):
        found["folder"] = f"there is no folder {form.folder.strip()}"
    wrong = [word for word in _words(form.variables) if not _VARIABLE.match(word)]
    both = [name for name, value in _variables(form) if {"'", '"'} <= set(value)]
    if problem := _unsplit(form.variables):
        found["variables"] = problem
    elif wrong or both:
        found["variables"] = (
            f"{wrong[0]}: write NAME=VALUE, such as OMP_NUM_THREADS=8"
            if wrong
            else f"{both[0]}: a value with both kinds of quotes cannot be given here"
        )
    return found


def _variables(form: Form) -> list[tuple[str, str]]:
    """Names and values of a command's variables."""
    pairs = (word.partition("=") for word in _words(form.variables) if form.own)
    return [(name, value) for name, _, value in pairs]


def _quoted(value: str) -> str:
    """As a value of ``set=``: a comma would end it."""
    if re.fullmatch(r"[\w./:@%+-]*", value):
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


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


def _unsplit(text: str) -> str:
    """Why a shell cannot split ``text``; empty: it can."""
    try:
        shlex.split(text)
    except ValueError as error:
        if str(error) == "No closing quotation":
            return "a quotation mark is not closed"
        return "nothing follows the backslash at the end"
    return ""


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
