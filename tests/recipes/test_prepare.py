"""What a base must have is told by what runs in it: ``recipes/prepare.py``.

It runs in a container alone, where there is no network and no pip: on the machine itself it could
install packages into the tests' own environment.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import docker
import pytest
from docker.errors import ContainerError

from gpuwatch.runners.image_records import recipes
from tests.engines.root import PREFIX, VERSION

pytestmark = pytest.mark.docker


def prepare(image: str, folder: Path, **packages: str) -> str:
    """Run it where these packages, each a file with its text, are; returns what it printed.

    Raises:
        ContainerError: it failed; ``stderr`` is what it said.
    """
    for name, text in packages.items():
        (folder / f"{name}.py").write_text(text)
    site = f"/{PREFIX}/lib/{VERSION}/site-packages"
    with contextlib.closing(docker.from_env()) as client:
        told: bytes = client.containers.run(
            image,
            ["python3", "/prepare.py"],
            volumes={
                str(recipes() / "prepare.py"): {"bind": "/prepare.py", "mode": "ro"},
                str(folder): {"bind": site, "mode": "rw"},
            },
            network_mode="none",
            remove=True,
        )
    return told.decode()


def test_a_base_that_has_both_is_compiled(small_image: str, tmp_path: Path) -> None:
    told = prepare(
        small_image, tmp_path, torch="__version__ = '2.6'", torchvision="__version__ = '0.21'"
    )
    assert "torch 2.6, torchvision 0.21; byte-compiled in" in told
    assert len(list((tmp_path / "__pycache__").iterdir())) == 2


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        ({}, "has no torch; choose a base with it"),
        ({"torch": "import cudart"}, "torch cannot be imported: No module named 'cudart'"),
        (
            {"torch": "__version__ = '2.6'", "torchvision": "raise RuntimeError('for torch 2.5')"},
            "torchvision cannot be imported: for torch 2.5",
        ),
        ({"torch": "__version__ = '2.6'"}, "no torchvision for torch 2.6 could be installed"),
    ],
)
def test_a_base_that_cannot_do_says_what_it_lacks(
    packages: dict[str, str], told: str, small_image: str, tmp_path: Path
) -> None:
    with pytest.raises(ContainerError) as failure:
        prepare(small_image, tmp_path, **packages)
    assert failure.value.exit_status == 1
    assert told in str(failure.value)
