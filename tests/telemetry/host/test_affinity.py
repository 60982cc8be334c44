"""Processors and memory nodes that a process may use, as the kernel tells them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.telemetry.host import affinity

_NUMBERS = {"x86_64": 238, "aarch64": 237}
"""Of the system call ``set_mempolicy``."""
_BIND = 2


def written(
    root: Path, *, cpus: str = "0-127", nodes: str = "0-7", policy: str = "default"
) -> Path:
    """Files of process 7 on a machine with processors 0 to 63 and memory in nodes 0 and 1."""
    for name, text in {
        "proc/7/status": f"Name:\tx\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{nodes}\n",
        "proc/7/numa_maps": f"5555 {policy} file=/bin/x\n7fff {policy} stack\n",
        "sys/devices/system/cpu/online": "0-63\n",
        "sys/devices/system/node/has_memory": "0-1\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_what_the_machine_has_no_place_for_is_left_out(tmp_path: Path) -> None:
    root = written(tmp_path)
    assert affinity.cpus(7, root) == affinity.every_cpu(root) == "0-63"
    assert affinity.memory_nodes(7, root) == affinity.every_node(root) == "0-1"


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        ("bind:1", "1"),
        ("bind=static:0", "0"),
        ("bind:0-1", "0-1"),
        ("interleave:0-1", "0-1"),
        ("prefer:1", "0-1"),
    ],
)
def test_memory_that_is_bound_is_in_those_nodes_alone(
    tmp_path: Path, policy: str, nodes: str
) -> None:
    assert affinity.memory_nodes(7, written(tmp_path, policy=policy)) == nodes


def test_a_list_with_holes_is_told_as_the_kernel_does(tmp_path: Path) -> None:
    assert affinity.cpus(7, written(tmp_path, cpus="0,2-4,8,63-70")) == "0,2-4,8,63"


def test_the_kernels_own_words_for_a_bound_process_are_read() -> None:
    number = _NUMBERS.get(os.uname().machine)
    if number is None or not Path("/proc/self/numa_maps").exists():
        pytest.skip("this kernel tells no memory policy")
    program = (
        "import ctypes; "
        f"assert not ctypes.CDLL(None).syscall({number}, {_BIND}, "
        "ctypes.byref(ctypes.c_ulong(1)), ctypes.c_ulong(64)); "
        "print(flush=True); input()"
    )
    bound = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert bound.stdout
    bound.stdout.readline()
    policy = Path(f"/proc/{bound.pid}/numa_maps").read_text().splitlines()[0].split()[1]
    nodes = affinity.memory_nodes(bound.pid)
    bound.communicate(b"\n")
    assert (policy, nodes, bound.returncode) == ("bind:0", "0", 0)


def test_nothing_is_known_of_a_process_that_is_gone(tmp_path: Path) -> None:
    assert affinity.cpus(7, tmp_path) is affinity.memory_nodes(7, tmp_path) is None
