"""A workload's flags, without torch: the host's command line offers the same ones."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from .names import Defaults, defaults, program

DTYPES = ("float32", "tf32", "bfloat16", "float16", "fp8")
_SHORT = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
MODES = ("train", "infer")
MEMORY_FORMATS = ("auto", "contiguous", "channels_last")
ATTENTIONS = ("auto", "math", "flash", "efficient", "cudnn")
COMPILERS = ("none", "default", "reduce-overhead", "max-autotune")
LARGEST_SEED = 2**32 - 1
MOST_RANKS = 256


def positive_int(text: str, most: float = math.inf) -> int:
    """An integer of at least 1, and at most ``most``. Raises argparse.ArgumentTypeError
    otherwise."""
    return _integer(text, 1, most)


def non_negative_int(text: str) -> int:
    """An integer of at least 0. Raises argparse.ArgumentTypeError otherwise."""
    return _integer(text, 0)


def seed_value(text: str) -> int:
    """An integer from 0 to 2**32 - 1. Raises argparse.ArgumentTypeError otherwise."""
    return _integer(text, 0, LARGEST_SEED)


def rank_count(text: str) -> int:
    """An integer from 1 to 256. Raises argparse.ArgumentTypeError otherwise."""
    return _integer(text, 1, MOST_RANKS)


def learning_rate(text: str) -> float:
    """A finite number above 0. Raises argparse.ArgumentTypeError otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be a finite number above 0, not {text!r}")
    return value


def data_type(text: str) -> str:
    """A data type by torch's name, which its short one stands for, too: ``bf16``."""
    return _SHORT.get(text, text)


def device_name(text: str) -> str:
    """``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Raises argparse.ArgumentTypeError otherwise."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", text):
        raise argparse.ArgumentTypeError(f"must be auto, cpu, cuda or cuda:N, not {text!r}")
    return text


def _integer(text: str, least: int, most: float = math.inf) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"must be an integer of at least {least}, not {text!r}")
    if value > most:
        raise argparse.ArgumentTypeError(f"must be at most {most}, not {text}")
    return value


def add_arguments(add: Callable[..., argparse.Action]) -> None:
    """Add the workload's flags with ``add``, the ``add_argument`` of a parser or of a group.

    None (False for a switch) selects the workload's default.
    """
    add("--batch-size", type=positive_int, metavar="N", help="samples in a step, of each rank")
    add("--epochs", type=positive_int, metavar="N", help="passes over the data")
    add("--steps", type=positive_int, metavar="N", help="timed steps; overrides --epochs")
    add(
        "--warmup",
        type=non_negative_int,
        metavar="N",
        help="steps before the timed ones (default: a fifth of them, 1 to 10)",
    )
    add("--lr", type=learning_rate, metavar="RATE", help="learning rate")
    add(
        "--size",
        metavar="NAME",
        help="size of the model, such as 15m or base, for those with several",
    )
    add(
        "--mode",
        choices=MODES,
        help="train, or infer: no loss and no gradients; transformer-lm generates (default: train)",
    )
    add(
        "--dtype",
        type=data_type,
        choices=DTYPES,
        help="arithmetic of the matrix products (default: float32)",
    )
    add(
        "--device",
        type=device_name,
        metavar="DEVICE",
        help="auto, cpu, cuda or cuda:N (default: auto, a GPU where there is one)",
    )
    add(
        "--memory-format",
        choices=MEMORY_FORMATS,
        help="memory layout of images (default: auto, channels_last for "
        "convolutions in half precision on a GPU)",
    )
    add(
        "--attention",
        choices=ATTENTIONS,
        help="which of torch's kernels attention has (default: auto, torch's own choice)",
    )
    add(
        "--compile",
        nargs="?",
        const="default",
        choices=COMPILERS,
        metavar="MODE",
        help="compile the model with torch.compile, also in its mode reduce-overhead or "
        "max-autotune; a workload is named before it (default: none)",
    )
    add(
        "--checkpointing",
        action="store_true",
        help="keep only the inputs of blocks, and compute the rest again in the backward pass",
    )
    add(
        "--accumulate",
        type=positive_int,
        metavar="N",
        help="parts of a batch, one after the other, whose gradients add up to one update "
        "(default: 1)",
    )
    add(
        "--data",
        metavar="PATH",
        help="folder with the real data, or a text for language models (default: synthetic data)",
    )
    add("--download", action="store_true", help="fetch the data into the folder of --data first")
    add("--image-size", type=positive_int, metavar="PIXELS", help="edge of the square images")
    add("--workers", type=non_negative_int, metavar="N", help="processes that load data")
    add("--seed", type=seed_value, metavar="N", help="seed of all randomness (default: 0)")
    add(
        "--nproc",
        type=rank_count,
        metavar="N",
        help="ranks that train together, each with a batch of its own, and on a GPU of its own "
        "(default: 1)",
    )
    add(
        "--profile",
        type=non_negative_int,
        metavar="N",
        help="steps under torch.profiler after the timed ones (default: 4; 0: none); of a program "
        "of your own so many of its steps, if given",
    )
    add(
        "--counters",
        action="store_true",
        help="executed FLOP and DRAM traffic of one or two more steps, by ncu",
    )


_TRAINING = """
    batch_size epochs steps warmup lr size mode dtype memory_format attention compile
    checkpointing accumulate device data download image_size workers seed nproc
