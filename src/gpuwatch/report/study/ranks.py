"""The ranks of a question's runs in a sentence for each cell."""

from __future__ import annotations

from gpuwatch.analysis.ranks.wording import sentences
from gpuwatch.analysis.results import Question
from gpuwatch.report.study.document import LabelledSentence, Section
from gpuwatch.report.study.why import middle_runs


def ranks(question: Question) -> Section:
    """What is said of the ranks of the run in the middle of each cell; empty without ranks."""
    return Section(
        "ranks of a run in the middle of each cell",
        tuple(
            LabelledSentence(cell.label, sentence)
            for cell, run in zip(question.cells, middle_runs(question), strict=True)
            if run is not None and run.session.ranks is not None
            for sentence in sentences(run.session.ranks)
        ),
    )
