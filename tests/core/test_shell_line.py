"""What a line that is split into words would mean to a shell."""

from __future__ import annotations

import shlex

import pytest

from gpuwatch.core.shell_line import in_bash, operator_among, operator_in


@pytest.mark.parametrize(
    ("line", "operator"),
    [
        ("train.py 100 | tee o", "|"),
        ("a && b", "&&"),
        ("cd x; python y.py", ";"),
        ("python y.py > log 2>&1", ">"),
        ("python y.py 2>/dev/null", ">"),
        ("a || b", "||"),
        ("sleep 5 &", "&"),
        ("a < b", "<"),
    ],
)
def test_an_operator_without_quotes_is_found(line: str, operator: str) -> None:
    assert operator_in(line) == operator
    fails = ["-o", "pipefail"] if "|" in line else []
    assert shlex.split(in_bash(line)) == ["bash", *fails, "-c", line]
    assert operator_in(in_bash(line)) is None


@pytest.mark.parametrize(
    "line",
    [
        "python train.py --epochs 3",
        "grep 'a | b' file",
        r"find . -exec ls {} \;",
        'awk "{print > 5; \\"x|\\"}" f',
        "--pad='<pad>' x",
        "curl http://x/?a=1&b=2",
    ],
)
def test_what_is_quoted_is_a_word(line: str) -> None:
    assert operator_in(line) is None


def test_among_words_only_one_that_is_nothing_else_counts() -> None:
    assert operator_among(["a", "|", "b"]) == "|"
    assert operator_among(["a", "2>&1"]) == "2>&1"
    assert operator_among(["python", "-c", "a; b | c", "<pad>", ">=1", "&x"]) is None
