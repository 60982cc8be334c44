"""Who may see the screens: pages of this server that know its secret.

A page of another site that is open in the same browser can send requests to a port of this machine,
and under a name that it makes point here (DNS rebinding) even read the answers. So the name, the
origin and the secret are looked at, each alone enough to refuse. Any user of this machine can name
both, but does not know the secret; the page itself holds nothing that is not public.
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
"""Of every answer."""

_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def own_name(host: str | None) -> bool:
    """Whether a request's ``Host`` is this machine itself, under any port: one may be forwarded."""
    try:
        return urlsplit(f"//{host or ''}").hostname in _NAMES
    except ValueError:
        return False


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether the page that asks is one of ours; browsers name its ``Origin``."""
    return origin is not None and origin == f"http://{host}"


def knows(given: str, token: str) -> bool:
    """Whether ``given`` is the secret; how long it takes does not say how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def content_policy(host: str) -> str:
    """What the page may load and run: files of this server, and nothing written into the page."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; font-src 'self'; connect-src 'self' ws://{host}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