"""
TRAINING_FLAGS = tuple(_TRAINING.split())
"""Flags that affect the training: the ``parameters`` of the ``run`` event."""

FLAGS = (*TRAINING_FLAGS, "profile", "counters")
"""All flags, including those for measurements after the timed steps."""


def parameters_to_argv(parameters: Mapping[str, Any]) -> list[str]:
    """The flags for these parameters (``{"batch_size": 64}`` becomes ``--batch-size 64``).

    Parameters that are None or False are left out.

    Raises:
        ValueError: a parameter is not a flag of a workload.
    """
    if unknown := sorted(set(parameters) - set(FLAGS)):
        raise ValueError(f"no such workload parameter: {', '.join(unknown)}")
    argv: list[str] = []
    for name in FLAGS:
        value = parameters.get(name)
        if value is None or value is False:
            continue
        argv.append("--" + name.replace("_", "-"))
        if value is not True:
            argv.append(str(value))
    return argv


def conflict(namespace: argparse.Namespace) -> tuple[str, str] | None:
    """Why valid flags contradict each other, as (message, hint); None if they do not."""
    if namespace.download and not namespace.data:
        return "--download needs a folder to put the data into", "add --data DIR"
    if namespace.device == "cpu" and namespace.dtype == "tf32":
        return "tf32 is a format of NVIDIA's tensor cores, not of a CPU", "use --dtype float32"
    if namespace.device == "cpu" and namespace.dtype == "fp8":
        return "fp8 is a format of NVIDIA's tensor cores, not of a CPU", "use --dtype bfloat16"
    compiles = namespace.compile not in (None, "none")
    if namespace.dtype == "fp8" and (compiles or (namespace.nproc or 1) > 1):
        flag = "--compile" if compiles else "--nproc"
        return f"--dtype fp8 was never tried with {flag}", f"leave {flag} out"
    if namespace.device == "cpu" and namespace.attention in ("efficient", "cudnn"):
        return f"torch has no --attention {namespace.attention} on a CPU", "use --attention flash"
    if namespace.mode == "infer" and namespace.dtype == "fp8":
        return "--dtype fp8 scales its weights anew in every training step", "use --dtype bfloat16"
    if namespace.device == "cpu" and namespace.dtype == "float16":
        return (
            "float16 training needs half-precision kernels that torch lacks on a CPU",
            "use --dtype bfloat16",
        )
    if namespace.mode == "infer" and (found := _conflict_of_inference(namespace)) is not None:
        return found
    return _conflict_of_ranks(namespace) if (namespace.nproc or 1) > 1 else None


def unsupported(workload: str, flags: argparse.Namespace) -> tuple[str, str] | None:
    """Why a workload lacks what valid flags ask for, as (message, hint); None if it has it.

    Of a workload that is not built in only its own process knows: there, `lacking` tells.
    """
    if program(workload) is not None:
        return None
    return lacking(workload, defaults(workload), flags)


def refusal(workload: str, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a workload cannot run with these valid parameters, as (message, hint); None if it can."""
    flags = argparse.Namespace(**{**dict.fromkeys(FLAGS), **parameters})
    return conflict(flags) or unsupported(workload, flags)


