"""The argument parser of the commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from gpuwatch.core.errors import UsageError

_INSTEAD = {
    "--price": "give it afterwards: gpuwatch compare STUDY --price STUDY=EUR, "
    "of one run gpuwatch show last --price EUR",
    "--timeout": "to end it after some time: --duration 90s",
    "--set": "to set a variable: --env bare,set=VAR=VALUE",
}
"""What does what somebody wants of a run with such an option."""
Add = Callable[..., argparse.Action]
"""The ``add_argument`` of a parser or of a group."""


class Once(argparse.Action):
    """Stores a value that may be given once: the last of two would win in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Parser that lists its arguments, and whose errors are one line with a hint."""

    def __init__(self, **settings: Any) -> None:
        self.arguments: list[argparse.Action] = []
        """The arguments, ``--help`` first, in the order in which they were added."""
        super().__init__(**settings)

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        return self.listed(super().add_argument)(*names, **settings)

    def listed(self, add: Add, **usual: Any) -> Add:
        """``add``, which belongs to one of this parser's groups, and what it adds is listed, with
        the ``usual`` settings where it has no others."""

        def add_listed(*names: str, **settings: Any) -> argparse.Action:
            action = add(*names, **{**usual, **settings})
            self.arguments.append(action)
            if action.dest == "format" and "json" in (action.choices or ()):
                brief = {"dest": "format", "const": "json", "help": "as --format json"}
                add_listed("--json", action="store_const", **brief)
            return action

        return add_listed

    def error(self, message: str) -> NoReturn:
        hint = f"see `{self.prog} --help`"
        if message.startswith("unrecognized arguments"):
            from difflib import get_close_matches

            known = [name for each in self.arguments[1:] for name in each.option_strings]
            for word in message.split()[2:]:
                of = word.partition("=")[0]
                if word.startswith("-") and (close := get_close_matches(of, known, n=1)):
                    hint = f"did you mean {close[0]}?"
            if "--plain" in message.split()[2:]:
                hint = "it has no plain form: omit --plain"
            if "--env" in known:
                hint = _INSTEAD.get(message.split()[2].partition("=")[0], hint)
            if self.prog.endswith(" show") and not message.split()[2].startswith("-"):
                hint = "several sessions: gpuwatch compare A B"
            if self.prog.endswith(" run") and message.split()[2] in ("--record", "--detach"):
                hint = "without a screen: gpuwatch --record [--detach] WORKLOAD"
        if message.endswith("given twice") and message.split()[1] not in ("--name:", "--note:"):
            hint = "several values are a sweep: `gpuwatch sweep mnist-cnn --batch-size 16,32`"
        if message.startswith("argument --compile: invalid choice"):
            hint = "name the workload first: gpuwatch run mnist-cnn --compile"
        raise UsageError(message, hint)
