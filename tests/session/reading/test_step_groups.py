"""Step lines of ten seconds, combined."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.recorder.output.step_lines import pack
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.store import SessionStore

SECOND = 1_000_000_000


def test_the_loss_of_ten_seconds_is_the_last_that_any_line_told(tmp_path: Path) -> None:
    path = tmp_path / "s.gpuwatch"
    lines = [
        statements.step(
            at * SECOND, at, 1, 0, 8.0, pack((1.0,)), loss and pack((loss,)), *[None] * 6
        )
        for at, loss in ((1, 4.0), (4, 3.0), (9, None), (12, None), (23, 2.0))
    ]
    SessionStore.create(path, [], lines).close()
    with SessionReader(path) as reader:
        told = [(row.step, row.count, row.samples, row.loss) for row in reader.step_groups(-1, 99)]
    assert told == [(9, 3, 24.0, (3.0,)), (12, 1, 8.0, None), (23, 1, 8.0, (2.0,))]
