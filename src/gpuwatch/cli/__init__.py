"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys

from gpuwatch import __version__


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code. An error is one line on stderr, not a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"gpuwatch {__version__}")
        return 0
    if "_ARGCOMPLETE" in os.environ:
        from gpuwatch.cli.completion import complete

        complete()
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        from gpuwatch.core.errors import ExitCode

        return ExitCode.INTERRUPTED


def _run(arguments: list[str]) -> int:
    import warnings

    from gpuwatch.cli.dispatch import dispatch
    from gpuwatch.cli.say import give_up_output
    from gpuwatch.core.errors import NO_THREAD, REFUSED, ExitCode, GpuwatchError
    from gpuwatch.core.installation import DISTRIBUTION, install_command
    from gpuwatch.core.text import clean
    from gpuwatch.own_command import CAPSULE
    from gpuwatch.tui.display_options import only_ascii

    if sys.stdout is None:  # closed by the parent process: following a run would never end
        hint = "send it to a file, or to /dev/null"
        print(f"gpuwatch: error: standard output is closed; {hint}", file=sys.stderr)
        return ExitCode.USAGE
    codecs.register_error("gpuwatch", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_ = stream.isatty() and only_ascii(os.environ, stream.encoding)
            instead = "gpuwatch" if CAPSULE is None else "replace"
            stream.reconfigure(encoding="ascii" if ascii_ else None, errors=instead)
    if not sys.warnoptions:
        # A session may hold any numbers; results are checked where they are displayed.
        warnings.simplefilter("ignore", RuntimeWarning)
    try:
        code = dispatch(arguments)
        sys.stdout.flush()
        return code
    except GpuwatchError as error:
        # The hint comes last, possibly after a path as long as a command line may be.
        print(f"gpuwatch: error: {clean(error, 1 << 17)}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        give_up_output()  # the reader closed the pipe
        return ExitCode.DONE
    except ModuleNotFoundError as error:
        if CAPSULE is None or not str(error.name).startswith("gpuwatch."):
            raise
        print(
            "gpuwatch: error: this copy was sent here to record, and has no screens or reports; "
            f"install gpuwatch for them: {install_command(DISTRIBUTION)}",
            file=sys.stderr,
        )
        return ExitCode.USAGE
    except MemoryError:
        return _refused("there is no memory left", errno.ENOMEM)
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        return _refused("no thread can be started", errno.EAGAIN)
    except OSError as error:
        if error.errno in REFUSED:
            return _refused(str(error.strerror), error.errno)
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        give_up_output()
        print(f"gpuwatch: error: cannot write the output: {error.strerror}", file=sys.stderr)
        return ExitCode.USAGE


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a stream cannot take."""
    from gpuwatch.tui.widgets.ascii import to_ascii

    assert isinstance(error, UnicodeEncodeError)
    return to_ascii(error.object[error.start : error.end]), error.end


def _refused(what: str, number: int) -> int:
    """Report what the system refused; ``number`` is a key of
    :data:`gpuwatch.core.errors.REFUSED`."""
    from gpuwatch.core.errors import REFUSED, ExitCode

    print(f"gpuwatch: error: {what}; {REFUSED[number]}", file=sys.stderr)
    return ExitCode.RUN_FAILED
