"""Runs once more, alone, what failed in the gate: ``make test-again``.

With ``GATE`` set, a tier whose tests failed does not end the gate at once (see the Makefile), and
pytest keeps their names. At most three may pass now: they are printed as ``unstable: NAME``. The
gate fails with more, with one that fails again, and where a tier failed without naming a test.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FAILED = Path("build/failed-tiers")  # written by the Makefile
NAMES = Path(".pytest_cache/v/cache/lastfailed")
AT_MOST = 3


def main() -> int:
    if not FAILED.exists():
        return 0
    failed = sorted(json.loads(NAMES.read_text())) if NAMES.exists() else []
    if not 0 < len(failed) <= AT_MOST:
        print(f"{len(failed)} failed; only up to {AT_MOST} are tried again", *failed, sep="\n")
        return 1
    if code := pytest.main(["-n", "0", *failed]):
        return int(code)
    for name in failed:
        print(f"unstable: {name}")
    return 0


sys.exit(main())
