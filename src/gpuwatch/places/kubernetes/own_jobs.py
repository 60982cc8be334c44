"""This user's own Jobs in the namespaces where something was sent, also those that nothing here
knows of any more: they bear the random name of this user's state folder."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from gpuwatch.core import output, paths
from gpuwatch.core.errors import NotAvailable, StorageError, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.places.kubernetes import manifest, options, states
from gpuwatch.places.kubernetes.kubectl import Kubectl
from gpuwatch.places.spec import parse
from gpuwatch.session.placement import kubernetes_job
from gpuwatch.session.study.attempts import ATTEMPT

_NOTES, _OWNER = "namespace-*.json", "owner"
_NAME = re.compile(r"[0-9a-f]{16}")
_LATELY = 3600.0
"""Seconds after the last submission for which a namespace is looked into, although it is empty."""


@dataclass(frozen=True)
class OwnJob:
    """A Job that bears the name of this user's state folder."""

    kubectl: Kubectl
    attempt: str
    uid: str

    @property
    def where(self) -> str:
        """Its name, namespace and context."""
        name, of = kubernetes_job(self.attempt), self.kubectl
        return f"{name} in the namespace {of.namespace} (context {of.context})"

    def delete(self) -> None:
        """Delete it and all that it owns; one that is gone, or is another by now, is left alone.

        Raises:
            NotAvailable: the cluster cannot be asked, or refuses.
        """
        self.kubectl.delete(self.kubectl.path("jobs", kubernetes_job(self.attempt)), self.uid)


def owner() -> str:
    """The random name of this user's state folder; it is made when it is first needed.

    Raises:
        StorageError: the state folder cannot be written.
    """
    path = _home() / _OWNER
    with _told():
        if not path.exists():
            output.write_once(path, secrets.token_hex(8).encode())
        found = path.read_text(errors="replace").strip()
    if not _NAME.fullmatch(found):
        raise StorageError(f"{path} holds no name", f"remove it: rm {path}")
    return found


def note(kubectl: Kubectl) -> None:
    """Note that something is sent to this context and namespace.

    Raises:
        StorageError: it cannot be written.
    """
    where = json.dumps([kubectl.context, kubectl.namespace])
    path = _home() / _NOTES.replace("*", sha256(where.encode()).hexdigest()[:16])
    with _told():
        output.write_text(path, where)


def namespaces() -> list[Path]:
    """The notes of where something was sent."""
    return sorted(_home().glob(_NOTES))


def is_of(noted: Path, place: str) -> bool:
    """Whether a place, as on the command line, is where ``noted`` says."""
    try:
        spec, there = parse(place), _kubectl(noted)
        chosen = options.parse(spec) if spec.kind == "kubernetes" else None
    except (NotAvailable, UsageError):
        return False
    return chosen is not None and Kubectl(chosen.context, chosen.namespace) == there


def found(noted: Path) -> list[OwnJob]:
    """This user's Jobs in the namespace of a note, which is forgotten when it has none any more.

    Raises:
        NotAvailable: the cluster cannot be asked, or refuses.
    """
    kubectl = _kubectl(noted)
    selector = quote(manifest.of_owner(owner()))
    jobs = kubectl.items(f"{kubectl.path('jobs')}?labelSelector={selector}")
    with contextlib.suppress(OSError):
        if not jobs and time.time() - noted.stat().st_mtime > _LATELY:
            noted.unlink()
    attempts = [(manifest.attempt_of(job), states.uid_of(job)) for job in jobs]
    return [OwnJob(kubectl, *each) for each in attempts if ATTEMPT.fullmatch(each[0])]


def _kubectl(noted: Path) -> Kubectl:
    """
    Raises:
        NotAvailable: the note holds no context and namespace.
    """
    try:
        context, namespace = json.loads(noted.read_text())
        chosen = options.parse(parse(f"kubernetes,context={context},namespace={namespace}"))
    except (OSError, ValueError, TypeError, UsageError):
        raise NotAvailable(f"{noted} names no namespace", f"remove it: rm {noted}") from None
    return Kubectl(chosen.context, chosen.namespace)


def _home() -> Path:
    """The folder of what is noted of clusters, private to this user."""
    return paths.runs_home().with_name("kubernetes")


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """
    Raises:
        StorageError: the folder cannot be written.
    """
    folder = paths.private_folder(_home())
    try:
        yield
    except OSError as error:
        raise paths.unwritten(folder, error) from error
