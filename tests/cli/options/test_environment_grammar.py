"""``--env KIND[=IMAGE][,option...]``: what each form means, and what every wrong one is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuwatch.cli.options.environments import environments
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import Environment, Mount


def one(text: str, python: str | None = None, *, pull: bool = False) -> Environment:
    (found,) = environments([text], python, pull=pull)
    return found


def labelled(*texts: str, python: str | None = None) -> list[str]:
    return [each.label for each in environments(texts, python)]


def refused(*texts: str) -> str:
    with pytest.raises(UsageError) as error:
        environments(texts)
    assert error.value.hint, "an error without how to fix it"
    return str(error.value)


def test_a_kind_alone_asks_for_nothing_else() -> None:
    assert one("bare") == Environment("bare", "bare")
    assert one("docker") == Environment("docker", "docker")


@pytest.mark.parametrize(
    "image",
    [
        "torch:2.6",
        "registry.example:5000/team/torch@sha256:abc",
        "docker://pytorch/pytorch:2.6",
        "docker-daemon:torch:latest",
        "a=b",
    ],
)
def test_everything_behind_the_first_equals_sign_is_the_image(image: str) -> None:
    found = one(f"docker={image}")
    assert found.image == image and found.label == f"docker={image}"


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("/images/torch.sif", "torch.sif"),
        ("./torch.sif", "torch.sif"),
        ("../roots/torch/", "torch"),
        ("~/torch.sif", "torch.sif"),
    ],
)
def test_an_image_that_is_a_path_is_labelled_by_its_last_part(image: str, name: str) -> None:
    found = one(f"apptainer={image}")
    assert found.image == image and found.label == f"apptainer={name}"


def test_images_of_one_name_in_two_folders_are_told_apart_by_as_much_of_the_path_as_it_takes() -> (
    None
):
    assert labelled("apptainer=/x/a/torch.sif", "apptainer=/x/b/torch.sif") == [
        "apptainer=.../a/torch.sif",
        "apptainer=.../b/torch.sif",
    ]
    assert labelled("apptainer=/v/x/a/torch.sif", "apptainer=/v/y/a/torch.sif") == [
        "apptainer=.../x/a/torch.sif",
        "apptainer=.../y/a/torch.sif",
    ]


def test_an_empty_image_is_refused() -> None:
    with pytest.raises(UsageError, match="names no image"):
        one("docker=")
    assert one("docker") == Environment("docker", "docker")


def test_options_stand_behind_the_image_in_any_order() -> None:
    found = one("docker=x,network=host,memory=8g,shm=512m,python=/opt/bin/python,mount=/data")
    assert found == Environment(
        "docker",
        "docker=x",
        "x",
        "/opt/bin/python",
        (Mount("/data", "/data"),),
        512 << 20,
        8 << 30,
        "host",
    )


def test_of_an_option_given_twice_the_last_counts_but_mounts_add_up() -> None:
    found = one("docker=x,shm=1g,shm=2g,mount=/a,mount=/b:/c:rw")
    assert found.shm_bytes == 2 << 30
    assert found.mounts == (Mount("/a", "/a"), Mount("/b", "/c", True))


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/data", Mount("/data", "/data")),
        ("/data:ro", Mount("/data", "/data")),
        ("/data:rw", Mount("/data", "/data", True)),
        ("/data:/in", Mount("/data", "/in")),
        ("/data:/in:ro", Mount("/data", "/in")),
        ("/data:/in:rw", Mount("/data", "/in", True)),
        ("/data/../x/:/in//sub/", Mount("/x", "/in/sub")),
        ("/with space:/in", Mount("/with space", "/in")),
    ],
)
def test_a_mount_is_read_only_unless_it_says_rw(text: str, mount: Mount) -> None:
    assert one(f"docker=x,mount={text}").mounts == (mount,)


def test_the_source_of_a_mount_may_be_relative_or_below_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert one("docker=x,mount=data:/in").mounts == (Mount(f"{tmp_path}/data", "/in"),)
    assert one("docker=x,mount=data").mounts == (Mount(f"{tmp_path}/data", f"{tmp_path}/data"),)
    assert one("docker=x,mount=~/d:/in").mounts == (Mount("/home/me/d", "/in"),)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096b", 4096),
        ("64k", 64 << 10),
        ("512m", 512 << 20),
        ("512M", 512 << 20),
        ("512MB", 512 << 20),
        ("8GiB", 8 << 30),
        ("1t", 1 << 40),
    ],
)
def test_sizes_are_in_powers_of_1024(text: str, size: int) -> None:
    assert one(f"docker=x,shm={text}").shm_bytes == size
    assert one(f"docker=x,memory={text}").memory_bytes == size


@pytest.mark.parametrize("network", ["host", "bridge", "none"])
def test_a_network_is_one_of_three(network: str) -> None:
    assert one(f"docker=x,network={network}").network == network


def test_python_of_the_command_line_is_for_bare_alone() -> None:
    assert one("bare", "/venv/python").python == "/venv/python"
    both = environments(["docker=x", "bare"], "/venv/python")
    assert [each.python for each in both] == [None, "/venv/python"]
    with pytest.raises(UsageError, match="--python sets the interpreter of the bare"):
        one("docker=x", "/venv/python")
    assert one("bare,python=/other", "/venv/python").python == "/other"


def test_pull_is_for_all() -> None:
    assert one("docker=x", pull=True).pull and not one("docker=x").pull


def test_only_an_environment_that_is_given_again_is_numbered() -> None:
    assert labelled("bare", "docker=x", "bare", "docker=y", "bare,python=/p") == [
        "bare#1", "docker=x", "bare#2", "docker=y", "bare,python=/p",
    ]  # fmt: skip
    assert labelled("docker=x,shm=1g", "docker=x,shm=1024m") == ["docker=x#1", "docker=x#2"]
    assert labelled("bare", "bare,python=/p", python="/p") == ["bare#1", "bare#2"]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["docker=x", "docker=x,shm=1g"], ["docker=x", "docker=x,shm=1g"]),
        (["docker=x,shm=1536m", "docker=x,shm=1g"], ["docker=x,shm=1536m", "docker=x,shm=1g"]),
        (["docker=x,memory=8g", "docker=x"], ["docker=x,memory=8g", "docker=x"]),
        (
            ["docker=x,network=host,shm=1g", "docker=x,network=none,shm=1g"],
            ["docker=x,network=host", "docker=x,network=none"],
        ),
        (
            ["bare,python=/home/me/old/bin/python", "bare,python=/home/me/new/bin/python"],
            ["bare,python=.../old/bin/python", "bare,python=.../new/bin/python"],
        ),
        (["bare", "bare,python=/home/me/new/bin/python"], ["bare", "bare,python=.../bin/python"]),
        (
            ["docker=x,mount=/a/b/data:/in", "docker=x,mount=/a/b/data:/in:rw"],
            ["docker=x,mount=.../b/data:/in", "docker=x,mount=.../b/data:/in:rw"],
        ),
        (
            ["docker=x,mount=/data", "docker=x,mount=/data,mount=/more"],
            ["docker=x,mount=/data", "docker=x,mount=/data+/more"],
        ),
        (["apptainer=torch.sif", "apptainer=./torch.sif"], None),
        (["bare,python=/1/2/3/4/5/6/7/8/9/x", "bare,python=/0/2/3/4/5/6/7/8/9/x"], None),
    ],
)
def test_what_environments_differ_in_is_in_their_labels(
    texts: list[str], told: list[str] | None
) -> None:
    found = labelled(*texts)
    assert len(set(found)) == len(texts) and not any("#" in each for each in found)
    assert told is None or found == told
    assert labelled(*texts[::-1]) == found[::-1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "unknown environment ''"),
        ("podman", "choose from: apptainer, bare"),
        ("Docker=x", "unknown environment 'Docker'"),
        ("=x", "unknown environment ''"),
        (",shm=1g", "unknown environment ''"),
        ("docker=x,", "unknown option ''"),
        ("docker=x,gpus=all", "unknown option 'gpus=all'"),
        ("docker=x,shm", "unknown option 'shm'"),
        ("docker=x,shm=", "unknown option 'shm='"),
        ("docker=x,python", "unknown option 'python'"),
        ("docker=x,shm=much", "invalid size 'much'"),
        ("docker=x,shm=0", "invalid size '0'"),
        ("docker=x,shm=1.5g", "invalid size '1.5g'"),
        ("docker=x,memory=-1", "invalid size '-1'"),
        ("docker=x,memory=8 g", "invalid size '8 g'"),
        ("docker=x,network=default", "choose from: host, bridge, none"),
        ("docker=x,mount=/a:/b:/c", "invalid mount="),
        ("docker=x,mount=/a:/b:rx", "invalid mount="),
        ("docker=x,mount=:/b", "invalid mount="),
        ("docker=x,mount=/a:", "invalid mount="),
        ("docker=x,mount=/a:b", "is not an absolute path below /"),
        ("docker=x,mount=/a:/", "is not an absolute path below /"),
        ("docker=x,mount=/a:/x/..", "is not an absolute path below /"),
        ("docker=x,mount=/", "is not an absolute path below /"),
    ],
)
def test_a_wrong_form_is_told_with_what_is_right(text: str, says: str) -> None:
    assert says in refused(text)
    assert says in refused("bare", text)


def test_an_absolute_target_does_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert one("docker=x,mount=.:/code").mounts == (Mount(os.getcwd(), "/code"),)
