"""Reading text as if it were a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.profiles.files import Profile, load

SAMPLES = Path(__file__).parent.parent / "data" / "profiles"


@pytest.fixture
def samples() -> Path:
    """The folder of the sample files."""
    return SAMPLES


def loaded(folder: Path, text: str, name: str = "profile.csv") -> Profile:
    """What a file with this text holds."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return load(path)
