"""What a command line asks for, without running any of it."""

from __future__ import annotations

from types import ModuleType

import pytest

from gpuwatch.cli.commands import record
from gpuwatch.cli.parser import Parser
from gpuwatch.recorder.request import Request
from gpuwatch.session.study.plan import Plan


def plan_asked(
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    *argv: object,
    command: tuple[str, ...] = (),
) -> Plan:
    """The plan that a command of ``gpuwatch.cli`` would start."""
    started: list[Request] = []

    def start(request: Request, arguments: object) -> int:
        started.append(request)
        return 0

    parser = Parser(prog="gpuwatch")
    module.add_arguments(parser)
    with monkeypatch.context() as patched:
        patched.setattr(record, "start", start)
        module.run(parser.parse_intermixed_args(list(map(str, argv))), command)
    (request,) = started
    return request.plan
