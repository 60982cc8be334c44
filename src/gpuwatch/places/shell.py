"""Pieces of shell scripts that places share."""

from __future__ import annotations

import shlex

NO_PYTHON = 96
"""Exit code of a script that finds no Python."""
_PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(16, 9, -1)), "python")


def python(choice: str | None) -> str:
    """Sets ``py`` to a Python of 3.10 or newer: ``choice``, or the first that is found."""
    names = path(choice) if choice else " ".join(_PYTHONS)
    return f"""\
py= seen=
for each in {names}; do
  command -v "$each" >/dev/null 2>&1 || continue
  if "$each" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
    py=$each
    break
  fi
  seen="$seen${{seen:+, }}$each is $("$each" --version 2>&1 | head -n 1)"
done
if [ -z "$py" ]; then
  echo "${{seen:-there is no $each}}" >&2
  exit {NO_PYTHON}
fi"""


def path(text: str) -> str:
    """A path there as a word for the shell; ``~/`` is the user's home."""
    if text.startswith("~/"):
        return '"$HOME"/' + shlex.quote(text[2:])
    return shlex.quote(text)
