"""Show the screens in a browser, on this machine's loopback interface alone.

The address that is printed ends in a secret: without it nothing is shown, and a page that is loaded
again asks for it again. Each page is a screen of its own. Unless --allow-actions is given it is
read-only: it starts, stops and deletes nothing.

  gpuwatch serve                                   the home screen
  gpuwatch serve last                              one session, live or saved
  ssh -L 8000:127.0.0.1:8000 HOST gpuwatch serve   for the browser of your own machine
"""

from __future__ import annotations

import argparse
import secrets
import sys

from gpuwatch.cli.say import say
from gpuwatch.core.errors import ExitCode, NotAvailable, UsageError
from gpuwatch.core.installation import install_command
from gpuwatch.own_command import OWN_COMMAND

DEFAULT_PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0: any free one"
    )
    parser.add_argument(
        "--allow-actions", action="store_true", help="runs may be started, stopped and deleted"
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if command:
        raise UsageError("serve takes no command", "start it first: gpuwatch run -- COMMAND")
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
        # An address is data, also for a script that opens it.
        # By number: a name could lead to another server. No browser sends what stands behind the #.
        print(f"http://127.0.0.1:{port}/#{token}", flush=True)
        told = "" if arguments.allow_actions else "read-only; "
        print(f"{told}Ctrl-C ends it, runs go on", file=sys.stderr)

    serve(shown, token, arguments.port, ready=ready, say=say)
    return ExitCode.DONE


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number up to 65535")
    return port
