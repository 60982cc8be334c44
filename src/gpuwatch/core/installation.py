"""Commands that install packages for this copy of gpuwatch, and that update the copy itself."""

from __future__ import annotations

import json
import sys
from urllib.parse import unquote, urlsplit

from gpuwatch.core.models import mapping
from gpuwatch.core.text import shell

DISTRIBUTION = "gpuwatch-tui"
"""The name on PyPI, where ``gpuwatch`` is another project's."""


def install_command(*packages: str) -> str:
    """Install packages for the interpreter that runs this."""
    return _pip("install", *packages)


def broken_package_hint(package: str) -> str:
    """How to update or remove a package of which a part cannot be loaded."""
    if package == DISTRIBUTION:
        return f"update gpuwatch: {update_command()}"
    update, remove = install_command("--upgrade", package), _pip("uninstall", package)
    return f"update or remove the package: {update}, or {remove}"


def _pip(*words: str) -> str:
    return " ".join(map(shell, (sys.executable, "-m", "pip", *words)))


def update_command() -> str:
    """Update this copy from where it was installed (PEP 610, ``direct_url.json``)."""
    origin = _origin()
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        vcs = mapping(origin["vcs_info"]).get("vcs")
        return install_command("--force-reinstall", f"{DISTRIBUTION} @ {vcs}+{url}")
    if "archive_info" in origin:
        return install_command("--force-reinstall", url)
    if "dir_info" in origin:
        folder = unquote(urlsplit(url).path)
        pull = f"git -C {shell(folder)} pull"
        if mapping(origin["dir_info"]).get("editable"):
            return pull
        return f"{pull} && {install_command(folder)}"
    return install_command("--upgrade", DISTRIBUTION)


def _origin() -> dict[str, object]:
    """Empty where it came from a package index, or was not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution(DISTRIBUTION).read_text("direct_url.json")
        return dict(mapping(json.loads(text or "{}")))
    except (PackageNotFoundError, ValueError):
        return {}
