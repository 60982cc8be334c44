"""Ways to take a step: train, infer, or generate tokens; each marks its own phases."""

from __future__ import annotations

import contextlib
import inspect
import shutil
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from .distributed import replicate
from .failures import EnvironmentFailure, UsageFailure, install
from .float8 import with_float8
from .ranks import Rank
from .reporter import Result
from .task import Generation, Settings, Task

HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16, "fp8": torch.bfloat16}
"""Types of autocast in training, and of the weights in inference."""
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}

Mark = Callable[[], None]


def way_of(task: Task, settings: Settings, device: torch.device, rank: Rank) -> Train | Infer:
    """The way that the settings ask for, with the model on the device.

    Each takes a step on a batch on the device, whose ``phases`` it marks the ends of, in order, and
    ends an epoch.
    """
    if settings.mode == "train":
        return Train(task, settings, device, rank)
    dtype = HALF.get(settings.dtype)
    model = task.model.eval().requires_grad_(False).to(dtype)
    model = model.to(device).to(memory_format=FORMATS[settings.memory_format])
    if (generation := task.generation) is not None:
        # The prompts in one pass, then one token of every sequence at a time.
        return Infer(
            ("prefill", "decode"), lambda inputs, mark: generate(model, inputs[0], generation, mark)
        )
    model = _compiled(model, settings)

    def forward(inputs: tuple[Tensor, ...], mark: Mark) -> None:
        task.predict(model, cast(inputs, dtype))
        mark()

    return Infer(("forward",), forward)


