"""Which GPUs ``CUDA_VISIBLE_DEVICES`` leaves to a program, by UUID.

Sources: CUDA C++ Programming Guide, "CUDA Environment Variables"; for cases that it leaves open (a
duplicate, text after a digit, UUIDs mixed with numbers) PyTorch's
``torch.cuda._parse_visible_devices``, which was written from experiments.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.selection import NvmlDevice, matching, parts
from gpuwatch.telemetry.nvml.start import ANSWER_S, asked

VARIABLE = "CUDA_VISIBLE_DEVICES"
_ASK_CUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
uuid_of = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
count, device, uuid = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
NO_DEVICE = 100
started = cuda.cuInit(0)
assert started in (0, NO_DEVICE)
if not started:
    assert not cuda.cuDeviceGetCount(ctypes.byref(count))
for number in range(count.value):
    assert not cuda.cuDeviceGet(ctypes.byref(device), number)
    assert not uuid_of(uuid, device)
    print(bytes(uuid).hex())
"""


@dataclass(frozen=True)
class Card:
    """A GPU, with all identifiers by which the variable can name it or its MIG devices."""

    gpu: NvmlDevice
    bus: str
    """PCI address, the sort key; empty if NVML has none."""
    parts: tuple[NvmlDevice, ...] = ()
    """MIG devices of the GPU."""

    @property
    def devices(self) -> tuple[NvmlDevice, ...]:
        return self.gpu, *self.parts


def cards(patience_s: float = ANSWER_S) -> tuple[Card, ...] | Unavailable:
    """Every GPU by PCI address; one that NVML cannot open now has no UUID."""
    found = asked(None, patience_s, lambda nvml, gpus: [_card(nvml, gpu) for gpu in gpus])
    if isinstance(found, Unavailable):
        return found
    return tuple(sorted(found, key=lambda card: card.bus))


def visible(variables: Mapping[str, str], cards: Sequence[Card]) -> tuple[str, ...]:
    """The UUIDs that ``CUDA_VISIBLE_DEVICES`` in ``variables`` leaves visible, in its order.

    Raises:
        NotAvailable: it counts GPUs in an order that is not certain.
    """
    text = variables[VARIABLE]
    by_bus = listed(text, cards)
    if _by_name(text) or not by_bus:
        return by_bus
    models = dict.fromkeys(card.gpu.name for card in cards)
    split = any(card.parts for card in cards)
    silent_one = not all(card.gpu.uuid and card.bus for card in cards)
    ordered = len(cards) == 1 or variables.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if ordered and not (split or silent_one):
        return by_bus
    by_cuda = cuda_order(variables, cards)
    if split:
        reason = "and one of them is split by MIG"
    elif silent_one:
        reason = "and one of them does not answer"
    elif len(models) > 1:
        reason = f"which is not fixed for different cards ({', '.join(models)})"
    elif by_cuda is None:
        reason = "and CUDA does not answer here"
    elif by_cuda != by_bus:
        reason = "and that is not the order of their PCI addresses here"
    else:
        return by_cuda
    names = ",".join(by_cuda or ()) or "GPU-..."
    raise NotAvailable(
        f"{VARIABLE}={text} counts GPUs in CUDA's order, {reason}",
        f"name them by UUID (nvidia-smi -L): {VARIABLE}={names} gpuwatch ...",
    )


def listed(text: str, cards: Sequence[Card]) -> tuple[str, ...]:
    """The UUIDs that ``text`` selects under CUDA's rules; numbers are positions in ``there``.

    CUDA stops at the first name that matches no GPU or several, and sees none at all if one is
    named twice.
    """
    uuids: list[str] = []
    kind, devices = text.strip()[:4], [device for card in cards for device in card.devices]
    for name in map(str.strip, text.split(",")):
        if not _by_name(text):
            matches = _numbered(name, cards)
        else:
            matches = matching(name, devices) if name.startswith(kind) else []
        if len(matches) != 1:
            break
        uuid = str(matches[0].uuid)
        if uuid in uuids:
            return ()
        uuids.append(uuid)
    return tuple(uuids)


def shortfall(text: str, left: Sequence[str]) -> str | None:
    """What ``text`` names in vain, if ``left`` are fewer GPUs than it names; ``None`` also where it
    hides GPUs on purpose, as with -1."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(left) >= len(names) or not re.match(r"\d|GPU-|MIG-", names[len(left)]):
        return None
    if not left and len({*names}) < len(names):
        why = "names a GPU twice"
    else:
        why = f"names {names[len(left)]}, which is no GPU of this machine"
    gets = "none" if not left else f"only {', '.join(left)}"
    return f"{VARIABLE}={text} {why}, so CUDA gives the run {gets}"


def _by_name(text: str) -> bool:
    return text.lstrip().startswith(("GPU-", "MIG-"))


def _numbered(name: str, cards: Sequence[Card]) -> list[NvmlDevice]:
    """The GPU with that number; text after the digits is ignored."""
    digits = re.match(r"[+-]?\d+", name)
    number = -1 if digits is None else int(digits[0])
    return [cards[number].gpu] if 0 <= number < len(cards) else []


def cuda_order(variables: Mapping[str, str], cards: Sequence[Card]) -> tuple[str, ...] | None:
    """The UUIDs that CUDA itself sees with these variables, in its order, queried in a separate
    process; ``None`` if it does not answer."""
    by_digits = {
        re.sub(r"^(GPU|MIG)-|-", "", str(device.uuid)): str(device.uuid)
        for card in cards
        for device in card.devices
    }
    try:
        result = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _ASK_CUDA],
            env=dict(variables),
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=True,
        )
        return tuple(by_digits[line] for line in result.stdout.split())
    except (OSError, subprocess.SubprocessError, KeyError):
        return None


def _card(nvml: Any, gpu: NvmlDevice) -> Card:
    try:
        bus = nvml.nvmlDeviceGetPciInfo(gpu.handle).busId
    except nvml.NVMLError:
        bus = ""
    return Card(gpu, bus if isinstance(bus, str) else bus.decode(), tuple(parts(nvml, gpu)))
