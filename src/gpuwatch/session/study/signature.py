"""Signs plans, so that `gpuwatch resume` runs commands only from this user's own plans.

A study's folder may come from anybody, or be writable by others. A plan is signed when its study
starts, with a key in the user's state folder (HMAC-SHA-256). Problems added later, which say why
runs could not be started, are not signed.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError
from gpuwatch.session.study.plan import Plan
from gpuwatch.session.study.plan_file import document, parse

_BYTES = 32


def sign(plan: Plan) -> str | None:
    """The signature of ``plan``; ``None`` if no key can be stored."""
    with contextlib.suppress(OSError, StorageError):
        _make_key()
    key = _key()
    # Signed in the form read back from JSON, where some integers have become floats.
    return None if key is None else _signature(parse(json.loads(json.dumps(document(plan)))), key)


def is_own(plan: Plan) -> bool:
    """Whether ``plan``, as read, is what this user started."""
    import hmac

    key = _key()
    if key is None or plan.signature is None:
        return False
    return hmac.compare_digest(_signature(plan, key).encode(), plan.signature.encode())


def _signature(plan: Plan, key: bytes) -> str:
    import hmac  # loads 3 MiB of OpenSSL, which a recording of the machine does not need

    signed = {
        name: value
        for name, value in document(plan).items()
        if name not in ("problems", "signature")
    }
    return hmac.new(key, json.dumps(signed, sort_keys=True).encode(), "sha256").hexdigest()


def _key() -> bytes | None:
    """The key; ``None`` unless it exists and only this user could have written and read it."""
    try:
        fd = os.open(paths.signing_key(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        private = status.st_uid == os.geteuid() and not status.st_mode & 0o077
        key = file.read(_BYTES) if stat.S_ISREG(status.st_mode) and private else b""
    return key if len(key) == _BYTES else None


def _make_key() -> None:
    """Create the key if it does not exist.

    Raises:
        OSError, StorageError: it cannot be written.
    """
    path = paths.signing_key()
    if not os.path.lexists(path):
        paths.private_folder(path.parent)
        output.write_once(path, os.urandom(_BYTES))
