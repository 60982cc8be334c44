"""The documentation: its links lead somewhere, and the README stays short."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from gpuwatch.core.metrics import CATALOGUE
from gpuwatch.workloads.names import BUILT_IN

ROOT = Path(__file__).resolve().parents[1]
MOST_WORDS = 900
MOST_WORDS_OF_THE_MAP = 1500
LEFT_OUT = ("docs/decisions/", "tests/data/")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _pages() -> list[str]:
    """Every tracked Markdown page, but for records of decisions and data of tests."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", "*.md"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout: which pages there are is not known")
    names = [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]
    return [name for name in names if not name.startswith(LEFT_OUT)]


def _prose(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))


def _anchors(page: Path) -> set[str]:
    """What a ``#`` in a link to ``page`` may name: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ +(.+?) *$", _prose(page), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def _broken(name: str) -> list[str]:
    page, found = ROOT / name, []
    for link in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        exists = target.exists()
        if not exists or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            found.append(f"{name}: {link}")
    return found


def test_every_relative_link_leads_to_a_file_and_to_a_heading_of_it() -> None:
    pages = _pages()
    assert "README.md" in pages
    assert [link for name in pages for link in _broken(name)] == []


SAMPLED = [name for name in CATALOGUE if not name.startswith("gpuwatch.")]


@pytest.mark.parametrize(("page", "names"), [("workloads", BUILT_IN), ("telemetry", SAMPLED)])
def test_a_page_has_every_workload_or_metric(page: str, names: Collection[str]) -> None:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_page_in_docs_stands_in_the_index() -> None:
    index = set(_LINK.findall((ROOT / "docs/README.md").read_text(encoding="utf-8")))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages - index == set()


def test_no_message_refers_to_a_page_that_an_installation_does_not_have() -> None:
    files = [
        path
        for room in ("src/gpuwatch", "tui", "workloads", "runners")
        for path in (ROOT / room).rglob("*.py")
    ]
    found = []
    for path in files:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        found += [
            f"{path.name}: {node.value}"
            for node in nodes
            if isinstance(node, ast.Constant) and node not in docstrings
            if re.search(r"\bdocs/[\w-]+\.md", str(node.value))
        ]
    assert found == []


def test_the_readme_has_fewer_than_900_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < MOST_WORDS


def test_the_architecture_page_names_every_room_and_only_what_is_there() -> None:
    rooms = ROOT / "src" / "gpuwatch"
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z]\w*(?:/\w+)*(?:/|/\w+\.py))`", page)
    assert len(named) > 80
    assert [name for name in named if not any((at / name).exists() for at in (rooms, ROOT))] == []
    every = [each for each in rooms.iterdir() if any(each.glob("*.py"))]
    assert len(every) > 15
    assert [each for each in every if f"`{each.name}/`" not in page] == []


def test_the_architecture_page_is_three_screens() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.split()) < MOST_WORDS_OF_THE_MAP
