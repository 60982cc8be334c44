"""Docker daemons for tests, and images made of folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import docker
from docker.errors import DockerException

PATIENCE = 120.0


def import_root(host: str | None, root: Path, name: str) -> str:
    """Make an image of a root file system, in the daemon at ``host``; returns ``name:latest``."""
    client = docker.DockerClient(base_url=host) if host else docker.from_env(timeout=600)
    with contextlib.closing(client):
        packing = subprocess.Popen(
            ["tar", "--create", "--numeric-owner", "--hard-dereference", "-C", str(root), "."],
            stdout=subprocess.PIPE,
        )
        assert packing.stdout is not None
        with packing.stdout:
            client.api.import_image_from_stream(packing.stdout, repository=name, tag="latest")
        # 1: a file changed meanwhile, as one does that somebody else links to.
        assert packing.wait() in (0, 1)
        return client.images.get(f"{name}:latest").tags[0]


def remove_image(host: str | None, name: str) -> None:
    """Remove an image, what still uses it, and what builds on it left in the cache. Best effort."""
    with contextlib.suppress(DockerException):
        client = docker.DockerClient(base_url=host) if host else docker.from_env(timeout=600)
        with contextlib.closing(client):
            for container in client.containers.list(
                all=True, ignore_removed=True, filters={"ancestor": name}
            ):
                container.remove(force=True)
            # Children first: while they are there, Docker keeps their parent, untagged.
            for identifier in (*reversed(_built_on(client, name)), name):
                with contextlib.suppress(DockerException):
                    client.images.remove(identifier, force=True)


def _built_on(client: docker.DockerClient, name: str) -> list[str]:
    """The images that have this one below them, parents first."""
    children: dict[str, list[str]] = {}
    for image in client.api.images(all=True):
        children.setdefault(image["ParentId"], []).append(image["Id"])
    found = list(children.get(client.images.get(name).id, ()))
    for each in found:
        found.extend(children.get(each, ()))
    return found


class DockerDaemon:
    """A ``dockerd`` of the test's own: may be killed, and started again on what it left.

    Containers live on while it is dead (``live-restore``). It has no network but ``host`` and
    ``none``, so that it changes nothing of the machine.
    """

    def __init__(self) -> None:
        # Paths of Unix sockets have at most 107 bytes, and containerd's lie deep below this.
        self._folder = Path(tempfile.mkdtemp(prefix="gw", dir="/tmp"))
        self.socket = self._folder / "docker.sock"
        self.host = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        folder = self._folder
        (folder / "docker.pid").unlink(missing_ok=True)
        with (folder / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "dockerd",
                    *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
                    *("--pidfile", str(folder / "docker.pid"), "-H", self.host),
                    *("--iptables=false", "--bridge=none", "--live-restore"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                told = (folder / "dockerd.log").read_text(errors="replace").splitlines()
                raise RuntimeError("\n".join(["dockerd did not start:", *told[-10:]]))
            time.sleep(0.05)

    def client(self) -> docker.DockerClient:
        """A client of this daemon, for the caller to close."""
        return docker.DockerClient(base_url=self.host)

    def answers(self) -> bool:
        try:
            with contextlib.closing(docker.APIClient(base_url=self.host, timeout=5)) as api:
                return bool(api.ping())
        except (DockerException, OSError):
            return False

    def import_root(self, root: Path) -> str:
        """Make an image of a folder in this daemon; returns its name."""
        return import_root(self.host, root, f"gpuwatch-test-{uuid.uuid4().hex[:8]}")

    def kill(self) -> None:
        """SIGKILL the daemon; its containerd dies with it, its containers live on."""
        containerd = (self._folder / "exec/containerd/containerd.pid").read_text().strip()
        self._end(signal.SIGKILL)
        # A daemon that is started before that one is gone would wait 15 s for it, then give up.
        deadline = time.monotonic() + PATIENCE
        while Path(f"/proc/{containerd}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def stop(self) -> None:
        """End the daemon as a restart of the service does; containers live on."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
            self.process = None

    def remove(self) -> None:
        """End everything that it started and remove its folders; a second call does nothing."""
        if not self._folder.exists():
            return
        if self.process is None or self.process.poll() is not None:
            self.process = None
            self.start()
        with contextlib.closing(self.client()) as client:
            for container in client.containers.list(all=True, ignore_removed=True):
                container.remove(force=True)
        self.stop()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            place = line.split()[1]
            if Path(place).is_relative_to(self._folder):
                subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(self._folder, ignore_errors=True)


def why_not_started() -> str | None:
    """Why no daemon can be started here; ``None``: one can."""
    if os.geteuid() != 0:
        return "a Docker daemon of the test's own needs root"
    if shutil.which("dockerd") is None:
        return "dockerd is not on the PATH"
    return None
