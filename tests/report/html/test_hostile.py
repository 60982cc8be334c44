"""Nothing that stands in a session or a plan can act in the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.results import Kind, StudyResult
from gpuwatch.analysis.study.read import read_sessions
from gpuwatch.cli.rendering import render
from gpuwatch.report.html.curves import embedded
from gpuwatch.report.html.page import page
from gpuwatch.session.study.labels import KIND, LABELS, SCHEMA
from tests.report.html.conftest import Open
from tests.report.html.curves import curves_of
from tests.report.results import study_result
from tests.tui.hostile import fields, poison
from tests.tui.sessions import Script, write

ATTACKS = {
    "end of the script": "</script><script>window.ran=1</script>",
    "end of the style": "</style></title></textarea><script>window.ran=1</script>",
    "an image": "<img src=x onerror=window.ran=1>",
    "an SVG": "<svg onload=window.ran=1><animate onbegin=window.ran=1>",
    "an attribute": '" onmouseover="window.ran=1" autofocus onfocus=\'window.ran=1\' x="',
    "a link": '<a href="javascript:window.ran=1">javascript:window.ran=1</a>',
    "a comment": "<!-- --!><script>window.ran=1</script>",
    "a template": "${window.ran=1}{{constructor.constructor('window.ran=1')()}}",
    "control characters": "\x00\x07\x1b[31m\x9b\u2028\u202e\u2066<script>window.ran=1</script>",
}


def hostile(folder: Path, attack: str) -> StudyResult:
    """The study with ``attack`` wherever text comes from outside, names of files among it."""
    result = study_result(folder, blocks=2, hostile=attack)
    renamed = {
        each.path: replace(
            each,
            path=f"{each.path}{attack}",
            label=attack,
            notes=(attack,),
            notice=attack,
            devices=tuple(replace(device, name=attack) for device in each.devices),
        )
        for each in result.sessions
    }
    question = result.questions[0]
    cells = tuple(
        replace(
            cell,
            runs=tuple(
                replace(run, session=renamed[run.session.path], reason=attack) for run in cell.runs
            ),
        )
        for cell in question.cells
    )
    contrasts = tuple(
        replace(
            each,
            sentence=attack,
            verdict=replace(each.verdict, kind=Kind.INVALID, reasons=(attack,)),
        )
        for each in question.contrasts
    )
    return replace(
        result,
        questions=(replace(question, cells=cells, contrasts=contrasts),),
        sessions=tuple(renamed.values()),
    )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_text_from_elsewhere_runs_nothing(open_page: Open, tmp_path: Path, attack: str) -> None:
    result = hostile(tmp_path, attack)
    opened = open_page(page(result, curves_of(result, 20)))
    window = opened.page
    for target in ("svg.row", "use.mark", "figure.curves svg.over", "summary", "h1", "code"):
        window.locator(target).first.hover(force=True)
    window.focus("figure.curves input")
    window.keyboard.press("ArrowRight")
    assert window.evaluate("window.ran") is None
    assert opened.errors == []
    assert opened.requests == [window.url]
    acting = "script:not([type='application/json']), a:not([href^='#']), iframe, object, form"
    assert window.locator(acting).count() == 1
    assert window.locator("img").count() == 1
    handlers = "all => all.flatMap(e => e.getAttributeNames().filter(n => n.startsWith('on')))"
    assert window.eval_on_selector_all("*", handlers) == []


def test_session_files_whose_every_text_is_hostile_run_nothing(
    open_page: Open, tmp_path: Path
) -> None:
    text = " ".join(each.replace("\x00", "") for each in ATTACKS.values())
    paths = []
    for number in (1, 2):
        path = tmp_path / "study" / f"0{number}-<img src=x onerror=window.ran=1>.gpuwatch"
        script = Script(**{**fields(text), "start": 100.0 * number})
        paths.append(poison(write(path, script), text))
    label = {"name": text, "tags": [text], "note": text}
    labels = {"kind": KIND, "schema": SCHEMA, "labels": {each.name: label for each in paths}}
    (tmp_path / "study" / LABELS).write_text(json.dumps(labels))
    opened = open_page(render(read_sessions(paths), "html"))
    assert opened.page.evaluate("window.ran") is None
    assert opened.errors == []
    assert opened.requests == [opened.page.url]


def test_no_character_that_turns_text_around_reaches_the_page(tmp_path: Path) -> None:
    result = hostile(tmp_path, ATTACKS["control characters"])
    made = page(result, curves_of(result, 20))
    assert not set(made) & set("\x00\x07\x1b\x9b\u2028\u2029\u202e\u2066")


def test_a_script_that_got_in_would_not_run(open_page: Open, html: str) -> None:
    got_in = "<script>window.ran=1</script><img src=x onerror=window.ran=1></body>"
    opened = open_page(html.replace("</body>", got_in))
    assert opened.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in each for each in opened.errors)


def test_embedded_data_cannot_end_its_element() -> None:
    told = embedded({"a": "</script><!--", "b": "&lt;"})
    assert "<" not in told and ">" not in told and "&" not in told
