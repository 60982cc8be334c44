"""From sessions to a study's result: cells, pairs, verdicts, tables, what lacks and why."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.wording import signed, throughput
from gpuwatch.analysis.results import Contrast, Kind, StudyResult
from gpuwatch.analysis.study.not_run import blocks_done, not_run
from gpuwatch.analysis.study.notes import doubts, run_names
from gpuwatch.analysis.study.read import Read, read, read_study
from gpuwatch.core.models import Environment, Problem, Workload
from gpuwatch.session import placement
from gpuwatch.session.in_part import InPart, RunInPart
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.session.study.plan import MARGIN, PLAN, Part
from gpuwatch.session.study.study_folder import STUDY_ENDED
from tests.analysis import sessions
from tests.analysis.recorded_studies import (
    APPTAINER,
    BARE,
    DOCKER,
    FAILED,
    RESNET,
    SECONDS,
    START,
    blocks_of,
    here,
    only,
    planned,
    recorded,
    result_of,
    run,
    step_seconds,
    written,
)

LONG = f"docker={'x' * 80}"
EFFECTS = {"bare": 1.0, "docker=image": 1.03, "apptainer=image": 1.001}
ALL = blocks_of(7, BARE, DOCKER, APPTAINER)
PAIR = blocks_of(7, BARE, DOCKER)
AGAIN = (Environment("bare", "bare#1"), Environment("bare", "bare#2"))


def contrast(result: StudyResult, label: str = "docker=image") -> Contrast:
    question = only(result)
    (found,) = [each for each in question.contrasts if question.cells[each.other].label == label]
    return found


def test_a_side_whose_output_is_partly_missing_is_told_beside_its_verdict(tmp_path: Path) -> None:
    until = {"code": 0, "text": "why", "output_until": 6_500_000_000}
    question = only(result_of(tmp_path, [PAIR], EFFECTS, options={4: {"result": until}}))
    (note,) = [each for each in question.notes if "nothing is known" in each]
    assert note.startswith("1 of 7 runs of docker=image: ") and "output after 6.5 s" in note


def test_the_change_is_the_geometric_mean_of_the_ratios_within_blocks(tmp_path: Path) -> None:
    plan = recorded(tmp_path, [PAIR], EFFECTS)
    seconds = {
        (each.block, each.environment.label): step_seconds(each, EFFECTS) for each in plan.runs
    }
    ratios = [seconds[b, "docker=image"] / seconds[b, "bare"] for b in range(1, 8)]
    found = contrast(read_study(tmp_path))
    assert found.ratios == pytest.approx(ratios)
    assert found.verdict.change is not None
    assert found.verdict.change.estimate == pytest.approx(
        statistics.geometric_mean(ratios) - 1, abs=2e-4
    ), "but for the place in the block"
    assert (found.verdict.kind, found.verdict.pairs, found.verdict.paired) == (Kind.SLOWER, 7, True)


def test_the_comparisons_of_a_question_share_one_level(tmp_path: Path) -> None:
    result = result_of(tmp_path, [ALL], EFFECTS)
    assert [each.verdict.comparisons for each in only(result).contrasts] == [2, 2]
    assert contrast(result).verdict.kind is Kind.SLOWER
    assert contrast(result, "apptainer=image").verdict.kind in (Kind.SAME, Kind.SMALL)


def test_the_warm_up_block_is_shown_and_not_judged(tmp_path: Path) -> None:
    recorded(tmp_path / "a", [PAIR], EFFECTS)
    recorded(tmp_path / "b", [PAIR], EFFECTS, options={1: {"seconds": 9.0}})
    (as_is, absurd) = (read_study(tmp_path / name) for name in "ab")
    assert contrast(as_is).verdict == contrast(absurd).verdict
    assert only(absurd).cells[0].runs[0].value == pytest.approx(9.0)
    assert only(absurd).cells[0].runs[0].warm_up
    assert only(absurd).cells[0].mean == only(as_is).cells[0].mean


def test_a_block_counts_where_both_have_a_value(tmp_path: Path) -> None:
    result = result_of(tmp_path, [PAIR], EFFECTS, options={4: {"result": FAILED}})
    found = contrast(result)
    assert found.ratios[0] is None and None not in found.ratios[1:]
    assert (found.verdict.pairs, found.verdict.kind) == (6, Kind.SLOWER)
    assert found.sentence.endswith(
        " 6 of 7 paired blocks, noise 0.1 %, 97.5 and 95 % intervals (Holm, 2 tests)."
    )
    note = "1 of 7 runs of docker=image failed (exit code 1: out of memory)"
    assert note in only(result).notes
    failed = only(result).cells[1].judged[0]
    assert failed.value is None and failed.reason == "exit code 1: out of memory"


def test_more_than_a_fifth_without_a_value_and_nothing_can_be_told(tmp_path: Path) -> None:
    few = {"steps": [sessions.step_line(n) for n in range(1, 6)]}
    found = contrast(result_of(tmp_path, [PAIR], EFFECTS, options={4: few, 8: few}))
    assert found.verdict.pairs == 5
    assert (found.verdict.kind, found.verdict.lacking) == (Kind.CANT_TELL, True)
    assert found.verdict.estimate == pytest.approx(0.03, abs=0.003)
    assert (found.verdict.change, found.verdict.p_zero) == (None, None)
    assert "2 of 7 runs of docker=image never became steady (" in found.sentence
    assert "(no steady state" not in found.sentence
    assert "5 timed steps are too few" in found.sentence
    assert found.verdict.more_blocks is None
    (alone := tmp_path / "alone").mkdir()
    once = [blocks_of(1, BARE, DOCKER)]
    options = {run.index: few for run in planned(once).runs if run.environment == DOCKER}
    recorded(alone, once, EFFECTS, options=options)
    said = " ".join(only(read_study(alone)).notes)
    assert "the run of docker=image never became steady (5 timed steps" in said
    assert "1 of 1" not in said


def test_pairs_that_either_side_lost_count_together(tmp_path: Path) -> None:
    lost = {key: {"result": FAILED} for key in (3, 5, 8, 10)}  # bare in 1, 2; docker in 3, 4
    found = contrast(result_of(tmp_path, [blocks_of(10, BARE, DOCKER)], EFFECTS, options=lost))
    assert (found.verdict.kind, found.verdict.pairs) == (Kind.CANT_TELL, 6)
    assert "4 of 10 blocks have no pair of values; 2 of 10 runs of bare failed" in found.sentence


def test_the_same_block_lost_on_both_sides_is_one_pair(tmp_path: Path) -> None:
    lost = {key: {"result": FAILED} for key in (3, 4)}
    found = contrast(result_of(tmp_path, [blocks_of(6, BARE, DOCKER)], EFFECTS, options=lost))
    assert (found.verdict.kind, found.verdict.pairs) == (Kind.SLOWER, 5)
    assert found.sentence.endswith(
        " 5 of 6 paired blocks, noise <0.1 %, 97.5 and 95 % intervals (Holm, 2 tests)."
    )


def test_a_comparison_that_lacks_too_much_takes_no_share_of_the_error(tmp_path: Path) -> None:
    lost = {key: {"result": FAILED} for key in (5, 8)}
    recorded(tmp_path / "lost", [ALL], EFFECTS, options=lost)
    recorded(tmp_path / "alone", [blocks_of(7, BARE, APPTAINER)], EFFECTS)
    with_it = contrast(read_study(tmp_path / "lost"), "apptainer=image").verdict
    assert contrast(read_study(tmp_path / "lost")).verdict.lacking
    assert with_it.comparisons == 1
    assert with_it.change is not None and with_it.change.level == pytest.approx(0.975), "two values"


def test_a_block_that_goes_on_is_still_to_come(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], EFFECTS, options={12: here(result=None)})
    assert read_study(tmp_path).to_come == 0
    assert contrast(read_study(tmp_path)).sentence.endswith("4 blocks so far, 1 to come.")


def test_a_block_that_was_lost_is_not_to_come(tmp_path: Path) -> None:
    options = {3: {"result": FAILED}, 8: here(result=None)}
    recorded(
        tmp_path, [blocks_of(5, BARE, DOCKER)], EFFECTS, options=options, left_out=range(9, 13)
    )
    found = contrast(read_study(tmp_path))
    assert found.sentence.endswith("1 of 2 blocks so far, 3 to come.")


@pytest.mark.parametrize("blocks", [3, 5])
@pytest.mark.parametrize(("killed", "done"), [(3, 0), (4, 0), (5, 1), (6, 1)])
def test_a_study_whose_recorder_was_killed_says_the_same_as_before(
    tmp_path: Path, blocks: int, killed: int, done: int
) -> None:
    part = blocks_of(blocks, BARE, DOCKER)
    (tmp_path / "before").mkdir()
    for folder, recorder in (
        (tmp_path / "before", here(result=None)),
        (tmp_path, {"extra": {"result": None}}),
    ):
        later = range(killed + 1, 2 * blocks + 3)
        recorded(folder, [part], EFFECTS, options={killed: recorder}, left_out=later)
    before, result = read_study(tmp_path / "before"), read_study(tmp_path)
    for each in (before, result):
        assert contrast(each).verdict.kind is Kind.DESCRIBED
        assert contrast(each).baseline == 0
        assert blocks_done(each, 0) == done


def test_of_a_study_that_nobody_records_the_blocks_that_are_not_here_never_ran(
    tmp_path: Path,
) -> None:
    part = blocks_of(5, BARE, DOCKER)
    result = result_of(tmp_path / "one", [part], EFFECTS, left_out=[12])
    assert contrast(result).sentence.endswith(" 4 blocks, 1 never ran.")
    assert result.to_come == 0


def test_a_baseline_without_a_run_is_waited_for_only_while_somebody_records(tmp_path: Path) -> None:
    part = blocks_of(5, BARE, DOCKER)
    for folder, last in (("going", here(result=None)), ("over", {})):
        recorded(tmp_path / folder, [part], EFFECTS, options={12: last}, left_out=range(1, 12, 2))
    assert "nothing to compare with bare yet" in contrast(read_study(tmp_path / "going")).sentence
    over = only(read_study(tmp_path / "over"))
    assert ([cell.label for cell in over.cells], over.contrasts) == (["docker=image"], ())


def test_runs_that_were_not_started_count_as_lacking(tmp_path: Path) -> None:
    gone = {index: Problem("failed-twice", "it failed twice") for index in (12, 14, 16)}
    result = result_of(tmp_path, [PAIR], EFFECTS, left_out=(12, 14, 16), problems=gone)
    assert contrast(result).verdict.kind is Kind.CANT_TELL
    assert "3 of 7 runs of docker=image did not run" in contrast(result).sentence
    assert len(only(result).cells[1].not_run) == 3
    assert len(result.not_run) == 3


def test_runs_that_were_fetched_in_part_are_told_and_count_in_no_verdict(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS, left_out=(12, 14, 16))
    means = [cell.mean for cell in only(read_study(tmp_path)).cells]
    runs = [RunInPart(index, "finished", 9.0, 50, 0.001, None, None) for index in (11, 12, 14, 16)]
    known = Placement(
        "kubernetes", "0" * 16, JobState.IN_PART, fetched=True, in_part=InPart(tuple(runs))
    )
    placement.write(tmp_path, known)
    result = read_study(tmp_path)
    assert contrast(result).verdict.kind is Kind.CANT_TELL
    assert "3 of 7 runs of docker=image were fetched in part" in contrast(result).sentence
    assert [cell.mean for cell in only(result).cells] == means  # no figure of theirs is counted
    assert [each.index for each in result.not_run] == [12, 14, 16]
    assert result.not_run[0].why.startswith(
        "docker=image was fetched in part: finished after 0:09, 50 steps, median 1.00 ms; no"
    )
    assert "resume" in str(result.not_run[0].hint)
    ((sentence, _),) = not_run(result)
    assert "3 of 7 runs were fetched in part (block" in sentence
    assert not any("never started" in note for note in result.notes)


def test_a_study_that_was_stopped_is_judged_by_the_blocks_that_it_has(tmp_path: Path) -> None:
    rest = dict.fromkeys(range(13, 17), Problem(STUDY_ENDED, "the study was stopped"))
    result = result_of(tmp_path, [PAIR], EFFECTS, left_out=list(rest), problems=rest)
    verdict = contrast(result).verdict
    assert (verdict.kind, verdict.pairs) == (Kind.SLOWER, 5)
    assert result.notes[0] == "ended early: 4 of 16 runs never began"


def test_after_the_warm_up_block_there_is_nothing_to_say_yet(tmp_path: Path) -> None:
    result = result_of(tmp_path, [PAIR], EFFECTS, left_out=range(3, 17))
    assert contrast(result).verdict.kind is Kind.DESCRIBED
    assert contrast(result).sentence == ("docker=image: there is nothing to compare with bare yet.")
    assert only(result).table == ()


def test_a_baseline_without_a_value_gives_way_to_the_next(tmp_path: Path) -> None:
    bare = {index: {"result": FAILED} for index in range(1, 25, 3)}
    question = only(result_of(tmp_path, [ALL], EFFECTS, options=bare))
    assert [(each.baseline, each.other) for each in question.contrasts] == [(1, 0), (1, 2)]
    assert question.contrasts[0].verdict.kind is Kind.CANT_TELL
    assert question.contrasts[1].verdict.kind is Kind.FASTER
    failed = "7 of 7 runs of bare failed (exit code 1: out of memory)"
    assert question.notes == (f"{failed}: docker=image is the baseline",)


@pytest.mark.parametrize("warmup", [0, 1])
def test_the_baseline_stays_while_its_runs_are_still_to_come(tmp_path: Path, warmup: int) -> None:
    """Whichever of the two a block happens to begin with."""
    part = blocks_of(5, BARE, DOCKER, APPTAINER, warmup_blocks=warmup)
    bare = 1 + 3 * warmup
    rest = [bare, *range(bare + 3, 3 * (5 + warmup) + 1)]
    result = result_of(
        tmp_path, [part], EFFECTS, left_out=rest, options={bare + 1: here(result=None)}
    )
    assert only(result).cells[0].label == "bare"
    assert [(each.baseline, each.other) for each in only(result).contrasts] == [(0, 1), (0, 2)]
    assert not any("gave no value" in note for note in only(result).notes)
    assert contrast(result, "apptainer=image").sentence == (
        "apptainer=image: there is nothing to compare with bare yet."
    )
    assert contrast(result).verdict.kind is Kind.DESCRIBED


def test_an_environment_that_never_ran_is_told_and_the_next_is_the_baseline(tmp_path: Path) -> None:
    part = Part("", (RESNET,), (BARE, DOCKER, APPTAINER))
    gone = {1: Problem("no-python", "no interpreter has torch", "install torch")}
    result = result_of(tmp_path, [part], EFFECTS, left_out=(1,), problems=gone)
    assert [cell.label for cell in only(result).cells] == ["docker=image", "apptainer=image"]
    assert "bare gave no value" in only(result).notes[0]
    assert [each.why for each in result.not_run] == ["bare did not run: no interpreter has torch"]


def test_three_blocks_give_no_verdict(tmp_path: Path) -> None:
    found = contrast(result_of(tmp_path, [blocks_of(3, BARE, DOCKER)], EFFECTS))
    assert found.verdict.kind is Kind.DESCRIBED
    assert found.verdict.change is not None
    assert found.sentence.endswith("against bare. No verdict: 3 blocks, needs 5.")


def test_one_run_each_gives_no_verdict(tmp_path: Path) -> None:
    result = result_of(tmp_path, [Part("", (RESNET,), (BARE, DOCKER))], EFFECTS)
    found = contrast(result)
    assert found.verdict.kind is Kind.DESCRIBED
    assert "No verdict: 1 run of each, needs 5." in found.sentence
    assert found.sentence.startswith(
        "docker=image: typical step +2.9 %, steady throughput -2.8 % against bare."
    )
    assert any(note.startswith("one run each") for note in result.notes)


def test_swapping_the_baseline_inverts_the_ratio_and_the_verdict(tmp_path: Path) -> None:
    there = contrast(result_of(tmp_path / "a", [PAIR], EFFECTS))
    written(tmp_path / "b", plan := planned([blocks_of(7, DOCKER, BARE)]))
    of_a = {(each.block, each.environment): each for each in planned([PAIR]).runs}
    for each in plan.runs:
        seconds = step_seconds(of_a[each.block, each.environment], EFFECTS)
        start = START + 1000 * each.index
        run(tmp_path / "b" / each.file, seconds, label=each.environment.label, start=start)
    back = contrast(read_study(tmp_path / "b"), "bare")
    assert there.verdict.change and back.verdict.change
    assert (1 + there.verdict.change.estimate) * (1 + back.verdict.change.estimate) == (
        pytest.approx(1)
    )
    assert (there.verdict.kind, back.verdict.kind) == (Kind.SLOWER, Kind.FASTER)


def test_the_table_has_means_their_ranges_and_the_change_that_is_judged(tmp_path: Path) -> None:
    plan = recorded(tmp_path, [PAIR], EFFECTS)
    question = only(read_study(tmp_path))
    (row,) = [row for row in question.table if row.name == "step time, typical"]
    for place, label in enumerate(("bare", "docker=image")):
        seconds = [
            step_seconds(each, EFFECTS)
            for each in plan.runs
            if each.block and each.environment.label == label
        ]
        assert row.values[place] == pytest.approx(statistics.geometric_mean(seconds))
        assert row.lows[place] == pytest.approx(min(seconds))
        assert row.highs[place] == pytest.approx(max(seconds))
    verdict = question.contrasts[0].verdict
    assert verdict.change is not None and verdict.total is not None
    assert row.ratios == (1.0, 1 + verdict.change.estimate)
    assert row.values[1] / row.values[0] == pytest.approx(row.ratios[1], rel=1e-3)
    assert row.changes == (None, verdict.change)
    assert row.values[0] == question.cells[0].mean
    (paid,) = [row for row in question.table if row.name == "throughput, steady mean"]
    told = throughput(verdict.total)
    assert paid.changes == (None, told.change)
    assert paid.ratios[1] == pytest.approx(1 + (told.estimate or 0))
    assert f"steady throughput {signed(told.estimate or 0, 2)} %" in question.contrasts[0].sentence


def test_a_run_that_failed_is_in_no_mean(tmp_path: Path) -> None:
    broken = {"result": FAILED, "seconds": 20.0}
    recorded(tmp_path, [PAIR], EFFECTS, options={4: broken})
    (row,) = [row for row in only(read_study(tmp_path)).table if row.name == "step time, typical"]
    assert row.highs[1] is not None and row.highs[1] < 1


def test_no_ratio_stands_in_the_table_of_what_is_not_comparable(tmp_path: Path) -> None:
    other = {"devices": (sessions.OTHER_GPU, sessions.CPU)}
    recorded(tmp_path, [PAIR], EFFECTS, options=dict.fromkeys(range(2, 17, 2), other))
    question = only(read_study(tmp_path))
    assert question.contrasts[0].verdict.kind is Kind.INVALID
    assert question.contrasts[0].ratios == ()
    assert question.contrasts[0].verdict.change is None
    assert all(row.ratios == (None, None) for row in question.table)


@pytest.mark.parametrize(
    ("slower", "clock", "kind"),
    [
        (1.5, 1.94e9, Kind.SLOWER),
        (0.5, 1.94e9, Kind.FASTER),
        (1.025, 1.94e9, Kind.INVALID),  # the clocks explain 2.1 of its 2.5 %
        (0.98, 1.94e9, Kind.FASTER),  # in spite of them
        (1.025, 2.02e9, Kind.SLOWER),
        (1.5, 1.0e9, Kind.INVALID),
        (1.0, 1.975e9, Kind.SAME),  # less than the margin
        (1.0, 1.94e9, Kind.INVALID),
        (1.5, None, Kind.INVALID),
    ],
)
def test_a_change_beyond_what_lower_clocks_explain_is_one(
    tmp_path: Path, slower: float, clock: float | None, kind: Kind
) -> None:
    free, held = ((0.0, 1.98e9), (0.54, clock))
    options = {
        each.index: {
            "gauges": {("gpu0", "hw.gpu.throttle.power"): share, ("gpu0", "hw.gpu.clock.sm"): mean}
        }
        for each in planned([PAIR]).runs
        for share, mean in (held if each.environment is DOCKER else free,)
    }
    recorded(tmp_path, [PAIR], {"bare": 1.0, "docker=image": slower}, options=options)
    question = only(read_study(tmp_path))
    verdict = question.contrasts[0].verdict
    assert verdict.kind is kind
    (said,) = [each for each in (*verdict.reasons, *question.notes) if "clocks were held" in each]
    assert said.startswith("clocks were held down: never in bare, 54 % of the time in docker")


@pytest.mark.parametrize("held", [False, True])
def test_clocks_do_not_have_a_pair_judged_again_without_the_others(
    tmp_path: Path, *, held: bool
) -> None:
    part = blocks_of(7, BARE, DOCKER, APPTAINER)
    clocks = {("gpu0", "hw.gpu.throttle.power"): 0.54, ("gpu0", "hw.gpu.clock.sm"): 1.94e9}
    free = {("gpu0", "hw.gpu.throttle.power"): 0.0, ("gpu0", "hw.gpu.clock.sm"): 1.98e9}
    options = {
        each.index: {"gauges": clocks if held and each.environment is DOCKER else free}
        for each in planned([part]).runs
    }
    effects = {"bare": 1.0, "docker=image": 1.05, "apptainer=image": 1.0}
    recorded(tmp_path, [part], effects, options=options)

    def reading(path: Path) -> Read:
        """Of apptainer without the time of all steps, by which docker is as fast as bare: alone,
        it would be judged by that, too."""
        found, label = read(path), path.stem.partition("-")[2]
        seconds = found.steady.seconds or 0.0
        total = None if label == "apptainer" else seconds / (1.05 if label == "docker" else 1)
        return replace(found, steady=replace(found.steady, total=total))

    docker, apptainer = only(read_study(tmp_path, reading=reading)).contrasts
    assert (docker.verdict.kind, docker.verdict.reasons) == (Kind.SLOWER, ())
    assert apptainer.verdict.kind is Kind.SAME


def test_another_reason_stays_where_clocks_were_held_down_too(tmp_path: Path) -> None:
    options = {
        each.index: {
            "parameters": {"batch_size": 128},
            "gauges": {("gpu0", "hw.gpu.throttle.power"): 0.54},
        }
        for each in planned([PAIR]).runs
        if each.environment is DOCKER
    }
    (reason,) = contrast(result_of(tmp_path, [PAIR], EFFECTS, options=options)).verdict.reasons
    assert "batch size" in reason


def test_an_outlier_is_marked_and_kept(tmp_path: Path) -> None:
    cell = only(result_of(tmp_path, [PAIR], EFFECTS, options={6: {"seconds": 0.9}})).cells[1]
    assert [run.outlier for run in cell.judged] == [False, True, *[False] * 5]
    assert contrast(read_study(tmp_path)).verdict.pairs == 7


def test_the_mean_over_cases_is_geometric_and_by_block(tmp_path: Path) -> None:
    cases = (RESNET, Workload("alexnet", "workload"))
    part = blocks_of(7, BARE, DOCKER, workloads=cases)
    slower = [index for index in range(1, 33) if (index - 1) % 4 == 3]  # alexnet in docker
    plan = planned([part])
    options = {
        each.index: {"seconds": 2 * step_seconds(each, EFFECTS)}
        for each in plan.runs
        if each.index in slower
    }
    result = result_of(tmp_path, [part], EFFECTS, options=options)
    assert [question.label for question in result.questions] == ["resnet50", "alexnet"]
    (found,) = result.overall
    means = [
        statistics.fmean(math.log(ratio) for ratio in ratios if ratio)
        for ratios in zip(*(each.contrasts[0].ratios for each in result.questions), strict=True)
    ]
    assert found.change.estimate == pytest.approx(math.exp(statistics.fmean(means)) - 1)
    assert found.change.estimate == pytest.approx(1.03 * math.sqrt(2) - 1, abs=0.002)
    assert (found.environment, found.baseline, found.cases) == ("docker=image", "bare", 2)
    assert found.sentence.startswith(
        "docker=image against bare over 2 cases: SLOWER, mean step time +45."
    )


def test_a_mean_over_cases_is_judged_as_they_are(tmp_path: Path) -> None:
    cases = (RESNET, Workload("alexnet", "workload"))
    part = blocks_of(7, BARE, DOCKER, workloads=cases)
    effects = dict.fromkeys(EFFECTS, 1.0)
    places = {}
    for each in planned([part]).runs:
        docker, block = each.environment.label != "bare", each.block or 0
        second = docker is (block < 5)  # of seven blocks docker is the second in four
        slow = 1.33 if second else 1.0  # whichever runs second takes a third longer
        start = START + 10_000 * block + 4_000 * second + each.index
        places[each.index] = {"seconds": slow * step_seconds(each, effects), "start": start}
    result = result_of(tmp_path, [part], effects, options=places)
    (found,) = result.overall
    assert found.kind is Kind.SAME and abs(found.change.estimate) < 0.01
    assert "over 2 cases: SAME, mean step time" in found.sentence
    told = [note for question in result.questions for note in question.notes]
    assert any("with it the typical one is +" in note for note in told)


def test_a_case_that_is_not_comparable_is_in_no_mean(tmp_path: Path) -> None:
    cases = (RESNET, Workload("alexnet", "workload"))
    part = blocks_of(7, BARE, DOCKER, workloads=cases)
    other = {"devices": (sessions.OTHER_GPU, sessions.CPU)}
    recorded(tmp_path, [part], EFFECTS, options=dict.fromkeys(range(4, 33, 4), other))
    assert read_study(tmp_path).overall == ()


def three_cases(folder: Path, lost: dict[int, dict[str, Any]], blocks: int = 7) -> StudyResult:
    cases = (RESNET, *(Workload(name, "workload") for name in ("alexnet", "vgg16")))
    recorded(folder, [blocks_of(blocks, BARE, DOCKER, workloads=cases)], EFFECTS, options=lost)
    return read_study(folder)


def test_a_case_that_lacks_too_many_runs_is_in_no_mean(tmp_path: Path) -> None:
    # Docker's runs of vgg16 in blocks 1 and 2, one of alexnet in block 3.
    lost = {index: {"result": FAILED} for index in (12, 18, 22)}
    (found,) = three_cases(tmp_path, lost).overall
    assert found.cases == 2
    assert found.sentence.startswith(
        "docker=image against bare over 2 of 3 cases: SLOWER, mean step time +"
    )
    assert found.sentence.endswith("geometric mean of 6 of 7 blocks.")


def test_a_mean_of_few_blocks_says_how_many_a_verdict_needs(tmp_path: Path) -> None:
    (found,) = three_cases(tmp_path / "a", {}, blocks=3).overall
    assert found.sentence.endswith("geometric mean of 3 blocks, a verdict needs 5.")
    assert three_cases(tmp_path / "b", {}, blocks=2).overall == ()


def test_a_block_on_two_gpus_of_one_node_is_invalid_and_never_a_pair(tmp_path: Path) -> None:
    """As after a block that was resumed: its second pod was given the node's other GPU."""
    pods = {
        index: {"host": {"host.name": f"pod-{index}", "job.node": "n1"}} for index in range(1, 17)
    }
    moved = {**pods[6], "devices": (sessions.OTHER_GPU, sessions.CPU)}
    recorded(tmp_path / "one", [PAIR], EFFECTS, options=pods)
    alone = contrast(read_study(tmp_path / "one", across_devices=True))
    assert alone.verdict.kind is Kind.SLOWER and alone.verdict.paired
    found = contrast(result_of(tmp_path / "two", [PAIR], EFFECTS, options={**pods, 6: moved}))
    said = "another GPU of the same model in block 2: GPU-1 against GPU-2"
    assert found.verdict.kind is Kind.INVALID and found.verdict.reasons == (
        f"{said} (--across-devices compares them)",
    )
    across = read_study(tmp_path / "two", across_devices=True)
    found = contrast(across)
    assert not found.verdict.paired and found.ratios == ()
    assert "not paired" in found.sentence and said in across.questions[0].notes


