"""Text from outside, made harmless."""

from __future__ import annotations

import re

import pytest

from gpuwatch.core.text import clean, cut, markdown, spreadsheet


@pytest.mark.parametrize(
    "text",
    [
        "@someone",
        "#12",
        "owner/name#12",
        "GH-12",
        "www.example.org",
        "http://example.org",
        "a@b.org",
    ],
)
def test_github_finds_no_mention_reference_or_link_in_text_from_outside(text: str) -> None:
    shown = re.sub(r"\\(?=[^\w\s])", "", markdown(text))
    assert "\u200b" in shown and shown.replace("\u200b", "") == text
    assert not re.search(r"@\w|#\d|GH-\d|www\.|://", shown, re.IGNORECASE)


def test_text_that_is_cut_ends_in_an_ellipsis() -> None:
    shown = [clean("a long label", longest) for longest in (12, 9, 8)]
    assert shown == ["a long label", "a long l…", "a long…"]


@pytest.mark.parametrize(
    ("text", "longest", "behind", "shown"),
    [
        ("abcdefgh", 8, 3, "abcdefgh"),
        ("abcdefghi", 8, 3, "abcd…ghi"),
        ("漢字", 4, 0, "漢字"),
        ("漢字漢字", 6, 0, "漢字…"),
        ("漢字漢字", 7, 3, "漢…字"),
        ("漢字漢字", 1, 0, "…"),
    ],
)
def test_text_is_cut_by_the_columns_that_it_takes(
    text: str, longest: int, behind: int, shown: str
) -> None:
    assert cut(text, longest, behind=behind) == shown


def test_a_dollar_sign_begins_no_formula_of_markdown() -> None:
    assert markdown("$x$") == "&#36;x&#36;"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
def test_no_cell_begins_as_a_formula_of_a_spreadsheet(sign: str) -> None:
    assert spreadsheet(f"{sign}1+1") == f"'{sign}1+1"
