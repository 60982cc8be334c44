"""Every past schema stays readable: one recording of each is kept, and read by every command."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sqlite3
from pathlib import Path

import pytest

from gpuwatch.core.installation import update_command
from gpuwatch.session import schema
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.store import SessionStore
from tests.conftest import Cli

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "data" / "sessions"
PAST = tuple(range(1, schema.VERSION))


def kept(version: int) -> Path:
    return KEPT / f"schema-{version}.gpuwatch"


def test_the_promise_names_the_schemas_that_are_kept_and_read() -> None:
    page = (ROOT / "docs" / "session-format.md").read_text(encoding="utf-8")
    promised = {int(number) for number in re.findall(r"^## Schema (\d+)$", page, re.MULTILINE)}
    files = {path.name for path in KEPT.iterdir()}
    assert promised == set(PAST) == set(schema.UPGRADES)
    assert files == {kept(version).name for version in PAST}
    assert f"This page describes schema {schema.VERSION}." in page.replace("\n", " ")


@pytest.mark.parametrize("version", PAST)
def test_a_past_schema_is_read_by_every_command_and_not_changed(
    cli: Cli, tmp_path: Path, version: int
) -> None:
    path = tmp_path / kept(version).name
    shutil.copyfile(kept(version), path)
    before = path.read_bytes()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
        (steps,) = db.execute("SELECT sum(count) FROM step WHERE NOT warmup").fetchone()
        ticks = [tick for (tick,) in db.execute("SELECT t FROM tick ORDER BY n")]
    shown = json.loads(cli.read("show", path, "--format", "json").stdout)
    assert shown["session"]["status"] == "finished"
    assert shown["step"]["count"] == steps > 0
    exported = cli.read("export", path, "--what", "steps").stdout.splitlines()
    assert len(exported) > 1
    for words in (("log",), ("show",), ("roofline",), ("export",)):
        assert cli.read(*words, path).stdout
    other = tmp_path / "other" / path.name
    other.parent.mkdir()
    shutil.copyfile(path, other)
    assert "throughput" in cli.read("compare", path, other).stdout
    assert "finished" in cli.read("sessions", tmp_path).stdout
    with SessionReader(path) as reader:
        assert [row[1] for row in reader.all_ticks([])] == ticks
    assert path.read_bytes() == before and [each.name for each in tmp_path.glob("*.gpuwatch*")] == [
        path.name
    ]


@pytest.mark.parametrize("version", PAST)
def test_a_run_of_a_past_schema_that_is_taken_up_loses_nothing(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / kept(version).name
    shutil.copyfile(kept(version), path)
    read: list[object] = []
    for _ in range(2):
        with SessionReader(path) as reader:
            channels = [channel.id for channel in reader.channels()]
            ticks, steps = list(reader.all_ticks(channels)), reader.steps(limit=10**6)
            read.append((reader.meta(), reader.devices(), ticks, steps, reader.log()))
        SessionStore.reopen(path).close()
    assert read[0] == read[1]
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)


@pytest.mark.parametrize("version", PAST)
def test_a_study_whose_first_run_is_of_a_past_schema_is_resumed(cli: Cli, version: int) -> None:
    folder = cli.home / "study"
    folder.mkdir()
    run = {
        "workload": {"name": "true", "kind": "command", "arguments": ["true"], "parameters": {}},
        "environment": {"kind": "bare", "label": "bare", "image": None, "mounts": []},
    }
    plan = {
        "schema": 1,
        "host": socket.gethostname(),
        "working_directory": str(cli.home),
        "runs": [{"index": at, "file": f"0{at}-bare.gpuwatch", **run} for at in (1, 2)],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    first = folder / "01-bare.gpuwatch"
    shutil.copyfile(kept(version), first)
    cli("resume", "--trust", "--quiet", folder)
    assert first.read_bytes() == kept(version).read_bytes()
    second = json.loads(cli.read("show", "--format", "json", folder / "02-bare.gpuwatch").stdout)
    assert second["session"]["status"] == "finished"
    assert "2 finished" in cli.read("sessions", folder).stdout


def test_a_newer_gpuwatchs_file_is_refused_with_the_command_that_upgrades(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "newer.gpuwatch"
    shutil.copyfile(kept(PAST[-1]), path)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    before = path.read_bytes()
    for words in (("show",), ("log",), ("export",), ("compare", path), ("replay", "--plain")):
        said = cli(*words, path, code=2)
        assert said.stdout == ""
        assert said.stderr == (
            f"gpuwatch: error: {path} has session schema {schema.VERSION + 1}; this gpuwatch "
            f"reads up to {schema.VERSION}; read it with a newer one: "
            f"{update_command()}\n"
        )
    assert path.read_bytes() == before
