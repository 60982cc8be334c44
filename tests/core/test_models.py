"""What several rooms make of JSON that anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuwatch.core.models import with_hint
from tests.conftest import Cli


@pytest.mark.parametrize("word", ["hint", "mend", "fix"])
def test_a_hint_is_read_by_its_former_names_too(word: str) -> None:
    assert with_hint({"text": "no image", word: "pull it"}) == {
        "text": "no image",
        "hint": "pull it",
    }


def test_the_present_name_wins_and_nothing_is_made_up() -> None:
    assert with_hint({"mend": "old", "hint": "new"})["hint"] == "new"
    assert with_hint({"text": "why"}) == {"text": "why"}
    assert with_hint(None) == with_hint([1]) == {}


@pytest.mark.parametrize("word", ["hint", "mend"])
def test_a_workload_may_write_either_word(cli: Cli, tmp_path: Path, word: str) -> None:
    error = {"event": "error", "kind": "run", "message": "out of memory", word: "smaller batch"}
    program = f"echo ':::GPUWATCH {json.dumps(error)}'; exit 1"
    told = cli("--record", "--out", tmp_path / "out", "--", "sh", "-c", program, code=1).stderr
    assert "error: out of memory; smaller batch" in told
    (session,) = (tmp_path / "out").rglob("*.gpuwatch")
    shown = json.loads(cli.read("show", "--format", "json", session).stdout)
    assert shown["error"]["hint"] == "smaller batch"
