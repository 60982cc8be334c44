"""Access to the screens: only pages of this server that know its secret.

A page of another site in the same browser can send requests to a local port, and with a host name
that it points here (DNS rebinding) even read the answers. So the host name, the origin and the
secret are all checked, and each one alone can refuse a request. Other users of this machine can
fake the first two, but do not know the secret; the page itself contains only public data.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer."""

_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def own_name(host: str | None) -> bool:
    """Whether a request's ``Host`` is this machine, with any port, because ports can be
    forwarded."""
    try:
        return urlsplit(f"//{host or ''}").hostname in _NAMES
    except ValueError:
        return False


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether the requesting page is ours, by the browser's ``Origin`` header."""
    return origin is not None and origin == f"http://{host}"


def knows(given: str, token: str) -> bool:
    """Compare ``given`` with the secret in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def content_policy(host: str) -> str:
    """What the page may load and run: this server's files, and no inline scripts."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; font-src 'self'; connect-src 'self' ws://{host}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
