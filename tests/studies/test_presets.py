"""The presets are study files like any other."""

from __future__ import annotations

import pytest

from gpuwatch import studies
from gpuwatch.core.errors import UsageError


def test_there_is_a_preset_for_each_study_that_is_replaced() -> None:
    assert studies.presets() == (
        "accelerator",
        "accelerators",
        "attention",
        "compile",
        "ddp-scaling",
        "hyperparameters",
        "imagenet-15",
        "multi-environment",
        "precision",
    )


@pytest.mark.parametrize("name", studies.presets())
def test_a_preset_is_a_whole_study_that_says_what_it_asks(name: str) -> None:
    study = studies.find(name)
    assert study.title and study.question and study.name == name
    assert all(part.blocks or study.blocks for part in study.parts)
    head = studies.preset_text(name).partition("\n\n")[0]
    redone = "It redoes a study" in head and "What is done in another way" in head
    assert redone or ("It redoes no study" in head and "What is in it, and why" in head)


@pytest.mark.parametrize("name", studies.presets())
def test_the_runs_of_a_preset_are_long_enough_for_a_steady_state(name: str) -> None:
    for part in studies.find(name).parts:
        for workload in part.workloads:
            assert workload.parameters["steps"] >= 10


def test_an_unknown_preset_is_suggested() -> None:
    with pytest.raises(UsageError, match="did you mean imagenet-15"):
        studies.find("imagenet")
    with pytest.raises(UsageError, match="there are: accelerator, accelerators"):
        studies.find("xyz")
