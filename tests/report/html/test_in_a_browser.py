"""The page in a real Chromium, opened from a file."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.samples.gauges import LOSS
from gpuwatch.report.html.page import page as page_of
from tests.report.html.conftest import Open
from tests.report.html.curves import curves_of


def test_it_loads_without_an_error_and_asks_for_nothing(open_page: Open, html: str) -> None:
    opened = open_page(html)
    assert opened.errors == []
    assert opened.requests == [opened.page.url]
    assert opened.page.evaluate("performance.getEntriesByType('resource').length") == 0


def test_the_verdict_is_read_before_all_else(open_page: Open, html: str) -> None:
    text = open_page(html).page.inner_text("body")
    order = ["What do containers cost?", "SAME", "apptainer is slower:"]
    order += ["Design", "What was measured\n", "Every run\n", "Gauges\n", "Verdicts in numbers"]
    order += ["All runs", "Made by gpuwatch"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def _paths(page: Any) -> list[list[tuple[float, float]]]:
    found = page.eval_on_selector_all(
        "figure.curves path.curve", "all => all.map(each => each.getAttribute('d'))"
    )
    return [[tuple(map(float, each.split())) for each in re.split("[ML]", d)[1:]] for d in found]


def test_without_script_it_is_said_that_the_gauges_need_it(open_page: Open, html: str) -> None:
    static = open_page(html, java_script_enabled=False).page
    assert not static.is_visible("figure.curves select")
    said = "The script of this page draws the curves"
    assert said in static.inner_text("main") and said not in open_page(html).page.inner_text("main")


def test_a_gauge_starts_where_the_timed_steps_do(open_page: Open, html: str) -> None:
    """The ramp of 0 to 80 % begins 6 s before the first timed step and takes 36 s."""
    page = open_page(html).page
    assert len(_paths(page)) == 24 and all(len(each) == 300 for each in _paths(page))
    path = _paths(page)[0]
    assert path[0] == (0.0, 226.0)
    assert path[-1] == (1000.0, 51.6)  # 80 % of 218 above 226
    zero = page.get_attribute("figure.curves svg.over line.axis", "x1")
    assert zero == f"{100 * 6 / 36:.2f}%"


def test_another_gauge_and_the_steps_can_be_chosen(open_page: Open, html: str) -> None:
    page = open_page(html).page
    before = _paths(page)[0]
    page.get_by_label("Metric", exact=True).select_option("GPU power")
    assert page.inner_text("figure.curves .what") == "GPU power, W"
    power = _paths(page)[0]
    assert power != before
    page.get_by_label("Aligned by", exact=True).select_option("timed step")
    assert page.inner_text(".across") == "timed steps done"
    by_step = _paths(page)[0]
    assert by_step[0][0] < 5 and len(by_step) < len(power)
    labels = page.eval_on_selector_all("svg.over text", "all => all.map(each => each.textContent)")
    assert labels[0] == "0" and labels[-1] == "500"


def test_a_loss_is_drawn_through_the_points_that_have_one(
    open_page: Open, study: StudyResult
) -> None:
    """It falls below 0 and was once no number: there alone is a gap."""
    runs = curves_of(study, 8)
    losses = (2.0, None, 1.0, math.nan, None, 0.0, None, -1.0)
    runs = [
        replace(run, metrics={**run.metrics, LOSS: replace(run.metrics[LOSS], values=losses)})
        for run in runs
    ]
    page = open_page(page_of(study, runs)).page
    page.get_by_label("Metric", exact=True).select_option("loss")
    assert page.inner_text("figure.curves .what") == "loss"
    drawn = page.get_attribute("figure.curves path.curve", "d")
    assert re.findall("[ML]", drawn) == ["M", "L", "M", "L"]
    heights = [y for _, y in _paths(page)[0]]
    assert heights == [8.0, 80.7, 153.3, 226.0]  # even steps from 2 to -1
    page.hover("figure.curves svg.over", position={"x": 1, "y": 100})
    assert "bare: 2 (2 to 2, 7 runs)" in page.inner_text(".readout")


def test_the_keyboard_reads_values_off(open_page: Open, html: str) -> None:
    """In the middle of the ramp: 40 % of 21 judged runs that are all the same."""
    page = open_page(html).page
    page.focus("figure.curves input[type=range]")
    page.keyboard.press("ArrowRight")
    told = page.inner_text(".readout")
    assert "at 12" in told
    for environment in ("bare", "docker", "apptainer"):
        assert re.search(rf"{environment}: 40(\.\d)? % \(40(\.\d)? to 40(\.\d)?, 7 runs\)", told)


def test_the_pointer_reads_values_off(open_page: Open, html: str) -> None:
    page = open_page(html).page
    page.hover("figure.curves svg.over", position={"x": 2, "y": 100})
    assert "bare: 0" in page.inner_text(".readout")


def test_a_comparison_tells_its_numbers_to_pointer_and_focus(open_page: Open, html: str) -> None:
    page = open_page(html).page
    assert page.is_hidden("#tip")
    rows = page.locator("svg.row")
    rows.nth(1).hover()
    told = page.inner_text("#tip")
    assert (
        told.startswith("apptainer against bare: SLOWER")
        and "+3.1\N{NO-BREAK SPACE}% (+2.7 to +3.5" in told
    )
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")
    rows.nth(0).focus()
    assert page.inner_text("#tip").startswith("docker against bare: SAME")


def test_a_run_tells_its_value(open_page: Open, html: str) -> None:
    page = open_page(html).page
    page.locator("#every-run use.mark[data-tip]").first.hover()
    assert page.inner_text("#tip").startswith("bare, warm-up: 50")


def test_dark_and_light_differ_and_print_is_light(open_page: Open, html: str) -> None:
    colour = "(of => [of.backgroundColor, of.color])(getComputedStyle(document.body))"
    light = open_page(html, color_scheme="light").page.evaluate(colour)
    page = open_page(html, color_scheme="dark").page
    dark = page.evaluate(colour)
    page.emulate_media(media="print")
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] != light[0] and dark[1] != light[1]
    assert page.evaluate(colour) == light


@pytest.mark.parametrize("script", [True, False])
def test_print_shows_what_is_folded_on_the_screen(open_page: Open, html: str, script: bool) -> None:
    page = open_page(html, java_script_enabled=script).page
    tables = page.locator("#all-runs table")
    assert not tables.first.is_visible()
    page.emulate_media(media="print")
    assert tables.first.is_visible() and tables.first.bounding_box()["height"] > 100
    assert not page.is_visible("nav")
    assert len(page.pdf(prefer_css_page_size=True)) > 10_000


@pytest.mark.parametrize("width", [400, 768, 1400])
def test_nothing_sticks_out_at_the_side(open_page: Open, html: str, width: int) -> None:
    page = open_page(html, viewport={"width": width, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


AUDIT = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const found = [];
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) found.push(`${heading.textContent}: h${own} behind h${level}`);
    level = own;
  }
  if (all("h1").length !== 1) found.push("not one h1");
  const ids = all("[id]").map((each) => each.id);
  if (new Set(ids).size !== ids.length) found.push("an id twice");
  for (const each of all("select, input")) if (!each.labels.length) found.push("no label");
  for (const each of all("[aria-labelledby]"))
    if (!document.getElementById(each.getAttribute("aria-labelledby"))) found.push("no such id");
  for (const each of all("svg")) {
    if (each.closest("[aria-hidden=true]") || each.parentElement.closest("svg")) continue;
    const named = each.getAttribute("aria-label") || each.querySelector("title")?.textContent;
    if (each.getAttribute("role") !== "img" || !named) found.push("svg without role or name");
    if (each.querySelector("[tabindex]")) found.push("focus inside an image");
  }
  for (const each of all("img")) if (!each.alt) found.push("no alt");
  for (const each of all("th")) if (!each.scope) found.push("th without scope");
  for (const each of all("table")) if (!each.caption) found.push("table without caption");
  for (const each of all("a[href^='#']"))
    if (!document.querySelector(each.getAttribute("href"))) found.push("link to nowhere");
  if (!document.documentElement.lang) found.push("no language");
  return found;
}"""


def test_it_can_be_used_without_seeing_it(open_page: Open, html: str) -> None:
    assert open_page(html).page.evaluate(AUDIT) == []


def test_a_study_without_curves_says_so(open_page: Open, study: StudyResult) -> None:
    opened = open_page(page_of(study, []))
    assert "No gauge of these runs is known." in opened.page.inner_text("main")
    assert opened.errors == [] and opened.page.evaluate(AUDIT) == []
