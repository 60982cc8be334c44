"""In a recorder's place: a process that uses a known share of one core, or none.

python standin.py SHARE
"""

from __future__ import annotations

import signal
import sys
import time

_PERIOD_SECONDS = 0.1


def main(share: float) -> None:
    while share <= 0:
        signal.pause()
    while True:
        until = time.thread_time() + share * _PERIOD_SECONDS
        while time.thread_time() < until:
            pass
        time.sleep((1 - share) * _PERIOD_SECONDS)


if __name__ == "__main__":
    main(float(sys.argv[1]))
