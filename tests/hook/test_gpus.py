"""Which GPUs a process used, as the hook tells at its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def test_the_gpus_on_which_torch_allocated_memory_are_those_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    from gpuwatch.hook.gpuwatch_hook import facts

    reserved = [0, 4096, 0, 8192]

    def properties(device: Any) -> SimpleNamespace:
        return SimpleNamespace(name="NVIDIA H100", uuid=f"0000000{device.index}-1")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(reserved))
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda each: reserved[each])
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    assert facts.gpus() == ["GPU-00000001-1", "GPU-00000003-1"]


def test_a_process_without_a_context_used_none() -> None:
    pytest.importorskip("torch")
    from gpuwatch.hook.gpuwatch_hook import facts

    assert facts.gpus() == []
