"""What Slurm tells of its partitions, and whether the disk here is one that its nodes may share.
What nodes have besides is not known before a job runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import Problem
from gpuwatch.core.text import clean, shell
from gpuwatch.places.base import Description
from gpuwatch.places.slurm import commands, options

_FORMAT = "%R|%P|%a|%l|%D|%T|%c|%m|%G"
_LONGEST = 200
_OF_SEVERAL_HOSTS = frozenset(
    {
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "afs", "pvfs2"),
        *("wekafs", "panfs", "gfs2", "ocfs2", "glusterfs", "fuse.glusterfs", "fuse.ceph", "9p"),
    }
)
"""File systems that are there to be shared."""


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are in the same state, in Slurm's words: ``4+`` is 4 or more."""

    partition: str
    default: bool
    availability: str
    """``up``, ``down``, ``drain`` or ``inact``: whether the partition takes and starts jobs."""
    time_limit: str
    nodes: str
    state: str
    """``idle``, ``mixed``, ``down*`` ..."""
    cpus: str
    memory_mib: str
    gres: str | None
    """Generic resources of each, such as ``gpu:h100:4``."""

    @property
    def line(self) -> str:
        """For people."""
        name = f"{self.partition} (default)" if self.default else self.partition
        nodes = f"{self.nodes} {'node' if self.nodes == '1' else 'nodes'} {self.state}"
        gres = f"gres {self.gres}" if self.gres else "no gres"
        each = f"each {self.cpus} CPUs, {self.memory_mib} MiB, {gres}"
        limit = f"time limit {self.time_limit}"
        return f"partition   {name}, {self.availability}, {limit}: {nodes}, {each}"


def partitions(clusters: Sequence[str]) -> list[Nodes]:
    """The nodes of the cluster's partitions.

    Raises:
        NotAvailable: Slurm cannot be asked.
    """
    answer = commands.run(["sinfo", "--noheader", *clusters, f"--format={_FORMAT}"])
    if answer.code != 0:
        raise NotAvailable(f"sinfo: {answer.problem}", commands.HINT_AWAY)
    return parse(answer.output)


def obstacles(found: Sequence[Nodes], named: str | None, limit: int | None) -> list[Problem]:
    """That a job of at most ``limit`` seconds would wait, or is not taken, where none of the
    partitions that it may run in is up or lets one run for so long: those ``named``, else the
    default. Slurm takes it all the same, and tells when it would start."""
    names = None if named is None else named.split(",")
    own = [each for each in found if (each.default if names is None else each.partition in names)]
    if up := [each for each in own if each.availability == "up"]:
        longest = max(up, key=lambda each: options.seconds(each.time_limit) or math.inf)
        most = options.seconds(longest.time_limit)
        if limit is None or most is None or limit <= most:
            return []
        text = f"partition {longest.partition} has a time limit of {longest.time_limit}"
        hint = f"ask for no more: time={longest.time_limit}"
        return [Problem("slurm-time", f"{text}: a job of a longer one would wait for ever", hint)]
    if not own:
        return []
    told = " and ".join(dict.fromkeys(f"{each.partition} is {each.availability}" for each in own))
    waits = any(each.availability == "down" for each in own)
    text = f"partition {told}: {'a job would wait' if waits else 'takes no jobs'}"
    return [Problem("slurm-partition", text, "sinfo lists the others")]


def described(
    found: Sequence[Nodes], ask: Sequence[str], problems: Sequence[Problem]
) -> Description:
    """The cluster's partitions, as ``found``; ``ask``: the words before a command that runs it on a
    node; ``problems``: the :func:`obstacles`."""
    version = clean(commands.run(["sinfo", "--version"]).output, _LONGEST)
    folder = paths.data_home()
    kind = file_system(folder, Path("/proc/self/mountinfo").read_text(errors="replace"))
    shared = True if kind in _OF_SEVERAL_HOSTS else None
    known = (
        "which hosts share: nodes need it under the same path"
        if shared
        else "which nodes share only if this host serves it; else use one that they do: --out DIR"
    )
    lines = [f"cluster     {version}", *(nodes.line for nodes in found), unknown(ask)]
    lines.insert(1, f"disk        {shell(str(folder))} is on {kind or 'an unknown disk'}, {known}")
    disk = {"folder": str(folder), "file_system": kind, "shared": shared}
    document = {"version": version, "disk": disk, "partitions": [asdict(each) for each in found]}
    return Description(tuple(lines), document, problems=tuple(problems))


def file_system(folder: Path, mounts: str) -> str | None:
    """The kind of file system that ``folder`` is on, or will be: ``nfs4``; ``None``: not told.

    ``mounts``: what ``/proc/self/mountinfo`` says.
    """
    kinds = {}
    for line in mounts.splitlines():
        mounted, _, source = line.partition(" - ")
        if len(words := mounted.split()) > 4 and source:
            kinds[words[4].replace("\\040", " ")] = clean(source.split()[0], 40)
    real = folder.resolve()
    return next((kinds[str(each)] for each in (real, *real.parents) if str(each) in kinds), None)


def unknown(ask: Sequence[str]) -> str:
    """What is not told, and how to ask, where Slurm would take what ``ask`` begins with."""
    told = "nodes       their Python, torch and GPUs are not known before a job runs"
    words = [*ask, "sh", "-c", "python3 -V; nvidia-smi -L"]
    return f"{told}; ask: {' '.join(map(shell, words))}" if ask else told


def parse(output: str) -> list[Nodes]:
    """What sinfo printed."""
    found = []
    for line in output.splitlines():
        words = clean(line, _LONGEST).split("|")
        if len(words) == _FORMAT.count("|") + 1:  # another one names the cluster
            name, marked, up, limit, count, state, cpus, memory, gres = words
            known, default = None if gres == "(null)" else gres, marked.endswith("*")
            found.append(Nodes(name, default, up, limit, count, state, cpus, memory, known))
    return found