def lacking(workload: str, defaults: Defaults, flags: argparse.Namespace) -> tuple[str, str] | None:
    """As `unsupported`, for a workload with these defaults."""
    one_batch = f"{workload} trains on all its data as one batch"
    if defaults.batch_size is None:
        if flags.batch_size is not None:
            return one_batch, "leave --batch-size out"
        if flags.workers is not None:
            return f"{workload} has no loader", "leave --workers out"
        if (flags.nproc or 1) > 1:
            return f"{one_batch}, which ranks cannot share", "leave --nproc out"
        if (flags.accumulate or 1) > 1:
            return f"{one_batch}, which has no parts", "leave --accumulate out"
    if flags.image_size is not None and defaults.image_size is None:
        return f"{workload} has no images, or images of one size", "leave --image-size out"
    if flags.size is not None and flags.size not in defaults.sizes:
        if not defaults.sizes:
            return f"{workload} has one size", "leave --size out"
        sizes = ", ".join(defaults.sizes)
        return f"{workload} has no size {flags.size!r}", f"choose --size from {sizes}"
    if flags.checkpointing and not defaults.checkpointing:
        return f"{workload} has no blocks to compute again", "leave --checkpointing out"
    if flags.memory_format == "channels_last" and not defaults.convolves:
        return f"{workload} convolves no images", "leave --memory-format out"
    if flags.dtype == "fp8" and not defaults.float8:
        return f"{workload} has no layers in fp8: transformer-lm has", "use --dtype bfloat16"
    if flags.attention not in (None, "auto") and not defaults.attends:
        return f"{workload} has no attention of torch", "leave --attention out"
    compiles = flags.compile not in (None, "none")
    if compiles and defaults.sparse:
        return f"torch.compile knows no sparse products, and {workload} has", "leave --compile out"
    if compiles and defaults.routes:
        return (
            f"--compile would compile {workload} anew as its tokens go to other experts",
            "leave --compile out",
        )
    if flags.mode == "infer" and defaults.sparse and flags.dtype in ("bfloat16", "float16"):
        return f"the sparse products of {workload} are in float32 alone", "use --dtype float32"
    if compiles and flags.mode == "infer" and defaults.generates:
        return (
            f"--compile would compile {workload} anew as the cache of its tokens grows",
            "leave --compile out, or use --mode train",
        )
    if flags.download and not defaults.downloads:
        return (
            f"--download cannot fetch data for {workload}",
            "leave it out, and give --data a copy of your own",
        )
    if flags.data and defaults.text and os.path.isdir(flags.data):
        return (
            f"--data {flags.data} is a folder, and {workload} reads one text",
            "give --data FILE.txt, or leave --data out for synthetic text",
        )
    if flags.data and not defaults.text and os.path.isfile(flags.data):
        return (
            f"--data {flags.data} is a file, and {workload} reads a folder of its own format",
            "give --data its folder, or leave --data out for synthetic data",
        )
    batch_size = flags.batch_size or defaults.batch_size
    if batch_size and batch_size % (flags.accumulate or 1):
        return (
            f"a batch of {batch_size} cannot be divided into {flags.accumulate} equal parts",
            "choose an --accumulate that divides the --batch-size",
        )
    return None


def _conflict_of_inference(namespace: argparse.Namespace) -> tuple[str, str] | None:
    """Flags of training, which inference does not use."""
    given = {
        "--lr": namespace.lr is not None,
        "--checkpointing": namespace.checkpointing,
        "--accumulate": (namespace.accumulate or 1) > 1,
        "--nproc": (namespace.nproc or 1) > 1,
    }
    for flag, used in given.items():
        if used:
            return f"{flag} is for training, and --mode infer does not train", f"leave {flag} out"
    return None


def _conflict_of_ranks(namespace: argparse.Namespace) -> tuple[str, str] | None:
    if namespace.profile or namespace.counters:
        flag = "--counters" if namespace.counters else "--profile"
        return f"{flag} measures one process, and --nproc starts several", "leave one of them out"
    if re.fullmatch(r"cuda:\d+", namespace.device or ""):
        return (
            f"--device {namespace.device} is one GPU, and --nproc gives each rank its own",
            "use --device cuda, and choose GPUs with CUDA_VISIBLE_DEVICES",
        )
    return None
