"""``python -m tests.suite [ARGUMENTS]``: pytest, and what failed beside others tried alone.

The tests wait for real processes, terminals and engines on cores that they share: a deadline can
pass there that nothing of ours missed. So a test that failed may show that it passes alone, and
not by luck: three times, one after the other. It is named as unsteady, to be mended. More than five
are a failure at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MOST, TIMES = 5, 3
_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_TESTS_FAILED = 1
"""Of pytest's exit codes the one that is about tests alone."""


def main(arguments: Sequence[str]) -> int:
    """Run in the folder of the tests' configuration; returns pytest's exit code."""
    _FAILED.unlink(missing_ok=True)
    code = _pytest(*arguments)
    failed = sorted(json.loads(_FAILED.read_text())) if _FAILED.exists() else []
    if code != _TESTS_FAILED or not 0 < len(failed) <= MOST:
        return code
    for time in range(1, TIMES + 1):
        print(f"\nalone, {time} of {TIMES}: {len(failed)} that failed beside others", flush=True)
        if code := _pytest("-n0", "-p", "no:cacheprovider", *failed):
            return code
    print(
        "\nunsteady: failed beside others, passed three times alone; to be mended:",
        *failed,
        sep="\n  ",
    )
    return 0


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
