"""A study's plan as a pod records it: its container is the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from gpuwatch.core.models import Environment, mapping
from gpuwatch.places.base import Refused
from gpuwatch.places.kubernetes.manifest import Turn
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study import plan_file
from gpuwatch.session.study.outcomes import done
from gpuwatch.session.study.plan import Part, Plan, PlannedRun, unique

_LARGEST = 900_000
"""Bytes of a plan: a ConfigMap has at most 1 MiB."""
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,197}[a-z0-9])?")
"""The name of a node. A session keeps 200 characters of it, so that one as long may be cut."""


def images(parts: Sequence[Part], chosen: str | None) -> tuple[str, ...]:
    """The images of the study's environments, each once; ``chosen`` is that of bare ones.

    Raises:
        Refused: one has no image, or is not one that a pod gives.
    """
    environments = [environment for part in parts for environment in part.environments]
    return unique(_image(environment, chosen) for environment in environments)


def turns(
    plan: Plan,
    runs: Sequence[PlannedRun],
    attempt: str,
    chosen: str | None,
    *,
    rested: bool = True,
) -> tuple[Turn, ...]:
    """What the containers of a pod do to record these runs, in their order: runs of the same image
    that follow each other are one container's. ``rested``: there is no rest before the first.

    Raises:
        Refused: as of :func:`images`.
    """
    found: list[Turn] = []
    for image, group in groupby(runs, lambda run: _image(run.environment, chosen)):
        ours = list(group)
        # A recorder does nothing for an attempt that was begun before.
        own = sha256(f"{attempt} {len(found)}".encode()).hexdigest()[: len(attempt)]
        words = ("--attempt", own, "--runs", ",".join(str(run.index) for run in ours))
        rest = plan.parts[ours[0].part].cool_down if found or not rested else 0.0
        found.append(Turn(image, words, rest))
    return tuple(found)


def node_of_block(folder: Path, plan: Plan, run: PlannedRun) -> str | None:
    """The node on which the first run of this run's block is done, as its session in ``folder``
    says; ``None``: no run of the block is, or that is not known."""
    block = [each for each in plan.runs if (each.part, each.block) == (run.part, run.block)]
    for path in (folder / each.file for each in block):
        if done(path):
            with SessionReader(path) as reader:
                node = str(mapping(reader.facts().get("host")).get("job.node"))
            return node if _NODE.fullmatch(node) else None
    return None


def _image(environment: Environment, chosen: str | None) -> str:
    """The image that an environment names, or ``chosen`` for a bare one.

    Raises:
        Refused: no pod gives such an environment.
    """
    if environment.kind == "bare":
        if chosen is None:
            raise Refused(
                "a pod needs an image",
                "name one with Python 3.10: --on kubernetes,image=IMAGE, or --env docker=IMAGE",
            )
        return chosen
    if environment.kind != "docker" or environment.image is None:
        raise Refused(
            f"{environment.label} does not run in a pod, which is a container itself",
            "write --env bare with --on kubernetes,image=IMAGE, or --env docker=IMAGE",
        )
    for name, given in (
        ("mount", environment.mounts),
        ("shm", environment.shm_bytes),
        ("memory", environment.memory_bytes),
        ("network", environment.network),
    ):
        if given:
            raise Refused(
                f"{name}= of {environment.label} is not passed on to a pod",
                "leave it out; --on kubernetes,memory=AMOUNT limits the pod",
            )
    return environment.image


def text(plan: Plan) -> str:
    """The plan as the recorder in the pod reads it: the image's environment is bare there.

    Raises:
        Refused: it is too large.
    """
    parts = tuple(
        replace(part, environments=tuple(map(_inside, part.environments))) for part in plan.parts
    )
    runs = tuple(replace(run, environment=_inside(run.environment)) for run in plan.runs)
    found = json.dumps(plan_file.document(replace(plan, parts=parts, runs=runs, problems={})))
    if len(found) > _LARGEST:
        raise Refused(f"the plan has {len(found)} bytes, too many", "start smaller studies")
    return found


def _inside(environment: Environment) -> Environment:
    return replace(environment, kind="bare", image=None, pull=False)
