"""The tests of ``landing.toml``: ``python -m tests.landing`` prints their names, one in a line."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROMISES: dict[str, dict[str, float]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text()
)
SECONDS = {
    f"tests/{name}": seconds for tests in PROMISES.values() for name, seconds in tests.items()
}


def is_landing(name: str) -> bool:
    """Whether a test by its full name, with its parameters or without, is among them."""
    file, _, _ = name.partition("::")
    return bool({name, name.partition("[")[0], file} & SECONDS.keys())


if __name__ == "__main__":
    print(*SECONDS, sep="\n")
