"""Images are fetched when that was asked for, and what it cost is in the session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import docker
import pytest

from gpuwatch.runners.docker import images

from .conftest import Lab

pytestmark = pytest.mark.docker


@pytest.fixture
def pushed(registry: str, small_image: str) -> Iterator[str]:
    """The name of an image that only the registry has."""
    name = f"{registry}/small"
    with contextlib.closing(docker.from_env()) as client:
        client.api.tag(small_image, name, "v1")
        client.images.push(name, tag="v1")
        client.images.remove(f"{name}:v1")
        yield f"{name}:v1"
        # By reference: it may be the very image that other tests use by another name.
        for found in client.images.list():
            for reference in [*found.tags, *found.attrs["RepoDigests"]]:
                if reference.startswith((f"{name}:", f"{name}@")):
                    with contextlib.suppress(docker.errors.ImageNotFound):
                        client.images.remove(reference)


def test_a_pull_is_timed_and_the_digest_noted(lab: Lab, pushed: str) -> None:
    lab.image = pushed
    lab.cli(*lab.arguments("true"), code=3)
    done = lab.cli("--pull", *lab.arguments("true"))
    environment = lab.seen().meta["environment"]
    assert f"pulled {pushed} in" in done.stderr
    assert environment["image_pull_seconds"] > 0
    digest = environment["image_digest"]
    assert digest.startswith("sha256:") and digest != environment["image_id"]
    # Later runs find it and know what it once cost; the same image by its digest is the same.
    lab.image = f"{pushed.rpartition(':')[0]}@{digest}"
    again = lab.record("true").meta["environment"]
    assert again["image_id"] == environment["image_id"]
    assert again["image_pull_seconds"] == environment["image_pull_seconds"]


def test_an_image_by_digest_is_pulled(lab: Lab, pushed: str) -> None:
    with contextlib.closing(docker.from_env()) as client:
        name = pushed.rpartition(":")[0]
        digest = client.images.get_registry_data(pushed).id
    lab.image = f"{name}@{digest}"
    lab.cli("--pull", *lab.arguments("true"))
    assert lab.seen().meta["environment"]["image_digest"] == digest


def test_a_pull_that_fails_says_why(lab: Lab, registry: str) -> None:
    lab.image = f"{registry}/no-such-image"
    done = lab.cli("--pull", *lab.arguments("true"), code=3)
    assert f"{registry}/no-such-image could not be pulled: " in done.stderr
    lab.image = "127.0.0.1:9/no/registry:there"
    done = lab.cli("--pull", *lab.arguments("true"), code=3)
    assert "connection refused" in done.stderr and "Traceback" not in done.stderr


def test_the_digest_is_that_of_the_registry_that_was_named() -> None:
    found = {
        "Id": "sha256:1",
        "RepoDigests": ["one.example/a@sha256:aa", "two.example/a@sha256:bb"],
    }
    assert images.facts("two.example/a:1", found)["image_digest"] == "sha256:bb"
    assert images.facts("a", found)["image_digest"] == "sha256:aa"
    assert images.facts("a", {"Id": "sha256:1"})["image_digest"] is None
