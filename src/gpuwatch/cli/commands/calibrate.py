"""Measure the ceilings of this machine: the rates of a large copy and of large matrix products.

Measures each GPU (or those of --gpus), or the CPU if there is none, with the torch of bare runs, in
under a minute. Later runs with the same device, driver and torch are compared with these ceilings.
Measure on an idle machine: other work makes the ceilings too low. A higher ceiling from an earlier
measurement is kept.

  gpuwatch calibrate                       all GPUs, else the CPU
  gpuwatch calibrate --device cpu          the CPU, with all threads that torch uses
  gpuwatch calibrate --fresh               forget earlier measurements of these devices
  gpuwatch calibrate --list                show earlier measurements
"""

from __future__ import annotations

import argparse
import sys

from gpuwatch.core import ceilings, paths, units
from gpuwatch.core.errors import ExitCode, NotAvailable, UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", metavar="PATH", help="interpreter with torch")
    parser.add_argument(
        "--gpus", metavar="INDEX|UUID,...", help="the GPUs to measure (default: all); none: the CPU"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: the GPUs, else the CPU")
    parser.add_argument(
        "--list", action="store_true", help="show earlier measurements, measure nothing"
    )
    parser.add_argument("--fresh", action="store_true", help="keep no earlier ceiling")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if arguments.list:
        for name in ("gpus", "device", "python", "fresh"):
            if getattr(arguments, name):
                raise UsageError(
                    f"--list shows all measurements; --{name} chooses what to measure",
                    "give one of them",
                )
        return _list(arguments.format)
    if arguments.device == "cpu" and arguments.gpus not in (None, "none"):
        raise UsageError("--device cpu and --gpus contradict each other", "give one of them")
    from gpuwatch.cli.calibration_run import measure, targets
    from gpuwatch.cli.options.launch import gpus, need_linux

    need_linux()
    chosen = gpus(arguments.gpus)
    if arguments.device == "cuda" and chosen == ():
        raise UsageError("--device cuda and --gpus none contradict each other", "give one of them")
    measured = []
    for target in targets(chosen, arguments.device):
        now = measure(target, arguments.python, quick=arguments.quick, say=_say)
        document = ceilings.store(now, fresh=arguments.fresh) if _any(now) else now
        _say_kept(now, document)
        for warning in _warnings(document):
            _say(f"warning: {warning}")
        measured.append((target, document))
    if arguments.format == "json":
        from gpuwatch.report.json import dumps

        documents = [document for _, document in measured]
        sys.stdout.write(dumps({"schema": JSON_SCHEMA, "measured": documents}))
    else:
        print(
            "\n".join(_table(document, target.device.attributes) for target, document in measured)
        )
    for target, document in measured:
        if not _any(document):
            reasons = {str(entry["reason"]) for entry in document["ceilings"].values()}
            raise NotAvailable(
                f"nothing could be measured on {target.device.name}: {'; '.join(sorted(reasons))}",
                "see `gpuwatch doctor`",
            )
    return ExitCode.DONE


def _say_kept(now: JSON, stored: JSON) -> None:
    """Say which earlier ceilings are kept because the new values are lower."""
    for name, entry in stored["ceilings"].items():
        value, unit = number(mapping(now["ceilings"].get(name)).get("value")), entry["unit"]
        if value is not None and value < entry["value"]:
            _say(
                f"{name}: kept {units.quantity(entry['value'], unit)} of {entry['when']}, "
                f"higher than {units.quantity(value, unit)} now (--fresh forgets it)"
            )


def _warnings(document: JSON) -> list[str]:
    """What disturbed the measurement: each warning once, with the ceilings it concerns."""
    ceilings_of: dict[str, list[str]] = {}
    for name, entry in mapping(document.get("ceilings")).items():
        if number(mapping(entry).get("value")):
            for warning in ceilings.warnings_of(mapping(entry), document):
                ceilings_of.setdefault(warning, []).append(str(name))
    return [f"{', '.join(names)}: {warning}" for warning, names in ceilings_of.items()]


def _say(text: str) -> None:
    print(clean(text), file=sys.stderr, flush=True)


def _list(form: str) -> int:
    stored = ceilings.stored()
    for file in stored:
        if file.trouble is not None:
            _say(f"{file.path} {file.trouble}; remove it and measure again: gpuwatch calibrate")
    known = [file.document for file in stored if file.document is not None]
    if form == "json":
        from gpuwatch.report.json import dumps

        sys.stdout.write(dumps({"schema": JSON_SCHEMA, "measured": known}))
        return ExitCode.DONE
    if not known:
        _say(f"no measurement in {paths.ceilings_home()} yet; measure: gpuwatch calibrate")
        return ExitCode.DONE
    print("\n".join(_table(document, None, listed=True) for document in known))
    return ExitCode.DONE


def _any(document: JSON) -> bool:
    return any(number(entry.get("value")) for entry in document["ceilings"].values())


def _table(document: JSON, attributes: JSON, *, listed: bool = False) -> str:
    """The ceilings of one document; ``attributes`` of a GPU add the share of its peaks.

    ``listed`` adds the warnings, which a new measurement has printed already.
    """
    from gpuwatch.core.peaks import peaks
    from gpuwatch.report.tables import table

    device = mapping(document.get("device"))
    name = str(device.get("name"))
    known = peaks(attributes, name) if attributes and device.get("kind") == "gpu" else {}
    rows = []
    for key, found in mapping(document.get("ceilings")).items():
        entry = mapping(found)
        value, peak = number(entry.get("value")), known.get(key)
        how, when = str(entry.get("how") or entry.get("reason") or ""), str(entry.get("when") or "")
        if when and when < str(document.get("when")):  # kept of an earlier measurement
            how += f", {when}"
        share = value / peak.value if value and peak and peak.value else None
        rows.append(
            [
                clean(key, 20),
                units.quantity(value, clean(entry.get("unit"), 8)),
                units.percent(number(entry.get("spread"))),
                *([units.percent(share)] if known else []),
                clean(how, 240),
            ]
        )
    threads = number(document.get("threads"))
    head = ["ceiling", "value", "spread", *(["of peak"] if known else []), "how"]
    facts = [
        name,
        str(device.get("uuid") or ""),
        f"driver {document['driver']}" if document.get("driver") else "",
        f"torch {document.get('torch')}",
        units.counted(threads, "thread") if threads else "",
        str(document.get("when")),
    ]
    lines = [clean("  ".join(fact for fact in facts if fact)), table(head, rows, last_left=True)]
    lines += [f"warning: {clean(warning)}" for warning in _warnings(document)] if listed else []
    return "\n".join(lines) + "\n"
