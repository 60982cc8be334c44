"""gpuwatch's command line for those that start it as a process of its own.

It is started by the path of its program: ``-m`` and ``-c`` would put the working folder in front of
Python's modules, and a user's ``json.py`` there would be run in place of Python's own. The
environment is left as it is, for the workload inherits it.
"""

from __future__ import annotations

import os
import sys

OWN_COMMAND: tuple[str, ...] = (
    sys.executable,
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py"),
)
