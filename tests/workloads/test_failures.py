"""What a person can get wrong: an event, one line on stderr, an exit code, never a traceback."""

from __future__ import annotations

import json
import pickle
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.runners import charliecloud
from gpuwatch.runners.apptainer import command as apptainer
from gpuwatch.runners.docker import container as docker
from gpuwatch.workloads import failures
from gpuwatch.workloads.main import main

from .conftest import Report, parse

Run = Callable[..., Report]


def refused(done: Report, kind: str, code: int) -> dict[str, str]:
    error = done.events[-1]
    assert error["event"] == "error", done.events
    assert (error["kind"], done.code) == (kind, code)
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert error["hint"]
    assert "\n" not in error["message"] + error["hint"]
    return error


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("", "NAME"),
        ("resnet5", "did you mean resnet50"),
        ("torchvision:", "torchvision:MODEL"),
        ("mnist-cnn --batch-size 0", "--batch-size"),
        ("mnist-cnn --steps -1", "--steps"),
        ("mnist-cnn --lr nan", "--lr"),
        ("mnist-cnn --frobnicate", "--frobnicate"),
        ("mnist-cnn --download", "folder"),
        ("mnist-cnn --device cpu --dtype float16", "half-precision"),
    ],
)
def test_a_wrong_command_line_is_refused_before_torch(
    run_workload: Run, arguments: str, word: str
) -> None:
    done = run_workload(*arguments.split())
    assert word in refused(done, "usage", 2)["message"]
    assert [event["event"] for event in done.events] == ["started", "error"]


def test_a_python_without_torch_is_told_how_to_get_it(archive: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", archive, "mnist-cnn"], capture_output=True, text=True
    )
    events, log = parse(done.stdout)
    error = refused(Report(events, done.returncode, log, done.stderr), "environment", 3)
    assert error["hint"] == f"{shlex.quote(sys.executable)} -m pip install torch torchvision"


@pytest.mark.parametrize(
    ("archive", "variable", "words"),
    [
        (docker.ARCHIVE, "HOME", "gpuwatch build docker makes that of --env docker"),
        (
            *(apptainer.ARCHIVE, "SINGULARITY_CONTAINER"),
            "gpuwatch build apptainer makes that of --env apptainer",
        ),
        (charliecloud.ARCHIVE, "CH_RUNNING", "docker export unpacks that of gpuwatch build docker"),
    ],
)
def test_in_a_container_an_image_for_its_engine_is_named(
    monkeypatch: pytest.MonkeyPatch, archive: str, variable: str, words: str
) -> None:
    monkeypatch.setattr("sys.argv", [archive])
    monkeypatch.setenv(variable, "x")
    assert failures.missing("torch", ImportError()).hint == f"choose another image: {words}"


def test_the_list_is_json_lines_and_needs_no_torch(archive: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", archive, "--list"], capture_output=True, text=True, check=True
    )
    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert names[:4] == ["mnist-cnn", "sentiment-rnn", "cifar10-cnn", "gcn"]
    assert names[-1] == "torchvision:MODEL"


@pytest.fixture
def refuse(capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a command line in this process, where torch is imported already."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(*arguments: object) -> Report:
        code = main([str(argument) for argument in arguments], time.monotonic_ns())
        said = capsys.readouterr()
        events, log = parse(said.out)
        return Report(events, code, log, said.err)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("gcn --batch-size 3", "one batch"),
        ("gcn --workers 2", "no loader"),
        ("mnist-cnn --batch-size 100000", "512"),
        ("gcn --image-size 64", "no images"),
        ("torchvision:resnet5", "has no model 'resnet5'"),
        ("torchvision:fasterrcnn_resnet50_fpn", "not an image classification model"),
        ("torchvision:vit_b_16 --image-size 100", "100 x 100"),
        ("resnet18 --data /nonexistent", "no such folder"),
    ],
)
def test_what_a_workload_cannot_do_is_refused(refuse: Run, arguments: str, word: str) -> None:
    done = refuse(*arguments.split(), "--device", "cpu")
    assert word in refused(done, "usage", 2)["message"]


@pytest.mark.torch
def test_an_unknown_model_comes_with_those_that_are_close(refuse: Run) -> None:
    error = refused(refuse("torchvision:resnet5", "--device", "cpu"), "usage", 2)
    assert "torchvision:resnet50" in error["hint"]


@pytest.mark.torch
def test_a_gpus_data_type_without_a_gpu_is_refused(fork_workload: Run) -> None:
    error = refused(fork_workload("mnist-cnn", "--dtype", "tf32"), "usage", 2)
    assert "NVIDIA GPU" in error["message"]


@pytest.mark.torch
def test_a_gpu_that_is_asked_for_and_not_there_is_an_environments_failure(
    fork_workload: Run,
) -> None:
    error = refused(fork_workload("mnist-cnn", "--device", "cuda"), "environment", 3)
    assert "--device cpu" in error["hint"]


@pytest.mark.torch
def test_a_malicious_batch_is_refused_and_does_not_run(fork_workload: Run, tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    class Attack:
        def __reduce__(self) -> object:
            return Path.touch, (mark,)

    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Attack()}, 2))
    error = refused(fork_workload("cifar10-cnn", "--data", tmp_path), "usage", 2)
    assert "nothing in it was run" in error["message"]
    assert not mark.exists()


@pytest.mark.torch
def test_a_download_without_a_network_is_an_environments_failure(
    run_workload: Run, tmp_path: Path
) -> None:
    proxy = "http://127.0.0.1:9"
    done = run_workload(
        "mnist-cnn", "--data", tmp_path, "--download", http_proxy=proxy, https_proxy=proxy
    )
    error = refused(done, "environment", 3)
    assert "MNIST could not be fetched" in error["message"]
