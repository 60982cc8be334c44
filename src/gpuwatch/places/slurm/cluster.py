"""What every place of Slurm has: its commands run here, and the nodes share the study's folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.key_values import parse as key_values
from gpuwatch.core.models import mapping
from gpuwatch.places.base import STUDY, Job, Place, PlaceSpec
from gpuwatch.places.slurm import commands, options
from gpuwatch.session.reading.reader import known_meta
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.study.study_folder import sessions_in

LOGIN = "start it on a host that has Slurm's commands, such as the cluster's login node"


class Cluster(Place):
    """A cluster that is reached with Slurm's own commands."""

    shares_files = True
    takes_folder = False
    needed: tuple[str, ...]
    """The commands without which there is no such place."""

    def __init__(self, spec: PlaceSpec, capsule: Path) -> None:
        """``capsule``: gpuwatch as one file.

        Raises:
            UsageError: an option is reserved or misspelt, or cannot stand beside another.
        """
        self._options = options.parse(spec)
        named = self._options.clusters
        self._clusters = [] if named is None else [f"--clusters={named}"]
        self._capsule = capsule

    def exact(self, text: str) -> str:
        """``text`` with the whole path of its ``setup=FILE``."""
        whole = f'setup="{self._options.setup}"'
        return ",".join(whole if each.key == "setup" else each.text for each in key_values(text))

    def connect(self, *, person: bool) -> None:
        """See that Slurm's commands are here.

        Raises:
            NotAvailable: one is missing.
        """
        missing = [name for name in self.needed if shutil.which(name) is None]
        if missing:
            raise NotAvailable(f"{', '.join(missing)} is not here", LOGIN)

    def _queue(self, *asked: str, absent: str | None = None) -> str:
        """What squeue prints; nothing where it says ``absent``.

        Raises:
            NotAvailable: Slurm cannot be asked.
        """
        answer = commands.run(["squeue", "--noheader", *self._clusters, *asked])
        if answer.code != 0 and not (absent and absent in answer.errors):
            raise NotAvailable(f"squeue: {answer.problem}", commands.HINT_AWAY)
        return answer.output

    def _cancel(self, native: str, *options: str) -> None:
        """
        Raises:
            NotAvailable: Slurm cannot be asked.
        """
        answer = commands.run(["scancel", *options, *self._clusters, native])
        if answer.code != 0 and "already comple" not in answer.errors:
            raise NotAvailable(f"scancel: {answer.problem}", f"try it by hand: scancel {native}")

    def open(self, job: Job, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start gpuwatch here: the study's folder is the same."""
        words = [str(job.folder) if word == STUDY else word for word in arguments]
        return subprocess.Popen(
            [sys.executable, str(self._capsule), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def may_still_run(folder: Path) -> str | None:
    """What a session without an end says of its workload, unless that is known to be over."""
    for path in sessions_in(folder):
        meta = known_meta(path) or {}
        holder = process_id(mapping(meta.get("handle")).get("holder"))
        if "result" not in meta and holder is not None and holder.alive() is not False:
            return f"its workload may still run there: PID {holder.pid}"
    return None
