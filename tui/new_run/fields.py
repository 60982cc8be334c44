"""The parameters of gpuwatch's own workloads as fields: labels, defaults, what each takes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.workloads import names, options

FIRST = ("steps", "batch_size", "dtype", "device")
"""What most runs set; the others are folded away."""
_LABELS = {
    "dtype": "data type",
    "warmup": "warm-up",
    "lr": "learning rate",
    "data": "data folder",
    "workers": "loader workers",
    "profile": "profiled steps",
    "counters": "ncu counters",
}
_CHOICES = {"device": ("auto", "cpu", "cuda")}
_HELP = {"device": "auto: a GPU where there is one"}
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
    """A flag of a workload as a field."""

    name: str
    label: str
    help: str
    default: str
    """What the flag is without a value, where that is the same for every workload."""
    choices: tuple[str, ...]
    """All values, the default first; empty: it is typed."""
    switch: bool
    check: Callable[[str], object] | None
    """Makes a value of a text, or raises ``argparse.ArgumentTypeError``; ``None``: any text."""

    def hint(self, value: str) -> str:
        """What stands beside the field when it is on ``value``."""
        return _HINTS.get(self.name, {}).get(value, self.help)

    def value(self, text: str) -> object:
        """Of what was typed, chosen or ticked; ``None``: the default.

        Raises:
            ValueError: it is none; the sentence says what it must be.
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
    options.add_arguments(parser)
    found = {each.dest: _parameter(each) for each in parser._actions}
    rest = [name for name in options.FLAGS if name not in FIRST]
    return tuple(found[name] for name in (*FIRST, *rest))


def _parameter(action: argparse.Action) -> Parameter:
    told = _DEFAULT.search(action.help or "")
    default = re.split("[,;]", told[1])[0] if told else ""
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


def taken(workload: str) -> tuple[Parameter, ...]:
    """The parameters that a workload which ``names.check`` accepts does not refuse."""
    own = names.defaults(workload)
    refused = set()
    if own.batch_size is None:
        refused |= {"batch_size", "workers"}
    if own.image_size is None:
        refused.add("image_size")
    return tuple(each for each in parameters() if each.name not in refused)


def default(parameter: Parameter, workload: str) -> str:
    """What a workload takes where nothing is typed, in words."""
    own = names.defaults(workload)
    epochs = f"{own.epochs} epoch{'' if own.epochs == 1 else 's'}"
    by_workload: Mapping[str, object] = {
        "steps": epochs if own.steps is None else own.steps,
        "batch_size": own.batch_size,
        "epochs": own.epochs,
        "lr": own.lr,
        "workers": own.workers,
        "image_size": own.image_size,
    }
    value = by_workload.get(parameter.name)
    return (parameter.default or "none") if value is None else str(value)


def clash(values: Mapping[str, object]) -> tuple[str, str] | None:
    """The field and the sentence where values that are each valid do not go together."""
    namespace = argparse.Namespace(**{name: values.get(name) for name in options.FLAGS})
    found = options.conflict(namespace)
    if found is None:
        return None
    return "download" if namespace.download and not namespace.data else "dtype", "; ".join(found)


def flags(values: Mapping[str, object]) -> list[str]:
    """The flags that give these values, in the order of ``--help``."""
    return options.parameters_to_argv(values)
