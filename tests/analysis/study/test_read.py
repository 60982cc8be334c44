"""Session files and folders to a result: what is one study, what is put together by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.cells import labels
from gpuwatch.analysis.hardware.crosscheck import Finding
from gpuwatch.analysis.results import Kind
from gpuwatch.analysis.samples.step_lines import TOGETHER, UNTIMED
from gpuwatch.analysis.study.notes import warnings
from gpuwatch.analysis.study.read import read, read_sessions, read_study
from gpuwatch.analysis.summary.load import OTHERS
from gpuwatch.core.errors import NewerSchema, NotASession, StorageError
from gpuwatch.core.models import Environment, Problem
from gpuwatch.report.document.study import cautions, compared
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import Part, Plan, PlannedRun
from gpuwatch.session.study.study_folder import sessions_in
from tests.analysis import sessions
from tests.analysis.recorded_studies import (
    BARE,
    DOCKER,
    FAILED,
    RESNET,
    SECONDS,
    START,
    WOBBLE,
    blocks_of,
    here,
    only,
    planned,
    recorded,
    result_of,
    run,
)
from tests.analysis.sessions import step_line

EFFECTS = {"bare": 1.0, "docker=image": 1.03}
PAIR = blocks_of(5, BARE, DOCKER)


def runs(
    folder: Path, seconds: float, *, count: int = 5, start: float = START, **options: Any
) -> list[Path]:
    """A folder of runs of one environment, each with a wobble of its own."""
    folder.mkdir()
    return [
        run(
            folder / f"{index:02d}.gpuwatch",
            seconds * WOBBLE[index % len(WOBBLE)],
            start=start + 1000 * index,
            **options,
        )
        for index in range(1, count + 1)
    ]


def test_the_steady_state_is_over_full_timed_steps_alone(tmp_path: Path) -> None:
    lines = [step_line(1, 9.0, warmup=True)]
    lines += [step_line(n, 0.5) for n in range(1, 16)]
    lines += [step_line(16, 0.1, partial=[16])]
    found = read(run(tmp_path / "a.gpuwatch", steps=lines))
    assert (found.steady.seconds, found.steady.count) == (pytest.approx(0.5), 15)


def test_without_times_the_gaps_between_the_ends_that_were_told_are_the_steps(
    tmp_path: Path,
) -> None:
    found = read(run(tmp_path / "a.gpuwatch", steps=[step_line(n, None) for n in range(1, 17)]))
    assert (found.steady.seconds, found.steady.count) == (pytest.approx(SECONDS), 15)


def test_lines_that_tell_no_time_give_no_value_however_regularly_they_arrive(
    tmp_path: Path,
) -> None:
    lines = [{**step_line(n, None), "monotonic_ns": None} for n in range(1, 41)]
    found = read(run(tmp_path / "a.gpuwatch", steps=lines))
    assert (found.steady.seconds, found.steady.reason) == (None, UNTIMED)
    assert found.summary.steps.count == 40


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "no timed step was reported"),
        ([step_line(1, 0.5, warmup=True)], "no timed step was reported"),
        ([step_line(n, None, count=2) for n in range(2, 41, 2)], TOGETHER),
        *(
            ([step_line(n, seconds) for n in range(1, 21)], "a reported step time is impossible")
            for seconds in (0.0, 1e-13)
        ),
        (
            [step_line(n, 0.5) for n in range(1, 9)],
            "8 timed steps are too few for a steady state, which takes 10",
        ),
    ],
)
def test_why_there_is_no_steady_state(
    tmp_path: Path, lines: list[dict[str, Any]], reason: str
) -> None:
    found = read(run(tmp_path / "a.gpuwatch", steps=lines)).steady
    assert (found.seconds, found.reason) == (None, reason)


def test_a_session_that_cannot_be_read_is_a_note_that_names_it(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    (tmp_path / "04-docker.gpuwatch").write_bytes(b"no session at all")
    result = read_study(tmp_path)
    assert len(result.sessions) == 11
    assert result.notes[0].startswith("04-docker.gpuwatch is left out: ")
    assert "is not a gpuwatch session" in result.notes[0]


def test_a_study_that_ended_early_says_what_goes_on_with_it(tmp_path: Path) -> None:
    result = result_of(tmp_path, [PAIR], EFFECTS, left_out=range(5, 13))
    assert result.to_come == 0
    assert result.notes[0] == (
        f"ended early: 8 of 12 runs never started; `gpuwatch resume {tmp_path}` starts them"
    )


def test_a_study_that_goes_on_says_how_many_runs_are_to_come(tmp_path: Path) -> None:
    options = dict.fromkeys(range(1, 7), here())
    gone = {12: Problem("out-of-memory", "no memory")}
    recorded(tmp_path, [PAIR], EFFECTS, left_out=range(7, 13), options=options, problems=gone)
    result = read_study(tmp_path)
    assert result.to_come == 5
    assert only(result).contrasts[0].sentence.endswith("2 of 3 blocks so far, 2 to come.")


def test_a_folder_without_a_plan_is_read_as_put_together_by_hand(tmp_path: Path) -> None:
    runs(tmp_path / "s", SECONDS)
    result = read_study(tmp_path / "s")
    assert (result.plan, result.title, len(only(result).cells)) == (None, "s", 1)
    assert only(result).cells[0].label == "bare"


def test_files_of_another_study_in_the_folder_are_left_out_and_named(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    run(tmp_path / "99-other.gpuwatch", 3.0)
    result = read_study(tmp_path)
    assert result.notes[0] == "not of this study's plan, and left out: 99-other.gpuwatch"
    assert [len(cell.runs) for cell in only(result).cells] == [6, 6]
    assert len(result.sessions) == 13


def test_sessions_of_one_study_are_compared_in_its_blocks(tmp_path: Path) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    found = sessions_in(tmp_path)
    whole = only(read_sessions(found))
    assert whole.contrasts[0].verdict.paired
    assert whole.contrasts[0].verdict == only(read_study(tmp_path)).contrasts[0].verdict
    some = only(read_sessions(found[:6])).contrasts[0].verdict
    assert (some.paired, some.pairs, some.kind) == (True, 2, Kind.DESCRIBED)


def test_groups_saved_at_different_times_are_not_paired_and_say_so(tmp_path: Path) -> None:
    before = runs(tmp_path / "before", SECONDS)
    after = runs(tmp_path / "after", 1.1 * SECONDS, start=START + 86400)
    result = read_sessions([*before, *after])
    question = only(result)
    assert [cell.label for cell in question.cells] == ["before", "after"]
    (found,) = question.contrasts
    assert (found.verdict.kind, found.verdict.paired) == (Kind.SLOWER, False)
    assert found.ratios == ()
    assert "not paired, so that drift between them is in the difference" in found.sentence
    assert result.title == "10 sessions"


def test_two_studies_in_blocks_are_compared_without_their_warm_up(tmp_path: Path) -> None:
    part = blocks_of(5, BARE)
    recorded(tmp_path / "one", [part], EFFECTS, options={1: {"seconds": 9.0}})
    later = {index: {"start": START + 86400 + 1000 * index} for index in range(1, 7)}
    recorded(tmp_path / "two", [part], EFFECTS, options=later)
    paths = [path for name in ("one", "two") for path in sessions_in(tmp_path / name)]
    question = only(read_sessions(paths))
    assert [cell.label for cell in question.cells] == ["one", "two"]
    assert [len(cell.judged) for cell in question.cells] == [5, 5]
    (found,) = question.contrasts
    assert (found.verdict.kind, found.verdict.paired) == (Kind.SAME, False)
    assert not any("no runs are paired" in note for note in read_sessions(paths).notes)


def test_studies_whose_blocks_are_taken_apart_say_so_first(tmp_path: Path) -> None:
    for name in ("one", "two"):
        recorded(tmp_path / name, [PAIR], EFFECTS)
    result = read_sessions(
        [path for name in ("one", "two") for path in sessions_in(tmp_path / name)]
    )
    assert not any(each.verdict.paired for each in only(result).contrasts)
    told = next(note for note in result.notes if note.startswith("of several studies no runs are"))
    assert f"`gpuwatch compare {tmp_path / 'one'}` pairs them" in told
    assert cautions(result)[0] == told
    assert not any("no runs are paired" in note for note in read_study(tmp_path / "one").notes)


def test_two_studies_are_judged_by_the_margin_of_their_plans(tmp_path: Path) -> None:
    for name, environment, margin in (("a", BARE, 0.05), ("b", DOCKER, 0.05), ("c", BARE, 0.02)):
        recorded(tmp_path / name, [blocks_of(5, environment, margin=margin)], EFFECTS)
    alike = read_sessions([path for name in "ab" for path in sessions_in(tmp_path / name)])
    assert only(alike).contrasts[0].verdict.margin == 0.05
    assert not any("margin" in note for note in alike.notes)
    paths = [path for name in "bc" for path in sessions_in(tmp_path / name)]
    unlike = read_sessions(paths)
    assert only(unlike).contrasts[0].verdict.margin == 0.02
    assert "the margins of the studies differ (2 %, 5 %): the smallest is used" in unlike.notes
    asked = read_sessions(paths, margin=0.03)
    assert only(asked).contrasts[0].verdict.margin == 0.03
    assert not any("margin" in note for note in asked.notes)
    (tmp_path / "elsewhere").mkdir()
    links = [tmp_path / "elsewhere" / f"{path.parent.name}-{path.name}" for path in paths]
    for link, path in zip(links, paths, strict=True):
        link.symlink_to(path)
    assert only(read_sessions(links)).contrasts[0].verdict.margin == 0.02


def test_of_two_warnings_of_a_kind_in_one_run_the_first_is_told(tmp_path: Path) -> None:
    result = result_of(tmp_path / "one", [blocks_of(1, BARE, margin=0.05)], EFFECTS)
    (session, *_) = result.sessions
    findings = tuple(Finding("sharing", True, text, None, None, "") for text in ("one", "two"))
    shared = replace(session, efficiency=replace(session.efficiency, findings=findings))
    told = warnings(replace(result, sessions=(shared, *result.sessions[1:])))
    assert [text.rpartition(": ")[2] for text in told] == ["one"]


def test_the_order_that_was_asked_for_gives_the_baseline(tmp_path: Path) -> None:
    before = runs(tmp_path / "before", SECONDS)
    after = runs(tmp_path / "after", 1.1 * SECONDS, start=START + 86400)
    there, back = (
        only(read_sessions(paths)).contrasts[0].verdict
        for paths in ([*before, *after], [*after, *before])
    )
    assert (there.kind, back.kind) == (Kind.SLOWER, Kind.FASTER)
    assert there.estimate is not None and back.estimate is not None
    assert (1 + there.estimate) * (1 + back.estimate) == pytest.approx(1)


def test_other_parameters_by_mistake_are_named_and_give_no_ratio(tmp_path: Path) -> None:
    small = runs(tmp_path / "a", SECONDS, parameters={"batch_size": 32})
    large = runs(
        tmp_path / "b", SECONDS, start=START + 86400, parameters={"batch_size": 64}, label="docker"
    )
    question = only(read_sessions([*small, *large]))
    (found,) = question.contrasts
    assert found.verdict.kind is Kind.INVALID
    assert "different batch size: 32 against 64" in found.sentence
    assert found.verdict.change is None
    assert all(row.ratios == (None, None) for row in question.table)


def test_of_several_parameters_each_that_two_groups_have_is_a_question(tmp_path: Path) -> None:
    paths = [
        *runs(tmp_path / "a", SECONDS, parameters={"batch_size": 32}),
        *runs(tmp_path / "b", SECONDS, start=START + 86400, parameters={"batch_size": 64}),
        *runs(tmp_path / "c", SECONDS, start=START + 172800, parameters={"batch_size": 64}),
    ]
    result = read_sessions(paths)
    question = only(result)
    assert [cell.label for cell in question.cells] == [
        "batch size 64, b",
        "batch size 64, c",
        "batch size 32, a",
    ]
    assert [each.verdict.kind for each in question.contrasts] == [Kind.SAME, Kind.INVALID]


def test_different_workloads_are_never_a_ratio(tmp_path: Path) -> None:
    paths = [
        *runs(tmp_path / "a", SECONDS, count=3),
        *runs(tmp_path / "b", SECONDS, count=3, start=START + 86400, workload="alexnet"),
    ]
    result = read_sessions(paths)
    assert [question.contrasts for question in result.questions] == [(), ()]
    assert result.notes == ("INVALID: different workloads: resnet50, alexnet",)


def test_a_few_runs_of_several_programs_stand_side_by_side(tmp_path: Path) -> None:
    paths = [
        *runs(tmp_path / "a", SECONDS, count=2),
        *runs(tmp_path / "b", SECONDS, count=1, start=START + 86400, workload="alexnet"),
    ]
    result = read_sessions(paths)
    assert [[len(cell.runs) for cell in of.cells] for of in result.questions] == [[1, 1], [1]]


def test_several_runs_of_one_environment_are_not_called_one_without_another(tmp_path: Path) -> None:
    paths = [
        *runs(tmp_path / "a", SECONDS, count=2),
        *runs(tmp_path / "b", SECONDS, count=2, start=START + 86400, label="docker"),
        *runs(tmp_path / "c", SECONDS, count=2, start=START + 172800, workload="alexnet"),
    ]
    assert "of one environment alone, so not compared: alexnet" in read_sessions(paths).notes
    assert "of one session alone, so not compared: alexnet" in read_sessions(paths[:-1]).notes


def test_a_run_that_failed_early_stays_with_the_others_of_its_flags(tmp_path: Path) -> None:
    flags = {"batch_size": 64}
    told = {**flags, "lr": 0.1}
    good = runs(tmp_path / "a", SECONDS, parameters=flags, run={"parameters": told})
    dead = run(
        tmp_path / "a" / "99.gpuwatch",
        start=START + 9000,
        parameters=flags,
        run={"parameters": {}},
        result=FAILED,
        steps=(),
    )
    (cell,) = only(read_sessions([*good, dead])).cells
    assert [each.value is None for each in cell.runs] == [*[False] * 5, True]


def test_two_gpus_of_one_study_are_two_cells_and_not_comparable(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    gpus = (sessions.GPU, sessions.OTHER_GPU)
    paths = [
        run(
            tmp_path / "s" / f"{index}.gpuwatch",
            SECONDS * WOBBLE[index],
            devices=(gpus[index % 2], sessions.CPU),
            start=START + 1000 * index,
        )
        for index in range(6)
    ]
    question = only(read_sessions(paths))
    assert [cell.label for cell in question.cells] == ["GPU-1", "GPU-2"]
    assert question.contrasts[0].verdict.reasons == (
        "another GPU of the same model: GPU-1 against GPU-2 (--across-devices compares them)",
    )
    across = only(read_sessions(paths, across_devices=True))
    assert across.contrasts[0].verdict.kind is Kind.DESCRIBED
    assert across.notes == ("another GPU of the same model: GPU-1 against GPU-2",)


def test_a_file_given_twice_counts_once(tmp_path: Path) -> None:
    (path,) = runs(tmp_path / "a", SECONDS, count=1)
    assert len(read_sessions([path, path]).sessions) == 1


@pytest.mark.parametrize(("content", "error"), [(None, StorageError), (b"no session", NotASession)])
def test_a_file_that_was_named_must_be_a_session(
    tmp_path: Path, content: bytes | None, error: type[Exception]
) -> None:
    path = tmp_path / "a.gpuwatch"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error):
        read_sessions([path])


def test_a_session_of_a_newer_schema_is_refused(tmp_path: Path) -> None:
    (path,) = runs(tmp_path / "a", SECONDS, count=1)
    with path.open("r+b") as file:
        file.seek(60)
        file.write((99).to_bytes(4, "big"))
    with pytest.raises(NewerSchema):
        read_sessions([path])


def test_a_plan_from_elsewhere_with_absurd_blocks_is_read_at_once(tmp_path: Path) -> None:
    huge = Part("", (RESNET,), (BARE, Environment("docker", "docker")), blocks=10**9)
    last = (PlannedRun(1, "1.gpuwatch", RESNET, BARE, 0, 10**9),)
    study_folder.write(tmp_path, Plan("s", (huge,), last))
    run(tmp_path / "1.gpuwatch")
    assert len(only(read_study(tmp_path)).cells) == 1


def test_a_session_that_is_not_of_the_run_it_is_named_for_is_left_out_and_named(
    tmp_path: Path,
) -> None:
    plan = recorded(tmp_path, [PAIR], EFFECTS)
    bare, docker = (tmp_path / run.file for run in plan.runs[2:4])
    bare.rename(tmp_path / "kept")
    docker.rename(bare)
    (tmp_path / "kept").rename(docker)
    result = read_study(tmp_path)
    assert sum("is left out: its environment is" in note for note in result.notes) == 2
    assert len(result.sessions) == len(plan.runs) - 2


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 9}', "[[["])
def test_without_a_plan_that_can_be_read_nothing_is_told(tmp_path: Path, text: str) -> None:
    recorded(tmp_path, [PAIR], EFFECTS)
    (tmp_path / "plan.json").write_text(text)
    result = read_study(tmp_path)
    assert result.notes[0].startswith("plan.json cannot be read")
    (contrast,) = result.questions[0].contrasts
    assert contrast.verdict.kind is Kind.CANT_TELL and contrast.verdict.estimate is None


def test_two_runs_of_different_blocks_are_described_without_their_blocks(tmp_path: Path) -> None:
    plan = recorded(tmp_path, [PAIR], EFFECTS)
    chosen = [
        next(
            tmp_path / run.file
            for run in plan.runs
            if run.block == block and run.environment == environment
        )
        for block, environment in ((1, BARE), (2, DOCKER))
    ]
    (contrast,) = only(read_sessions(chosen)).contrasts
    assert contrast.verdict.kind is Kind.DESCRIBED and not contrast.verdict.paired
    assert contrast.verdict.estimate == pytest.approx(0.03, abs=0.01)


def test_a_value_of_the_last_steps_alone_is_told(tmp_path: Path) -> None:
    late = [
        step_line(n, SECONDS * (1.1 if n > 88 else 1.0) * (1 + 1e-4 * (n % 3)))
        for n in range(1, 101)
    ]
    plan = planned([PAIR])
    odd = {run.index: {"steps": late} for run in plan.runs if run.environment == DOCKER}
    question = only(result_of(tmp_path, [PAIR], EFFECTS, options=odd))
    told = "the step time changed its level; steady are only the last 12 of 100 steps or more"
    assert f"5 of 5 runs of docker=image: {told}" in question.notes


def test_of_steps_that_do_not_all_tell_their_samples_there_is_no_throughput(tmp_path: Path) -> None:
    told = [
        step_line(n, SECONDS * (1 + 1e-4 * (n % 3)), samples=64 if n % 9 else None)
        for n in range(1, 61)
    ]
    plan = planned([PAIR])
    recorded(tmp_path, [PAIR], EFFECTS, options={run.index: {"steps": told} for run in plan.runs})
    result = read_study(tmp_path)
    names = {row.name for row in (*only(result).table, *compared(result).rows)}
    assert "step time, steady mean" in names and not any("throughput" in name for name in names)


def test_single_runs_stand_beside_each_other_with_what_their_verdict_judges(tmp_path: Path) -> None:
    """Half of one run's steps come before its steady state: its medians alone say other ratios."""

    def steps(*parts: tuple[int, float]) -> list[dict[str, object]]:
        seconds = [each for count, each in parts for _ in range(count)]
        ends = [5 + sum(seconds[: at + 1]) for at in range(len(seconds))]
        return [
            {
                "event": "step",
                "step": at,
                "samples": 64,
                "seconds": each * WOBBLE[at % len(WOBBLE)],
                "monotonic_ns": round(end * 1e9),
            }
            for at, (each, end) in enumerate(zip(seconds, ends, strict=True), 1)
        ]

    paths = [
        run(tmp_path / "a.gpuwatch", steps=steps((40, 0.5))),
        run(
            tmp_path / "b.gpuwatch",
            steps=steps((22, 0.4), (18, 0.6)),
            label="docker",
            start=START + 9000,
        ),
    ]
    result = read_sessions(paths)
    verdict = only(result).contrasts[0].verdict
    assert verdict.estimate is not None and verdict.total is not None
    assert verdict.estimate == pytest.approx(0.2, abs=0.01)
    rows = {row.name: row for row in compared(result).rows if row.group == "steps"}
    assert rows["step time, median"].ratios[1] == pytest.approx(0.8, abs=0.01)
    assert rows["step time, typical"].ratios == (1.0, pytest.approx(1 + verdict.estimate))
    judged = 1 + (verdict.total.estimate or 0)
    assert rows["step time, steady mean"].ratios == (1.0, pytest.approx(judged))
    assert rows["throughput, steady mean"].ratios == (1.0, pytest.approx(1 / judged))
    # The steady part stands for few of the steps: it is told first, with what all of them say.
    load = f"{OTHERS} 68 % of the CPU's time"
    first, second, *_ = cautions(replace(result, notes=("odd", load)))
    assert first.endswith("steady are only the last 18 of 40 steps") and second == load
    assert rows["throughput"].ratios[1] == pytest.approx(0.5 / 0.49, rel=0.02)
    mostly = run(tmp_path / "c.gpuwatch", steps=steps((12, 0.4), (28, 0.6)), label="docker")
    result = read_sessions([paths[0], mostly])
    assert "throughput" not in {row.name for row in compared(result).rows}
    assert cautions(replace(result, notes=("odd",)))[0] == "odd"


def test_no_cell_is_without_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b").mkdir()
    paths = [run(Path(name), SECONDS) for name in ("a.gpuwatch", "b/a.gpuwatch")]
    assert [cell.label for cell in only(read_sessions(paths)).cells] == ["bare", "b"]


def test_a_label_of_several_words_has_each_once() -> None:
    candidates = [("bare", "bare"), ("bare", "docker"), ("docker", "bare")]
    assert labels(candidates) == ["bare", "bare, docker", "docker, bare"]
