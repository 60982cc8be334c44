"""What is done with a session file from elsewhere: every command that reads one, and the screens'
own reading."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch import studies
from gpuwatch.cli import main
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector, PastView
from gpuwatch.tui.feed.snapshot import View
from tests.fuzz import output

Check = Callable[[str], list[str]]


@dataclass(frozen=True)
class Place:
    """Where a hostile file lies."""

    folder: Path
    """A study of its own."""
    path: Path
    good: Path
    """A sound session elsewhere."""
    out: Path
    """A folder for exports."""


@dataclass
class Outcome:
    """What became of one use: ``"done"``, ``"refused"``, or complaints."""

    use: str
    word: str = "done"
    complaints: list[str] = field(default_factory=list)
    seconds: float = 0.0


def _commands(place: Place) -> Iterator[tuple[list[str], Check]]:
    path, good, folder = str(place.path), str(place.good), str(place.folder)
    # What looks like an option is none behind a folder.
    yield ["show", path], output.of_text
    yield ["show", path, "--format", "json"], output.of_json
    yield ["show", path, "--format", "md"], output.of_markdown
    yield ["show", path, "--format", "csv"], output.of_csv
    yield ["log", path], output.of_text
    yield ["sessions", folder], output.of_text
    yield ["sessions", folder, "--format", "json"], output.of_json
    yield ["compare", good, path, "--format", "table"], output.of_text
    yield ["compare", path, good, "--format", "html"], output.of_html
    yield ["compare", path, good, "--format", "json"], output.of_json
    yield ["compare", path, good, "--format", "md"], output.of_markdown
    yield ["kernels", path], output.of_text
    yield ["roofline", path], output.of_text
    yield ["roofline", path, "--format", "svg"], output.of_html
    for what in ("series", "steps", "log", "events", "runs"):
        yield ["export", path, "--what", what], output.of_csv
        yield ["export", path, "--what", what, "--format", "json"], output.of_json
    yield ["export", path, "--out", str(place.out / "a.parquet")], output.of_text
    yield ["report", folder], output.of_text


def _of_folder(place: Place) -> Iterator[tuple[list[str], Check]]:
    folder, path = str(place.folder), str(place.path)
    yield ["sessions", folder], output.of_text
    yield ["sessions", folder, "--format", "json"], output.of_json
    yield ["report", folder, "--format", "table"], output.of_text
    yield ["report", folder, "--format", "json"], output.of_json
    yield ["report", folder, "--format", "md"], output.of_markdown
    yield ["report", folder, "--format", "csv"], output.of_csv
    yield ["report", folder, "--format", "html"], output.of_html
    yield ["compare", folder, str(place.good), "--format", "table"], output.of_text
    yield ["export", folder, "--what", "runs"], output.of_csv
    yield ["show", path, "--format", "json"], output.of_json
    yield ["tag", path, "slow"], output.of_text
    yield ["report", folder], output.of_text


def _of_profile(place: Place) -> Iterator[tuple[list[str], Check]]:
    out = str(place.out / "imported")
    yield ["import", str(place.path), "--out", out], output.of_text
    yield ["sessions", out], output.of_text


def _of_output(place: Place) -> Iterator[tuple[list[str], Check]]:
    yield ["show", str(place.path), "--format", "json"], output.of_json
    yield ["log", str(place.path)], output.of_text


def _of_claims(place: Place) -> Iterator[tuple[list[str], Check]]:
    """What acts: by what a file says of itself it must not."""
    path, folder = str(place.path), str(place.folder)
    yield ["show", path], output.of_text
    yield ["sessions", folder], output.of_text
    yield ["resume", path, "--plan"], output.of_text
    yield ["resume", folder, "--quiet"], output.of_text
    yield ["attach", "--record", path], output.of_text
    yield ["stop", path], output.of_text
    yield ["stop", folder], output.of_text
    yield ["delete", "--yes", path], output.of_text


COMMANDS = {
    "session": _commands,
    "claims": _of_claims,
    "folder": _of_folder,
    "study": lambda place: iter(()),
    "profile": _of_profile,
    "output": _of_output,
}
"""By what is hostile."""


def number(kind: str) -> int:
    """How many uses of such a file there are."""
    nothing = Place(*[Path()] * 4)
    return len(list(COMMANDS[kind](nothing))) + (kind not in ("profile", "claims"))


def use(kind: str, place: Place, which: int) -> Outcome:
    """Do the use of that number with the file."""
    commands = list(COMMANDS[kind](place))
    if which == len(commands) and kind == "study":
        return _judged("load", lambda: _load(place.path), output.of_text)
    if which == len(commands):
        return _judged("collect", lambda: _collect(place.path), output.of_text)
    argv, check = commands[which]
    name = " ".join(each for each in argv if "/" not in each)
    return _judged(name, lambda: main(argv), check)


def _judged(name: str, how: Callable[[], int], check: Check) -> Outcome:
    outcome = Outcome(name)
    began = time.process_time()
    with _captured() as (out, err):
        try:
            code = how()
        except BaseException as error:
            trace = traceback.extract_tb(error.__traceback__)
            where = " < ".join(
                f"{each.filename.rpartition('gpuwatch/')[2]}:{each.lineno}"
                for each in reversed(trace[-4:])
            )
            outcome.complaints.append(f"{type(error).__name__}: {str(error)[:200]} at {where}")
            code = -1
    outcome.seconds = time.process_time() - began
    said, told = (
        stream.buffer.getvalue().decode("utf-8", "surrogatepass")  # type: ignore[attr-defined]
        for stream in (out, err)
    )
    if code > 0:
        outcome.word = "refused"
        if not told.startswith("gpuwatch:"):
            outcome.complaints.append(f"exit code {code} without a word: {told[:200]!r}")
    if code >= 0 and code not in output.CODES:
        outcome.complaints.append(f"exit code {code}")
    outcome.complaints += [*check(said), *output.of_error(told)] if code >= 0 else []
    return outcome


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        yield streams[0], streams[1]


def _load(path: Path) -> int:
    """What ``gpuwatch study FILE`` makes of the file, before anything is looked for or run."""
    try:
        studies.with_parameters(studies.load(path), {"steps": 5})
    except GpuwatchError as error:
        print(f"gpuwatch: error: {clean(error)}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _collect(path: Path) -> int:
    """What the live screen, ``replay`` and the pages over them read."""
    try:
        with SessionReader(path) as reader:
            collector = Collector(reader)
            collector.update()
            collector.backfill()
            past = PastView(collector)
            for view in (View(), View(roofline=True, grid=True, seconds=None, at=6 * NS)):
                past.at(view.at, view.seconds).snapshot(view)
            reader.log_lines(0, 100)
            reader.gpu_processes()
    except GpuwatchError as error:
        print(f"gpuwatch: error: {clean(error)}", file=sys.stderr)
        return int(error.exit_code)
    return 0
