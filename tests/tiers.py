"""Which tests ``make test`` leaves to ``make test-all``, told from what each test uses.

A test that asks for one of these fixtures, itself or through another one, or that bears one of
these marks, needs more than Python: it gets the mark ``system``. ``make test`` runs the others;
``make test-all`` runs all of them.
"""

from __future__ import annotations

import pytest

FIXTURES = {
    "cli": "starts gpuwatch as a process",
    "programs": "starts programs of its own: workloads, terminals, engines",
    "fake": "starts a stand-in of gpuwatch's commands as a process, again and again",
    "browser": "a real browser",
    "small_root": "a root file system, and engines that run it",
    "small_image": "Docker",
    "torch_root": "torch in a root file system",
    "torch_image": "Docker, with torch",
    "docker_daemon": "a Docker daemon of its own",
    "sshd": "an SSH server, and users that log in there",
    "registry": "a registry of images",
    "run_workload": "a workload in a process of its own",
    "every_size": "a screen in every size, theme or terminal",
    "long_recording": "a recording of hours, or many thousand lines of output",
    "simulations": "hundreds of simulated studies",
}
MARKS = {"torch", "docker", "apptainer", "charliecloud", "ssh", "slurm", "kubernetes"}


def is_system(item: pytest.Item) -> bool:
    """Whether a test is for ``make test-all`` only."""
    names = set(getattr(item, "fixturenames", ()))
    marks = {mark.name for mark in item.iter_markers()}
    return bool(names & FIXTURES.keys() or marks & MARKS)


@pytest.fixture
def programs() -> None:
    """For tests that start programs without ``cli``."""


@pytest.fixture
def every_size() -> None:
    """For tests that draw a screen in many sizes, themes or terminals."""


@pytest.fixture
def long_recording() -> None:
    """For tests that make or read a recording of hours."""


@pytest.fixture
def simulations() -> None:
    """For tests that simulate many studies."""
