"""Show a session's figures: times, steps, throughput, FLOP, and every metric with its method."""

from __future__ import annotations

import argparse
import sys

from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument(
        "--exact",
        action="store_true",
        help="read every sample and every step of a long session, which is slow",
    )
    parser.add_argument("--format", choices=("table", "json", "md", "csv"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    path = session_lookup.session(arguments.session)
    from gpuwatch.analysis.comparison.side_by_side import compare
    from gpuwatch.analysis.summary.summary import summarise
    from gpuwatch.cli.parallel_read import in_child_process, is_worthwhile
    from gpuwatch.report.session import json, side_by_side
    from gpuwatch.session.reading.reader import SessionReader

    with SessionReader(path) as reader:
        summary = summarise(
            reader,
            exact=arguments.exact,
            parallel=in_child_process if is_worthwhile(path) else None,
        )
    if arguments.format == "json":
        sys.stdout.write(json.dumps(json.summary(summary)))
        return 0
    compared = compare([summary])
    notices = [summary.notice] if summary.notice else []
    if arguments.format == "md":
        sys.stdout.write(side_by_side.as_markdown(compared, summary.label, notices))
    elif arguments.format == "csv":
        sys.stdout.write(side_by_side.as_csv(compared))
    else:
        sys.stdout.write(side_by_side.terminal(compared, notices, columns=terminal.columns()))
    return 0
