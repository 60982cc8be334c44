"""``gpuwatch compare --price``: what samples cost, of real sessions with known step times."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path

import pytest

from gpuwatch.analysis.study.cost import run_cost, run_energy
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.session.reading.reader import SessionReader
from tests.analysis.sessions import SECOND, record
from tests.conftest import Cli

SECONDS = (0.100, 0.102, 0.098, 0.101, 0.099)
"""Of a step, in each of the runs."""
SAMPLES, PER_HOUR = 32, 3.6
PER_MILLION = [PER_HOUR / 3600 * 1e6 * seconds / SAMPLES for seconds in SECONDS]


def _record(cli: Cli, name: str, runs: tuple[float, ...]) -> Path:
    """A study of so many runs, each with steps of a time of its own."""
    counter = cli.home / f"{name}.count"
    script = cli.home / f"{name}.py"
    script.write_text(
        "import json, pathlib, sys\n"
        f"counter = pathlib.Path({str(counter)!r})\n"
        "at = int(counter.read_text()) if counter.exists() else 0\n"
        "counter.write_text(str(at + 1))\n"
        f"seconds = {(9.0, *runs)!r}[at]\n"  # the first is the warm-up
        "for step in range(40):\n"
        f"    line = dict(event='step', step=step, seconds=seconds, samples={SAMPLES})\n"
        "    print(':::GPUWATCH', json.dumps(line), flush=True)\n"
    )
    design = ("--hook", "off", "--cool-down", "0", "--blocks", len(runs))
    cli("--record", "--out", cli.home / name, *design, "python3", script)
    (study,) = (cli.home / name).iterdir()
    return study


@pytest.fixture
def studies(cli: Cli) -> tuple[Path, Path]:
    return _record(cli, "one", SECONDS), _record(cli, "two", SECONDS[:2])


def test_a_million_samples_cost_what_the_hours_do(cli: Cli, studies: tuple[Path, Path]) -> None:
    one, two = studies
    price = ("--price", f"{one}={PER_HOUR}", "--price", f"{two.name}=7.2")
    found = json.loads(cli.read("compare", one, two, "--format", "json", *price, code=0).stdout)
    costs = {
        cell["cost"]["runs"]: cell["cost"]
        for question in found["questions"]
        for cell in question["cells"]
    }
    mean = math.exp(sum(map(math.log, PER_MILLION)) / len(PER_MILLION))
    assert costs[5]["per_million"] == pytest.approx(mean, rel=1e-6)
    assert min(PER_MILLION) < costs[5]["low"] < mean < costs[5]["high"] < max(PER_MILLION)
    assert costs[2]["per_hour"] == 7.2 and costs[2]["low"] is None
    for form in ("table", "md", "html"):
        shown = cli.read("compare", one, two, "--format", form, *price).stdout
        text = " ".join(html.unescape(shown).split())
        assert "EUR per million samples" in text and "95 % interval of 5 runs" in text
        assert "2 runs; an interval takes 3" in text


def test_what_has_no_price_has_no_cost(cli: Cli, studies: tuple[Path, Path]) -> None:
    one, two = studies
    words = ("compare", one, two, "--format")
    assert "EUR" not in cli(*words, "table").stdout
    assert "EUR" in cli(*words, "table", "--price", f"{one}=1").stdout


@pytest.mark.parametrize("price", ["x", "last", "last=", "last=-1", "last=0", "=3", "last=1e9999"])
def test_what_is_no_price_is_refused(cli: Cli, price: str) -> None:
    done = cli.read("compare", "last", "last", "--format", "table", "--price", price, code=2)
    assert "SESSION=EUR" in done.stderr


def test_a_run_costs_its_hours_by_a_flag_or_by_its_device(cli: Cli) -> None:
    study = _record(cli, "one", SECONDS[:1])
    run = sorted(study.glob("*.gpuwatch"))[-1]
    (cpu,) = (
        each["name"]
        for each in json.loads(cli.read("show", run, "--format", "json").stdout)["devices"]
        if each["kind"] == "cpu"
    )
    told = " ".join(cli.read("show", run, "--price", PER_HOUR).stdout.split())
    assert PER_HOUR / 3600 * 1e6 * SECONDS[0] / SAMPLES == pytest.approx(3.125)
    per_million = "3.13 EUR per million samples"
    assert "cost: " in told and "EUR an hour" in told
    assert f"; its timed steps alone: {per_million}" in told
    whole = " ".join(cli.read("show", "--all", run, "--price", PER_HOUR).stdout.split())
    assert whole.count(told.partition("cost: ")[2].partition(per_million)[0]) == 1
    cli.variables["GPUWATCH_PRICES"] = f"nothing=1, {cpu[:4]}=99, {cpu}={PER_HOUR}"
    assert per_million in " ".join(cli.read("show", run).stdout.split())
    assert per_million in " ".join(cli.read("compare", study).stdout.split())
    cli.variables["GPUWATCH_PRICES"] = "nothing=1"
    assert "cost: " not in cli.read("show", run).stdout
    cli.variables["GPUWATCH_PRICES"] = "H200=much"
    assert "write DEVICE=EUR" in cli.read("show", run, code=2).stderr
    written = cli("report", study)
    assert "no costs: GPUWATCH_PRICES" in written.stderr and "summary.html" in written.stdout


@pytest.mark.parametrize("profile", [0.0, 4.0])
def test_what_the_gpus_used_from_start_to_end_stands_beside_the_cost(
    tmp_path: Path, profile: float
) -> None:
    """360 W for ten seconds, a profile among them, are 0.001 kWh; before, there was no run."""
    power = [9000.0] * 8 + [360.0] * 30
    end = {"t": 15 * SECOND, "real_seconds": 10.0, "exit_code": 0}
    path = record(
        tmp_path / "01.gpuwatch",
        gauges={("gpu0", "hw.gpu.power"): power},
        extra={"result": end, "profile": {"real_seconds": profile}},
    )
    with SessionReader(path) as reader:
        session = summarise(reader)
        told = run_cost(session, PER_HOUR, run_energy(reader, session))
    assert "its GPUs used 0.00100 kWh (measured: integral of power over time" in told
    assert "±" in told


def test_a_recorded_machine_costs_what_its_recording_took(tmp_path: Path) -> None:
    path = record(
        tmp_path / "01.gpuwatch",
        gauges={("gpu0", "hw.gpu.power"): [360.0] * 21},
        extra={"workload": {"kind": "machine"}},
        steps=[],
    )
    with SessionReader(path) as reader:
        session = summarise(reader)
        told = run_cost(session, PER_HOUR, run_energy(reader, session))
    assert session.seconds and told.startswith(f"{session.seconds / 1000:.4f} EUR for ")
    assert "its GPUs used" in told
