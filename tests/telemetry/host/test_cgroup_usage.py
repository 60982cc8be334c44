"""CPU time and memory of a control group: version 1, version 2, hybrid, and this very process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpuwatch.telemetry.host.cgroup import GroupUsage

PID = 4242


def tree(root: Path, membership: str, files: dict[str, str]) -> GroupUsage:
    """A machine with these files below /sys/fs/cgroup; ``membership`` is /proc/PID/cgroup."""
    (root / f"proc/{PID}").mkdir(parents=True)
    (root / f"proc/{PID}/cgroup").write_text(membership)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return GroupUsage(PID, root)


def test_version_2_counts_microseconds_and_leaves_out_what_may_be_dropped(tmp_path: Path) -> None:
    group = tree(
        tmp_path,
        "0::/docker/abc\n",
        {
            "cgroup.controllers": "cpu memory\n",
            "docker/abc/cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n",
            "docker/abc/memory.current": "1048576\n",
            "docker/abc/memory.stat": "anon 600000\ninactive_file 48576\nactive_file 9\n",
        },
    )
    assert group.cpu_s() == 2.5
    assert group.memory() == 1_000_000
    assert group.sources == (
        "cgroup v2 cpu.stat usage_usec",
        "cgroup v2 memory.current less inactive_file",
    )


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpuacct"])
def test_version_1_counts_nanoseconds_wherever_its_controllers_are_mounted(
    tmp_path: Path, mount: str
) -> None:
    group = tree(
        tmp_path,
        "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
        {
            f"{mount}/docker/abc/cpuacct.usage": "1500000000\n",
            "memory/docker/abc/memory.usage_in_bytes": "5000000\n",
            "memory/docker/abc/memory.stat": "inactive_file 1\ntotal_inactive_file 1000000\n",
        },
    )
    assert group.cpu_s() == 1.5
    assert group.memory() == 4_000_000
    assert "v1" in group.sources[0] and "total_inactive_file" in group.sources[1]


def test_in_a_hybrid_tree_the_controllers_of_version_1_count(tmp_path: Path) -> None:
    group = tree(
        tmp_path,
        "4:cpuacct:/a\n3:memory:/a\n0::/a\n",
        {
            "unified/a/cgroup.procs": "",
            "unified/a/cpu.stat": "usage_usec 9\n",
            "cpuacct/a/cpuacct.usage": "2000000000\n",
            "memory/a/memory.usage_in_bytes": "10\n",
            "memory/a/memory.stat": "total_inactive_file 4\n",
        },
    )
    assert group.cpu_s() == 2.0 and group.memory() == 6


def test_what_may_be_dropped_is_never_more_than_what_is_used(tmp_path: Path) -> None:
    group = tree(
        tmp_path,
        "0::/a\n",
        {"a/memory.current": "5\n", "a/memory.stat": "inactive_file 9\n", "a/cpu.stat": "x y\n"},
    )
    assert group.memory() == 0
    assert group.cpu_s() is None


def test_a_group_without_accounts_is_unknown_and_never_zero(tmp_path: Path) -> None:
    group = tree(tmp_path, "0::/a\n", {"a/cgroup.procs": ""})
    assert group.cpu_s() is None and group.memory() is None


def test_half_an_account_of_memory_is_unknown(tmp_path: Path) -> None:
    group = tree(tmp_path, "0::/a\n", {"a/memory.current": "5\n", "a/memory.stat": "anon 1\n"})
    assert group.memory() is None


def test_a_process_that_is_gone_has_no_group(tmp_path: Path) -> None:
    group = GroupUsage(PID, tmp_path)
    assert group.cpu_s() is None and group.memory() is None


def test_a_group_that_goes_away_is_unknown_from_then_on(tmp_path: Path) -> None:
    group = tree(tmp_path, "0::/a\n", {"a/cpu.stat": "usage_usec 1000000\n"})
    assert group.cpu_s() == 1.0
    (tmp_path / "sys/fs/cgroup/a/cpu.stat").unlink()
    assert group.cpu_s() is None


def test_the_group_of_this_process_grows_with_its_work() -> None:
    group = GroupUsage(os.getpid())
    before = group.cpu_s()
    if before is None:
        pytest.skip("this process shows no CPU account of its control group")
    start = time.process_time()
    while time.process_time() - start < 0.1:
        pass
    after = group.cpu_s()
    assert after is not None and after - before > 0.09
    used = group.memory()
    assert used is None or used > 0
