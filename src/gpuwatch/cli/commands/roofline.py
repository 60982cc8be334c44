"""Show the roofline of sessions: FLOP/s against FLOP per byte, under the ceilings of their device.

A study's folder or a tag stands for all its sessions; of more than four, text and picture have of
each program in each environment the run nearest to their mean. Measured ceilings are from
`gpuwatch calibrate`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from gpuwatch.cli import output_file
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.json_schema import JSON_SCHEMA


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="*", default=["last"])
    parser.add_argument("--format", choices=("text", "svg", "json"), default="text")
    parser.add_argument("--out", type=Path, metavar="FILE", help="instead of standard output")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    sessions = dict.fromkeys(
        path for text in arguments.session for path in session_lookup.sessions(text)
    )
    output_file.check(arguments.out)
    output_file.write(arguments.out, render(list(sessions), arguments.format))
    return 0


def render(paths: list[Path], form: str) -> str:
    """The roofline of the session files ``found``.

    Raises:
        NotAvailable: there is nothing to draw; the message has the reasons.
    """
    from gpuwatch.analysis.hardware.bound import UNKNOWN
    from gpuwatch.analysis.study.grouping import FEW
    from gpuwatch.analysis.study.read import read_sessions
    from gpuwatch.analysis.summary.summary import summarise
    from gpuwatch.report import json
    from gpuwatch.report.document.efficiency import hint_of
    from gpuwatch.report.document.reasons import middle_runs
    from gpuwatch.report.roofline import svg
    from gpuwatch.report.roofline import text as roofline_text
    from gpuwatch.session.reading.reader import SessionReader

    left_out = ""
    if len(paths) > FEW and form != "json":
        questions = read_sessions(paths, across_devices=True).questions
        middle = [run for question in questions for run in middle_runs(question) if run is not None]
        whose = "of one program in one environment that nearest to their mean"
        left_out = f"{len(middle)} of {len(paths)} sessions: {whose}.\n\n"
        paths = [Path(run.session.path) for run in middle]
    rooflines = []
    for path in paths:
        with SessionReader(path) as reader:
            session = summarise(reader)
            roofline = session.efficiency.roofline
            if (hint := roofline.verdict.hint) and len(paths) == 1:
                verdict = replace(roofline.verdict, hint=hint_of(session, hint))
                roofline = replace(roofline, verdict=verdict)
            rooflines.append(roofline)
            if session.generation is not None:
                rooflines += session.generation.rooflines
    picture = svg.svg(rooflines)
    if form == "text" and (picture or any(e.verdict.bound != UNKNOWN for e in rooflines)):
        return left_out + roofline_text.text(rooflines)
    if form == "json":
        listed = [json.roofline(figure) for figure in rooflines]
        return json.dumps({"schema": JSON_SCHEMA, "rooflines": listed})
    if picture is None:
        reasons = dict.fromkeys(
            figure.reason or figure.no_ceilings.reason or "no ceilings are known"
            for figure in rooflines
        )
        hints = dict.fromkeys(figure.verdict.hint for figure in rooflines if figure.verdict.hint)
        raise NotAvailable(
            f"there is no roofline to draw: {'; '.join(reasons)}",
            "; ".join(hints) or "record a workload of gpuwatch's own",
        )
    return picture
