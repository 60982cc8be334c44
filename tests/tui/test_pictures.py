"""The pictures in the documentation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import ROOT
from .harness import live
from .picture import picture

pytestmark = pytest.mark.usefixtures("programs")

Make = Callable[..., Path]


async def test_a_picture_loads_nothing_from_elsewhere(session: Make) -> None:
    async with live(session(log=[("stdout", "<a> & b")])) as (app, _):
        text = picture(app)
    assert "mnist-cnn" in text and "&lt;a&gt;" in text
    only_links_itself(text)


@pytest.mark.parametrize("name", ["live", "roofline", "home", "compare"])
def test_the_stored_pictures_load_nothing_from_elsewhere(name: str) -> None:
    only_links_itself((ROOT / "docs" / "images" / f"{name}.svg").read_text())


def only_links_itself(text: str) -> None:
    ElementTree.fromstring(text)
    rest = text.replace("http://www.w3.org/2000/svg", "")
    assert not [word for word in ("http", "url(", "href", "@import") if word in rest]
