"""What reports say, in whichever format: the answer first, and nothing twice."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.read import read_sessions, read_study
from gpuwatch.report.document.answer import top
from gpuwatch.report.document.blocks import Bar, Bars, Item, Sentence, Table
from gpuwatch.report.document.study import document, verdict_first
from gpuwatch.report.html.page import page
from gpuwatch.report.markdown import as_markdown
from gpuwatch.report.text import as_text, bars, terminal
from tests.analysis.recorded_studies import BARE, DOCKER, blocks_of, recorded
from tests.analysis.study.test_letters import LONG, renamed
from tests.tui.sessions import Script, finished, write

from . import results

EFFECTS = {BARE.label: 1.0, DOCKER.label: 1.1}


@pytest.mark.parametrize("answers", [True, False])
def test_the_sentence_of_a_verdict_stands_once_in_every_format(
    tmp_path: Path, answers: bool
) -> None:
    recorded(tmp_path, [blocks_of(6 if answers else 2, BARE, DOCKER)], EFFECTS)
    result = read_study(tmp_path)
    (contrast,) = result.questions[0].contrasts
    told = " ".join(contrast.sentence.split(" ")[:6]).removesuffix(".")
    for text in (
        terminal(result),
        terminal(result, short=True),
        as_text(verdict_first(result, ""), 80),
        as_markdown(result).replace("\\", ""),
        re.sub(r"<[^>]+>", "", html.unescape(page(result, []))),
    ):
        assert " ".join(text.split()).count(told) == 1


def test_long_labels_are_letters_in_title_sentence_and_chart(tmp_path: Path) -> None:
    result = renamed(results.study_result(tmp_path), LONG)
    for text in (as_markdown(result), page(result, [])):
        before = text.partition("SAME")[0]
        for told in ("B and C against A", "bare (baseline)", LONG):
            assert told in before


def test_two_single_runs_have_their_letters_above_the_verdict(tmp_path: Path) -> None:
    text = as_markdown(renamed(results.one_run_each(tmp_path), LONG))
    assert text.startswith(f"# B against A\n\n- **A** bare (baseline)\n- **B** {LONG}\n\n- **NO V")


def test_two_single_runs_have_their_step_times_as_bars(tmp_path: Path) -> None:
    chart = top(results.one_run_each(tmp_path)).chart
    assert isinstance(chart, Bars)
    assert [(bar.name, bar.text) for bar in chart.bars] == [
        ("bare", "499 ms"),
        ("docker", "503 ms"),
    ]


def test_a_single_run_has_its_main_figures_and_phases(tmp_path: Path) -> None:
    result = results.one_run_each(tmp_path, ("bare",))
    head, sections = top(result), document(result).sections
    (folded,) = [at for at, each in enumerate(sections) if each.closed and not each.title]
    assert isinstance(sections[folded].items[0], Table)
    assert "gauges" in [each.title for each in sections[:folded]]
    assert [each.name for each in head.figures] == [
        *("step time, median", "throughput, mean", "MFU", "energy a sample", "peak GPU memory")
    ]
    assert [each.value for each in head.figures[:2]] == ["499 ms", "128 samples/s"]
    assert head.figures[0].note == "measured: 20 timed steps, mean 499 ms"
    assert isinstance(head.chart, Bars)
    assert [bar.name for bar in head.chart.bars] == ["data", "forward", "backward"]


def test_what_is_unknown_of_a_run_is_unavailable_with_its_reason(tmp_path: Path) -> None:
    script = Script(meta=finished(1), alive=False, steps=False, gpus=0, count=False)
    write(tmp_path / "01-bare.gpuwatch", script)
    result = read_study(tmp_path)
    head = top(result)
    assert "exit code 1" in dict(document(result).facts)["Ended"] and head.chart is None
    for each in head.figures:
        assert each.value == "unavailable" and each.note
    assert page(result, []).count("<dd>unavailable</dd>") == 5
    assert as_markdown(result).count("unavailable |") == 5


def test_bars_of_text_are_as_long_as_their_values() -> None:
    drawn = bars(Bars("step time", (Bar("A", 1.0, "1.00 s"), Bar("B", 2.0, "2.00 s"))), 31)
    assert drawn == [
        "A  ##########            1.00 s",
        "B  ####################  2.00 s",
    ]


def test_how_a_study_was_made_and_how_far_it_has_come_is_known(result: StudyResult) -> None:
    sessions = tuple(
        replace(each, facts={**each.facts, "host": {"gpuwatch.version": "1.2.3"}})
        for each in result.sessions
    )
    facts = dict(document(replace(result, sessions=sessions[:-1])).facts)
    assert facts["Command"] == "resnet50 --batch-size 64" and facts["gpuwatch"] == "1.2.3"
    assert facts["Design"].endswith("6 of 7 judged blocks done, a warm-up block, margin 1 %")


def test_sessions_put_together_by_hand_say_so(pair: StudyResult) -> None:
    assert dict(document(pair).facts)["Design"] == "sessions put together by hand"


def section_of(result: StudyResult, title: str) -> list[Item]:
    """The items of all sections with this title."""
    return [item for e in document(result).sections if e.title == title for item in e.items]


def test_what_several_have_in_common_is_said_once(result: StudyResult) -> None:
    (bound, *_) = section_of(result, "what bounds a run in the middle of each cell")
    assert isinstance(bound, Sentence) and bound.word == "bare, docker, apptainer"
    told = section_of(result, "how each number was obtained")
    texts = [item.text for item in told if isinstance(item, Sentence)]
    reasons = [text.rpartition(": ")[2] for text in texts if text.startswith("unavailable: ")]
    assert reasons and len(reasons) == len(set(reasons))
    (one,) = result.not_run
    gone = replace(result, not_run=(one, one, replace(one, label="docker")))
    (missing,) = document(gone).missing
    assert missing.text == "charliecloud (2 runs), docker did not run: ch-run is not on the PATH"
    assert missing.hint == "install charliecloud"


def test_a_sweep_names_best_ties_and_out_of_memory(result: StudyResult) -> None:
    sweep = result.sweeps[0]
    tied = (replace(sweep.points[0], tied=True), *sweep.points[1:])
    items = section_of(replace(result, sweeps=(replace(sweep, points=tied),)), "sweeps")
    (points,) = [item for item in items if isinstance(item, Table)]
    assert points.rows[0][3] == "-11.0 % (-13.0 to -9.0), tied" and points.rows[1][3] == "best"
    assert Sentence("", "128: out of memory") in items


def test_two_runs_of_one_environment_stand_side_by_side_and_of_many_their_median(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / f"{at}.gpuwatch" for at in range(5)]
    for at, path in enumerate(paths):
        write(path, Script(meta=finished(), alive=False, start=100.0 * at, pace=1 + at / 10))
    for some in (paths[:2], paths):
        items = [item for each in document(read_sessions(some)).sections for item in each.items]
        rows = [row for item in items if isinstance(item, Table) for row in item.rows]
        row = next(row for row in rows if row[0].startswith("step time, "))
        assert len(row) == (4 if len(some) == 2 else 2)
        assert any("×1.100" in cell for cell in row) is (len(some) == 2)
