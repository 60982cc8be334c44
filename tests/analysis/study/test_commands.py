"""Commands compared with each other: which cells, which verdicts, and what is listed as chosen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import Kind, Question
from gpuwatch.analysis.study.read import read_sessions, read_study
from gpuwatch.core.models import Environment, Workload
from gpuwatch.report.document.reasons import difference_name, differing_facts
from gpuwatch.report.document.study import brief, lettered, verdict_first
from gpuwatch.report.text import as_text
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part, Plan
from gpuwatch.session.study.study_folder import sessions_in
from tests.analysis import sessions
from tests.analysis.recorded_studies import BARE, DOCKER, START, WOBBLE, only, run

A100 = ("gpu0", "gpu", "NVIDIA A100-SXM4-40GB", "GPU-8", {})
FAST, SLOW = "python train.py", "python train.py --fp32"


def command(label: str | None, line: str) -> Workload:
    words = tuple(line.split())
    return Workload(words[1], "command", words, label=label)


COMMANDS = (command("amp", FAST), command("fp32", SLOW))


def step_lines(samples: int | None, seconds: float) -> list[dict[str, Any]]:
    told = {} if samples is None else {"samples": samples}
    return [
        {
            "event": "step",
            "step": step,
            "seconds": seconds,
            "monotonic_ns": round((sessions.WARM + step * seconds) * sessions.SECOND),
            "phases": {"forward": seconds},
            **told,
        }
        for step in range(1, 21)
    ]


def session(
    path: Path,
    workload: Workload,
    environment: Environment = BARE,
    *,
    seconds: float = 0.5,
    start: float = START,
    samples: int | None = 64,
    digest: str | None = "train.py 3fa1c0e2b7d4",
    **options: Any,
) -> Path:
    """A run of ``workload`` as the recorder writes it."""
    variables = {"variables": dict(environment.variables)} if environment.variables else {}
    return run(
        path,
        seconds,
        start=start,
        steps=step_lines(samples, seconds),
        host={"host.name": "here", "gpuwatch.program.sha256": digest},
        **{
            **options,
            "extra": {
                "workload": {
                    "name": workload.name,
                    "kind": "command",
                    "arguments": list(workload.arguments),
                    "parameters": {},
                    **({} if workload.label is None else {"label": workload.label}),
                },
                "environment": {
                    "kind": environment.kind,
                    "label": environment.label,
                    **variables,
                    **({} if environment.python is None else {"python": environment.python}),
                },
            },
        },
    )


def study(
    folder: Path,
    *environments: Environment,
    commands: tuple[Workload, ...] = COMMANDS,
    effects: Mapping[str, float] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    blocks: int = 5,
) -> Path:
    """A study of ``commands``: those with the label of ``effects`` take that much longer."""
    part = Part("commands", commands, environments or (BARE,), blocks=blocks, warmup_blocks=1)
    plan = Plan("a-study", (part,), plan_runs([part], 3), seed=3)
    folder.mkdir()
    study_folder.write(folder, plan)
    for each in plan.runs:
        label = str(each.workload.label)
        effect = (effects or {"fp32": 1.2}).get(label, 1.0)
        session(
            folder / each.file,
            each.workload,
            each.environment,
            seconds=0.5 * effect * WOBBLE[each.index % len(WOBBLE)],
            start=START + 1000 * each.index,
            **(options or {}).get(label, {}),
        )
    return folder


def reasons(question: Question) -> str:
    (contrast,) = question.contrasts
    assert contrast.verdict.kind is Kind.INVALID
    return "; ".join(contrast.verdict.reasons)


def test_commands_are_judged_in_blocks_and_the_command_is_listed(tmp_path: Path) -> None:
    question = only(read_study(study(tmp_path / "s")))
    assert question.label == "commands in bare"
    assert [cell.label for cell in question.cells] == ["amp", "fp32"]
    (contrast,) = question.contrasts
    assert contrast.verdict.kind is Kind.SLOWER and contrast.verdict.paired
    assert contrast.verdict.change is not None
    assert contrast.verdict.change.estimate == pytest.approx(0.2, abs=0.01)
    assert contrast.by_design == (f"command: {FAST} against {SLOW}",)
    assert contrast.design == f"differs by design: command: {FAST} against {SLOW}"


def test_with_environments_each_is_compared_within_the_other(tmp_path: Path) -> None:
    result = read_study(study(tmp_path / "s", BARE, DOCKER))
    assert [each.label for each in result.questions] == [
        "commands in bare", "commands in docker=image", "amp", "fp32",
    ]  # fmt: skip
    assert [[cell.label for cell in each.cells] for each in result.questions] == [
        ["amp", "fp32"], ["amp", "fp32"], ["bare", "docker=image"], ["bare", "docker=image"],
    ]  # fmt: skip
    kinds = [each.contrasts[0].verdict.kind for each in result.questions]
    assert kinds == [Kind.SLOWER, Kind.SLOWER, Kind.SAME, Kind.SAME]
    assert all(each.contrasts[0].verdict.pairs == 5 for each in result.questions)


def test_one_command_is_a_case_as_any_other(tmp_path: Path) -> None:
    folder = study(tmp_path / "s", BARE, DOCKER, commands=COMMANDS[:1])
    question = only(read_study(folder))
    assert question.label == "amp"
    assert [cell.label for cell in question.cells] == ["bare", "docker=image"]


def test_the_same_command_twice_is_a_repetition(tmp_path: Path) -> None:
    twins = (command("a", FAST), command("b", FAST))
    result = read_study(study(tmp_path / "s", commands=twins))
    (contrast,) = only(result).contrasts
    assert contrast.by_design == () and contrast.design is None
    assert "two of the same: no difference of 1 % or more" in contrast.sentence
    assert [floor.label for floor in result.noise] == ["commands in bare"]


def test_what_a_command_brings_with_it_is_chosen_too(tmp_path: Path) -> None:
    options = {
        "amp": {"run": {"dtype": "bfloat16", "parameters": {"amp": "on"}}},
        "fp32": {"run": {"dtype": "float32", "parameters": {"amp": "off"}}},
    }
    (contrast,) = only(read_study(study(tmp_path / "s", options=options))).contrasts
    assert contrast.verdict.kind is Kind.SLOWER
    assert contrast.by_design[1:] == ("amp: on against off", "data type: bfloat16 against float32")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"devices": (A100, sessions.CPU)}, "different accelerators"),
        ({"samples": 32}, "different samples per step: 64 against 32"),
        ({"digest": "train.py 000000000000"}, "train.py (SHA-256): 3fa1c0e2b7d4 against 0000"),
    ],
)
def test_what_differs_beside_the_command_is_still_a_reason(
    tmp_path: Path, options: Mapping[str, Any], reason: str
) -> None:
    folder = study(tmp_path / "s", options={"fp32": options})
    assert reason in reasons(only(read_study(folder)))


def test_unlike_steps_have_their_throughput_and_no_parts_of_a_change(tmp_path: Path) -> None:
    twice = {"fp32": {"samples": 128}}
    result = read_study(study(tmp_path / "s", effects={"fp32": 2.0}, options=twice))
    (contrast,) = only(result).contrasts
    assert contrast.sentence.endswith("(their samples/s can be compared, below).")
    assert not [each for each in contrast.explanation.evidence if "phase" in each.text]
    for shown in (verdict_first(result, ""), brief(result)):
        assert "\nthroughput, steady mean, samples/s" in as_text(shown, 100).replace("\n  ", "\n")
    alike = read_study(study(tmp_path / "t"))
    assert any(
        "phase forward" in each.text for each in only(alike).contrasts[0].explanation.evidence
    )
    assert "samples/s" not in as_text(brief(alike), 100)


def test_a_batch_size_counts_where_samples_are_not_known(tmp_path: Path) -> None:
    options = {
        label: {"samples": None, "count": {}, "run": {"batch_size": size}}
        for label, size in (("amp", 64), ("fp32", 32))
    }
    folder = study(tmp_path / "s", options=options)
    assert "different batch size: 64 against 32" in reasons(only(read_study(folder)))


def test_the_same_program_in_another_folder_is_the_same_and_an_edited_one_is_not(
    tmp_path: Path,
) -> None:
    def ran(folder: str, digest: str) -> Path:
        program = f"/{folder}/train.py"
        workload = Workload("train.py", "command", arguments=("python", program, "60"))
        path, start = tmp_path / f"{folder}.gpuwatch", START + 1000 * ord(folder)
        return session(path, workload, start=start, digest=f"{program} {digest}")

    first = ran("a", "3fa1c0e2b7d4")
    (contrast,) = only(read_sessions([first, ran("b", "3fa1c0e2b7d4")])).contrasts
    assert contrast.verdict.kind is Kind.DESCRIBED
    edited = only(read_sessions([first, ran("c", "111111111111")]))
    assert reasons(edited) == (
        "different program (SHA-256): train.py 3fa1c0e2b7d4 against train.py 111111111111"
    )


def test_commands_of_files_in_two_folders_are_compared_by_design(tmp_path: Path) -> None:
    digests = {"amp": "old/train.py 3fa1c0e2b7d4", "fp32": "new/train.py 111111111111"}
    options = {label: {"digest": digest} for label, digest in digests.items()}
    (contrast,) = only(read_study(study(tmp_path / "s", options=options))).contrasts
    assert contrast.verdict.kind is Kind.SLOWER


def test_of_two_files_of_one_name_each_counts(tmp_path: Path) -> None:
    paths = []
    for at, digest in enumerate(("1" * 12, "2" * 12)):
        workload = Workload("train.py", "command", arguments=("python", "train.py", "a/c.yaml"))
        files = f"train.py 3fa1c0e2b7d4, a/c.yaml {digest}, b/c.yaml 999999999999"
        path, start = tmp_path / f"{at}.gpuwatch", START + 1000 * at
        paths.append(session(path, workload, start=start, digest=files))
    assert "different program (SHA-256)" in reasons(only(read_sessions(paths)))


def test_a_program_under_another_name_is_the_same(tmp_path: Path) -> None:
    def differing(name: str, digest: str) -> bool:
        options = {"fp32": {"digest": f"my copy.py {digest}"}}
        facts = differing_facts(only(read_study(study(tmp_path / name, options=options))))
        return "gpuwatch.program.sha256" in [each.key for each in facts]

    assert not differing("same", "3fa1c0e2b7d4") and differing("other", "111111111111")


def test_files_that_only_one_command_names_belong_to_it(tmp_path: Path) -> None:
    digest = "train.py 3fa1c0e2b7d4, b.yaml 111111111111"
    folder = study(tmp_path / "s", options={"fp32": {"digest": digest}})
    (contrast,) = only(read_study(folder)).contrasts
    assert contrast.verdict.kind is Kind.SLOWER


def test_variables_and_interpreter_of_an_environment_are_listed(tmp_path: Path) -> None:
    old = Environment("bare", "old", python="/old/python")
    new = Environment("bare", "new", python="/new/python", variables={"OMP_NUM_THREADS": "1"})
    folder = study(tmp_path / "s", old, new, commands=COMMANDS[:1])
    question = only(read_study(folder))
    (contrast,) = question.contrasts
    assert contrast.verdict.kind is Kind.SAME
    assert contrast.by_design == (
        "variables: none against OMP_NUM_THREADS=1",
        "interpreter: /old/python against /new/python",
    )
    assert {each.key for each in contrast.explanation.differences} == {
        "variables.OMP_NUM_THREADS",
        "python",
    }
    shown = {difference_name(each): each.values for each in differing_facts(question)}
    assert shown["variables.OMP_NUM_THREADS"] == (None, "1")


def test_a_session_of_another_command_is_left_out(tmp_path: Path) -> None:
    folder = study(tmp_path / "s")
    first, second = (path for path in sessions_in(folder)[:2])
    first.write_bytes(second.read_bytes())
    assert any("its command is" in note for note in read_study(folder).notes)


def saved(tmp_path: Path, line: str, seconds: float, **options: Any) -> list[Path]:
    """Five sessions of a command, without a plan."""
    folder = tmp_path / line.replace(" ", "-")
    folder.mkdir()
    start = START + 100_000 * seconds
    return [
        session(
            folder / f"{at}.gpuwatch",
            command(None, line),
            seconds=seconds * WOBBLE[at],
            start=start + 1000 * at,
            **options,
        )
        for at in range(5)
    ]


def test_saved_sessions_of_two_commands_get_no_verdict_but_the_flag_that_gives_one(
    tmp_path: Path,
) -> None:
    paths = [*saved(tmp_path, FAST, 0.5), *saved(tmp_path, SLOW, 0.6)]
    told = reasons(only(read_sessions(paths)))
    assert told == f"different command: {FAST} against {SLOW} (--across-commands compares them)"
    question = only(read_sessions(paths, across_commands=True))
    (contrast,) = question.contrasts
    assert [cell.label for cell in question.cells] == ["train.py", "train.py --fp32"]
    assert contrast.verdict.kind is Kind.SLOWER and not contrast.verdict.paired
    assert contrast.by_design == (f"command: {FAST} against {SLOW}",)


def test_programs_of_two_names_are_compared_across_commands_alone(tmp_path: Path) -> None:
    other = "python other.py"
    paths = [*saved(tmp_path, FAST, 0.5), *saved(tmp_path, other, 0.6, digest="other.py 1")]
    result = read_sessions(paths)
    assert result.notes[0] == (
        "INVALID: different commands: train.py, other.py (--across-commands compares them)"
    )
    (contrast,) = only(read_sessions(paths, across_commands=True)).contrasts
    assert contrast.verdict.kind is Kind.SLOWER
    third = command(None, "python third.py")
    paths = [paths[0], session(tmp_path / "third.gpuwatch", third, start=START + 50_002)]
    why = "their runs overlapped in time on one machine: they disturbed each other"
    assert read_sessions(paths).notes[0].endswith(f"compares them); {why}")


def test_across_commands_every_letter_is_of_the_same_runs(tmp_path: Path) -> None:
    there = Environment("docker", "docker=team/image")
    (tmp_path / "there").mkdir()
    paths = []
    for name in ("train.py", "alone.py", "other.py"):
        paths += saved(tmp_path, f"python {name}", 0.5)
        if name != "alone.py":
            paths += saved(tmp_path / "there", f"python {name}", 0.6, environment=there)
    legends = []
    for across in (False, True):
        shown, legend = lettered(read_sessions(paths, across_commands=across))
        cells = [cell for question in shown.questions for cell in question.cells]
        legends.append({cell.label: cell.runs[0].session.path for cell in cells})
        assert [each.letter for each in legend] == sorted(legends[-1]) == list("ABCDE")
    assert legends[0] == legends[1]
    _, legend = lettered(read_sessions(paths))
    assert [each.label for each in legend][1:3] == ["train.py, docker=team/image", "alone.py, bare"]


def test_what_several_alone_report_is_told_in_one_line(tmp_path: Path) -> None:
    paths = saved(tmp_path, FAST, 0.5, run={"dtype": None})
    for at, line in enumerate((SLOW, "python train.py --tf32"), 6):
        paths += saved(tmp_path, line, 0.1 * at, run={"dtype": "bfloat16"})
    notes = only(read_sessions(paths, across_commands=True)).notes
    assert [each for each in notes if each.startswith("known of ")] == [
        "known of train.py --fp32 and train.py --tf32 alone, not of train.py: data type (bfloat16)"
    ]


@pytest.mark.parametrize("across", [True, False])
def test_a_workload_that_is_built_in_and_a_program_get_no_verdict(
    tmp_path: Path, across: bool
) -> None:
    paths = [run(tmp_path / "built-in.gpuwatch"), *saved(tmp_path, FAST, 0.5)]
    result = read_sessions(paths, across_commands=across)
    assert all(not question.contrasts for question in result.questions)
    assert result.notes[0] == (
        "INVALID: a built-in workload against a program of your own; only their figures"
    )


def test_across_commands_other_samples_are_still_a_reason(tmp_path: Path) -> None:
    paths = [*saved(tmp_path, FAST, 0.5), *saved(tmp_path, SLOW, 0.6, samples=128)]
    question = only(read_sessions(paths, across_commands=True))
    assert "different samples per step: 64 against 128" in reasons(question)


def test_across_commands_leaves_a_study_of_commands_as_it_is(tmp_path: Path) -> None:
    folder = study(tmp_path / "s")
    assert read_study(folder, across_commands=True) == read_study(folder)


def test_some_sessions_of_commands_are_still_compared_by_block(tmp_path: Path) -> None:
    others = (command("amp", "python fast.py"), command("fp32", "python slow.py"))
    folder = study(tmp_path / "s", commands=others)
    paths = sessions_in(folder)[:-2][::-1]
    for across in (False, True):
        (contrast,) = only(read_sessions(paths, across_commands=across)).contrasts
        assert contrast.verdict.paired and contrast.verdict.pairs == 4


def test_a_study_with_a_part_for_each_command_is_compared_across_them(tmp_path: Path) -> None:
    parts = tuple(Part(line, (command(None, line),), (BARE,), blocks=5) for line in (FAST, SLOW))
    folder = tmp_path / "s"
    folder.mkdir()
    plan = Plan("s", parts, plan_runs(parts, 1), seed=1)
    study_folder.write(folder, plan)
    for each in plan.runs:
        session(
            folder / each.file,
            each.workload,
            seconds=0.5 * (1 + 0.2 * each.part) * WOBBLE[each.index % len(WOBBLE)],
            start=START + 1000 * each.index,
        )
    assert not any(question.contrasts for question in read_study(folder).questions)
    (contrast,) = only(read_study(folder, across_commands=True)).contrasts
    assert contrast.verdict.kind is Kind.SLOWER and not contrast.verdict.paired
