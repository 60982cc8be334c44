"""What a place says before anything is sent there: ``--plan``, and ``gpuwatch doctor --on``."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict

from gpuwatch.cli.doctor.clock import compared
from gpuwatch.cli.place.sending import check, connected, only_here, warnings
from gpuwatch.cli.say import say
from gpuwatch.core.errors import ExitCode, NotAvailable
from gpuwatch.core.text import clean, document
from gpuwatch.places import capsule
from gpuwatch.places.base import Job
from gpuwatch.places.machines import temporary_folder
from gpuwatch.session.study.plan import Part

JSON_SCHEMA = 1
"""Of what is told of a place itself, in ``docs/json.md``."""


def doctor(text: str, words: Sequence[str], *, as_json: bool) -> int:
    """Run ``gpuwatch doctor WORDS`` at the place ``text`` and print what it prints; returns its
    exit code. ``as_json``: what is told of the place itself is printed as JSON.

    Raises:
        NotAvailable: the place cannot be reached, or gpuwatch cannot run there.
    """
    with temporary_folder() as temporary:
        archive = temporary / "gpuwatch.pyz"
        place = connected(text, archive)
        capsule.build(archive)
        described, problems = place.describe(), place.preflight()
        problems += () if described is None else described.problems
        starts = None if described is None or problems else place.expected_start()
        if described is not None and as_json:
            found = {
                "schema": JSON_SCHEMA,
                "ready": not problems,
                "problems": [asdict(problem) for problem in problems],
                "warnings": [asdict(warning) for warning in only_here(described.images)],
                "starts": starts,
                **described.document,
            }
            print(document(json.dumps(found, indent=2, ensure_ascii=False)))
            return ExitCode.NOT_AVAILABLE if problems else ExitCode.DONE
        if described is not None:
            for told in described.lines:
                print(told)
            for warning in only_here(described.images):
                print(f"image       {warning.text}; {warning.hint}")
        for problem in problems:
            raise NotAvailable(problem.text, problem.hint)
        if starts is not None:
            print(f"start       {_start(text, starts)}")
        if described is not None:
            return ExitCode.DONE
        job = Job(secrets.token_hex(8), "doctor", temporary)
        began = time.time()
        with place.open(job, ["doctor", "--asked-on", text, *words]) as process:
            assert process.stdout is not None
            first = process.stdout.readline(200).decode(errors="replace")
            if not first:
                raise NotAvailable(f"{text} did not start gpuwatch", "run doctor there by hand")
            say(f"on {text}: {compared(first, began)}")
            for line in process.stdout:
                print(clean(line.decode(errors="replace"), 10_000))
        return process.returncode


def outlook(on: str, parts: Sequence[Part], *, whole: bool = False) -> list[str]:
    """What is in the way at the place ``on``, or when a job would start; then what to expect of
    these parts of a study there, with ``whole`` also what would be submitted.

    Raises:
        UsageError: the place is misspelt.
    """
    with temporary_folder() as temporary:
        archive = temporary / "gpuwatch.pyz"
        try:
            place = connected(on, archive)
            capsule.build(archive)
            check(place)
            starts = place.expected_start()
            shown = place.preview(parts)
        except NotAvailable as error:
            return [clean(f"{on}: {error}", 1000)]
    lines = [_start(on, starts), *(f"{on}: {each}" for each in warnings(place, parts, shown))]
    return lines + (shown.objects or "").splitlines() if whole else lines


def _start(on: str, starts: float | None) -> str:
    if starts is None:
        return f"{on} is reached"
    wait = max(0.0, starts - time.time())
    at = time.strftime("%H:%M" if wait < 86400 else "%Y-%m-%d %H:%M", time.localtime(starts))
    return f"{on} would start a job at {at}, by what runs there now"
