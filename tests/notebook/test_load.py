"""``gpuwatch.load``: sessions and studies for notebooks."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpuwatch
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.metrics import Method
from gpuwatch.notebook import Session, Study
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.plan_file import document
from tests.analysis.sessions import STEPS, record
from tests.report import results

ROOT = Path(__file__).parents[2]
USE = ("gpu0", "hw.gpu.utilization")
POWER = ("gpu0", "hw.gpu.power")


def session(folder: Path, **options: object) -> Session:
    path = record(
        folder / "01-bare.gpuwatch",
        gauges={USE: [0.0, None], POWER: None},
        events=[("throttle", "held by power")],
        **options,  # type: ignore[arg-type]
    )
    loaded = gpuwatch.load(path)
    assert isinstance(loaded, Session)
    return loaded


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loaded") / "study"
    folder.mkdir()
    plan = results.study_result(folder).plan
    assert plan is not None
    (folder / PLAN).write_text(json.dumps(document(plan)))
    return folder


def test_unknown_values_are_nan_and_zero_is_zero(tmp_path: Path) -> None:
    run = session(tmp_path)
    use = run.series[USE]
    assert len(use) == len(run.time) and run.time[1] == 0.5
    assert use.values[0] == 0.0 and np.isnan(use.values[1])
    assert np.isnan(run.series[POWER].values).all()


def test_a_series_says_how_its_numbers_were_obtained(tmp_path: Path) -> None:
    run = session(tmp_path, steps=[])
    use, flop = run.series[USE], run.series["workload", "gpuwatch.flop.rate"]
    assert (use.unit, use.method, use.source, use.reason) == ("1", Method.MEASURED, "test", None)
    assert flop.method is Method.UNAVAILABLE and flop.reason == "the workload reported no steps"


def test_numpy_takes_a_series_as_its_array(tmp_path: Path) -> None:
    use = session(tmp_path).series[USE]
    assert np.nanmax(use) == 0.0 and np.asarray(use) is use.values  # type: ignore[arg-type]
    assert np.array(use, dtype=np.float32).dtype == np.float32
    copy = np.array(use)
    copy[0] = 7.0
    assert use.values[0] == 0.0


def test_steps_log_and_events_are_tables_of_arrays(tmp_path: Path) -> None:
    run = session(tmp_path)
    assert run.steps.rows == STEPS and run.steps["step_seconds"].tolist() == [0.5] * STEPS
    assert run.steps["step"].dtype == np.int64 and run.steps["warmup"].dtype == bool
    assert run.steps.units["step_seconds"] == "s" and np.isnan(run.steps["loss"]).all()
    assert run.log.rows == 0 and list(run.log) == ["seconds", "stream", "text"]
    assert run.events["text"].tolist() == ["held by power"]


def test_what_was_loaded_does_not_change(tmp_path: Path) -> None:
    run = session(tmp_path)
    for array in (run.time, run.series[USE].values, run.steps["step"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        run.time = run.time  # type: ignore[misc]


def test_the_summary_is_that_of_show(tmp_path: Path) -> None:
    run = session(tmp_path)
    shown = subprocess.run(
        [sys.executable, "-m", "gpuwatch", "show", str(run.path), "--format", "json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(shown.stdout) == json.loads(json.dumps(run.summary))
    assert run.meta["workload"]["name"] == "resnet50"


def test_a_study_has_its_result_a_row_for_each_run_and_its_sessions(study_folder: Path) -> None:
    study = gpuwatch.load(study_folder)
    assert isinstance(study, Study)
    kinds = [contrast.verdict.kind.value for contrast in study.result.questions[0].contrasts]
    assert kinds == ["same", "slower"]
    assert study.runs.rows == 24 and (study.runs["block"] > 0).sum() == 21
    assert [each.summary["session"]["id"] for each in study.sessions] == list(study.runs["session"])
    assert study.sessions is study.sessions, "files are read once"


def test_a_table_becomes_a_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = session(tmp_path).steps.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == STEPS
    frame.loc[0, "step_seconds"] = 1.0


def test_without_pandas_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        session(tmp_path).steps.to_pandas()


def test_what_is_no_session_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.gpuwatch").write_text("no")
    for path in (tmp_path / "x.gpuwatch", tmp_path / "none.gpuwatch"):
        with pytest.raises(GpuwatchError, match=path.name):
            gpuwatch.load(path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(GpuwatchError, match=r"no session in .*empty"):
        gpuwatch.load(str(empty))


def test_importing_gpuwatch_loads_nothing() -> None:
    program = (
        "import sys, gpuwatch; "
        "heavy = {'numpy', 'scipy', 'pandas', 'gpuwatch.notebook'} & set(sys.modules); "
        "assert not heavy, heavy; assert callable(gpuwatch.load)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        gpuwatch.lode  # noqa: B018


def test_the_examples_of_the_documentation_run(
    study_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study_folder.parent)
    text = (ROOT / "docs" / "export.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for program in programs:
            exec(program, {})
    assert len(programs) == 2
    assert "median step 502" in out.getvalue() and "slower apptainer is slower" in out.getvalue()
