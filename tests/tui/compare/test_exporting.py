"""``e``: the report of a study or of marked sessions, and the message about it."""

from __future__ import annotations

import asyncio
import json
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.plan_file import document
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.commands import Export, Process, export_of, export_report, left_behind
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.display_options import READ_ONLY, DisplayOptions
from tests.disks import mounted
from tests.waiting import until

from ..conftest import Fake
from ..harness import live, piloted, running, screen_text, shows
from ..sessions import finished
from .test_compare import in_blocks

Make = Callable[..., Path]
NAMES = ("01-bare", "02-docker")


@pytest.fixture
def pair(session: Make) -> list[Path]:
    """Two short sessions in a folder without a plan."""
    return [
        session(name, environment=name[3:], seconds=15.0, meta=finished(seconds=15.0), alive=False)
        for name in NAMES
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "size=4m") as folder:
        yield folder


def planned(paths: list[Path]) -> Path:
    """Writes a plan for ``paths``; returns their folder."""
    folder = paths[0].parent
    (folder / PLAN).write_text(json.dumps(document(in_blocks([path.stem for path in paths]))))
    return folder


def export_for(*paths: Path, **options: float | bool) -> Export:
    return export_of(paths, **options)  # type: ignore[arg-type]


async def test_of_a_study_the_summary_in_its_folder_is_made_anew(pair: list[Path]) -> None:
    folder = planned(pair)
    (folder / "summary.html").write_text("of before")
    message = await export_report([folder])
    page = folder / "summary.html"
    assert message == f"report: {page}"
    assert "<html" in page.read_text()


def test_a_session_stands_for_its_study_and_all_of_its_sessions_are_it(pair: list[Path]) -> None:
    folder = planned(pair)
    expected = Export(("report", str(folder)), folder / "summary.html")
    assert export_for(folder) == export_for(pair[0]) == export_for(*pair) == expected


async def test_sessions_that_were_put_together_give_a_new_file_here(
    pair: list[Path], here: Path
) -> None:
    (pair[0].parent / "summary.html").write_text("somebody's own")
    message = await export_report(pair[::-1])
    (page,) = here.glob("gpuwatch-compare-*.html")
    assert f"report: {page}" in message
    assert "<html" in page.read_text()
    assert (pair[0].parent / "summary.html").read_text() == "somebody's own"


def test_a_name_that_is_taken_is_not_taken_again(
    pair: list[Path], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "20261121-120000")
    first = export_for(*pair).page
    first.touch()
    assert export_for(*pair).page == here / "gpuwatch-compare-20261121-120000-2.html"


def test_margin_and_devices_of_the_comparison_are_those_of_its_report(
    pair: list[Path], here: Path
) -> None:
    folder = planned(pair)
    how = {"margin": 0.005, "across_devices": True, "across_commands": True}
    arguments = export_for(folder, **how).arguments
    assert arguments[:6] == (
        *("compare", str(folder), "--margin", "0.5%"),
        *("--across-devices", "--across-commands"),
    )


async def test_a_study_that_cannot_be_written_is_reported_here(
    pair: list[Path], disk: Path, here: Path
) -> None:
    planned(pair)
    for file in pair[0].parent.iterdir():
        (disk / file.name).write_bytes(file.read_bytes())
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert export_for(disk).page.parent == here


async def test_a_report_goes_on_where_its_screen_is_left(pair: list[Path]) -> None:
    writing: dict[Path, Process] = {}
    screen = asyncio.create_task(export_report(pair[:1], writing))
    await asyncio.to_thread(until, lambda: writing, "no report is being written")
    screen.cancel()
    ((page, process),) = writing.items()
    told = left_behind(page, process, patience=0.0)
    assert told == f"report not finished, it is still being written: {page}"
    assert process.wait() == 0
    assert left_behind(page, process) == f"report: {page}" and page.exists()


class Interrupted(subprocess.Popen[bytes]):
    """Ctrl-C while it is waited for."""

    def wait(self, timeout: float | None = None) -> int:
        super().wait()
        raise KeyboardInterrupt


def test_ctrl_c_while_a_report_is_waited_for_says_that_it_goes_on(tmp_path: Path) -> None:
    told = left_behind(tmp_path, Interrupted(["true"]))
    assert told == f"report not finished, it is still being written: {tmp_path}"


async def test_a_folder_that_takes_no_more_is_told_in_one_clause(
    pair: list[Path], disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(disk)
    page = export_for(*pair).page
    (disk / "filler").write_bytes(b"x" * (4 << 20))
    message = await export_report(pair)
    assert (
        message.startswith("no report: ") and "No space left on device; free some space" in message
    )
    assert not page.exists()


@pytest.mark.parametrize("others", [[], [NAMES[1]]], ids=["alone", "beside another"])
async def test_the_page_of_a_session_of_no_study_stands_beside_it(
    session: Make, fake: Fake, others: list[str]
) -> None:
    path = session()
    for each in others:
        session(each)
    async with live(path, (200, 60)) as (app, pilot):
        assert "e report" in screen_text(app)
        await pilot.press("e", shows=f"report: {path.with_suffix('.html')}")
    assert fake.asked == [["report", str(path)]]


async def test_e_on_the_compare_screen_says_where_the_page_is(
    pair: list[Path], here: Path, fake: Fake
) -> None:
    async with running(lambda: CompareScreen(pair)) as (app, pilot):
        await pilot.press("e", shows="» report:")
        await shows(pilot, "against")
        await pilot.press("down")
        assert "» report" not in screen_text(app), "the next key takes the answer away"
    (arguments,) = [each for each in fake.asked if each[0] == "compare"]
    assert arguments[1:3] == [str(path) for path in pair] and arguments[-2] == "--out"


async def test_e_where_nothing_may_be_changed_says_so(pair: list[Path], fake: Fake) -> None:
    app = GpuwatchApp(lambda: CompareScreen(pair), DisplayOptions(read_only=True))
    async with piloted(app) as pilot:
        await pilot.press("e", shows=READ_ONLY)
    assert not fake.asked


async def test_over_ssh_it_is_told_how_to_fetch_it(
    session: Make, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session()
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    page = path.with_suffix(".html")
    assert f"; fetch it: scp {platform.node()}:{page} ." in await export_report([path])
    monkeypatch.setenv("HOME", str(path.parent))
    assert (await export_report([path])).endswith(f":{page.name} .")
    monkeypatch.delenv("SSH_CONNECTION")
    assert await export_report([path]) == f"report: ~/{page.name}"
