"""What Slurm tells of its partitions. What nodes have besides is not known before a job runs."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean, shell
from gpuwatch.places.base import Description
from gpuwatch.places.slurm import commands

_FORMAT = "%R|%P|%a|%l|%D|%T|%c|%m|%G"
_LONGEST = 200


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are in the same state, in Slurm's words: ``4+`` is 4 or more."""

    partition: str
    default: bool
    up: str
    """``up``, ``down``, ``drain`` or ``inactive``: whether it takes and starts jobs."""
    time_limit: str
    count: str
    state: str
    """``idle``, ``mixed``, ``down*`` ..."""
    cpus: str
    memory: str
    """MiB."""
    gres: str | None
    """Generic resources of each, such as ``gpu:h100:4``."""

    @property
    def line(self) -> str:
        """For people."""
        name = f"{self.partition} (default)" if self.default else self.partition
        gres = f"gres {self.gres}" if self.gres else "no gres"
        each = f"each {self.cpus} CPUs, {self.memory} MiB, {gres}"
        nodes = f"{self.count} {'node' if self.count == '1' else 'nodes'} {self.state}"
        return f"partition   {name}, {self.up}, time limit {self.time_limit}: {nodes}, {each}"

    @property
    def document(self) -> dict[str, JSON]:
        """The same by key."""
        return {
            "partition": self.partition,
            "default": self.default,
            "availability": self.up,
            "time_limit": self.time_limit,
            "nodes": self.count,
            "state": self.state,
            "cpus": self.cpus,
            "memory_mib": self.memory,
            "gres": self.gres,
        }


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
    lines = [f"cluster     {version}", *(nodes.line for nodes in found), unknown(ask)]
    partitions = [nodes.document for nodes in found]
    return Description(tuple(lines), {"version": version, "partitions": partitions})


def unknown(ask: Sequence[str]) -> str:
    """What is not told, and how to ask."""
    asked = " ".join(map(shell, [*ask, "gpuwatch", "doctor"]))
    return f"nodes       their Python, torch and GPUs are not known before a job runs; ask: {asked}"


def parse(output: str) -> list[Nodes]:
    """What sinfo printed."""
    found = []
    for line in output.splitlines():
        name, marked, up, limit, count, state, cpus, memory, gres = clean(line, _LONGEST).split("|")
        known = None if gres == "(null)" else gres
        default = marked.endswith("*")
        found.append(Nodes(name, default, up, limit, count, state, cpus, memory, known))
    return found
