"""Results that several reports are made of; they are never changed."""

from __future__ import annotations

import pytest

from gpuwatch.analysis.results import StudyResult

from . import results


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """One case, three environments, seven blocks and a warm-up."""
    return results.study_result(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def two_cases(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """The same of two cases, with everything that a result can have."""
    folder = tmp_path_factory.mktemp("two")
    return results.study_result(folder, workloads=("resnet50", "mnist-cnn"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """The same with markup, escapes and formulas in whatever comes from outside."""
    folder = tmp_path_factory.mktemp("hostile")
    return results.study_result(folder, hostile=results.HOSTILE)


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Two runs, one in each environment."""
    return results.one_run_each(tmp_path_factory.mktemp("pair"))
