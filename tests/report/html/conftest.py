"""A real Chromium, and pages that it opens from files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import StudyResult
from gpuwatch.report.html.page import page
from tests.report.html.curves import curves_of
from tests.report.results import study_result

REQUIRED = "GPUWATCH_REQUIRE_CHROMIUM"
"""Variable that makes the tests fail, not skip, where there is no Chromium."""


@dataclass
class Opened:
    """A page, and all that it did on the way."""

    page: Any
    errors: list[str] = field(default_factory=list)
    """What it wrote to the console, and errors of its script."""
    requests: list[str] = field(default_factory=list)


def _why_not() -> str | None:
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "chromium: the package playwright is not installed"
    return None if _chromium() else "chromium: not on the PATH; apt-get install chromium"


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if reason := _why_not():
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, but {reason}")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=_chromium())
        yield started
        started.close()


Open = Callable[..., Opened]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens HTML as a file in a window of its own; further arguments are the window's."""
    contexts = []

    def opening(html: str, **options: Any) -> Opened:
        file = tmp_path / "summary.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(60_000)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.errors.append(message.text))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(file.as_uri())
        return opened

    yield opening
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Three environments, seven blocks and a warm-up."""
    return study_result(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def html(study: StudyResult) -> str:
    return page(study, curves_of(study))
