"""Progress lines of programs that print no step lines: one module per program.

Other packages add theirs by an entry point of the group ``gpuwatch.progress_lines`` that names an
object with the members of `base.ProgressLines`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

from gpuwatch.recorder.progress.base import ProgressLines

GROUP = "gpuwatch.progress_lines"

OWN = {
    "pytorch-imagenet": "gpuwatch.recorder.progress.imagenet",
    "torchtitan": "gpuwatch.recorder.progress.torchtitan",
    "nanogpt": "gpuwatch.recorder.progress.nanogpt",
    "transformers": "gpuwatch.recorder.progress.transformers",
}
"""Built-in formats by name. Other packages cannot replace them."""


def formats() -> Iterator[tuple[str, ProgressLines]]:
    """Every format by name, the built-in ones first. A package that cannot be loaded is left out.

    It reads the metadata of all packages: some tens of milliseconds.
    """
    from importlib.metadata import entry_points

    for name, module in OWN.items():
        yield name, import_module(module).FORMAT
    for entry in entry_points(group=GROUP):
        if entry.name not in OWN:
            with suppress(Exception, SystemExit):
                yield entry.name, entry.load()
