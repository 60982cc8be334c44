"""``--notify`` and ``gpuwatch notify``: who is told of the end of a run, and what."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.waiting import until

STEPS = [sys.executable, str(Path(__file__).parents[1] / "steps.py")]
SECRET = "hooks-2f9a"


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address, and what was sent to it."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{SECRET}", got
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_the_end_with_figures_that_say_how_and_nothing_keeps_its_address(
    cli: Cli, tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = webhook
    out = tmp_path / "out"
    cli("--record", "--quiet", "--out", out, "--notify", url, "--", *STEPS, 30, 0.01)
    until(lambda: bool(got))
    (told,) = got
    assert (told["kind"], told["failed"]) == ("over", False)
    assert "finished" in told["text"] and "; step time, median " in told["text"]
    figures = {each["name"]: each for each in told["figures"]}
    assert figures["step time, median"]["how"].startswith("measured: ")
    assert all(each["value"] != "unavailable" for each in told["figures"])
    for path in (*out.rglob("*"), *cli.home.rglob("*")):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_command_gets_a_failure_without_the_words_of_the_program(
    cli: Cli, tmp_path: Path
) -> None:
    cli.variables["GPUWATCH_NOTIFY"] = f"cat >{tmp_path}/told; echo $GPUWATCH_TEXT >{tmp_path}/text"
    script = "echo token=abc123 >&2; exit 3"
    cli("--record", "--quiet", "--out", tmp_path / "out", "--", "sh", "-c", script, code=1)
    until(lambda: (tmp_path / "text").exists() and (tmp_path / "text").read_text())
    told = json.loads((tmp_path / "told").read_text())
    assert told["failed"] and told["text"] == (tmp_path / "text").read_text().strip()
    assert "exit code 3" in told["text"] and "abc123" not in json.dumps(told)


def test_a_recorded_machine_is_told_by_its_name_with_its_figures(
    cli: Cli, tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = webhook
    words = ["--record", "--quiet", "--out", tmp_path / "out", "--duration", "1s", "--interval"]
    cli(*words, "0.1", "--gpus", "none", "--name", "night", "--notify", url)
    until(lambda: bool(got))
    (told,) = got
    host = told["host"]
    assert told["text"].startswith(f"{host}: night: recorded the machine for 0:01; CPU utilization")
    assert [each["name"] for each in told["figures"]] == ["CPU utilization"]


def test_a_failure_has_the_class_of_the_exception_that_ended_it(
    cli: Cli, tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = webhook
    script = "echo 'RuntimeError: bad key abc123' >&2; exit 1"
    words = ["--record", "--quiet", "--out", tmp_path / "out", "--notify", url]
    cli(*words, "--", "sh", "-c", script, code=1)
    until(lambda: bool(got))
    (told,) = got
    assert ": exit code 1: RuntimeError" in told["text"] and "abc123" not in json.dumps(told)


def test_of_a_study_each_failure_is_told_and_at_the_end_the_verdict_once(
    cli: Cli, tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = webhook
    commands = ["--command", "good=true", "--command", "bad=false", "--blocks", 1]
    words = ["--record", "--quiet", "--detach", *commands, "--cool-down", 0, "--order-seed", 1]
    cli(*words, "--out", tmp_path / "out", "--notify", url)
    until(lambda: any(each["kind"] == "over" for each in got))
    *before, last = got
    assert [each["kind"] for each in before] in (["failed"], ["failed", "failed"])
    assert all("bad" in each["run"] for each in before)
    assert last["verdicts"][0].startswith("CAN'T TELL bad ")
    assert ": the study is over after 0:0" in last["text"] and ", 4 runs; CAN'T" in last["text"]
    assert ".;" not in last["text"]
    cli("notify", tmp_path / "out", "--to", url)
    *_, late = got
    assert (late["kind"], late["text"]) == ("over", last["text"])


def test_what_cannot_be_told_is_said_without_the_address(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cli("--record", "--quiet", "--out", out, "--", "true")
    told = cli("notify", out, "--to", f"http://127.0.0.1:9/{SECRET}", code=1).stderr
    assert "does not answer (" in told and "finished" in told and SECRET not in told
    told = cli("notify", out, "--to", "exit 7", code=1).stderr
    assert "ended with exit code 7" in told


def test_whom_nobody_can_tell_is_refused_before_anything_starts(cli: Cli, tmp_path: Path) -> None:
    words = ["--record", "--out", tmp_path / "out", "--notify", "ftp://there", "--", "true"]
    assert "give an http or https URL" in cli(*words, code=2).stderr
    assert not (tmp_path / "out").exists()
    assert "add --to" in cli("notify", code=2).stderr
