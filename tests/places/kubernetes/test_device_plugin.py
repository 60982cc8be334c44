"""Which devices the containers of a pod are given, by a device plugin that notes it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.plan import read as read_plan
from tests.conftest import Cli
from tests.places.kubernetes.cluster import kubectl, on, the_study

pytest.importorskip("grpc")
from tests.places.kubernetes.device_plugin import RESOURCE, VARIABLE, DevicePlugin

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]


def offered() -> int:
    node = json.loads(kubectl("get", "node", "node1", "-o", "json"))
    return int(node["status"]["allocatable"].get(RESOURCE, "0"))


@pytest.fixture
def plugin(namespace: str) -> Iterator[DevicePlugin]:
    """One with four devices, which the node offers by then."""
    plugin = DevicePlugin(("one", "two", "three", "four"))
    try:
        until = time.monotonic() + 180
        while offered() < 4:
            assert time.monotonic() < until, "the node does not offer the devices"
            time.sleep(0.3)
        yield plugin
    finally:
        plugin.close()


@pytest.mark.parametrize("devices", [1, 2])
def test_all_images_of_a_block_get_the_same_devices(
    here: Cli, plugin: DevicePlugin, other_image: str, devices: int
) -> None:
    two = ("--env", "bare", "--env", f"docker={other_image},label=other", "--cool-down", "0")
    say = f"echo devices: ${VARIABLE}"
    place = on(f"gpu={RESOURCE}:{devices}")
    here("--record", "--on", place, "--blocks", "2", *two, "--", "sh", "-c", say)
    folder = the_study(here)
    plan = read_plan(folder)
    assert plan is not None and len(plan.runs) == 6
    seen: dict[str, list[str]] = {}
    for run in plan.runs:
        with SessionReader(folder / run.file) as reader:
            said = "".join(line.text for line in reader.log())
            pod = str(reader.facts()["host"]["job.id"])
        seen.setdefault(pod, []).append(said.removeprefix("devices: "))
    assert len(seen) == 3
    for in_pod in seen.values():
        assert len(in_pod) == 2 and len(set(in_pod)) == 1
        assert len(in_pod[0].split(",")) == devices
    given = [",".join(sorted(names)) for names in plugin.given]
    assert given == [said for in_pod in seen.values() for said in in_pod]
