"""Python runs this at its start, where the hook is on its path. Any Python from 2.7 on reads it."""

import os
import sys


def _start():
    """Let the hook wait for torch; whatever goes wrong, the program does not notice."""
    if not os.environ.get("GPUWATCH_HOOK") or sys.version_info < (3, 10):
        return
    try:
        from gpuwatch_hook import startup

        startup.wait_for_torch()
    except Exception:  # noqa: S110 nowhere to tell it, and nothing of the program's concern
        pass


def _run_next():
    """Run the sitecustomize that this one hides, and leave that one in sys.modules.

    One that comes before this one on the path has run: it led here.
    """
    here = os.path.dirname(__file__)
    path = sys.path[sys.path.index(here) + 1 :] if here in sys.path else sys.path
    finders = [each for each in sys.meta_path if getattr(each, "__name__", "") == "PathFinder"]
    if not finders:  # Python 2.7
        try:
            import imp

            found = imp.find_module("sitecustomize", path)
        except ImportError:
            return
        del sys.modules["sitecustomize"]
        imp.load_module("sitecustomize", *found)
        return
    spec = finders[0].find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_start()
_run_next()