def sizes(*values: int) -> Part:
    cases = tuple(Workload("resnet50", "workload", (), {"batch_size": size}) for size in values)
    return blocks_of(5, BARE, workloads=cases, sweep={"batch_size": values})


def test_a_sweep_goes_through_its_values_in_the_order_asked_for(tmp_path: Path) -> None:
    part = sizes(64, 16, 128)
    late = [each.index for each in planned([part]).runs if each.index % 3 == 0]
    gone = {
        index: Problem("out-of-memory", "ran out of memory at batch size 128") for index in late
    }
    result = result_of(tmp_path, [part], {"bare": 1.0}, left_out=late, problems=gone)
    (sweep,) = result.sweeps
    assert sweep.label == "resnet50 in bare: batch size"
    assert [point.value for point in sweep.points] == [64, 16, 128]
    assert [point.cell is None for point in sweep.points] == [False, False, True]
    assert "memory" in (sweep.points[2].why or "")
    assert [question.label for question in result.questions] == [
        "resnet50, batch size 64",
        "resnet50, batch size 16",
    ]
    assert result.overall == ()


def test_of_a_sweep_that_has_only_warmed_up_the_rest_is_to_come(tmp_path: Path) -> None:
    options = dict.fromkeys(range(1, 4), here())
    result = result_of(
        tmp_path, [sizes(16, 64)], {"bare": 1.0}, left_out=range(4, 13), options=options
    )
    (sweep,) = result.sweeps
    assert [point.why for point in sweep.points] == [None, "still to come"]


