"""Show the screens in a browser, on this machine's loopback interface only.

The printed address ends in a secret: without it nothing is shown, and a reloaded page asks for it
again. Each page is a separate screen. Unless --allow-actions is given, the screens are read-only:
they start, stop and delete nothing.

  gpuwatch serve                                   the home screen
  gpuwatch serve last                              one session, live or saved
  ssh -L 8000:127.0.0.1:8000 HOST gpuwatch serve   for the browser of your own machine
"""

from __future__ import annotations

import argparse
import secrets
import sys

from gpuwatch.cli.say import say
from gpuwatch.core.errors import ExitCode, NotAvailable
from gpuwatch.core.installation import install_command
from gpuwatch.own_command import OWN_COMMAND

DEFAULT_PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0: any free one"
    )
    parser.add_argument(
        "--allow-actions", action="store_true", help="allow starting, stopping and deleting runs"
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    try:
        from gpuwatch.web.server import serve
    except ImportError as error:
        raise NotAvailable(
            f"the package {error.name} is not installed", install_command("textual-serve")
        ) from error
    shown = [*OWN_COMMAND]
    if arguments.session is not None:
        from gpuwatch.cli.selection.session_lookup import session

        shown += ["replay", str(session(arguments.session))]
    if not arguments.allow_actions:
        shown.append("--read-only")
    token = secrets.token_urlsafe(24)

    def ready(port: int) -> None:
        # On stdout, because a script may open the address. The IP, because a name could resolve to
        # another server. After the #, because browsers do not send that part.
        print(f"http://127.0.0.1:{port}/#{token}", flush=True)
        mode = "" if arguments.allow_actions else "read-only; "
        print(f"{mode}Ctrl-C ends it, runs continue", file=sys.stderr)

    serve(shown, token, arguments.port, ready=ready, say=say)
    return ExitCode.DONE


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port < 1 << 16:
        raise argparse.ArgumentTypeError(f"invalid port {text!r}: expected 0 to 65535")
    return port
