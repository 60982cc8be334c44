"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from gpuwatch import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Errors are one line on stderr, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"gpuwatch {__version__}")
        return 0
    from gpuwatch.cli.commands import dispatch
    from gpuwatch.errors import ExitCode, GpuwatchError
    from gpuwatch.text import clean

    try:
        return dispatch(arguments)
    except GpuwatchError as error:
        print(f"gpuwatch: error: {clean(error)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough. Python's own flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
