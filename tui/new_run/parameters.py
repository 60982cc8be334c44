"""The fields of the form, with the parameters of gpuwatch's own workloads; the command line that
they make, and what is wrong with them."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpuwatch.core.errors import UsageError
from gpuwatch.core.key_values import parse as key_values
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.paths import data_home
from gpuwatch.core.shell_line import operator_in
from gpuwatch.core.text import clean, shell
from gpuwatch.core.units import counted
from gpuwatch.session.study.plan import read as read_plan
from gpuwatch.session.study.signature import is_own
from gpuwatch.workloads import names, options

FIRST = ("steps", "batch_size", "dtype", "device")
"""The parameters that most runs set; the form shows the others on request."""
_LABELS = {
    "dtype": "data type",
    "warmup": "warm-up",
    "lr": "learning rate",
    "data": "data folder",
    "workers": "loader workers",
    "nproc": "ranks",
    "profile": "profiled steps",
    "counters": "ncu counters",
    "compile": "torch.compile",
}
_CHOICES = {"device": ("auto", "cpu", "cuda")}
_HELP = {"device": "auto: a GPU where there is one", "lr": "step size of the optimizer"}
_HINTS: Mapping[str, Mapping[str, str]] = {
    "device": {
        "auto": "a GPU where there is one",
        "cpu": "the CPU, also where there is a GPU",
        "cuda": "a GPU; without one nothing starts",
    }
}
"""What a choice means."""
_DEFAULT = re.compile(r" ?\(default: (.*)\)")


@dataclass(frozen=True)
class Parameter:
    """A flag of a workload as a field of the form."""

    name: str
    label: str
    help: str
    default: str
    """The value where none is given, if it is the same for every workload; else empty."""
    choices: tuple[str, ...]
    """All values, the default first; empty: any text that ``check`` accepts."""
    switch: bool
    check: Callable[[str], object] | None
    """Converts a text, or raises ``argparse.ArgumentTypeError``; ``None``: any text."""

    @property
    def restrict(self) -> str | None:
        """A regular expression for the characters of a number; ``None``: not a number."""
        if self.check is options.learning_rate:
            return "[0-9.eE+-]*"
        return "[0-9]*" if self.check and not self.choices else None

    def hint(self, value: str) -> str:
        """The text beside the field while it holds ``value``."""
        return _HINTS.get(self.name, {}).get(value, self.help)

    def value(self, text: str) -> object:
        """The value of a field's text; ``None``: the default. A switch that is on has any text.

        Raises:
            ValueError: the text is not accepted; the message says what is.
        """
        text = text.strip()
        if self.switch:
            return True if text else None
        if not text or (self.choices and text == self.choices[0]):
            return None
        try:
            return self.check(text) if self.check else text
        except argparse.ArgumentTypeError as error:
            raise ValueError(str(error)) from None


@lru_cache(maxsize=1)
def parameters() -> tuple[Parameter, ...]:
    """Every flag of workloads, those of :data:`FIRST` first."""
    parser = argparse.ArgumentParser(add_help=False)
    found: dict[str, Parameter] = {}

    def add(*names: str, **settings: Any) -> argparse.Action:
        action = parser.add_argument(*names, **settings)
        found[action.dest] = _parameter(action)
        return action

    options.add_arguments(add)
    rest = [name for name in options.FLAGS if name not in FIRST]
    return tuple(found[name] for name in (*FIRST, *rest))


def _parameter(action: argparse.Action) -> Parameter:
    named = _DEFAULT.search(action.help or "")
    default = re.split("[,;]", named[1])[0] if named else ""
    choices = _CHOICES.get(action.dest) or tuple(map(str, action.choices or ()))
    check = action.type
    return Parameter(
        name=action.dest,
        label=_LABELS.get(action.dest, action.dest.replace("_", " ")),
        help=_HELP.get(action.dest) or _DEFAULT.sub("", action.help or ""),
        default=default,
        choices=choices,
        switch=action.nargs == 0,
        check=check if callable(check) else None,
    )


def parameters_of(workload: str) -> tuple[Parameter, ...]:
    """The parameters of a workload that ``names.check`` accepts."""
    own = names.defaults(workload)
    in_batches = own.batch_size is not None
    accepted = {
        **dict.fromkeys(("batch_size", "workers", "nproc", "accumulate"), in_batches),
        "image_size": own.image_size is not None,
        "size": own.sizes,
        "checkpointing": own.checkpointing,
        "compile": not (own.sparse or own.routes),
        "attention": own.attends,
        "memory_format": own.convolves,
        "download": own.downloads,
    }
    return tuple(each for each in parameters() if accepted.get(each.name, True))


def default(parameter: Parameter, workload: str) -> str:
    """The value that a workload uses where none is given, in words."""
    own = names.defaults(workload)
    epochs = counted(own.epochs, "epoch")
    by_workload: Mapping[str, object] = {
        "steps": epochs if own.steps is None else own.steps,
        "batch_size": own.batch_size,
        "epochs": own.epochs,
        "lr": own.lr,
        "workers": own.workers,
        "image_size": own.image_size,
        "size": next(iter(own.sizes), None),
    }
    value = by_workload.get(parameter.name)
    return (parameter.default or "none") if value is None else str(value)


_NAMED = ("download", "nproc", "lr", "checkpointing", "accumulate", "size", "compile")
"""Fields that messages on conflicts name by their flag, those to change first."""


def conflict(values: Mapping[str, object], workload: str = "") -> tuple[str, str] | None:
    """The field and the message where valid values contradict each other, or ``workload``."""
    namespace = argparse.Namespace(**{name: values.get(name) for name in options.FLAGS})
    found = options.conflict(namespace)
    if found is None and workload:
        found = options.unsupported(workload, namespace)
    if found is None:
        return None
    text = "; ".join(found)
    return next((name for name in _NAMED if f"--{name}" in text), "dtype"), text


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
    "once": ((), "one run each: no verdict"),
    "quick": (("--quick",), "3 blocks: describes only"),
    "full": (("--blocks", "10"), "10 blocks: a verdict"),
    "rigorous": (("--rigorous",), "20 blocks: small differences too"),
}
"""How often each environment runs: flags, and what the result can say."""
_NOT_OPTIONS = (
    *("--env", "--on", "--gpus", "--pull", "--command"),
    *("-h", "--help", "--plan", "--dry-run", "--format", "--detach"),
)
"""Options that another field gives, or that start nothing."""
_MOST_BEFORE = 50
"""Most studies whose commands are suggested."""
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
    options: str = ""
    """Further options of ``gpuwatch run``, with blanks between."""
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
    found = _command_problems(form) if form.own else _workload_problems(form)
    if problem := _unsplit(form.other):
        found["other"] = problem
    elif invalid := [text for text in _words(form.other) if not _is_environment(text)]:
        found["other"] = f"{invalid[0]}: write KIND=IMAGE, such as docker=pytorch/pytorch"
    elif not form.environments:
        found["environments"] = "choose at least one environment"
    further = _words(form.options)
    if problem := _unsplit(form.options):
        found["options"] = problem
    elif further and (not further[0].startswith("-") or "--" in further):
        found["options"] = "write options of gpuwatch run, such as --profile 5"
    elif here := [word for word in further if word.partition("=")[0] in _NOT_OPTIONS]:
        found["options"] = f"{here[0]} is not for here: a field above has it, or it starts nothing"
    for place in form.places:
        try:
            key_values(place)
        except UsageError as error:
            found["on"] = str(error)
    return found


def arguments(form: Form) -> tuple[str, ...]:
    """The arguments of ``gpuwatch run`` for a form without problems."""
    found = [] if form.own else [form.case, *options.parameters_to_argv(_values(form)[0])]
    given = "".join(f",set={name}={_quoted(value)}" for name, value in _variables(form))
    if given or form.environments != ("bare",):
        found += [part for text in form.environments for part in ("--env", text + given)]
    found += [part for text in form.places for part in ("--on", text)]
    found += ["--pull"] * form.pull
    if form.gpus is not None:
        found += ["--gpus", ",".join(form.gpus) or "none"]
    if often := REPEATS[form.repeat][0]:
        found += [*often, "--order-seed", str(form.order_seed)]
    found += _words(form.options)
    return (*found, "--", *_words(form.command)) if form.own else tuple(found)


def commands_before() -> list[str]:
    """The commands of this user's newest studies in the data folder, each once, the newest first: a
    folder that came from elsewhere suggests nothing."""
    changed: dict[str, float] = {}
    with contextlib.suppress(OSError):
        for each in os.scandir(data_home()):
            with contextlib.suppress(OSError):  # gone since, or a link to itself
                changed[each.path] = each.stat().st_mtime
    newest = sorted(changed, key=lambda path: changed[path], reverse=True)[:_MOST_BEFORE]
    plans = [plan for path in newest if (plan := read_plan(Path(path))) is not None]
    found = [run.workload for plan in plans if is_own(plan) for run in plan.runs[:1]]
    lines = [shlex.join(each.arguments) for each in found if each.kind == "command"]
    return list(dict.fromkeys(line for line in lines if line.strip("'") and clean(line) == line))


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
        found["command"] = "enter a command, such as python train.py"
    elif operator:
        found["command"] = (
            f"{operator} needs a shell: ^s puts bash before it, ^s again starts it; "
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
    clash = None if invalid else conflict(values, form.case)
    return {**found, **invalid, **(dict([clash]) if clash else {})}


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
    for parameter in parameters_of(form.case):
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
