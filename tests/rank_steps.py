"""Steps of the ranks of a made-up run: own time, waiting for the slowest, noise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from gpuwatch.session.rows import RankRow, RankStepRow
from gpuwatch.session.writing import statements

SECOND = 1_000_000_000
STEPS = 20
"""In each row; a step takes about a tenth of a second."""
DATA, FORWARD, BACKWARD = 0.004, 0.030, 0.060
OWN = DATA + FORWARD + 0.002


def rank_steps(
    ranks: int = 2,
    seconds: float = 90.0,
    *,
    slow: int | None = None,
    by: float = 0.0,
    phase: str = "forward",
    since: float = 0.0,
    noise: float = 0.005,
    start: float = 5.0,
    seed: int = 1,
    tokens: float | None = None,
) -> list[RankStepRow]:
    """Rows of two seconds; the first of each rank is its warm-up.

    The rank ``slow`` takes ``by`` times its own time longer in ``phase`` from second ``since`` on,
    and the others wait for it in ``backward``.
    """
    rng = np.random.default_rng(seed)
    rows: list[RankStepRow] = []
    t, step = start, 0
    while True:
        drift = 1 + 0.05 * np.sin(t / 40)
        of_ranks = []
        for rank in range(ranks):
            scale = float(STEPS * drift * (1 + rng.normal(0, noise)))
            phases = {"data": DATA * scale, "forward": FORWARD * scale, "other": 0.002 * scale}
            if rank == slow and t >= since:
                phases[phase] += by * OWN * scale
            of_ranks.append(phases)
        longest = max(sum(phases.values()) for phases in of_ranks)
        total = longest + BACKWARD * STEPS
        t, step = t + total, step + STEPS
        if t > seconds:
            return rows
        for rank, phases in enumerate(of_ranks):
            waited = longest - sum(phases.values())
            phases |= {"backward": BACKWARD * STEPS * 0.9 + waited}
            phases |= {"optimizer": BACKWARD * STEPS * 0.1}
            rows.append(
                RankStepRow(
                    n=len(rows) + 1,
                    t=round(t * SECOND),
                    rank=rank,
                    step=step,
                    count=STEPS,
                    warmup=step == STEPS,
                    samples=32.0 * STEPS,
                    tokens=None if tokens is None else tokens * STEPS,
                    seconds=total,
                    phases=phases,
                    flop=None,
                )
            )


def rank_rows(ranks: int = 2, devices: Sequence[str] | None = None) -> list[RankRow]:
    """The ranks with their processes, each on a GPU of its own if ``devices`` is left out."""
    names = devices or [f"GPU-{rank:08d}" for rank in range(ranks)]
    return [RankRow(rank, rank, ranks, 4000 + rank, names[rank]) for rank in range(ranks)]


def written(
    rows: Sequence[RankRow], steps: Sequence[RankStepRow], cores: Mapping[int, float] | None = None
) -> list[statements.Row]:
    """The rows as they are written to a session; ``cores``: by rank, those of its process."""
    out = [statements.rank(row) for row in rows]
    out += [
        statements.rank_step(
            step.t,
            step.rank,
            step.step,
            step.count,
            int(step.warmup),
            step.samples,
            step.tokens,
            step.seconds,
            json.dumps(dict(step.phases)) if step.phases else None,
            step.flop,
        )
        for step in steps
    ]
    pids = {row.rank: row.pid for row in rows}
    end = max((step.t for step in steps), default=0)
    for t in range(0, end, 60 * SECOND):
        for rank, used in (cores or {}).items():
            pid = pids[rank]
            assert pid is not None
            out.append(statements.process(t, pid, 0, "python3", "alice", None, True, True, None))
            out.append(statements.process_use(t, pid, used, 1 << 30))
    return out
