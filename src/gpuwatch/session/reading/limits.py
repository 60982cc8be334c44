"""Limits on how much of a session one query reads; ``reader.left_out`` tells what is left out.

A day of eight GPUs at ten samples a second stays below each of these.
"""

from __future__ import annotations

KEYS, FACTS, DEVICES = 1_000, 10_000, 256
"""Rows of ``meta``, ``fact`` and ``device``."""
CHANNELS = 1_998
"""As many as SQLite has columns for."""
CHANGES = 50_000
"""Newest changes of channels: enough for 400 that come and go sixty times each."""
TEXT = 32 << 20
"""Total bytes of text in ``meta``, ``fact`` or ``device``."""
CELLS = 1_000_000
"""Values in the JSON of one of these tables: a profile of 20 tables with 1,000 rows has 200,000."""
LINES = 1_000_000
"""Step lines read one by one."""
OF_LINES = 32 << 20
"""Total bytes of their step times, losses and phases."""
OF_TIMES = 320 << 20
"""Total bytes of the step times of lines that are read together: 42 million steps."""
OF_A_LINE = 4 << 20
"""Bytes of the step times of one line, which a workload prints in at most 1 MiB."""
OF_PHASES = 64 << 10
"""Bytes of the phases of one line."""
RANKS = 1_024
"""Ranks of a run on one machine."""
RANK_STEPS = 1_000_000
"""Rows of their steps: three days of eight ranks."""
ON_GPUS, ON_GPUS_ROWS = 1_000, 1_000_000
"""Processes on GPUs, and the number of their newest rows to search."""
SAMPLES = 20_000_000
"""Samples read at once: a day at 10 Hz of 23 channels; more if the file has two bytes for each."""
STRANGERS = 10_000
"""Processes that do not belong to the workload."""
