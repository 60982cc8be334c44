from __future__ import annotations

import os
import platform
import subprocess
import sys

from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.host.fingerprint import fingerprint_host, fingerprint_process


def test_the_host_s_facts_are_flat_and_none_where_unknown() -> None:
    gpu = Device("gpu0", "gpu", "H100", "GPU-1", {"driver.version": "575", "mig.enabled": False})
    facts = fingerprint_host([gpu])
    assert facts["os.kernel"] == platform.release()
    assert isinstance(facts["memory.total"], int)
    assert facts["gpu0.driver.version"] == "575"
    assert facts["gpu0.mig.enabled"] == "no"
    assert all(value is None or type(value) in (str, int, float) for value in facts.values())
    assert "" not in facts.values()


def test_only_listed_variables_are_kept_and_never_a_secret() -> None:
    secrets = {
        "AWS_SECRET_ACCESS_KEY": "hush",
        "HF_TOKEN": "hush",
        "NCCL_AUTH_TOKEN": "hush",
        "CUDA_REGISTRY_KEY": "hush",
        "TORCH_HUB_LOGIN": "hush",
        "NCCL_CONF_FILE": "hush",
        "MY_CUDA_THING": "hush",
        "LD_PRELOAD": "",
    }
    env = os.environ | secrets | {"CUDA_VISIBLE_DEVICES": "1", "NCCL_DEBUG": "INFO"}
    program = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert program.stdout
    program.stdout.readline()
    facts = fingerprint_process(program.pid)
    program.communicate(b"\n")
    assert facts["process.env.CUDA_VISIBLE_DEVICES"] == "1"
    assert facts["process.env.NCCL_DEBUG"] == "INFO"
    assert facts["process.env.LD_PRELOAD"] == "present"
    assert "hush" not in facts.values()
    assert facts["process.uid"] == os.getuid()
    assert facts["process.seccomp"] in ("off", "strict", "filter")


def test_how_a_process_is_scheduled_and_what_its_libraries_were_told() -> None:
    variables = {
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "DNNL_VERBOSE": "0",
        "MKL_CBWR": "COMPATIBLE",
        "KMP_BLOCKTIME": "1",
        "OMP_STACKSIZE": "8M",
        "MALLOC_ARENA_MAX": "2",
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    }
    program = subprocess.Popen(
        [sys.executable, "-c", _SCHEDULED],
        env=os.environ | variables | {"OMP_TOOL_LIBRARIES": "/hush.so", "MALLOC_TRACE": "/hush"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert program.stdout
    program.stdout.readline()
    facts = fingerprint_process(program.pid)
    program.communicate(b"\n")
    assert {name: facts[f"process.env.{name}"] for name in variables} == variables
    assert facts.keys() & {"process.env.OMP_TOOL_LIBRARIES", "process.env.MALLOC_TRACE"} == set()
    assert facts["process.nice"] == min(19, os.nice(0) + 3)
    assert facts["process.scheduling.policy"] == "batch"
    assert facts["process.scheduling.priority"] == 0


_SCHEDULED = """
import os
os.nice(3)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
print(flush=True)
input()
"""


def test_a_process_that_has_ended_has_no_facts_even_before_its_parent_asks_for_it() -> None:
    with subprocess.Popen(["true"]) as program:
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        assert fingerprint_process(program.pid) == {}
        program.wait()
        assert fingerprint_process(program.pid) == {}
