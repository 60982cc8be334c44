"""A registry of images on loopback, which Docker accepts without TLS."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.ports import free_port

PROGRAM = shutil.which("docker-registry") or shutil.which("registry")
PATIENCE = 120.0


class Registry:
    """``docker-registry`` with its storage in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        (folder / "config.yml").write_text(
            "version: 0.1\n"
            "log: {level: warn}\n"
            f"storage: {{filesystem: {{rootdirectory: {folder / 'storage'}}}}}\n"
            f"http: {{addr: '{self.address}'}}\n"
        )
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [PROGRAM or "docker-registry", "serve", str(folder / "config.yml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait(self) -> None:
        """Return when it answers."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5):
                    return
            except (urllib.error.URLError, OSError) as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    told = self._log.read_text(errors="replace")[-1000:]
                    raise RuntimeError(f"the registry does not answer: {told}") from error
                time.sleep(0.05)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
