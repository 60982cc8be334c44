"""The user's own kubectl: its contexts, credentials and plug-ins hold; nothing is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.places.base import Refused

INSTALL = "install kubectl of about your cluster's version, or put its folder on the PATH"
_SEE_RIGHTS = "gpuwatch doctor --on kubernetes lists the rights that it needs"
_SECONDS = 20
"""For which the API server may think about one request."""
_REASON = re.compile(r"^Error from server \((\w+)\): (.*)", re.MULTILINE | re.DOTALL)
_INVALID = re.compile(r'^The \w+ "[^"]*" is invalid: (.*)', re.MULTILINE | re.DOTALL)
_POD = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
_TERMINATED = re.compile(r"command terminated with exit code \d+")
_UNREADABLE = "error loading config file"
_NO_CONTEXT = re.compile(
    r'error: context "[^"]*" does not exist|cannot locate context|context was not found for'
    r"|current-context must exist|server localhost:8080 was refused"
)
_NOT_LOGGED_IN = ("(Unauthorized)", 'User "system:anonymous"')
_LATER = {
    *("ServiceUnavailable", "InternalError", "Timeout", "ServerTimeout", "TooManyRequests"),
    *("Expired", "StorageReadError"),
}
"""The server's reasons after which another try may succeed."""
_LONGEST = 600


