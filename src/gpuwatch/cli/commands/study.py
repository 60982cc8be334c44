"""Run a predefined study: a preset, or your own TOML file.

Flags override it in every part: --env the environments (a part with fewer environments than the
largest part takes that many, the first ones), --blocks the number of blocks, and --steps, --device
and the other flags of workloads their parameters.

  gpuwatch study --list                    the presets
  gpuwatch study multi-environment         run one; --plan prints what it would run
  gpuwatch study --show imagenet-15 > mine.toml
  gpuwatch study mine.toml                 what ends in .toml or has a / in it is a file
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from gpuwatch import studies
from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.cases import command_name, given_flags
from gpuwatch.cli.options.environments import environments
from gpuwatch.cli.parser import Parser
from gpuwatch.core.errors import ExitCode, UsageError
from gpuwatch.core.interpreter import takes_interpreter
from gpuwatch.core.key_values import parse as key_values
from gpuwatch.core.models import Workload
from gpuwatch.report.tables import table
from gpuwatch.session.study.plan import Part
from gpuwatch.studies import Study, StudyPart, parameters
from gpuwatch.workloads import options


def add_arguments(parser: Parser) -> None:
    parser.add_argument("study", nargs="?", metavar="NAME|FILE.toml")
    parser.add_argument("--list", action="store_true", help="list the presets")
    parser.add_argument("--show", metavar="NAME", help="print the file of a preset")
    launch.add_study_arguments(parser)
    launch.add_start_arguments(parser)
    options.add_arguments(parser.listed(parser.add_argument_group("workload").add_argument))


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    actions = [arguments.list, arguments.show is not None, arguments.study is not None]
    if sum(actions) != 1:
        raise UsageError("name one study, or --list, or --show NAME", "see `gpuwatch study --help`")
    if arguments.list:
        print(_list(arguments))
        return ExitCode.DONE
    if arguments.show is not None:
        sys.stdout.write(studies.preset_text(arguments.show))
        return ExitCode.DONE
    flags = {
        name: parameters.checked(name, value, parameters.flag(name))
        for name, value in given_flags(arguments).items()
    }
    study = studies.with_parameters(studies.find(arguments.study), flags)
    return record.start(launch.request_of(arguments, parts(study, arguments), study), arguments)


def parts(study: Study, arguments: argparse.Namespace) -> list[Part]:
    """The parts of ``study``, with the overrides in ``arguments``.

    Raises:
        UsageError: an environment, the margin or the rest between runs is invalid.
    """
    most = max(len(part.environments) for part in study.parts)
    texts = [_environments(part, arguments.env, most) for part in study.parts]
    uses_python = [
        any(key_values(text)[0].key == "bare" for text in named)
        and any(map(takes_interpreter, _cases(part)))
        for part, named in zip(study.parts, texts, strict=True)
    ]
    if arguments.python and not any(uses_python):
        raise UsageError(
            "--python sets the interpreter of gpuwatch's own workloads, and of commands that begin "
            "with python, in the bare environment, and no part has any",
            "for a container write --env KIND=IMAGE,python=PATH",
        )
    margin = _given(arguments.margin, "margin", launch.margin, study)
    cool_down = _given(arguments.cool_down, "cool-down", launch.rest, study)
    given = launch.blocks(arguments)
    own = launch.QUICK if study.quick else launch.RIGOROUS if study.rigorous else study.blocks
    parts_ = []
    for part, named, interpreter in zip(study.parts, texts, uses_python, strict=True):
        python = arguments.python if interpreter else None
        try:
            parts_.append(
                launch.part(
                    part.name,
                    _cases(part),
                    environments(named, python, pull=arguments.pull),
                    blocks=given or part.blocks or own,
                    margin=margin,
                    cool_down=cool_down,
                    sweep=part.sweep,
                )
            )
        except UsageError as error:
            if arguments.env:
                raise
            where = f"{study.name}, part {part.name!r}"
            raise UsageError(f"{where}: {error.message}", error.hint) from None
    return parts_


def _given(
    given: float | None, name: str, parse: Callable[[str], float], study: Study
) -> float | None:
    """What a flag gives, else what the study file has of the same name (with ``_``)."""
    text: str | None = getattr(study, name.replace("-", "_"))
    if given is not None or text is None:
        return given
    try:
        return parse(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{study.name}: {name}: {error}", "see `gpuwatch study --help`") from None


def _environments(part: StudyPart, given: Sequence[str] | None, most: int) -> Sequence[str]:
    if not given:
        return part.environments
    return given if len(part.environments) == most else given[: len(part.environments)]


def _cases(part: StudyPart) -> list[Workload]:
    own = [Workload(command_name(part.command), "command", part.command)] if part.command else []
    labelled = [
        Workload(command_name(words), "command", words, label=label)
        for label, words in part.commands.items()
    ]
    return [*part.workloads, *own, *labelled]


def _list(arguments: argparse.Namespace) -> str:
    """A table of the presets with environments and runs, each with its question below."""
    rows, questions = [], []
    for name in studies.presets():
        study = studies.find(name)
        made = parts(study, arguments)
        labels = dict.fromkeys(env.label for part in made for env in part.environments)
        rows.append([name, ", ".join(labels), str(sum(map(launch.count, made)))])
        questions.append(study.question or "")
    head, *lines = table(["study", "environments", "runs"], rows, left=2).splitlines()
    return "\n".join(
        [head, *(f"{line}\n  {question}" for line, question in zip(lines, questions, strict=True))]
    )
