"""How much of a session is read for one answer; what is left out is said (``reader.left_out``).

A recorder of eight GPUs that samples ten times a second for a day stays below each of these.
"""

from __future__ import annotations

KEYS, FACTS, DEVICES = 1_000, 10_000, 256
"""Rows of ``meta``, ``fact`` and ``device``."""
CHANNELS = 1_998
"""What SQLite has columns for."""
CHANGES = 50_000
"""Of channels, the newest: each of 400 comes and goes sixty times."""
TEXT = 32 << 20
"""Bytes of the texts of ``meta``, ``fact`` or ``device`` together."""
CELLS = 1_000_000
"""Values in the JSON of one of these tables: a profile of 20 tables with 1,000 rows has 200,000."""
LINES, EXACT_LINES = 1_000_000, 10_000_000
"""Step lines that are read one by one."""
OF_LINES, EXACT_OF_LINES = 32 << 20, 320 << 20
"""Bytes of their step times, losses, phases."""
OF_A_LINE = 4 << 20
"""Bytes of the step times of one line: it is printed in at most 1 MiB."""
OF_PHASES = 64 << 10
"""Bytes of the phases of one line."""
ON_GPUS, ON_GPUS_ROWS = 1_000, 1_000_000
"""Processes on GPUs, and the newest of their rows that are looked at."""
TICKS, EXACT_TICKS = 100_000, 10_000_000
"""Ticks that are read one by one: 17 minutes at 100 Hz, and 11 days at 10 Hz."""
BUCKETS = 1_000_000
"""Of ten seconds: 115 days."""
BUCKET_CELLS = 20_000_000
"""Values of them: 480 channels for four days; more where the file has four bytes for each."""
STRANGERS = 10_000
"""Processes that are not the workload's."""


def bucket_rows(channels: int, file_bytes: int) -> int:
    """Buckets of so many channels that are read: a file that a recorder wrote has several bytes
    for each value."""
    return min(BUCKETS, max(BUCKET_CELLS, file_bytes // 4) // max(1, channels))
