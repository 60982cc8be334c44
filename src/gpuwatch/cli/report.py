"""Rewrite summary.md, summary.json and roofline.svg of a study from its sessions."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from gpuwatch.cli import screen
from gpuwatch.errors import StorageError, UsageError
from gpuwatch.session import study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", type=Path, metavar="STUDY", help="the study's folder")
    parser.add_argument(
        "--format", choices=("table", "json", "md", "csv"), help="print it, and write nothing"
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    folder: Path = arguments.study
    found = study.sessions_in(folder)
    not_run = study.not_run(folder)
    if not found and not not_run:
        raise UsageError(f"no session in {folder}", "see `gpuwatch sessions`")
    from gpuwatch.analysis.compare import compare
    from gpuwatch.analysis.summary import summarise
    from gpuwatch.report import json, roofline_svg, side_by_side
    from gpuwatch.session.reader import SessionReader

    summaries = []
    for path in found:
        with SessionReader(path) as reader:
            summaries.append(summarise(reader))
    compared = compare(summaries)
    if arguments.format == "table":
        for each in not_run:
            print(f"{each.why}\n    mend: {each.fix}" if each.fix else each.why)
        sys.stdout.write(side_by_side.terminal(compared, columns=screen.columns()))
    elif arguments.format == "csv":
        sys.stdout.write(side_by_side.as_csv(compared))
    else:
        as_json = json.dumps(
            {
                **json.comparison(compared),
                "study": folder.name,
                "not_run": [asdict(each) for each in not_run],
            }
        )
        picture = roofline_svg.svg([each.efficiency.roofline for each in summaries])
        as_markdown = side_by_side.as_markdown(
            compared,
            folder.name,
            answer=[each.text for each in not_run],
            roofline=study.ROOFLINE if picture else None,
        )
        if arguments.format:
            sys.stdout.write(as_json if arguments.format == "json" else as_markdown)
            return 0
        try:
            study.write_text(folder / study.SUMMARY_JSON, as_json)
            if picture:
                study.write_text(folder / study.ROOFLINE, picture)
            study.write_text(folder / study.SUMMARY_MARKDOWN, as_markdown)
        except OSError as error:
            raise StorageError(
                f"cannot write the summary to {folder}: {error.strerror}",
                f"free some space, then: gpuwatch report {folder}",
            ) from error
    return 0
