"""What a study gets that has begun: its label, and somebody who is told of its end."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from gpuwatch.cli.options import notifying
from gpuwatch.cli.parser import Once
from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.recorder.request import Request
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE, Label, clean_name, clean_note, clean_tag, with_tags
from gpuwatch.session.study.plan import Plan

_SEVERAL = "several share a --tag"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--name``, ``--tag``, ``--note`` and ``--notify``."""
    parser.add_argument(
        "--name",
        type=clean_name,
        action=Once,
        metavar="NAME",
        help="a name that other commands accept",
    )
    parser.add_argument(
        "--tag",
        type=clean_tag,
        action="append",
        default=[],
        metavar="TAG",
        help="a tag, repeatable: tag:TAG stands for all sessions with it",
    )
    parser.add_argument(
        "--note", type=clean_note, action=Once, metavar="TEXT", help="a note, for people"
    )
    notifying.add_argument(parser)


def check(request: Request, arguments: argparse.Namespace) -> None:
    """Raise ``UsageError`` where ``request`` cannot have the label of ``arguments``."""
    with_tags(NONE, arguments.tag, ())
    if arguments.name and len(request.on) > 1:
        raise UsageError(f"--name of {len(request.on)} studies, one at each place", _SEVERAL)
    of = None if request.resume is None else (request.resume, _key(request.plan))
    session_lookup.refuse_taken(arguments.name or "", of, _SEVERAL)


def begun(study: Path, plan: Plan, arguments: argparse.Namespace) -> None:
    """Label ``study``, which has a session or waits at a place; ``--notify`` is told of it."""

    def labelled(label: Label) -> Label:
        label = with_tags(label, arguments.tag, ())
        name, note = arguments.name, arguments.note
        return replace(label, name=name or label.name, note=note or label.note)

    if arguments.name or arguments.tag or arguments.note:
        key = _key(plan)
        try:
            session_lookup.refuse_taken(arguments.name or "", (study.resolve(), key), _SEVERAL)
            labels.change(study, key, labelled)
        except (StorageError, UsageError) as error:  # the study goes on without
            say(f"it has no name, tag or note: {error}")
    notifying.follow(study, arguments.notify)


def _key(plan: Plan) -> str:
    """The key of its label: that of its session, if it is a single run."""
    return plan.runs[0].file if len(plan.runs) == 1 else ""
