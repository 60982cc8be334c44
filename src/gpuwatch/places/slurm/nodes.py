"""What Slurm tells of its partitions, and whether the disk here is one that its nodes may share.
What nodes have besides is not known before a job runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean, shell
from gpuwatch.places.base import Description
from gpuwatch.places.slurm import commands

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
    """``up``, ``down``, ``drain`` or ``inactive``: whether the partition takes and starts jobs."""
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


def described(clusters: Sequence[str], ask: Sequence[str]) -> Description:
    """The cluster's partitions; ``ask``: the words before a command that runs it on a node.

    Raises:
        NotAvailable: Slurm cannot be asked.
    """
    answer = commands.run(["sinfo", "--noheader", *clusters, f"--format={_FORMAT}"])
    if answer.code != 0:
        raise NotAvailable(f"sinfo: {answer.problem}", commands.HINT_AWAY)
    found = parse(answer.output)
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
    partitions = [asdict(nodes) for nodes in found]
    return Description(tuple(lines), {"version": version, "disk": disk, "partitions": partitions})


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
    """What is not told, and how to ask."""
    asked = " ".join(map(shell, [*ask, "sh", "-c", "python3 -V; nvidia-smi -L"]))
    return f"nodes       their Python, torch and GPUs are not known before a job runs; ask: {asked}"


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
