"""Hostile files beside sessions, studies that are written down, and what profilers print."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from pathlib import Path

from gpuwatch.analysis.study.read import read_study
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.plan import PLAN, Part, Plan, PlannedRun
from gpuwatch.session.study.plan_file import document
from gpuwatch.session.study.study_folder import SUMMARY_JSON
from gpuwatch.studies import preset_text, presets
from tests.fuzz import values
from tests.tui.sessions import Script, finished, write

_PROFILES = Path(__file__).resolve().parents[1] / "data" / "profiles"
_PLANNED = {
    "kind": "gpuwatch-labels",
    "schema": 1,
    "labels": {
        "": {"name": "a study", "tags": ["fast", "one"], "note": "of three runs"},
        "01-bare.gpuwatch": {"name": "first", "tags": [], "note": None},
    },
}
_BESIDE = (PLAN, PLAN, SUMMARY_JSON, "labels.json")


def study(folder: Path) -> Path:
    """A sound study of three runs in ``folder``, with all files beside it."""
    case, environments, runs = Workload("mnist-cnn", "workload"), [], []
    for number, (label, pace) in enumerate((("bare", 1.0), ("docker=x", 1.1), ("bare#2", 1.0)), 1):
        name = f"{number:02}-run.gpuwatch"
        script = Script(seconds=8.0, start=100.0 * number, pace=pace, environment=label,
                        meta=finished(seconds=8.0), alive=False)  # fmt: skip
        write(folder / name, script)
        environments.append(Environment(label.partition("=")[0].partition("#")[0], label))
        runs.append(PlannedRun(number, name, case, environments[-1]))
    plan = Plan(folder.name, (Part("", (case,), tuple(environments)),), tuple(runs))
    (folder / PLAN).write_text(json.dumps(document(plan)))
    (folder / "labels.json").write_text(json.dumps(_PLANNED))
    from gpuwatch.report import json as reported
    from gpuwatch.report import json as study_json

    (folder / SUMMARY_JSON).write_text(reported.dumps(study_json.study(read_study(folder))))
    return folder


def spoil(rng: random.Random, folder: Path) -> str:
    """Change one of the files beside the sessions, or put something else in its place."""
    name = rng.choice(_BESIDE)
    path = folder / name
    kind = rng.randrange(10)
    if kind < 6:
        from gpuwatch.report.json import dumps

        value = json.loads(path.read_text())
        for _ in range(rng.choice((1, 1, 2, 5))):
            value = values.spoilt(rng, value)
        with contextlib.suppress(ValueError, RecursionError):
            path.write_text(rng.choice((dumps, json.dumps))(value), "utf-8", "surrogatepass")
        return f"{name}: values"
    if kind == 6:
        path.write_bytes(scrambled(rng, path.read_bytes()))
        return f"{name}: bytes"
    if kind == 7:
        odd = (
            "[" * 200_000,
            "9" * 100_000,
            '{"schema": 2, "runs": [' + "{}," * 500_000,
            "",
            "null",
        )
        path.write_text(rng.choice(odd))
        return f"{name}: odd"
    path.unlink()
    if kind == 8:
        with path.open("wb") as file:
            os.truncate(file.fileno(), rng.choice((0, 1 << 33)))
        return f"{name}: holes"
    how = rng.choice(("fifo", "folder", "/dev/zero", "itself", "/etc/passwd"))
    if how == "fifo":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if how == "itself" else how)
    return f"{name}: {how}"


def toml(rng: random.Random, folder: Path) -> Path:
    """A study file: a preset with other values, keys and bytes."""
    lines = preset_text(rng.choice(presets())).splitlines()
    odd = (
        *("true", "-1", "1e400", "nan", "inf", "[]", "{}", "[[]]", '""', "1979-05-27", "9" * 5000),
        *("0x" + "f" * 99, "[" * 400 + "]" * 400, '"' + "x" * 5000 + '"', '"\\u001b[31m"'),
    )
    for _ in range(rng.choice((1, 1, 2, 6))):
        at = rng.randrange(len(lines))
        kind = rng.randrange(5)
        key = lines[at].partition("=")[0]
        if kind == 0:
            lines[at] = f"{key}= {rng.choice(odd)}"
        elif kind == 1:
            lines.insert(
                at, rng.choice((lines[at], f"x = {rng.choice(odd)}", "[[part]]", "[part]"))
            )
        elif kind == 2:
            lines[at] = f"{key}= {json.dumps(values.text(rng)[:300])}"
        elif kind == 3:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        else:
            lines[at] += values.text(rng)[:200]
    path = folder / "study.toml"
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    path.write_bytes(scrambled(rng, content) if rng.random() < 0.3 else content)
    return path


def profile(rng: random.Random, folder: Path) -> Path:
    """What a profiler printed, with other cells, columns and bytes."""
    sample = rng.choice(sorted(_PROFILES.iterdir()))
    path = Path(shutil.copy(sample, folder))
    if rng.random() < 0.5:
        path.write_bytes(scrambled(rng, path.read_bytes()))
        return path
    rows = [line.split(",") for line in path.read_text().splitlines()]
    cells = ("", "nan", "inf", "-1", "1e999", "9" * 400, '"', "0x10", "1,000", "%", "ns")
    for _ in range(rng.choice((1, 2, 10))):
        row = rng.choice(rows)
        kind = rng.randrange(5)
        if kind == 0:
            row[rng.randrange(len(row))] = rng.choice(cells)
        elif kind == 1:
            row[rng.randrange(len(row))] = values.text(rng)[:2000]
        elif kind == 2:
            rows.insert(rng.randrange(len(rows)), list(row))
        elif kind == 3:
            row *= 2
        else:
            del row[rng.randrange(len(row)) :]
            row.append("")
    path.write_text("\n".join(map(",".join, rows)) + "\n", "utf-8", "surrogatepass")
    return path


def scrambled(rng: random.Random, content: bytes) -> bytes:
    """Bytes flipped, cut, doubled, put in."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 3, 20))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + rng.choice((1, 10, 500))]
        elif kind == 2:
            data[at:at] = data[at : at + rng.choice((1, 50, 2000))]
        elif kind == 3:
            data[at:at] = rng.choice(
                (b"\0", b"\xff\xfe", b"\x1b[31m", b"\r", b'"', b"\n\n", b",,,,")
            )
        else:
            data[at:at] = rng.randbytes(rng.choice((1, 9)))
    return bytes(data)
