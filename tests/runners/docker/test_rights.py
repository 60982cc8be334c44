"""What a workload may see and do in its container."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import Mount
from gpuwatch.runners.docker import container
from gpuwatch.runners.docker.client import Daemon

from .conftest import Lab, launch_spec

PROBE = """
import json, os, socket

def attempt(path):
    try:
        with open(path, "w"):
            return "written"
    except OSError as error:
        return error.strerror

status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
print("PROBE", json.dumps({
    "capabilities": [status[name] for name in ("CapEff", "CapPrm", "CapBnd")],
    "no_new_privileges": status["NoNewPrivs"],
    "user": [os.getuid(), os.getgid()],
    "groups": sorted(os.getgroups()),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "init": open("/proc/1/comm").read().strip(),
    "root": attempt("/file"),
    "here": attempt("file"),
    "mounted": attempt("/mnt/data/file"),
    "writable": attempt("/mnt/out/file"),
    "tmp": attempt("/tmp/file"),
    "read": open("/mnt/data/known").read(),
    "cwd": os.getcwd(),
    "home": os.environ["HOME"],
    "names": sorted(os.environ),
    "visible": os.environ.get("NVIDIA_VISIBLE_DEVICES"),
    "shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "arguments": __import__("sys").argv[1:],
    "tmp_executable": not os.statvfs("/tmp").f_flag & os.ST_NOEXEC,
}))
"""


@pytest.mark.docker
def test_a_workload_has_no_rights_beyond_its_work(lab: Lab, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "written"
    data.mkdir()
    out.mkdir()
    (data / "known").write_text("content")
    lab.cli.variables |= {"SECRET_TOKEN": "x", "OMP_NUM_THREADS": "3"}
    options = f",mount={data}:/mnt/data,mount={out}:/mnt/out:rw,shm=32m"
    weird = ["$HOME", "a b", "`id`", "--", "é\n"]
    seen = lab.record("python3", "-c", PROBE, *weird, options=options)
    (line,) = [text for _, text in seen.log if text.startswith("PROBE")]
    told: dict[str, Any] = json.loads(line.removeprefix("PROBE"))
    assert told["capabilities"] == ["0" * 16] * 3
    assert told["no_new_privileges"] == "1"
    assert told["user"] == [os.geteuid(), os.getegid()]
    assert set(told["groups"]) == {*os.getgroups(), os.getegid()}
    assert told["interfaces"] == ["lo"]
    assert told["root"] == told["here"] == told["mounted"] == "Read-only file system"
    assert told["writable"] == told["tmp"] == "written" and (out / "file").exists()
    assert told["read"] == "content" and told["tmp_executable"]
    assert told["cwd"] == str(lab.cli.home) and told["home"] == "/tmp"
    assert "SECRET_TOKEN" not in told["names"] and "OMP_NUM_THREADS" in told["names"]
    assert told["visible"] == "void"
    assert told["shm"] == 32 << 20
    assert told["arguments"] == weird


@pytest.mark.docker
def test_the_network_is_the_machines_only_when_asked_for(lab: Lab) -> None:
    program = "import os; print(os.readlink('/proc/self/ns/net'))"
    seen = lab.record("python3", "-c", program, options=",network=host")
    assert seen.text.strip() == os.readlink("/proc/self/ns/net")
    assert seen.meta["environment"]["network"] == "host"


def test_daemons_that_map_users_are_taken_into_account() -> None:
    spec = launch_spec("image", "true")
    plain = Daemon("unix:///x", info={"SecurityOptions": ["name=seccomp,profile=default"]})
    rootless = Daemon("unix:///x", info={"SecurityOptions": ["name=rootless"]})
    remapped = Daemon("unix:///x", info={"SecurityOptions": ["name=userns"]})
    labelled = Daemon("unix:///x", info={"SecurityOptions": ["name=selinux"]})
    assert container.user(plain).inside == f"{os.geteuid()}:{os.getegid()}"
    assert container.user(rootless).inside == "0:0"
    assert "userns_mode" not in container.host_config(spec, plain)
    assert container.host_config(spec, remapped)["userns_mode"] == "host"
    assert "label=disable" in container.host_config(spec, labelled)["security_opt"]


def test_a_mount_at_tmp_takes_the_place_of_the_tmpfs() -> None:
    daemon = Daemon("unix:///x")
    spec = launch_spec("image", "true", mounts=(Mount("/data", "/tmp"),))
    assert "tmpfs" in container.host_config(launch_spec("image", "true"), daemon)
    assert "tmpfs" not in container.host_config(spec, daemon)
