from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import gpuwatch.workloads
from gpuwatch.workloads.names import BUILT_IN, check, defaults, known, suggest
from gpuwatch.workloads.options import (
    FLAGS,
    add_arguments,
    conflict,
    parameters_to_argv,
    unsupported,
)

SOURCE = Path(gpuwatch.workloads.__file__).resolve().parent


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser.add_argument)
    return parser.parse_args(argv)


def test_names_and_options_import_without_torch() -> None:
    code = "import sys, gpuwatch.workloads.names, gpuwatch.workloads.options, "
    code += "gpuwatch.workloads.archive; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_flags_survive_the_way_to_the_command_line_and_back() -> None:
    argv = (
        "--batch-size 32 --steps 5 --lr 0.01 --dtype bfloat16 --device cuda:1 --data d --download"
    )
    flags = parse(*argv.split())
    assert parse(*parameters_to_argv(vars(flags))) == flags
    assert set(vars(flags)) == set(FLAGS)


def test_parameters_that_are_not_set_give_no_flags() -> None:
    assert parameters_to_argv(vars(parse())) == []
    assert parameters_to_argv({"workers": 0, "lr": None, "download": False}) == ["--workers", "0"]


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="speed"):
        parameters_to_argv({"speed": 9})


@pytest.mark.parametrize(
    "argv",
    [
        "--batch-size 0",
        "--batch-size many",
        "--steps -1",
        "--steps 0",
        "--epochs 0",
        "--warmup -1",
        "--lr nan",
        "--lr inf",
        "--lr 0",
        "--lr -0.1",
        "--dtype float64",
        "--device tpu",
        "--device cuda:x",
        "--workers -1",
        "--seed -1",
        "--seed 4294967296",
        "--image-size 0",
    ],
)
def test_a_value_that_cannot_be_is_refused(argv: str) -> None:
    with pytest.raises(argparse.ArgumentError):
        parse(*argv.split())


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ("--download", "folder"),
        ("--device cpu --dtype tf32", "tf32"),
        ("--device cpu --dtype float16", "half-precision"),
        ("--device cpu --dtype fp8", "tensor cores"),
        ("--mode infer --dtype fp8", "in every training step"),
        ("--compile --dtype fp8", "never tried with --compile"),
        ("--nproc 2 --dtype fp8", "never tried with --nproc"),
        ("--device cpu --attention cudnn", "no --attention cudnn on a CPU"),
        ("--mode infer --lr 0.1", "does not train"),
        ("--mode infer --checkpointing", "does not train"),
        ("--mode infer --accumulate 2", "does not train"),
        ("--mode infer --nproc 2", "does not train"),
    ],
)
def test_flags_that_contradict_each_other_are_told_with_a_mend(argv: str, word: str) -> None:
    found = conflict(parse(*argv.split()))
    assert found is not None
    message, hint = found
    assert word in message
    assert "--" in hint


@pytest.mark.parametrize(
    ("workload", "argv", "word"),
    [
        ("mnist-cnn", "--size base", "has one size"),
        ("bert", "--size 7b", "no size '7b'"),
        ("mnist-cnn", "--checkpointing", "no blocks"),
        ("gcn", "--compile", "knows no sparse products"),
        ("moe-lm", "--compile", "other experts"),
        ("resnet18", "--attention math", "no attention"),
        ("bert", "--dtype fp8", "no layers in fp8"),
        ("gcn", "--mode infer --dtype bfloat16", "in float32 alone"),
        ("gcn", "--batch-size 8", "one batch"),
        ("gcn", "--accumulate 2", "no parts"),
        ("bert", "--memory-format channels_last", "convolves no images"),
        ("gcn", "--nproc 2", "ranks cannot share"),
        ("mnist-cnn", "--image-size 64", "no images"),
        ("mnist-cnn", "--accumulate 5", "64 cannot be divided into 5"),
        ("bert", "--batch-size 9 --accumulate 2", "9 cannot be divided into 2"),
        ("transformer-lm", "--mode infer --compile", "as the cache of its tokens grows"),
        ("transformer-lm", "--download --data x", "cannot fetch"),
        ("gcn", "--download --data x", "cannot fetch"),
        ("sentiment-gru", "--download --data x", "cannot fetch"),
        ("torchvision:vit_b_16", "--download --data x", "cannot fetch"),
        ("bert", f"--data {SOURCE}", "is a folder"),
        ("cifar10-cnn", f"--data {SOURCE / 'main.py'}", "is a file"),
    ],
)
def test_what_a_workload_lacks_is_refused_without_torch(
    workload: str, argv: str, word: str
) -> None:
    flags = parse(*argv.split())
    assert conflict(flags) is None
    found = unsupported(workload, flags)
    assert found is not None
    assert word in found[0] and "--" in found[1]


def test_what_a_workload_has_is_not_refused() -> None:
    for name in BUILT_IN:
        assert unsupported(name, parse()) is None
        assert unsupported(name, parse("--mode", "infer")) is None
        for size in defaults(name).sizes:
            assert unsupported(name, parse("--size", size)) is None
    flags = parse("--checkpointing", "--compile", "--accumulate", "4", "--attention", "flash")
    assert unsupported("bert", flags) is None and flags.compile == "default"
    assert unsupported("gcn", parse("--compile", "none", "--attention", "auto")) is None
    for name in ("mnist-cnn", "cifar10-cnn", "unet-diffusion"):
        assert unsupported(name, parse("--download", "--data", "x")) is None


def test_flags_that_agree_have_no_conflict() -> None:
    assert conflict(parse("--download", "--data", "d", "--dtype", "tf32")) is None


def test_every_built_in_name_has_a_module_and_a_summary() -> None:
    for name, summary in known().items():
        assert check(name) == name
        assert summary


def test_a_misspelt_name_is_refused_with_the_one_that_was_meant() -> None:
    assert suggest("resnet5")[0] == "resnet50"
    with pytest.raises(ValueError, match="did you mean resnet50"):
        check("resnet5")


@pytest.mark.parametrize("name", ["resnet34", "ResNet34", "vit_b_16", "vit_b16"])
def test_a_model_of_torchvision_is_meant_by_its_bare_name(name: str) -> None:
    meant = "resnet34" if "34" in name else "vit_b_16"
    with pytest.raises(ValueError, match=f"did you mean torchvision:{meant}"):
        check(name)


@pytest.mark.torch
def test_the_models_that_are_suggested_are_those_of_torchvision() -> None:
    models = importlib.import_module("torchvision.models")
    there = set(models.list_models(module=models))
    assert {suggest(name)[0] for name in there - known().keys()} <= {
        f"torchvision:{name}" for name in there
    }


def test_any_torchvision_name_passes_until_torchvision_is_asked() -> None:
    assert check("torchvision:vit_b_16") == "torchvision:vit_b_16"
    with pytest.raises(ValueError, match="torchvision:MODEL"):
        check("torchvision:")
