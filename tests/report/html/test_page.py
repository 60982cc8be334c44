"""What the page holds, and what it costs, without a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import pytest

from gpuwatch.analysis.results import Contrast, Kind, StudyResult
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.report.html.page import page
from tests.report.html.curves import curves_of


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
    made = page(with_contrasts(study, replace(one, verdict=verdict, sentence=f"{reason}.")), [])
    assert reason in text_of(made)
    assert 'class="mean"' not in made


def test_a_block_far_outside_is_an_arrow_at_the_edge(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    far = replace(one, ratios=(*one.ratios[1:], 3.0))
    made = page(with_contrasts(study, far), [])
    assert made.count("▸") == 1 and 'x="100.00%"' in made
    assert made.count('class="block"') == len(one.ratios) - 1


def test_an_interval_of_a_sweep_that_leaves_the_chart_ends_in_an_arrow(study: StudyResult) -> None:
    sweep = study.sweeps[0]
    wide = replace(sweep.points[0], throughput=Interval(-0.1, -0.98, 31.9, 0.95), tied=True)
    made = page(replace(study, sweeps=(replace(sweep, points=(wide, *sweep.points[1:])),)), [])
    assert 'y="28.0" text-anchor="middle">▴<' in made and 'y="14.0"' in made
    assert "▴" not in page(study, [])


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


def test_the_baseline_has_no_change_wherever_it_stands(study: StudyResult) -> None:
    question = study.questions[0]
    contrasts = (
        replace(question.contrasts[0], baseline=2, other=0),
        replace(question.contrasts[1], baseline=2, other=1),
    )
    table = (replace(question.table[0], ratios=(0.4, 0.7, 1.0)),)
    made = page(
        replace(study, questions=(replace(question, contrasts=contrasts, table=table),)), []
    )
    figures = made.partition('id="what-was-measured"')[2].partition("</section>")[0]
    for change, there in (("-60.0", True), ("-30.0", True), ("+0.0", False)):
        assert (f"{change}&nbsp;%" in figures) is there


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
    picture = page(study, []).partition('id="every-run"')[2].partition("</figure>")[0]
    assert ">warm-up<" in picture and ">1<" in picture and ">block 1<" not in picture


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


def test_a_wide_change_is_drawn_on_an_axis_of_factors(study: StudyResult) -> None:
    one = study.questions[0].contrasts[0]
    verdict = replace(one.verdict, change=Interval(0.0, -0.9, 9.0, 0.95), equivalence=None)
    made = page(with_contrasts(study, replace(one, verdict=verdict)), [])
    chart = made.partition('class="intervals"')[2].partition("</figure>")[0]
    (low, high) = map(
        float, re.findall(r'class="range" x1="([\d.]+)%" x2="([\d.]+)%" y1="20" y2="20"', chart)[0]
    )
    (zero,) = map(float, re.findall(r'class="axis" x1="([\d.]+)%"', chart))
    assert zero == pytest.approx((low + high) / 2, abs=0.1), "a tenth is as far as ten times"
    assert ">/10<" in chart and ">x10<" in chart and "as a factor: right of 1 is slower" in chart


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
            for ink in ("text", "soft", "link", "good", "bad"):
                assert contrast(palette[ink], palette[paper]) >= 4.5, (ink, paper)
            for cell in range(6):
                assert contrast(palette[f"c{cell}"], palette[paper]) >= 3, (cell, paper)
        assert contrast(palette["text"], palette["band"]) >= 4.5
