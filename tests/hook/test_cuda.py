"""The hook on a real GPU: the times that it tells are those that the program takes itself. Skipped
by name where torch sees none."""

from __future__ import annotations

import pytest

from tests.hook.test_programs import Start, start  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]
EARLY = 50


@pytest.fixture(autouse=True)
def cuda() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")


@pytest.mark.parametrize(
    ("loop", "steps"), [("short", 3000), ("ahead", 3000), ("long", 60), ("captured", 200)]
)
def test_the_steps_take_the_time_that_the_program_measures(
    start: Start,  # noqa: F811
    loop: str,
    steps: int,
) -> None:
    ran = start("on_gpu.py", loop)
    assert ran.code == 0, ran.stderr
    (told,) = ran.told
    assert told.of("problem") == [] and told.steps == steps
    lines = told.of("step")
    seconds = [each for line in lines for each in line["seconds"]]
    assert sum(seconds[EARLY:]) == pytest.approx(float(ran.stdout.split()[-1]), rel=0.05)
    for line in lines:
        assert 0 <= line.get("sampled", 0) <= line["count"]
        if "sampled" not in line:
            assert sum(line["phases"].values()) == pytest.approx(sum(line["seconds"]), rel=1e-3)
    timing = told.of("timing")[-1]
    assert sum(timing["steps_by"].values()) == steps
    if loop == "long":
        assert timing["steps_by"] == {"events": steps - 1, "host": 1}, "the first is the host's"