class Train:
    """Forward, backward, and an update of the weights; with accumulation several of the former."""

    def __init__(self, task: Task, settings: Settings, device: torch.device, rank: Rank) -> None:
        self.phases = (*("forward", "backward") * settings.accumulate, "optimizer")
        self._parts = settings.accumulate
        self._objective = task.objective
        model = with_float8(task.model) if settings.dtype == "fp8" else task.model
        model = model.to(device).to(memory_format=FORMATS[settings.memory_format])
        self._replicated = replicate(rank, model.train(), device)
        self._model = _compiled(self._replicated, settings)
        takes = inspect.signature(task.optimizer).parameters
        fused = {"fused": True} if device.type == "cuda" and "fused" in takes else {}
        self._optimizer = task.optimizer(self._replicated.parameters(), **fused)
        self._scheduler = task.scheduler(self._optimizer) if task.scheduler else None
        self._device = device
        self._graphs = settings.compile in ("reduce-overhead", "max-autotune")
        self._autocast = HALF.get(settings.dtype)
        self._scaler = torch.amp.GradScaler() if settings.dtype == "float16" else None

    def step(self, inputs: tuple[Tensor, ...], target: Tensor, mark: Mark) -> Result:
        result = self._gradients(inputs, target, mark)
        if self._scaler is None:
            self._optimizer.step()
        else:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        self._optimizer.zero_grad(set_to_none=True)
        mark()
        return result

    def end_epoch(self) -> None:
        if self._scheduler is not None:
            self._scheduler.step()

    def _gradients(self, inputs: tuple[Tensor, ...], target: Tensor, mark: Mark) -> Result:
        if self._parts == 1:
            return self._pass(inputs, target, 1.0, mark)
        samples = target.shape[0]
        split = zip(*(t.tensor_split(self._parts) for t in (*inputs, target)), strict=True)
        results = []
        for number, (*part, wanted) in enumerate(split, 1):
            if not wanted.shape[0]:  # of an epoch's last batch
                mark()
                mark()
                continue
            with self._alone(last=number == self._parts):
                share = wanted.shape[0] / samples
                results.append(self._pass(tuple(part), wanted, share, mark))
        return _sum(results)

    def _pass(self, inputs: tuple[Tensor, ...], target: Tensor, share: float, mark: Mark) -> Result:
        """Add the gradients of a part of the batch; the loss of the result is its share."""
        with self._casting():
            loss, scores, labels = self._objective(self._model, inputs, target)
            loss = loss if share == 1 else loss * share
        mark()
        scaled = loss if self._scaler is None else self._scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call]
        mark()
        if scores is not None:  # a CUDA graph writes the next step's into the same memory
            scores = scores.detach().clone() if self._graphs else scores.detach()
        return Result(loss.detach(), scores, labels)

    def _alone(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Average gradients over the ranks after the last part only."""
        if last or not isinstance(self._replicated, nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        return self._replicated.no_sync()

    def _casting(self) -> contextlib.AbstractContextManager[Any]:
        if self._autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, self._autocast)


class Infer:
    """Passes in evaluation mode, without loss or gradients."""

    def __init__(
        self, phases: tuple[str, ...], work: Callable[[tuple[Tensor, ...], Mark], object]
    ) -> None:
        """``work`` marks the ends of the ``phases`` of a step on the inputs."""
        self.phases = phases
        self._work = work

    def step(self, inputs: tuple[Tensor, ...], target: Tensor, mark: Mark) -> Result:
        with torch.inference_mode():
            self._work(inputs, mark)
        return Result(None, None, None)

    def end_epoch(self) -> None:
        """Nothing changes."""


def generate(model: Any, prompts: Tensor, generation: Generation, mark: Mark) -> Any:
    """Generate the likeliest tokens after the prompts, int64 (N, prompt); returns the cache.

    Marks the end of the prompts, which gives the first token, and of the last token.
    """
    with torch.inference_mode():
        cache = model.cache(prompts.shape[0], generation.prompt + generation.new)
        token = model(prompts, cache).argmax(-1)
        mark()
        for _ in range(generation.new - 1):
            token = model(token, cache).argmax(-1)
        mark()
    return cache


def generate_ends(model: Any, prompts: Tensor, generation: Generation, mark: Mark) -> Any:
    """As `generate`, but of the tokens after the first only two: the next one and the last.

    The work of a token grows evenly with the cache, so all of them have the mean of these two.
    """
    with torch.inference_mode():
        cache = model.cache(prompts.shape[0], generation.prompt + generation.new)
        token = model(prompts, cache).argmax(-1)
        mark()
        token = model(token, cache).argmax(-1)
        cache.used = generation.prompt + generation.new - 2
        model(token, cache).argmax(-1)
        mark()
    return cache


def cast(tensors: tuple[Tensor, ...], dtype: torch.dtype | None) -> tuple[Tensor, ...]:
    """The tensors, those of floating point in ``dtype``, unless that is None."""
    if dtype is None:
        return tensors
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in tensors)


def memory_format(model: nn.Module, settings: Settings, device: torch.device) -> str:
    """The memory format of weights and images; of ``auto`` the one that cuDNN's convolutions in
    half precision are written for, where the model has such.

    Raises:
        UsageFailure: ``channels_last`` is asked for, and the model convolves no images.
    """
    convolves = any(isinstance(each, nn.Conv2d) for each in model.modules())
    if settings.memory_format == "channels_last" and not convolves:
        raise UsageFailure(
            f"{settings.workload} convolves no images, which channels_last is for",
            "leave --memory-format out",
        )
    if settings.memory_format != "auto":
        return settings.memory_format
    fast = convolves and device.type == "cuda" and settings.dtype in HALF
    return "channels_last" if fast else "contiguous"


def check_compiler(device: torch.device) -> None:
    """Refuse ``--compile`` where torch.compile lacks what it needs.

    Raises:
        EnvironmentFailure: there is no compiler, or no Triton for a GPU.
    """
    missing = None
    if not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
        missing, fix = "a C++ compiler", "install g++"
    elif device.type == "cuda" and find_spec("triton") is None:
        missing, fix = "Triton", install("triton")
    if missing is not None:
        raise EnvironmentFailure(
            f"--compile needs {missing}, and there is none", f"{fix}, or leave --compile out"
        )


def set_precision(dtype: str) -> None:
    """Allow TF32 in float32 products only for ``tf32``, on every machine."""
    allowed = dtype == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def set_attention(settings: Settings, device: torch.device) -> None:
    """Have all attention computed in one way of torch's.

    Raises:
        EnvironmentFailure: this torch lacks it for this device and data type.
    """
    if settings.attention == "auto":
        return
    cuda = torch.backends.cuda
    cuda.enable_math_sdp(settings.attention == "math")
    cuda.enable_flash_sdp(settings.attention == "flash")
    cuda.enable_mem_efficient_sdp(settings.attention == "efficient")
    cuda.enable_cudnn_sdp(settings.attention == "cudnn")
    some = torch.zeros(1, 1, 64, 64, device=device, dtype=HALF.get(settings.dtype))
    some.requires_grad_(settings.mode == "train")
    try:
        with warnings.catch_warnings():  # in which torch tells what each way lacks
            warnings.simplefilter("ignore")
            scaled_dot_product_attention(some, some, some, is_causal=True)
    except RuntimeError as error:
        raise EnvironmentFailure(
            f"torch {torch.__version__} has no --attention {settings.attention} for "
            f"{settings.dtype} on this {'GPU' if device.type == 'cuda' else 'CPU'}",
            "use --attention math, or leave it out",
        ) from error


def _compiled(model: nn.Module, settings: Settings) -> nn.Module:
    if settings.compile != "none":
        model.compile(mode=settings.compile)
    return model


def _sum(results: list[Result]) -> Result:
    """The result of a batch from those of its parts."""
    losses = torch.stack([result.loss for result in results if result.loss is not None])
    scores = [result.scores for result in results if result.scores is not None]
    labels = [result.labels for result in results if result.labels is not None]
    if not scores or not labels:
        return Result(losses.sum(), None, None)
    return Result(losses.sum(), torch.cat(scores), torch.cat(labels))
