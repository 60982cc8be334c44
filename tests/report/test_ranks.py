"""The ranks of a run in ``show``, JSON, Markdown and the HTML page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.study.read import read_sessions
from gpuwatch.analysis.summary.summary import Summary, summarise
from gpuwatch.cli.rendering import render
from gpuwatch.report.document.sessions import document
from gpuwatch.report.json import dumps, summary
from gpuwatch.report.text import as_text
from gpuwatch.session.reading.reader import SessionReader
from tests.rank_steps import rank_rows, rank_steps, written
from tests.tui.sessions import Script, finished, write


def session(
    folder: Path, name: str = "s", ranks: int = 2, phase: str = "data", **more: Any
) -> Path:
    rows = written(rank_rows(ranks), rank_steps(ranks, phase=phase, **more))
    return write(
        folder / f"{name}.gpuwatch",
        Script(gpus=2, ranks=rows, kind="command", name="train.py", alive=False, meta=finished()),
    )


def described(path: Path) -> Summary:
    with SessionReader(path) as reader:
        return summarise(reader)


def test_show_has_a_table_of_the_ranks_and_who_is_slower(tmp_path: Path) -> None:
    found = described(session(tmp_path, slow=1, by=0.12, tokens=32768.0))
    text = as_text(document(compare([found]), ""), 100)
    lines = [line.strip() for line in text.splitlines()]
    at = lines.index("2 ranks")
    head = ["rank", "device", "step", "own time", "data wait", "samples/s", "tokens/s"]
    assert re.split(r"\s\s+", lines[at + 1]) == head
    assert re.fullmatch(r"1 +gpu1 +102 ms +41\.8 ms +8\.5 % +314 +322 k", lines[at + 3])
    assert "rank 1 is slower than rank 0: own time +12 %" in text
    assert re.search(r"token throughput, tokens/s +643,5\d\d ", text)
    assert re.search(r"imbalance +12 %", text)
    assert " HBM3; 2 ranks; " in " ".join(text.split())


def test_ranks_on_other_machines_are_counted(tmp_path: Path) -> None:
    found = described(session(tmp_path))
    assert found.ranks is not None
    found = replace(found, ranks=replace(found.ranks, world_size=16))
    text = " ".join(as_text(document(compare([found]), ""), 100).split())
    assert " HBM3; 2 of 16 ranks; " in text and " 2 of 16 ranks rank device " in text


def test_show_says_so_if_no_rank_stands_out_and_has_no_unknown_columns(tmp_path: Path) -> None:
    text = as_text(document(compare([described(session(tmp_path))]), ""), 100)
    assert "no rank's own time stands out by more than 1.0 % of the step" in text
    assert "tokens" not in text


def test_a_run_of_one_process_has_no_ranks_and_keeps_its_tokens(tmp_path: Path) -> None:
    found = described(session(tmp_path, ranks=1, tokens=512.0))
    text = as_text(document(compare([found]), ""), 100)
    assert "rank" not in text and "token throughput" in text
    told = summary(found)
    assert told["ranks"] is None
    assert told["throughput"]["tokens_per_second"] == pytest.approx(512 / 0.0975, rel=0.05)


def test_json_has_what_is_said_of_the_ranks_in_numbers(tmp_path: Path) -> None:
    document = json.loads(dumps(summary(described(session(tmp_path, slow=1, by=0.12)))))
    ranks = document["ranks"]
    (straggler,) = ranks["stragglers"]
    assert straggler["rank"] == ranks["slowest"] == 1 and ranks["reason"] is None
    assert straggler["relative"] == pytest.approx(ranks["imbalance"], abs=0.01)
    assert straggler["low_seconds"] < straggler["seconds"] < straggler["high_seconds"]
    assert [each["name"] for each in straggler["goes_with"]] == ["data wait"]
    assert [each["device"] for each in ranks["figures"]] == ["GPU-00000000", "GPU-00000001"]
    first, second = ranks["over_time"]["own_time"]
    size = len(ranks["over_time"]["start_seconds"])
    assert len(first["relative"]) == len(second["relative"]) == size > 20
    assert set(first["relative"]) == {0} and min(second["relative"]) > 0.1


def test_comparisons_say_it_of_each_side(tmp_path: Path) -> None:
    paths = [session(tmp_path / "one", "a"), session(tmp_path / "two", "b", slow=0, by=0.3)]
    result = read_sessions(paths)
    for form in ("md", "table"):
        text = " ".join(render(result, form, columns=100).split())
        assert "imbalance" in text and "own time of the slowest rank" in text
    single = read_sessions(paths[1:])
    assert "rank 0 is slower than rank 1" in " ".join(render(single, "md", columns=100).split())


def test_the_page_has_a_map_with_a_cell_for_each_rank_and_stretch(tmp_path: Path) -> None:
    path = session(tmp_path, ranks=4, slow=2, by=0.12)
    ranks = described(path).ranks
    assert ranks is not None and ranks.heat is not None
    page = render(read_sessions([path]), "html", columns=100)
    assert "rank 2 is slower than the median of the others" in page
    drawn = re.findall(r'<rect class="h(\d)" x=', page)
    assert len(drawn) == 4 * len(ranks.heat.starts)
    assert drawn.count("3") == len(ranks.heat.starts) and drawn.count("0") == len(drawn) * 3 // 4


def test_a_page_without_ranks_has_no_section_of_them(tmp_path: Path) -> None:
    path = write(tmp_path / "s.gpuwatch", Script(alive=False, meta=finished()))
    assert "ranks-of" not in render(read_sessions([path]), "html", columns=100)


def test_names_of_phases_cannot_act_in_the_page(tmp_path: Path) -> None:
    attack = "<script>window.ran=1</script>\x1b[31m"
    steps = [
        replace(row, phases={attack if n == "forward" else n: s for n, s in row.phases.items()})
        for row in rank_steps(2, slow=1, by=0.3)
    ]
    rows = written(rank_rows(2, ["<b>", "\x1b[2J"]), steps)
    path = write(
        tmp_path / "s.gpuwatch", Script(ranks=rows, kind="command", alive=False, meta=finished())
    )
    page = render(read_sessions([path]), "html", columns=100)
    assert "<script>window" not in page and "\x1b" not in page and "<b>" not in page
    text = as_text(document(compare([described(path)]), ""), 100)
    assert "\x1b" not in text
