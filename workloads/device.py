"""The device of a run, and fixes for a GPU that cannot be used."""

from __future__ import annotations

import os
import platform

import torch

from .architectures import Capability, build_for, is_too_old, oldest_driver, runs_on
from .failures import EnvironmentFailure, UsageFailure
from .float8 import LEAST_CAPABILITY, available
from .nvidia import Driver, find_driver, hidden_on_purpose
from .processor import cpuinfo


def reinstall(capability: Capability | None, driver: str | None) -> str:
    """The hint if torch cannot use this GPU with this driver."""
    build = build_for(capability, driver)
    return f"{f'install {build}, or ' if build else ''}ask for the CPU with --device cpu"


def choose(requested: str, dtype: str) -> torch.device:
    """The device for ``--device``: a GPU if there is one, unless the CPU is requested.

    Raises:
        EnvironmentFailure: there is a GPU that torch cannot use, or a requested GPU is missing. A
            run never falls back to the CPU unasked.
        UsageFailure: the device does not support the data type.
    """
    device = _choose(requested)
    if dtype == "fp8":
        _check_float8(device)
    if device.type == "cpu" and dtype in ("tf32", "float16"):
        raise UsageFailure(
            f"--dtype {dtype} needs an NVIDIA GPU, and this run is on the CPU",
            "use --dtype float32 or --dtype bfloat16",
        )
    return device


def _check_float8(device: torch.device) -> None:
    hint = "use --dtype bfloat16"
    if not available():
        reason = f"scaled products in torch, and torch {torch.__version__} has none"
        raise EnvironmentFailure(f"--dtype fp8 needs {reason}", f"update torch, or {hint}")
    least = "{}.{}".format(*LEAST_CAPABILITY)
    needs = f"--dtype fp8 needs an NVIDIA GPU of compute capability {least} or later"
    if device.type == "cpu":
        raise UsageFailure(f"{needs}, and this run is on the CPU", hint)
    capability = torch.cuda.get_device_capability(device)
    if capability < LEAST_CAPABILITY:
        name = torch.cuda.get_device_name(device)
        raise UsageFailure("{}, and {} has {}.{}".format(needs, name, *capability), hint)


def _choose(requested: str) -> torch.device:
    if requested == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        index = int(requested.partition(":")[2] or 0)
        count = torch.cuda.device_count()
        if index >= count:
            raise EnvironmentFailure(
                f"there is no device cuda:{index}: torch sees {count}",
                f"choose from cuda:0 to cuda:{count - 1}",
            )
        _check_capability(index)
        return torch.device("cuda", index)
    driver = find_driver()
    if driver is not None:
        raise unusable(driver)
    if requested != "auto":
        reason = "CUDA_VISIBLE_DEVICES hides every GPU" if hidden_on_purpose() else "none is seen"
        raise EnvironmentFailure(
            f"--device {requested} needs an NVIDIA GPU, and {reason}",
            "run where a GPU is visible, or ask for the CPU with --device cpu",
        )
    return torch.device("cpu")


def unusable(driver: Driver) -> EnvironmentFailure:
    """Why torch cannot use this machine's GPU."""
    gpus = f"{driver.gpus} NVIDIA GPU{'s' if driver.gpus > 1 else ''}"
    details = [driver.name or "", f"driver {driver.version}" if driver.version else ""]
    if driver.capability:
        details.append("compute capability {}.{}".format(*driver.capability))
    build = f"torch {torch.__version__}, built for CUDA {torch.version.cuda or '(none: CPU only)'}"
    shown = ", ".join(detail for detail in details if detail)
    message = f"this machine has {gpus}{f' ({shown})' if shown else ''}, and {build}, cannot use it"
    if driver.version is None:
        hint = (
            "start the container with GPU support (docker: --gpus all, apptainer: --nv) or fix "
            "the driver (nvidia-smi must work); or ask for the CPU with --device cpu"
        )
    elif torch.version.cuda is None:
        hint = reinstall(driver.capability, driver.version)
    else:
        reason = _refusal()
        message += f": {reason}" if reason else ""
        least = oldest_driver(torch.version.cuda)
        to = (
            f" to {least} or later"
            if least and is_too_old(driver.version, torch.version.cuda)
            else ""
        )
        hint = f"update the driver{to}, or {reinstall(driver.capability, driver.version)}"
    return EnvironmentFailure(message, hint)


def _refusal() -> str:
    """CUDA's own reason for not starting, on one line."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return str(error).strip().splitlines()[0]
    return ""


def _check_capability(index: int) -> None:
    major, minor = torch.cuda.get_device_capability(index)
    built_for = torch.cuda.get_arch_list()
    if not runs_on((major, minor), built_for):
        driver = find_driver()
        version = f", driver {driver.version}" if driver and driver.version else ""
        raise EnvironmentFailure(
            f"{torch.cuda.get_device_name(index)} has compute capability {major}.{minor}{version}, "
            f"and torch {torch.__version__} is built for {' '.join(built_for)}",
            reinstall((major, minor), driver.version if driver else None),
        )


def describe(device: torch.device) -> dict[str, object]:
    """Keys of the ``run`` event: ``device``, ``device_name``, and a GPU's ``device_uuid``."""
    if device.type != "cuda":
        return {"device": "cpu", "device_name": cpuinfo("model name") or platform.machine()}
    properties = torch.cuda.get_device_properties(device)
    keys: dict[str, object] = {"device": "cuda", "device_name": properties.name}
    uuid = str(getattr(properties, "uuid", ""))
    if uuid:
        keys["device_uuid"] = [full_uuid(uuid)]
    return keys


def full_uuid(uuid: str) -> str:
    """A device's UUID in NVML's form, ``GPU-...``, or ``MIG-...`` for a MIG device."""
    if uuid.startswith(("GPU-", "MIG-")):
        return uuid
    part = f"MIG-{uuid}"
    return part if part in os.environ.get("CUDA_VISIBLE_DEVICES", "") else f"GPU-{uuid}"
