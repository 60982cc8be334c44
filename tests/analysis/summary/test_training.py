"""What the workload printed of its training: the last loss and accuracies, in every report."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.study.read import read_study
from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.missing import missing
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import Workload
from gpuwatch.core.text import markdown
from gpuwatch.report import csv as study_csv
from gpuwatch.report import json as as_json
from gpuwatch.report import json as study_json
from gpuwatch.report import markdown as study_markdown
from gpuwatch.report import text as study_text
from gpuwatch.report.document.blocks import Sentence
from gpuwatch.report.document.sessions import document
from gpuwatch.report.document.study import cautions, verdict_first
from gpuwatch.report.html.page import page
from gpuwatch.report.text import as_text
from gpuwatch.session.reading.reader import CHUNK, SessionReader
from gpuwatch.session.study.study_folder import SUMMARY_JSON
from gpuwatch.session.study.summary import sayings
from tests.analysis.recorded_studies import BARE, DOCKER, blocks_of, result_of
from tests.analysis.sessions import SECOND, STEPS, WARM, Make, step_line, summary
from tests.reading import events

EFFECTS = {BARE.label: 1.0, DOCKER.label: 1.0}
NAMES = ("last loss", "last acc@1", "last acc@5")


def lines(**last: Any) -> list[dict[str, Any]]:
    """Step lines whose loss falls and whose accuracies rise; ``last`` is in the last one."""
    told = [
        step_line(step, loss=2 / step, acc1=step / 32, acc5=step / 20)
        for step in range(1, STEPS + 1)
    ]
    told[-1] |= last
    return told


def seeded(seed: int = 0) -> dict[str, Any]:
    return {"parameters": {"seed": seed}}


def test_the_last_loss_and_accuracies_stand_in_a_sessions_figures(make: Make) -> None:
    found = make(steps=lines())
    told = as_json.summary(found)["training"]["step"]
    assert {key: (each["value"], each["unit"], each["at"]) for key, each in told.items()} == {
        "loss": (0.1, "", 20),
        "acc1": (0.625, "{accuracy}", 20),
        "acc5": (1.0, "{accuracy}", 20),
    }
    assert {each["method"] for each in told.values()} == {"measured"}
    table = as_text(document(compare([found]), ""), 80)
    for name, value in zip(NAMES, ("0.1000", "62.5 %", "100 %"), strict=True):
        assert any(
            line.split() == [*name.split(), *value.split(), "measured"]
            for line in table.splitlines()
        ), table


def test_what_a_workload_does_not_print_is_absent_with_its_reason_and_never_0(make: Make) -> None:
    silent = make()
    told = as_json.summary(silent)["training"]["step"]["loss"]
    assert told["value"] is None and told["at"] is None and told["method"] == "unavailable"
    assert told["reason"] == "no step line has it"
    assert missing([silent])["no step line has it"] == ["loss", "acc@1", "acc@5"]
    assert not [row for row in compare([silent]).rows if row.group == "training"]
    none = make(steps=[])
    assert none.training.step.loss.figure.reason == "no timed step was reported"


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_diverged_is_told_as_that_and_the_one_before_is_not_shown(
    tmp_path: Path, loss: float
) -> None:
    found = summary(tmp_path / "a.gpuwatch", steps=lines(loss=loss))
    last = found.training.step.loss
    assert last.figure.value is None and last.at == 20
    assert last.figure.reason == "at step 20 it was not a finite number"
    warning = "the loss is no finite number any more (since step 20)"
    assert warning in found.notes
    with SessionReader(tmp_path / "a.gpuwatch") as reader:
        assert listing(reader).failure == "the loss is no finite number"


def test_it_is_told_since_which_step_no_loss_is_finite(make: Make) -> None:
    few = {"event": "step", "count": 3, "loss": [math.nan, 2.0, math.inf], "step": 6}
    more = [{"event": "step", "step": step, "loss": math.nan} for step in (7, 8)]
    found = make(steps=[*lines(loss=1.0)[:3], few, *more])
    assert "the loss is no finite number any more (since step 6)" in found.notes


def test_that_step_is_sought_as_far_back_as_it_is(make: Make) -> None:
    more = [{"event": "step", "step": step, "loss": math.nan} for step in range(21, CHUNK + 100)]
    found = make(steps=[*lines(), *more])
    assert found.training.lost_at == (True, 21)


def test_the_last_figures_are_of_every_step_as_a_warm_up_leaves_out_times_alone(
    tmp_path: Path,
) -> None:
    told = lines(loss=math.nan, warmup=True)
    found = summary(tmp_path / "a.gpuwatch", steps=told)
    assert (found.steps.count, found.training.lost_at) == (STEPS - 1, (True, STEPS))
    assert "the loss is no finite number any more (since step 20)" in found.notes
    assert (found.training.step.acc1.figure.value, found.training.step.acc1.at) == (0.625, 20)
    with SessionReader(tmp_path / "a.gpuwatch") as reader:
        assert listing(reader).failure == "the loss is no finite number"
    for line in told[:-1]:
        del line["loss"]
    assert summary(tmp_path / "b.gpuwatch", steps=told).training.step.loss.at == STEPS


def test_a_loss_that_is_finite_after_the_warm_up_is_not_lost(make: Make) -> None:
    warm = [{**line, "step": line["step"] + 40, "warmup": True} for line in lines(loss=math.nan)]
    found = make(steps=[*warm, *lines(loss=1.0)[:3]])
    assert found.training.lost_at is None


def test_a_step_of_the_warm_up_is_told_as_that_as_it_has_its_own_count(make: Make) -> None:
    warm = [{"event": "step", "step": step, "warmup": True, "acc1": 0.5} for step in range(1, 9)]
    for line in warm:
        line["loss"] = 1.0 if line["step"] < 5 else math.nan
    timed = [{**line, "loss": math.nan} for line in lines()[:3]]
    for line in timed:
        del line["acc1"]
    found = make(steps=[*warm, *timed])
    assert "the loss is no finite number any more (since warm-up step 5)" in found.notes
    assert "acc@1 was last read in the warm-up, the others at step 3" in found.notes
    alone = make(steps=warm)
    assert "the loss is no finite number any more (since warm-up step 5)" in alone.notes
    assert alone.training.step.loss.figure.reason == "at warm-up step 8 it was not a finite number"
    assert alone.training.step.at is None


def test_a_list_gives_its_last_value(make: Make) -> None:
    warm = {"event": "step", "step": 1, "warmup": True, "loss": 9.0, "acc1": 0.5}
    batch = {"event": "step", "step": 3, "count": 3, "loss": [3.0, 2.0, 1.5], "acc1": 0.25}
    of = make(steps=[warm, batch]).training.step
    assert (of.loss.figure.value, of.acc1.figure.value, of.loss.at) == (1.5, 0.25, 3)
    alone = make(steps=[warm]).training.step
    assert (alone.loss.figure.value, alone.loss.at) == (9.0, None)
    assert alone.loss.figure.source == "step line of warm-up step 1"
    assert alone.acc5.figure.reason == "no step line has it"


def test_of_a_figure_that_is_printed_seldom_the_last_one_is_told_with_its_step(make: Make) -> None:
    rare = lines()
    for line in rare[15:]:
        del line["acc1"]
    found = make(steps=rare)
    assert (found.training.step.acc1.figure.value, found.training.step.acc1.at) == (15 / 32, 15)
    assert "acc@1 was last read at step 15, the others at step 20" in found.notes


def test_what_an_epoch_ended_with_stands_apart_from_the_last_step(tmp_path: Path) -> None:
    epochs = [
        {"event": "epoch", "epoch": 1, "loss": 0.9, "acc1": 0.5},
        {"event": "epoch", "epoch": 2, "loss": 0.123456789, "acc1": 0.875},
    ]
    found = summary(tmp_path / "a.gpuwatch", steps=[*lines(), *epochs])
    told_then = events(tmp_path / "a.gpuwatch", "epoch")
    assert [each.text for each in told_then][-1] == "epoch 2, loss 0.1235, acc@1 87.5 %"
    told = as_json.summary(found)["training"]["epoch"]
    assert (told["loss"]["value"], told["loss"]["at"]) == (0.123456789, 2)
    assert told["acc1"]["value"] == 0.875
    assert told["acc5"]["value"] is None and told["acc5"]["reason"] == "no epoch line has it"
    of = {row.name: row.values[0] for row in compare([found]).rows if row.group == "training"}
    assert of["loss, last epoch"] == 0.123456789 and of["last loss"] == 0.1
    assert (of["read at step"], of["read at epoch"]) == (20, 2)


def test_a_long_run_is_asked_for_its_last_lines_alone(make: Make) -> None:
    first = {"event": "step", "step": 1, "loss": 4.0, "acc1": 0.5}
    rest = [{"event": "step", "step": 2 + at, "loss": 1.0} for at in range(CHUNK)]
    of = make(steps=[first, *rest]).training.step
    assert of.loss.at == CHUNK + 1
    assert of.acc1.figure.reason == f"none of the last {CHUNK:,} step lines has it"


def test_losses_have_a_ratio_only_between_runs_of_one_seed_and_as_many_steps(make: Make) -> None:
    def ratio(name: str, seed: int, steps: list[dict[str, Any]]) -> float | None:
        other = make(steps=steps, run=seeded(seed))
        return next(r for r in compare([first, other]).rows if r.name == NAMES[0]).ratios[1]

    first = make(steps=lines(), run=seeded())
    assert ratio("b", 0, lines(loss=0.2)) == pytest.approx(2.0)
    assert ratio("c", 1, lines(loss=0.2)) is None
    assert ratio("d", 0, lines(loss=0.2)[:10]) is None
    unseeded = [make(steps=lines()) for name in "ef"]
    rows = {row.name: row for row in compare(unseeded).rows}
    assert rows[NAMES[0]].ratios == (None, None)


def test_every_report_of_a_study_has_loss_and_accuracies_side_by_side(tmp_path: Path) -> None:
    losses = {
        index: {"steps": lines(loss=0.1 if index % 2 else 0.2), "run": seeded()}
        for index in range(1, 17)
    }
    result = result_of(tmp_path, [blocks_of(7, BARE, DOCKER)], EFFECTS, options=losses)
    (question,) = result.questions
    rows = {row.name: row for row in question.table}
    assert set(NAMES) <= rows.keys()
    assert rows[NAMES[1]].values == (0.625, 0.625)
    assert {method for name in NAMES for method in rows[name].methods} == {Method.MEASURED}
    for text, escape in (
        (study_text.terminal(result, columns=100), str),
        (study_markdown.as_markdown(result), markdown),
        (page(result, ()).replace("&nbsp;", " "), str),
    ):
        for name in (*NAMES, "62.5 %"):
            assert escape(name) in text
    cells = list(csv.DictReader(io.StringIO(study_csv.as_csv(result))))
    assert {float(each["value"]) for each in cells if each["metric"] == NAMES[0]} == {0.1, 0.2}
    told = json.loads(as_json.dumps(study_json.study(result)))
    assert told["sessions"][0]["training"]["step"]["acc5"]["value"] == 1.0
    assert NAMES[0] in [row["name"] for row in told["questions"][0]["table"]]
    assert NAMES[0] in [row["name"] for row in told["rows"]]


def test_a_verdict_on_runs_whose_loss_is_no_number_says_so_everywhere(tmp_path: Path) -> None:
    def of(index: int) -> dict[str, Any]:
        if index % 2:
            slow = lines()
            for line in slow:
                end = round((WARM + line["step"] * 0.6) * SECOND)
                line |= {"seconds": 0.6, "monotonic_ns": end}
            return {"steps": slow} if index == 5 else {}
        lost = lines()
        for line in lost[10 + index % 5 :]:
            line["loss"] = math.nan
        return {"steps": lost}

    options = {index: of(index) for index in range(1, 17)}
    result = result_of(tmp_path, [blocks_of(7, BARE, DOCKER)], EFFECTS, options=options)
    told = f"In 7 of 7 runs of {DOCKER.label} the loss is no finite number any more."
    assert told in result.questions[0].contrasts[0].sentence
    note = "(8 runs): the loss is no finite number any more (since step 11 to step 15)"
    note = f"resnet50 ({DOCKER.label}) {note}"
    assert cautions(result)[0] == note
    (brief,) = verdict_first(result, "").sections[:1]
    first, *others = [each.text for each in brief.items if isinstance(each, Sentence)]
    assert first == note and any("is an outlier" in each for each in others)
    for text in (study_text.terminal(result), page(result, ())):
        assert told in " ".join(text.replace("&nbsp;", " ").split())
    (tmp_path / SUMMARY_JSON).write_text(study_json.dumps(study_json.study(result)))
    assert f" (no finite loss) {DOCKER.label}" in sayings(tmp_path)[0].short


def test_a_sweep_of_the_learning_rate_says_which_has_the_lowest_loss(tmp_path: Path) -> None:
    rates = [0.1, 0.01]
    cases = tuple(
        Workload("resnet50", "workload", parameters={"lr": rate, "seed": 0}) for rate in rates
    )
    part = blocks_of(3, BARE, workloads=cases, sweep={"lr": rates})
    losses = {at: {"steps": lines(loss=0.3 if at % 2 else 0.2)} for at in range(1, 9)}
    result = result_of(tmp_path, [part], {BARE.label: 1.0}, options=losses)
    (sweep,) = result.sweeps
    assert [(each.loss, each.acc1, each.acc5) for each in sweep.points] == [
        (0.3, 0.625, 1.0),
        (0.2, 0.625, 1.0),
    ]
    short = study_text.terminal(result, columns=100, short=True)
    head = next(line for line in short.splitlines() if "against the best" in line)
    assert head.split()[-3:] == ["loss", "acc@1", "acc@5"]
    assert [each["loss"] for each in study_json.study(result)["sweeps"][0]["points"]] == [0.3, 0.2]


def test_a_run_says_its_last_loss_and_accuracies_when_it_is_over(tmp_path: Path) -> None:
    summary(tmp_path / "01-bare.gpuwatch", steps=lines())
    short = study_text.terminal(read_study(tmp_path), short=True)
    assert all(name in short for name in NAMES)
