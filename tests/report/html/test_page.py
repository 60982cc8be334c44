"""What the page holds, and what it costs, without a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import pytest

from gpuwatch.analysis.results import Contrast, Kind, StudyResult
from gpuwatch.report.html.page import page
from tests.report.html.curves import curves_of
from tests.report.results import one_run_each


def with_contrasts(result: StudyResult, *contrasts: Contrast) -> StudyResult:
    return replace(result, questions=(replace(result.questions[0], contrasts=contrasts),))


def text_of(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html.split("<body>")[1]).split())


def test_three_environments_and_seven_blocks_stay_under_a_megabyte(study: StudyResult) -> None:
    assert len(page(study, curves_of(study)).encode()) < 1_000_000


def test_every_verdict_has_a_word_and_a_sign(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    signs = set()
    for kind in Kind:
        judged = replace(one, verdict=replace(one.verdict, kind=kind))
        made = page(with_contrasts(study, judged), [])
        found = re.search(r'aria-hidden="true">(\S) </span>([^<]+)</span>', made)
        assert found is not None
        assert found[2].replace("&#x27;", "'").startswith(kind.word)
        signs.add(found[1])
    assert len(signs) == len(Kind)


def test_an_invalid_comparison_names_its_reasons_and_draws_no_interval(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    reason = "not on the same GPU: GPU-1 against GPU-2"
    verdict = replace(
        one.verdict, kind=Kind.INVALID, change=None, equivalence=None, reasons=(reason,)
    )
    made = page(with_contrasts(study, replace(one, verdict=verdict)), [])
    assert reason in text_of(made)
    assert 'class="mean"' not in made


def test_many_comparisons_are_counted_in_the_answer(study: StudyResult) -> None:
    same, slower = study.questions[0].contrasts
    made = text_of(page(with_contrasts(study, same, same, same, slower, slower), []))
    assert "5 comparisons: 3 SAME, 2 SLOWER" in made


def test_runs_that_are_still_to_come_are_told_above(study: StudyResult) -> None:
    made = text_of(page(replace(study, to_come=4), []))
    assert made.index("4 runs are still to come") < made.index("Study")
    assert "still to come" not in text_of(page(study, []))


def test_sessions_put_together_by_hand_have_no_verdict(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    result = one_run_each(tmp_path_factory.mktemp("by-hand"))
    made = text_of(page(result, curves_of(result)))
    assert (
        "○ NO VERDICT (1 run of each, needs 5) docker" in made
        and "sessions put together by hand" in made
    )


def test_a_study_of_which_nothing_ran_says_why_and_what_mends_it(study: StudyResult) -> None:
    nothing = replace(study, questions=(), sweeps=(), noise=(), sessions=())
    made = text_of(page(nothing, []))
    assert "Nothing to compare: 0 runs" in made
    assert "ch-run is not on the PATH Fix: install charliecloud" in made


def test_runs_that_are_missing_for_the_same_reason_are_told_once(study: StudyResult) -> None:
    (one,) = study.not_run
    made = text_of(page(replace(study, not_run=(one, one, replace(one, label="docker"))), []))
    assert "charliecloud (2 runs), docker did not run: ch-run is not on the PATH" in made


def test_a_block_far_outside_is_an_arrow_at_the_edge(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    far = replace(one, ratios=(*one.ratios[1:], 3.0))
    made = page(with_contrasts(study, far), [])
    assert made.count("▸") == 1 and 'x="100.00%"' in made
    assert made.count('class="block"') == len(one.ratios) - 1


def test_outliers_warm_up_and_missing_values_are_marked(study: StudyResult) -> None:
    question = study.questions[0]
    runs = list(question.cells[1].runs)
    runs[2] = replace(runs[2], outlier=True)
    runs[3] = replace(
        runs[3],
        value=None,
        reason="it failed",
        steady=replace(runs[3].steady, seconds=None, reason="the level changed 5 times"),
    )
    cells = (question.cells[0], replace(question.cells[1], runs=tuple(runs)), question.cells[2])
    made = page(replace(study, questions=(replace(question, cells=cells),)), [])
    told = text_of(made)
    assert "outlier: kept" in told and "no value: it failed" in told
    assert "none: the level changed 5 times" in told
    assert made.count('class="ring"') == 2  # the run's, and the legend's


def test_a_sweep_names_best_ties_and_out_of_memory(study: StudyResult) -> None:
    sweep = study.sweeps[0]
    tied = (replace(sweep.points[0], tied=True), *sweep.points[1:])
    told = text_of(page(replace(study, sweeps=(replace(sweep, points=tied),)), []))
    assert "★ best" in told and "≈ tied" in told and "out of memory" in told
    assert "-11.0 % (-13.0 to -9.0)" in told


def test_the_answer_says_what_is_not_known_before_any_number(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    claims = {
        Kind.CANT_TELL: "Can&#x27;t tell whether docker is slower or faster than bare",
        Kind.DESCRIBED: "No verdict (7 blocks, needs 5) on docker against bare",
    }
    for kind, claim in claims.items():
        judged = replace(one, verdict=replace(one.verdict, kind=kind))
        made = page(with_contrasts(study, judged), [])
        (answer,) = re.findall('<p class="answer">(.*)</p>', made)
        assert answer.startswith(f"<strong>{claim}</strong> <span>(+0.2 %, -0.1 to +0.5 %)")


def test_the_baseline_has_no_ratio_wherever_it_stands(study: StudyResult) -> None:
    question = study.questions[0]
    contrasts = (
        replace(question.contrasts[0], baseline=2, other=0),
        replace(question.contrasts[1], baseline=2, other=1),
    )
    table = (replace(question.table[0], ratios=(0.5, 0.7, 1.0)),)
    made = page(
        replace(study, questions=(replace(question, contrasts=contrasts, table=table),)), []
    )
    figures = made.partition('id="what-was-measured"')[2].partition("</section>")[0]
    assert "×0.500" in figures and "×0.700" in figures and "×1.000" not in figures
    assert "×: the median over that of apptainer" in figures


def test_runs_of_studies_side_by_side_are_all_drawn_beside_the_warm_up(study: StudyResult) -> None:
    question = study.questions[0]
    cells = tuple(
        replace(cell, runs=tuple(replace(r, block=None) if r.block else r for r in cell.runs))
        for cell in question.cells
    )
    made = page(replace(study, questions=(replace(question, cells=cells),)), [])
    picture = made.partition('id="every-run"')[2].partition("</figure>")[0]
    drawn = [f"{cell.label}, " for cell in cells for _ in cell.runs]
    assert sum(picture.count(f"<title>{label}") for label in set(drawn)) == len(drawn)
    assert ">warm-up<" in picture and ">run 1<" in picture


def test_the_head_names_command_version_and_how_far_the_study_has_come(study: StudyResult) -> None:
    sessions = tuple(
        replace(each, facts={**each.facts, "host": {"gpuwatch.version": "1.2.3"}})
        for each in study.sessions
    )
    told = text_of(page(replace(study, sessions=sessions[:-1]), []))
    assert "Command resnet50 --batch-size 64" in told and "gpuwatch 1.2.3" in told
    assert "6 of 7 judged blocks done, a warm-up block, margin 1 %" in told


def test_metrics_that_are_unknown_for_one_reason_are_told_once(study: StudyResult) -> None:
    made = page(study, [])
    methods = made.partition('id="how-each-number-was-obtained"')[2].partition("</section>")[0]
    reasons = re.findall("unavailable: [^<]+: ([^<]+)</span>", methods)
    assert reasons and len(reasons) == len(set(reasons))


def test_the_band_ends_where_the_margin_is_tested(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    wide = replace(one, verdict=replace(one.verdict, margin=1.0))
    made = page(with_contrasts(study, wide), [])
    (x, width) = map(
        float, re.findall(r'class="band" x="([\d.]+)%" y="0" width="([\d.]+)%"', made)[0]
    )
    (zero,) = map(float, re.findall(r'class="axis" x1="([\d.]+)%"', made))
    # A half is as far below none as twice is above.
    assert (zero - x) / (x + width - zero) == pytest.approx(0.5, abs=0.01)


def test_what_bounds_several_runs_is_said_once(study: StudyResult) -> None:
    made = page(study, [])
    section = made.partition('id="what-bounds-a-run-in-the-middle-of-each"')[2]
    roofline = text_of("<body>" + section.partition("</section>")[0])
    texts = {
        run.session.efficiency.roofline.verdict.text for run in study.questions[0].cells[0].runs
    }
    assert len(texts) == 1 and roofline.count(f"bare, docker, apptainer {texts.pop()}") == 1


def test_the_policy_allows_nothing_but_this_style_and_this_script(html: str) -> None:
    policy = re.search('Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; script-src 'sha256-[\w+/=]+'; "
        r"img-src data:; base-uri 'none'; form-action 'none'",
        policy[1],
    )
    assert " style=" not in html
    assert re.findall(r"""(?:src|href|action)="(?!#|data:image/svg)[^"]*""", html) == []


def luminance(colour: str) -> float:
    """WCAG 2.2, "relative luminance"."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_has_a_contrast_of_4_5_and_marks_of_3_in_light_dark_and_print() -> None:
    style = resources.files("gpuwatch.report.html").joinpath("style.css").read_text()
    parts = style.split(":root")[1:]
    palettes = [dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in parts]
    assert len(palettes) == 3
    for palette in palettes:
        for paper in ("page", "soft-page"):
            for ink in ("text", "soft", "link"):
                assert contrast(palette[ink], palette[paper]) >= 4.5, (ink, paper)
            for cell in range(6):
                assert contrast(palette[f"c{cell}"], palette[paper]) >= 3, (cell, paper)
        assert contrast(palette["text"], palette["band"]) >= 4.5
