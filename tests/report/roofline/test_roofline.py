"""The roofline as text, as a picture and as JSON."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.points import Rates
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.hardware.roofline import Roofline, roofline_of
from gpuwatch.cli import main
from gpuwatch.report.roofline.svg import svg
from gpuwatch.report.roofline.text import text
from tests.analysis.sessions import calibration, record

HOSTILE = '</text><script>alert(1)</script>\x1b[31m&"<![CDATA['


def ceilings(bandwidth: float = 3e12, **compute: float) -> dict[str, Ceiling]:
    compute = compute or {"bfloat16": 8e14, "float32": 5e13}
    found = {
        name: Ceiling(name, value, "FLOP/s", "measured", f"measured {name} product", "s")
        for name, value in compute.items()
    }
    return {
        "bandwidth": Ceiling("bandwidth", bandwidth, "By/s", "measured", "measured copy", "s"),
        **found,
    }


def roofline(label: str = "resnet50 (bare)", **rates: Any) -> Roofline:
    given_rates = rates or {"flop": 4e12, "bytes": 8e10, "measured_bytes": 4e10}
    return roofline_of(Program(label), Rates(**given_rates), ceilings(), "bfloat16")


def places(plot: str, mark: str) -> list[tuple[int, int]]:
    """Row and column of a mark in the plot."""
    lines = plot.split("\n\n")[0].splitlines()
    return [(row, line.index(mark)) for row, line in enumerate(lines) if mark in line]


def test_the_text_is_eighty_columns_and_names_everything() -> None:
    found = text([roofline()])
    assert max(map(len, found.splitlines())) <= 80
    for told in ("●1", "▲2", "bfloat16", "measured copy, 3.00 TB/s", "FLOP per byte", "100 FLOP/B"):
        assert told in found, told
    assert "resnet50 (bare): neither compute (" in found


def test_a_point_lies_below_the_roof_of_its_intensity_and_right_of_fewer_flop_per_byte() -> None:
    found = text([roofline()])
    ((row, column),) = places(found, "●1")
    ((other_row, other_column),) = places(found, "▲2")
    assert row == other_row and column > other_column
    roof = next(r for r, line in enumerate(found.splitlines()) if line[column : column + 1] in "╱─")
    assert roof < row


def test_the_picture_is_well_formed_self_contained_and_small() -> None:
    picture = svg([roofline()]) or ""
    root = ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    assert [child.tag for child in root[:2]] == [f"{space}title", f"{space}desc"]
    assert len(root.findall(f"{space}circle")) == 1  # measured bytes
    assert len(root.findall(f"{space}polygon")) == 1  # algorithmic bytes
    assert "prefers-color-scheme: dark" in picture and len(picture) < 60_000
    assert not [each for each in root.iter() if each.tag.endswith(("script", "image", "a"))]
    assert "href" not in picture and "url(" not in picture


def test_the_picture_names_bytes_and_methods_in_words() -> None:
    root = ElementTree.fromstring(svg([roofline()]) or "")
    words = " ".join(each.text or "" for each in root.iter() if each.tag.endswith("}text"))
    assert "1 by measured bytes" in words and "2 by algorithmic bytes" in words
    assert ", measured bytes: 100 FLOP/B" in words and ", algorithmic bytes: 50" in words
    assert "4.00 TFLOP/s, counted" in words and "circle: measured bytes" in words
    assert "triangle: algorithmic bytes" in words and "bfloat16: measured product" in words


def test_a_point_that_a_run_is_at_most_at_is_drawn_as_a_bound() -> None:
    """Beside a counted one, whose mark and words stay its own."""
    both = [roofline(most_executed=8e14, measured_bytes=1e12), roofline(label="counted")]
    found = " ".join(text(both).split())
    assert "▽1 resnet50 (bare): ≤800 FLOP/B, ≤800 TFLOP/s, bound; executed" in found
    assert "●2 counted: 100 FLOP/B" in found
    root = ElementTree.fromstring(svg(both) or "")
    drawn = [each.get("class") for each in root if (each.get("class") or "").startswith("point")]
    assert drawn == ["point open", "point", "point"]
    words = [each.text or "" for each in root.iter() if each.tag.endswith("}text")]
    assert "1 at most, by measured bytes" in words and "2 by measured bytes" in words
    assert any(each.startswith("open triangle: executed FLOP at most") for each in words)
    assert any(each.startswith("circle: measured bytes") for each in words)


def test_points_stand_where_the_scales_say() -> None:
    root = ElementTree.fromstring(svg([roofline(flop=1e12, measured_bytes=1e11)]) or "")
    space = "{http://www.w3.org/2000/svg}"
    (circle,) = root.findall(f"{space}circle")
    labels = {
        each.text: (float(each.get("x", 0)), float(each.get("y", 0)))
        for each in root.findall(f"{space}text")
    }
    assert float(circle.get("cx", 0)) == pytest.approx(labels["10"][0], abs=0.2)
    assert float(circle.get("cy", 0)) == pytest.approx(labels["1 TFLOP/s"][1] - 4, abs=0.2)


def test_hostile_names_stay_text() -> None:
    hostile = roofline_of(
        Program(HOSTILE), Rates(flop=4e12, bytes=8e10), {"bandwidth": Ceiling(
            "bandwidth", 1e12, "By/s", "measured", HOSTILE, HOSTILE)}, "bfloat16",
    )  # fmt: skip
    picture = svg([hostile]) or ""
    root = ElementTree.fromstring(picture)
    assert not [each for each in root.iter() if each.tag.endswith("script")]
    assert "\x1b" not in picture and "\x1b" not in text([hostile])


def test_forty_runs_stay_under_sixty_kilobytes() -> None:
    many = [roofline(f"run {n} " * 40, flop=4e12 / (n + 1), bytes=8e10) for n in range(60)]
    assert len((svg(many) or "").encode()) < 60_000


def two_runs() -> list[Roofline]:
    rates = Rates(flop=4e12, bytes=8e10)
    first = roofline_of(Program("first"), rates, ceilings(), "bfloat16")
    other = roofline_of(
        Program("other"), Rates(flop=2e12, bytes=8e10), ceilings(2.9e12), "bfloat16"
    )
    return [first, other]


def test_ceilings_of_several_runs_say_whose_they_are() -> None:
    found = text(two_runs())
    assert "measured copy, 3.00 TB/s (of 1)" in found
    assert "measured copy, 2.90 TB/s (of 2)" in found
    # Of both runs, and of no other data type than theirs.
    assert "bfloat16: measured product, 800 TFLOP/s\n" in found and "float32" not in found
    assert "float32" not in text([roofline()]), "nor of one run"
    assert "float32" in text([replace(roofline(), data_type=None)])
    assert "\n1 first: " in found and "\n2 other: " in found


MANY_TYPES = ceilings(
    2.9e12, float64=6e13, float32=5.1e13, tf32=4e14, bfloat16=7.5e14, float16=7.4e14, fp8=1.4e15
)
"""Of a card whose ceilings lie close together."""


def under(label: str, known: dict[str, Ceiling], **rates: float) -> Roofline:
    return roofline_of(Program(label), Rates(**rates), known, "bfloat16")


CROWDED = {
    "near slopes": two_runs(),
    "of no known type": [replace(under("run", MANY_TYPES, flop=4e12, bytes=8e10), data_type=None)],
    "all three kinds of bytes": [
        under(
            "run",
            MANY_TYPES,
            flop=4e12,
            bytes=8e10,
            measured_bytes=4e10,
            executed_flop=5e12,
            executed_bytes=3e10,
        )
    ],
    "points on the roofs": [under("run", MANY_TYPES, flop=7e14, bytes=8e11, measured_bytes=2e11)],
    "points on the slope": [under("run", MANY_TYPES, flop=5.5e13, bytes=1.5e12)],
    "eight like runs": [
        under(f"run {n}", ceilings(3e12 + n * 3e10), flop=4e12 + n * 1e11, bytes=8e10)
        for n in range(8)
    ],
    "forty times the same": [
        under(f"run {n}", ceilings(), flop=4e12, bytes=8e10) for n in range(40)
    ],
}

Box = tuple[float, float, float, float]


def text_boxes(picture: str) -> dict[str, Box]:
    """Left, top, right and bottom of each text, in letters of a usual width."""
    found = {}
    for each in ElementTree.fromstring(picture).iter():
        if each.tag.endswith("}text") and each.get("class") != "halo" and each.text:
            x, y, long = float(each.get("x", 0)), float(each.get("y", 0)), 7.0 * len(each.text)
            left = {"end": x - long, "middle": x - long / 2}.get(str(each.get("text-anchor")), x)
            found[each.text] = left, y - 10, left + long, y + 3
    return found


def overlap(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


@pytest.mark.parametrize("crowd", CROWDED)
def test_no_label_of_the_picture_lies_over_another_or_beyond_the_plot(crowd: str) -> None:
    picture = svg(CROWDED[crowd]) or ""
    boxes = text_boxes(picture)
    over = [(a, b) for a, b in combinations(boxes, 2) if overlap(boxes[a], boxes[b])]
    assert not over
    drawn = list(ElementTree.fromstring(picture))
    lines = [
        [float(each.get(key, 0)) for key in ("x1", "y1", "x2", "y2")]
        for each in drawn
        if each.get("class") in ("roof", "slope")
    ]
    struck = [
        told
        for told, box in boxes.items()
        for x1, y1, x2, y2 in lines
        for at in range(500)
        for x, y in [(x1 + (x2 - x1) * at / 500, y1 + (y2 - y1) * at / 500)]
        if overlap(box, (x, y, x, y))
    ]
    assert not struck
    marks = [each for each in drawn if each.get("class") == "point"]
    numbers = [told for told in boxes if re.fullmatch(r"\d+ by \w+ bytes", told)]
    assert len(numbers) == len(marks)


def test_a_point_under_another_is_told() -> None:
    twice = text([roofline("first"), roofline("second")])
    assert "in the plot under 1" in " ".join(twice.split())
    assert "in the plot under" not in text(two_runs())


def test_a_doubtful_ceiling_is_doubtful_in_text_and_picture() -> None:
    doubt = "other programs took 64 % of the processors' time"
    known = {name: replace(each, doubt=doubt) for name, each in ceilings().items()}
    found = roofline_of(Program("run"), Rates(flop=4e12, bytes=8e10), known, "bfloat16")
    assert f"measured copy, 3.00 TB/s, doubtful: {doubt}" in " ".join(text([found]).split())
    assert doubt in (svg([found]) or "")


absurd = st.floats(1e-300, 1e300)


@given(absurd, absurd, absurd, absurd)
def test_no_figure_however_absurd_stops_the_drawing(
    flop: float, size: float, bandwidth: float, compute: float
) -> None:
    known = ceilings(bandwidth, bfloat16=compute)
    found = roofline_of(Program("run"), Rates(flop=flop, bytes=size), known, "bfloat16")
    assert max(map(len, text([found]).splitlines())) <= 80
    picture = svg([found])
    if picture is not None:
        root = ElementTree.fromstring(picture)
        assert all("nan" not in value and "inf" not in value
                   for each in root.iter() for value in each.attrib.values())  # fmt: skip


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (roofline(bytes=1e10), "no FLOP/s are known"),
        (roofline_of(Program("cpu"), Rates(flop=1e12, bytes=1e10), {}, "float32"), "not known"),
    ],
)
def test_without_a_point_or_a_ceiling_the_text_says_why_and_there_is_no_picture(
    found: Roofline, why: str
) -> None:
    assert svg([found]) is None
    assert why in text([found]) and "│" not in text([found])


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "study" / "01-bare.gpuwatch"
    path.parent.mkdir()
    extra = {"ceilings": calibration(bandwidth=3e12, bfloat16=8e14)}
    return record(path, extra=extra, gauges={("gpu0", "hw.gpu.utilization"): 0.5})


def test_the_command_prints_text_json_and_svg(
    session: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["roofline", str(session)]) == 0
    assert "50 % of the time no kernel ran" in " ".join(capsys.readouterr().out.split())
    assert main(["roofline", str(session), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["rooflines"]
    assert found["bound"] == "host" and found["ceilings"]["bandwidth"]["kind"] == "measured"
    picture = tmp_path / "r.svg"
    assert main(["roofline", str(session), "--format", "svg", "--out", str(picture)]) == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_of_many_sessions_it_says_how_many_and_which_it_draws(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paths = [str(record(tmp_path / f"{at}.gpuwatch")) for at in range(5)]
    assert main(["roofline", *paths]) == 0
    assert capsys.readouterr().out.startswith("1 of 5 sessions: of one program in one environment ")


def test_a_picture_of_nothing_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(tmp_path / "a.gpuwatch", count={"flop_per_step": None})
    assert main(["roofline", str(path), "--format", "svg"]) == 3
    error = capsys.readouterr().err
    assert error.startswith("gpuwatch: error: there is no roofline to draw") and error[-1] == "\n"
    assert error.count("\n") == 1
    assert main(["roofline", str(path)]) == 3
    assert capsys.readouterr().err == error
    unknown = record(tmp_path / "u.gpuwatch", devices=[("gpu0", "gpu", "a GPU", "GPU-8", {})])
    assert main(["roofline", str(unknown), "--format", "svg"]) == 3
    assert "to draw: no ceilings are known; `gpuwatch calibrate`" in capsys.readouterr().err
    imported = record(tmp_path / "i.gpuwatch", extra={"workload": {"kind": "import"}})
    assert main(["roofline", str(imported)]) == 3
    assert f"see `gpuwatch kernels {imported}`" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_one_clear_error(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["roofline", str(session), "--format", "svg", "--out", "/proc/at/all.svg"])
    assert code == 2 and "cannot write /proc/at/all.svg" in capsys.readouterr().err


def test_a_study_has_its_roofline_beside_the_summary(session: Path) -> None:
    assert main(["report", str(session.parent)]) == 0
    assert (session.parent / "roofline.svg").read_text().startswith("<svg")
    summary = (session.parent / "summary.md").read_text()
    assert "roofline.svg, beside this file" in summary and "## Efficiency" in summary


def test_show_tells_shares_bound_and_energy(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--all", str(session)]) == 0
    found = " ".join(capsys.readouterr().out.split())
    assert "efficiency of gpu0 over the timed steps" in found
    assert "of the measured bfloat16 product, 800 TFLOP/s" in found
    assert "launch- or host-bound" in found and "energy unavailable" in found
