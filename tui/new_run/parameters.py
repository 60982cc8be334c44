"""The parameters of gpuwatch's own workloads: labels, help, defaults, accepted values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
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
    refused = set()
    if own.batch_size is None:
        refused |= {"batch_size", "workers", "nproc", "accumulate"}
    if own.image_size is None:
        refused.add("image_size")
    if not own.sizes:
        refused.add("size")
    if not own.checkpointing:
        refused.add("checkpointing")
    if own.sparse or own.routes:
        refused.add("compile")
    if not own.attends:
        refused.add("attention")
    if not own.convolves:
        refused.add("memory_format")
    if not own.downloads:
        refused.add("download")
    return tuple(each for each in parameters() if each.name not in refused)


def default(parameter: Parameter, workload: str) -> str:
    """The value that a workload uses where none is given, in words."""
    own = names.defaults(workload)
    epochs = f"{own.epochs} epoch{'' if own.epochs == 1 else 's'}"
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


def flags(values: Mapping[str, object]) -> list[str]:
    """The flags that give these values, in the order of ``--help``."""
    return options.parameters_to_argv(values)