def test_a_sweep_over_two_parameters_is_one_for_each_setting_of_the_other(tmp_path: Path) -> None:
    cases = tuple(
        Workload("resnet50", "workload", (), {"batch_size": size, "workers": workers})
        for size in (16, 64)
        for workers in (0, 2)
    )
    part = blocks_of(5, BARE, workloads=cases, sweep={"batch_size": (16, 64), "workers": (0, 2)})
    recorded(tmp_path, [part], {"bare": 1.0})
    assert [sweep.label for sweep in read_study(tmp_path).sweeps] == [
        "resnet50 in bare: batch size, workers 0",
        "resnet50 in bare: batch size, workers 2",
        "resnet50 in bare: workers, batch size 16",
        "resnet50 in bare: workers, batch size 64",
    ]


def test_an_environment_against_itself_gives_the_noise_floor(tmp_path: Path) -> None:
    result = result_of(tmp_path, [blocks_of(7, *AGAIN)], {"bare#1": 1.0, "bare#2": 1.0})
    (noise,) = result.noise
    found = contrast(result, "bare#2")
    assert noise.label == "resnet50 in bare"
    assert noise.noise == found.verdict.noise
    assert found.verdict.kind is Kind.SAME
    assert "two of the same: no difference of 1 % or more" in found.sentence


