"""The batch script of a job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.places import shell
from gpuwatch.places.slurm.options import Options
from gpuwatch.session.placement import CAPSULE, JOB_LOG

_LONGEST_NAME = 100
_LIMITS = """\
told="$(squeue --noheader --jobs="$SLURM_JOB_ID" --format='%l %b' 2>/dev/null)"
export GPUWATCH_TIME_LIMIT="${told%% *}" GPUWATCH_GRES="${told#* }"
"""
"""Tells the recorder the job's limits: Slurm has no variables for them."""


def batch(options: Options, folder: Path, working: Path, attempt: str) -> str:
    """The script that becomes the recorder of the study in ``folder``; it runs in ``working``.
    Slurm itself runs a job in ``/tmp`` if its folder is not there.

    It ends with ``exec``: Slurm's signals then reach the recorder itself, which closes its sessions
    and lets workloads save.
    """
    study = shlex.quote(str(folder))
    one_block = " --one-block" if options.job_per_block else ""
    return f"""\
#!/bin/bash
umask 077
{_LIMITS}{_setup(options.setup) if options.setup is not None else ""}
cd -- {shlex.quote(str(working))} || exit
{shell.python(options.python)}
exec "$py" {study}/{CAPSULE} start-plan {study} --attempt {attempt}{one_block}
"""


def watching(options: Options, capsule: Path, arguments: Sequence[str]) -> str:
    """The script of a step that runs gpuwatch for as long as somebody holds its standard input,
    which is for gpuwatch alone."""
    return f"""\
umask 077
exec 3<&0 </dev/null
{_LIMITS}{_setup(options.setup) if options.setup is not None else ""}
cd / || exit
{shell.python(options.python)}
exec "$py" {shlex.quote(str(capsule))} {shlex.join(arguments)} <&3 3<&-
"""


def logged(text: str, folder: Path) -> str:
    """The script ``text``, which writes what it prints to the log itself: so it goes on when the
    ``srun`` that started it is gone."""
    return f"exec >>{shlex.quote(str(folder / JOB_LOG))} 2>&1\n{text}"


def _setup(path: Path) -> str:
    """Reads the user's file, and tells the recorder its SHA-256."""
    name = shlex.quote(str(path))
    return f"""\
GPUWATCH_SETUP="$(sha256sum <{name})" || exit
export GPUWATCH_SETUP="${{GPUWATCH_SETUP%% *}}"
. {name}"""


def name(folder: Path, attempt: str) -> str:
    """Of a job: squeue shows its begin, which tells the study; the end is its own alone."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', folder.name)[:_LONGEST_NAME]}-{attempt}"


def arguments(options: Options, folder: Path, attempt: str) -> list[str]:
    """The command that submits it, with the script on standard input."""
    return [
        *("sbatch", "--parsable", "--no-requeue", "--export=ALL"),
        f"--signal=B:TERM@{options.notice}",
        f"--job-name={name(folder, attempt)}",
        # Slurm would replace `%j` by the job's id.
        *("--open-mode=append", "--output=" + str(folder / JOB_LOG).replace("%", "%%")),
        *options.words,
    ]
