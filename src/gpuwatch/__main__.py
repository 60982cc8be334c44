"""``python -m gpuwatch``, and the program that gpuwatch starts itself by (own_command.py)."""

import os
import sys
import threading

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _take_no_others_modules() -> None:
    """Take from the search path the folder that Python put in front: the working folder, or this
    one. What is imported from then on is Python's, the packages' or gpuwatch's own."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        try:
            put = {_FOLDER, os.getcwd()}
        except OSError:  # the working folder was removed
            put = {_FOLDER}
        if sys.path[0] in put:
            del sys.path[0]
    root = os.path.dirname(_FOLDER)
    sys.path.insert(0, root)
    from gpuwatch.own_command import CAPSULE  # this one's, whichever others are installed

    if CAPSULE is not None:
        return  # what travels with it goes before what is installed
    del sys.path[0]
    if root not in sys.path:
        sys.path.append(root)


def _end(code: int) -> None:
    """End with ``code``, and do not wait for daemon threads, which may be in a driver's call.

    Python ends such a thread that comes back during its own end by ``pthread_exit``, which aborts
    the process where libgcc_s.so.1 is missing, as in small images.
    """
    others = [each for each in threading.enumerate() if each is not threading.main_thread()]
    if others and all(each.daemon for each in others):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    _take_no_others_modules()
    from gpuwatch.cli import main

    _end(main())