def test_noise_floors_of_one_environment_name_both_sides(tmp_path: Path) -> None:
    again = [Environment("bare", f"bare#{n}") for n in (1, 2, 3)]
    recorded(tmp_path, [blocks_of(7, *again)], {each.label: 1.0 for each in again})
    assert [noise.label for noise in read_study(tmp_path).noise] == [
        "resnet50 in bare#2 against bare#1",
        "resnet50 in bare#3 against bare#1",
    ]


def test_numbered_labels_of_different_settings_are_two_environments(tmp_path: Path) -> None:
    """A plan may number what differs in more than the label shows."""
    large = Environment("docker", "docker=x#2", image="x", shm_bytes=1 << 30)
    part = blocks_of(5, Environment("docker", "docker=x#1", image="x"), large)
    result = result_of(tmp_path, [part], {"docker=x#1": 1.0, "docker=x#2": 1.0})
    assert result.noise == ()
    assert "docker=x#2 costs less than 1 % here" in contrast(result, "docker=x#2").sentence


def test_an_environment_given_twice_without_a_number_is_one(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, Environment("bare", "again"))], {"bare": 1, "again": 1})
    assert [noise.label for noise in read_study(tmp_path).noise] == ["resnet50 in bare"]


def test_two_environments_have_no_noise_floor(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    assert read_study(tmp_path).noise == ()


def test_without_any_steps_whole_runs_are_compared_and_that_is_said(tmp_path: Path) -> None:
    options = {
        index: {"steps": (), "real": 10.0 + 0.01 * index + 0.3 * (index % 2 == 0)}
        for index in range(1, 17)
    }
    question = only(result_of(tmp_path, [PAIR], EFFECTS, options=options))
    assert question.metric == "whole run"
    assert question.cells[0].runs[0].value == pytest.approx(10.01)
    assert question.contrasts[0].verdict.kind is Kind.SLOWER
    assert question.contrasts[0].sentence.endswith(" Start-up included.")
    assert "no run reports steps: whole runs are compared, start-up included" in question.notes
    (elapsed,) = (row for row in question.table if row.name == "elapsed")
    assert elapsed.changes[1] == question.contrasts[0].verdict.change is not None


def test_steps_and_whole_runs_are_never_mixed(tmp_path: Path) -> None:
    options = {index: {"steps": (), "real": 10.0} for index in range(2, 17, 2)}
    result = result_of(tmp_path, [PAIR], EFFECTS, options=options)
    question = only(result)
    (note,) = [each for each in doubts(result) if "no steps, so utilization" in each]
    assert "docker=image) (8 runs): no steps" in note and "of the whole run" in note
    assert question.metric == "step time"
    assert question.cells[1].mean is None
    assert question.contrasts[0].verdict.kind is Kind.CANT_TELL


def test_a_run_whose_steps_are_too_short_to_be_sampled_is_not_said_to_have_none(
    tmp_path: Path,
) -> None:
    result = result_of(tmp_path, [PAIR], EFFECTS, options={2: {"interval": 1000.0}})
    (note,) = [each for each in doubts(result) if "of the whole run" in each]
    assert "(1 of 8 runs): fewer than two samples fell into the timed steps" in note


def test_a_run_that_was_to_last_a_time_has_a_step_time_and_no_time_of_its_own(
    tmp_path: Path,
) -> None:
    part = Part("", (RESNET,), (BARE, DOCKER))
    stopped = {"code": None, "signal": 15, "stopped": "--duration 20s"}
    recorded(tmp_path / "a", [part], EFFECTS, options={1: {"result": stopped}})
    assert only(read_study(tmp_path / "a")).cells[0].mean == pytest.approx(SECONDS)
    by_hand = {**stopped, "stopped": "stop"}
    alone = only(result_of(tmp_path / "b", [part], EFFECTS, options={1: {"result": by_hand}}))
    assert alone.cells[0].mean == pytest.approx(SECONDS), "a single run is described"
    assert alone.contrasts[0].verdict.kind is Kind.DESCRIBED
    recorded(tmp_path / "c", [PAIR], EFFECTS, options={1: {"result": by_hand}})
    runs = [run for cell in only(read_study(tmp_path / "c")).cells for run in cell.runs]
    assert "stopped on request" in [run.reason for run in runs if run.value is None]


def test_the_margin_is_the_plans_unless_another_is_asked_for(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    assert contrast(read_study(tmp_path)).verdict.margin == MARGIN
    wide = contrast(read_study(tmp_path, margin=0.05)).verdict
    assert (wide.margin, wide.kind) == (0.05, Kind.SMALL)


def test_a_label_from_elsewhere_is_made_harmless(tmp_path: Path) -> None:
    hostile = Environment("docker", "docker=x\x1b[31m\u202e\n" + "y" * 500)
    recorded(tmp_path, [blocks_of(5, BARE, hostile)], {"bare": 1.0, hostile.label: 1.03})
    question = only(read_study(tmp_path))
    assert question.cells[1].label.startswith("docker=x yyy")
    assert len(question.cells[1].label) <= 60
    assert "\x1b" not in question.contrasts[0].sentence


def test_the_design_is_said(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    assert read_study(tmp_path).notes == (
        "runs in randomised blocks (order seed 7); block 0 is a warm-up, shown and not judged",
    )


def test_a_block_that_was_resumed_after_an_hour_is_named(tmp_path: Path) -> None:
    later = {index: {"start": START + 1000 * index + 3600} for index in range(6, 17)}
    (note, _) = result_of(tmp_path, [PAIR], EFFECTS, options=later).notes
    assert note.startswith("the runs of block 2 lie far apart (more than an hour")


def test_a_block_on_both_sides_of_a_restart_is_named(tmp_path: Path) -> None:
    boots = {index: {"host": {"host.boot.id": f"{index > 7}"}} for index in range(1, 17)}
    recorded(tmp_path, [PAIR], EFFECTS, options=boots)
    assert read_study(tmp_path).notes[0].startswith("the runs of block 3 lie far apart")


@pytest.mark.usefixtures("long_recording")
def test_a_break_between_blocks_or_a_long_run_is_no_note(tmp_path: Path) -> None:
    later = {index: {"start": START + 1000 * index + 7200} for index in range(7, 17)}
    recorded(tmp_path / "between", [PAIR], EFFECTS, options=later)
    assert len(read_study(tmp_path / "between").notes) == 1
    long = {**later, 5: {"seconds": 400.0}, 6: {"start": START + 5000 + 8100, "seconds": 400.0}}
    later = {index: {"start": START + 1000 * index + 20000} for index in range(7, 17)}
    recorded(tmp_path / "long", [PAIR], EFFECTS, options={**long, **later})
    assert len(read_study(tmp_path / "long").notes) == 1


def test_a_study_of_24_runs_is_read(tmp_path: Path) -> None:
    recorded(tmp_path, [ALL], EFFECTS)
    assert len(read_study(tmp_path).sessions) == 24


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        ("bare,set=A=1", "bare,set=A=2", ("A=1", "A=2")),
        ("bare", "bare,set=A=2", ("bare", "bare,set=A=2")),
        ("docker=x,set=A=1", "bare,set=A=1", ("docker=x,set=A=1", "bare,set=A=1")),
        (f"{LONG},set=A=1", f"{LONG},set=A=2", ("A=1", "A=2")),
    ],
)
def test_what_all_environments_have_is_left_out_where_variables_differ(
    tmp_path: Path, first: str, second: str, labels: tuple[str, str]
) -> None:
    part = blocks_of(3, Environment("bare", first), Environment("bare", second))
    result = result_of(tmp_path, [part], {first: 1.0, second: 1.1})
    (tmp_path / PLAN).unlink()
    for each in (result, read_study(tmp_path)):
        assert tuple(cell.label for cell in only(each).cells) == labels
        names = set(run_names(each).values())
        assert names == {f"resnet50 ({label})" for label in labels}, "as tables call them"