class Denied(Refused):
    """The server answered, and says no."""

    def __init__(self, reason: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.reason = reason
        """One word: ``NotFound``, ``AlreadyExists``, ``Forbidden``, ``Invalid``."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one context and namespace; ``None``: those that it has by itself."""

    context: str | None = None
    namespace: str | None = None

    def words(self, *words: str) -> list[str]:
        """A command of kubectl."""
        chosen = [f"--context={self.context}"] if self.context is not None else []
        chosen += [f"--namespace={self.namespace}"] if self.namespace is not None else []
        return ["kubectl", *chosen, *words]

    def run(self, *words: str, data: bytes = b"", seconds: float = _SECONDS) -> str:
        """What a command prints.

        Raises:
            Denied: the server says no.
            NotAvailable: kubectl is not here, or the server does not answer.
        """
        command = self.words(f"--request-timeout={seconds:.0f}s", *words)
        if shutil.which("kubectl") is None:
            raise NotAvailable("kubectl is not here", INSTALL)
        try:
            done = subprocess.run(
                command, input=data, capture_output=True, timeout=seconds + 10, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotAvailable(f"the cluster did not answer within {seconds:.0f} s") from None
        except OSError as error:
            raise NotAvailable(f"kubectl cannot be started: {error.strerror}", INSTALL) from error
        if done.returncode != 0:
            raise self.problem(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    def path(self, kind: str, name: str = "") -> str:
        """Where the API has objects of a kind in the namespace, or the one of this name."""
        api = "apis/batch/v1" if kind == "jobs" else "api/v1"
        path = f"/{api}/namespaces/{self.namespace}/{kind}"
        return f"{path}/{name}" if name else path

    def get(self, path: str) -> dict[str, Any]:
        """The object, or the list of them, at a path of the API.

        Raises:
            Denied, NotAvailable
        """
        return _object(self.run("get", f"--raw={path}"))

    def items(self, path: str) -> list[Mapping[str, JSON]]:
        """The objects of the list at a path of the API.

        Raises:
            Denied, NotAvailable
        """
        items = self.get(path).get("items")
        return [mapping(item) for item in items] if isinstance(items, list) else []

    def version(self) -> str:
        """That of kubectl itself, such as ``v1.32.4``.

        Raises:
            Denied, NotAvailable
        """
        found = _object(self.run("version", "--client", "--output=json"))
        return clean(str(mapping(found.get("clientVersion")).get("gitVersion")), 60)

    def create(self, path: str, value: Mapping[str, JSON]) -> dict[str, Any]:
        """Create an object, and return it as the server has it.

        Raises:
            Denied, NotAvailable
        """
        return _object(
            self.run("create", f"--raw={path}", "--filename=-", data=json.dumps(value).encode())
        )

    def delete(self, path: str, uid: str) -> None:
        """Delete the object with this id and all that it owns; one that is gone, or is another by
        now, is left alone.

        Raises:
            Denied, NotAvailable
        """
        how = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        try:
            self.run("delete", f"--raw={path}", "--filename=-", data=json.dumps(how).encode())
        except Denied as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise

    def start(
        self, pod: str, container: str, words: Sequence[str], errors: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a command in a pod, with its standard input and output as pipes.

        Raises:
            NotAvailable: kubectl is not here, or the server gave the pod a name that is none.
        """
        if not _POD.fullmatch(pod):  # it must not be taken for an option
            raise NotAvailable(
                f"the cluster names a pod {clean(pod, 80)}", "look yourself: kubectl get pods"
            )
        command = self.words("exec", "-i", pod, f"--container={container}", "--", *words)
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise NotAvailable(f"kubectl cannot be started: {error.strerror}", INSTALL) from error

    def call(
        self, pod: str, container: str, words: Sequence[str], data: bytes = b"", seconds: float = 30
    ) -> str:
        """What a command in a pod prints.

        Raises:
            Denied, NotAvailable
        """
        with self.start(pod, container, words, subprocess.PIPE) as process:
            try:
                output, errors = process.communicate(data, timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise NotAvailable(f"the pod did not answer within {seconds:.0f} s") from None
        if process.returncode != 0:
            raise self.problem(errors.decode(errors="replace"))
        return output.decode(errors="replace")

    def problem(self, text: str) -> NotAvailable:
        """The error that kubectl printed; where its configuration is at fault in words of our own,
        since it quotes that, with what is secret in it."""
        files = _config_files()
        named = " or ".join(map(str, files))
        if _UNREADABLE in text:
            return NotAvailable(
                f"kubectl cannot read its configuration {named}", f"correct {named}"
            )
        if _NO_CONTEXT.search(text) and not any(map(os.path.exists, files)):
            return NotAvailable(
                f"kubectl's configuration {named} is not there",
                "put it there, or set KUBECONFIG to where it is",
            )
        if _NO_CONTEXT.search(text):
            context = "current context" if self.context is None else f"context {self.context}"
            return NotAvailable(
                f"kubectl has no {context} in {named}",
                "put it back; those that it has: kubectl config get-contexts",
            )
        if any(words in text for words in _NOT_LOGGED_IN):
            of = "" if self.context is None else f" of the context {self.context}"
            return NotAvailable(
                f"the cluster does not accept your credentials{of}",
                f"log in to it again, as you do for kubectl; they are in {named}",
            )
        return _problem(text)


def _config_files() -> list[Path]:
    """Where kubectl looks for its configuration."""
    named = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return named or [Path("~/.kube/config").expanduser()]


def _problem(text: str) -> NotAvailable:
    """The error that the server or a command in a pod told."""
    if (match := _REASON.search(text)) is not None:
        reason, message = match[1], clean(match[2].strip(), _LONGEST)
        if reason in _LATER:
            return NotAvailable(message)
        return Denied(reason, message, _SEE_RIGHTS if reason == "Forbidden" else None)
    if (match := _INVALID.search(text)) is not None:
        return Denied("Invalid", clean(match[1].strip(), _LONGEST))
    lines = [line for line in map(clean, text.splitlines()) if line]
    if len(lines) > 1 and _TERMINATED.fullmatch(lines[-1]):
        lines.pop()  # what the command in the pod printed says more
    last = (lines or ["kubectl printed no reason"])[-1].removeprefix("error: ")
    return NotAvailable(last[:_LONGEST], "look yourself: kubectl get pods")


def _object(text: str) -> dict[str, Any]:
    """
    Raises:
        NotAvailable: it is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise NotAvailable("the API server's answer cannot be read")
    return found
