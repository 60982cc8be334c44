"""Whether a plan is this user's own: a study's folder may come from anybody, and may be writable by
others, while `gpuwatch resume` runs what its plan says.

A plan is signed when its study is started, with a key in the user's state folder (HMAC-SHA-256).
What is learned later, why runs could not be started, is not signed.
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
    """The signature of ``plan``; ``None`` where no key can be kept."""
    with contextlib.suppress(OSError, StorageError):
        _make_key()
    key = _key()
    # As it is read again, where a whole number has become a decimal one.
    return None if key is None else _signature(parse(json.loads(json.dumps(document(plan)))), key)


def is_own(plan: Plan) -> bool:
    """Whether ``plan``, as it was read, is what this user started."""
    import hmac

    key = _key()
    if key is None or plan.signature is None:
        return False
    return hmac.compare_digest(_signature(plan, key).encode(), plan.signature.encode())


def _signature(plan: Plan, key: bytes) -> str:
    import hmac  # with it come 3 MiB of OpenSSL, which a recording of the machine needs not

    signed = {
        name: value
        for name, value in document(plan).items()
        if name not in ("problems", "signature")
    }
    return hmac.new(key, json.dumps(signed, sort_keys=True).encode(), "sha256").hexdigest()


def _key() -> bytes | None:
    """The key; ``None`` where there is none that only this user can have made and read."""
    try:
        fd = os.open(paths.signing_key(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        private = found.st_uid == os.geteuid() and not found.st_mode & 0o077
        key = file.read(_BYTES) if stat.S_ISREG(found.st_mode) and private else b""
    return key if len(key) == _BYTES else None


def _make_key() -> None:
    """Make the key, unless there is one.

    Raises:
        OSError, StorageError: it cannot be written.
    """
    path = paths.signing_key()
    if not os.path.lexists(path):
        paths.private_folder(path.parent)
        output.write_once(path, os.urandom(_BYTES))
