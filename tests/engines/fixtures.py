"""Fixtures around real engines; images and daemons are made when a test first asks for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .daemon import DockerDaemon, import_root, remove_image, why_not_started
from .registry import PROGRAM, Registry
from .root import make_small, make_torch


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a shell, the usual commands and ``python3``; 0.1 GB."""
    return make_small(tmp_path_factory.mktemp("small_root"))


@pytest.fixture(scope="session")
def torch_root(tmp_path_factory: pytest.TempPathFactory, small_root: Path) -> Path:
    """The same with torch and torchvision; hard links: read it, never write to it."""
    pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    return make_torch(tmp_path_factory.mktemp("torch_root"), small_root)


def _image(root: Path, name: str) -> Iterator[str]:
    image = import_root(None, root, f"gpuwatch-test-{name}-{uuid.uuid4().hex[:8]}")
    yield image
    remove_image(None, image)


@pytest.fixture(scope="session")
def small_image(small_root: Path) -> Iterator[str]:
    """The name of a Docker image of ``small_root``, in the daemon that tests use."""
    yield from _image(small_root, "small")


@pytest.fixture(scope="session")
def torch_image(torch_root: Path) -> Iterator[str]:
    """The name of a Docker image of ``torch_root``; half a minute to make."""
    yield from _image(torch_root, "torch")


@pytest.fixture
def docker_daemon() -> Iterator[DockerDaemon]:
    """A Docker daemon of the test's own, running and empty."""
    if reason := why_not_started():
        pytest.skip(reason)
    daemon = DockerDaemon()
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.remove()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``HOST:PORT`` of an empty registry of images on loopback."""
    if PROGRAM is None:
        pytest.skip("docker-registry is not on the PATH; as root: .ci/engines")
    served = Registry(tmp_path_factory.mktemp("registry"))
    try:
        served.wait()
        yield served.address
    finally:
        served.close()
