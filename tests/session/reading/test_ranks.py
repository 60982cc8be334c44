"""The ranks of a run: written, read, and read as they were."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.rows import RankRow, RankStepRow
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.store import SessionStore

KEPT = Path(__file__).parents[2] / "data" / "sessions"
SECOND = 1_000_000_000


def test_ranks_and_their_steps_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "s.gpuwatch"
    ranks = [RankRow(0, 0, 2, 4711, "cpu"), RankRow(1, 1, 2, 4712, "GPU-b", (0, 3), 1, True)]
    own = '{"data": 0.25, "backward": 1.5}'
    rows = [
        *map(statements.rank, reversed(ranks)),
        statements.rank_step(2 * SECOND, 0, 9, 9, 0, 576.0, 9000.0, 1.75, own, 1e9),
        statements.rank_step(4 * SECOND, 1, 9, 9, 1, None, None, None, None, None),
    ]
    SessionStore.create(path, [], rows).close()
    with SessionReader(path) as reader:
        assert reader.ranks() == ranks
        first, second = reader.all_rank_steps()
        phases = {"data": 0.25, "backward": 1.5}
        assert first == RankStepRow(1, 2 * SECOND, 0, 9, 9, False, 576.0, 9000.0, 1.75, phases, 1e9)
        assert second == RankStepRow(2, 4 * SECOND, 1, 9, 9, True, None, None, None, {}, None)
        assert reader.rank_steps(after=1) == [second]
        assert PastReader(reader, 3 * SECOND).all_rank_steps() == [first]
