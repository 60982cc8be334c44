"""Wait for the end of a run or study and tell it; by the way, troubles.

TO is a URL, which gets a POST, or a command of the shell. Both get the message as JSON; the
command has its sentence in $GPUWATCH_TEXT as well. Told once each: the end, with the verdict; no
step for ten steps and a minute; a GPU that is lost or has an error; GPUs of the run that are idle
for ten minutes. Without TO: $GPUWATCH_NOTIFY. Without SESSION: the newest run.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib import request

from gpuwatch.cli.commands import attach
from gpuwatch.cli.options.notifying import VARIABLE, WEB, address
from gpuwatch.cli.say import say
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.core.models import JSON
from gpuwatch.core.units import clock_time

if TYPE_CHECKING:
    from gpuwatch.tui.plain.news import News

_PATIENCE_SECONDS = 30.0
_TRIES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument(
        "--to", type=address, metavar="TO", help=f"a URL or a command (default: ${VARIABLE})"
    )
    parser.add_argument("--started", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    to = arguments.to or os.environ.get(VARIABLE)
    if to is None:
        raise UsageError("notify has nobody to tell", f"add --to URL or COMMAND, or set {VARIABLE}")
    from gpuwatch.tui.plain.news import News, news

    try:
        path = attach.watched(arguments.session)
    except GpuwatchError as error:
        if arguments.started:
            name = Path(arguments.session).name
            _tell(to, _message(News("over", str(error), name, failed=True), Path(name)))
        raise
    code = 0
    for each in news(path):
        answer = _answer(path.parent, each) if each.kind == "over" else {}
        if not _tell(to, {**_message(each, path.parent), **answer}):
            code = 1
    return code


def _message(news: News, study: Path) -> dict[str, JSON]:
    return {
        "schema": 1,
        "kind": news.kind,
        "text": f"{socket.gethostname()}: {news.run}: {news.text}",
        "study": study.name,
        "run": news.run,
        "host": socket.gethostname(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "failed": news.failed,
    }


def _answer(study: Path, end: News) -> dict[str, JSON]:
    """The verdicts of a study that is over, or the figures of its only run."""
    from gpuwatch.analysis.study.read import read_study
    from gpuwatch.report.document.answer import UNAVAILABLE, top
    from gpuwatch.report.document.blocks import Sentence
    from gpuwatch.report.document.sessions import machine_figures

    result = read_study(study)
    told = top(result)
    verdicts: list[JSON] = [
        f"{each.word} {each.text}".strip() for each in told.answer if isinstance(each, Sentence)
    ]
    figures = [
        {"name": each.name, "value": each.value, "how": each.note}
        for each in told.figures
        if each.value != UNAVAILABLE
    ]
    runs, title, over = result.sessions, told.title, end.text
    if len(runs) > 1:
        known = [(at, run.seconds or 0) for run in runs if (at := run.started_unix) is not None]
        first_start = min((start for start, _ in known), default=0.0)
        seconds = max((start + took for start, took in known), default=0.0) - first_start
        over = f"the study is over after {clock_time(seconds)}, {len(runs)} runs"
    elif runs:
        title = runs[0].given.name or title
        if runs[0].workload.get("kind") == "machine":
            figures = machine_figures(runs[0])
    first = [f"{each['name']} {each['value']}" for each in figures[:2]]
    text = "; ".join([over, *(str(each).rstrip(".") for each in verdicts), *first])
    text = ": ".join(dict.fromkeys((socket.gethostname(), title, text)))
    return {"text": text, "verdicts": verdicts, "figures": list(figures)}


def _tell(to: str, message: dict[str, JSON]) -> bool:
    """Tell, or say why that failed; the reason never names the address."""
    body, text = json.dumps(message), str(message["text"])
    for again in range(_TRIES):
        if again:
            time.sleep(2.0**again)
        if not to.startswith(WEB):
            done = subprocess.run(
                ["sh", "-c", to],
                input=body,
                text=True,
                env={**os.environ, "GPUWATCH_TEXT": text},
                check=False,
            )
            if done.returncode:
                say(f"the command to notify ended with exit code {done.returncode}: {text}")
            return not done.returncode
        head = {"Content-Type": "application/json"}
        try:
            with request.urlopen(  # noqa: S310 (checked to be http)
                request.Request(to, body.encode(), head, method="POST"),  # noqa: S310
                timeout=_PATIENCE_SECONDS,
            ):
                return True
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or type(error).__name__
    say(f"the address to notify does not answer ({why}): {text}")
    return False
