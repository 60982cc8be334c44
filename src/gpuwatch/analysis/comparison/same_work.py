"""Whether the runs of two sides did the same work: program, parameters, data, FLOP per step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from gpuwatch.analysis.summary.identity import parameter_text, training, unknown_gpus, used_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean, shell
from gpuwatch.session.reading.status import State

_MOST = 3
_WHOLE, _LONGEST = 40, 100
"""Longest text shown in full, and longest excerpt of a longer one, in characters."""
_BEFORE, _BEHIND = 40, 16
"""Most characters of common text shown before and after a difference."""
_READ = 1 << 16
"""Characters of a text that are compared."""
_CUT = "…"

Value = Callable[[Summary], JSON]
"""A value of a session; ``None`` is unknown."""


def against(
    what: str,
    one: Sequence[Summary],
    two: Sequence[Summary],
    value: Value,
    *,
    another: bool = False,
) -> list[str]:
    """The clause with both values, if both are known and differ; else empty."""
    kind = "another" if another else "different"
    return [f"{kind} {each}" for each in both(what, one, two, value)]


def both(what: str, one: Sequence[Summary], two: Sequence[Summary], value: Value) -> list[str]:
    """``batch size: 32 against 64``, if both are known and differ; else empty."""
    if not differ(one, two, value):
        return []
    sides = [_texts(known(side, value)) for side in (one, two)]
    short = _differing([*sides[0], *sides[1]])
    first, second = (_few([short[text] for text in side]) for side in sides)
    return [f"{what}: {first} against {second}"]


def differ(one: Sequence[Summary], two: Sequence[Summary], value: Value) -> bool:
    """Whether the value is known on both sides and differs."""
    first, second = (
        {json.dumps(each, sort_keys=True, default=str) for each in known(side, value)}
        for side in (one, two)
    )
    return bool(first and second) and first != second


def known(sessions: Iterable[Summary], value: Value) -> list[JSON]:
    """The values of the sessions where it is known."""
    return [found for session in sessions if (found := value(session)) is not None]


def listed(values: Sequence[JSON]) -> str:
    """The distinct ``values``, shortened for a sentence."""
    return _few([_cut(text) for text in _texts(values)])


def _texts(values: Sequence[JSON]) -> list[str]:
    return list(dict.fromkeys(clean(each, _READ) for each in values))


def _few(texts: Sequence[str]) -> str:
    return " and ".join(texts[:_MOST]) + (" and others" if len(texts) > _MOST else "")


def _differing(texts: Sequence[str]) -> dict[str, str]:
    """What is shown of each text: of long ones, the differing part.

    One common word comes before it: ``… --lr 0.1``.
    """
    if all(len(text) <= _WHOLE for text in texts):
        return {text: text for text in texts}
    shortest = min(map(len, texts))
    before = _alike(texts)
    behind = _alike([text[::-1] for text in texts])
    return {
        text: _middle(text, before, len(text) - min(behind, shortest - before)) for text in texts
    }


def _alike(texts: Sequence[str]) -> int:
    """Length of the common beginning of ``texts``."""
    columns = enumerate(zip(*texts, strict=False))
    return next((at for at, of in columns if len(set(of)) > 1), min(map(len, texts)))


def _middle(text: str, start: int, end: int) -> str:
    """``text`` from ``start`` to ``end``, extended to whole words and the word before."""
    word = text.rfind(" ", 0, start) + 1
    first = text.rfind(" ", 0, max(0, word - 1)) + 1
    first = next(at for at in (first, word, start - _BEFORE) if at >= start - _BEFORE)
    blank = text.find(" ", end)
    last = min(len(text) if blank < 0 else blank, end + _BEHIND)
    shown = _cut(text[max(0, first) : last])
    left = f"{_CUT} " if text[:first].endswith(" ") else _CUT
    right = f" {_CUT}" if text[last:].startswith(" ") else _CUT
    return f"{left * (first > 0)}{shown}{right * (last < len(text) and not shown.endswith(_CUT))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}{_CUT}"


_LONGEST_NAME = 60
"""Characters of a file's name that are shown."""
SAME_WORK = 0.01
"""Relative difference of counted FLOP or samples that counting methods explain."""
PROGRAM = "gpuwatch.program.sha256"
"""The fact that has the files of a command with their digests."""
RATES = "their samples/s can be compared, below"
"""Behind the reason of a pair whose steps are unlike by design."""


def work_differences(
    one: Sequence[Summary], two: Sequence[Summary], *, across_commands: bool
) -> list[str]:
    """A clause for each difference in the work; values unknown on one side do not count.

    ``across_commands``: the command may differ, and with it what the runs report of their settings,
    but not the samples of a step, whose times would not be comparable, nor the content of a file
    that both commands name.
    """
    if across_commands:
        unlike = both("measurement", one, two, _hook)
        if all(known(side, samples_of_a_step) for side in (one, two)):
            unlike += [f"{each} ({RATES})" for each in _samples(one, two)]
        else:
            unlike += both("batch size", one, two, _either("batch_size"))
        return [f"different {each}" for each in [*unlike, *_changed(one, two)]]
    hook = against("measurement", one, two, _hook)
    names = against("workloads", one, two, lambda session: session.workload.get("name"))
    return [
        *hook,
        *(names or _told_differently(one, two)),
        *(f"different {e}" for e in _flop(one, two)),
    ]


def by_design(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    """What was chosen to differ, with both values: the command and what follows from it, the
    variables of ``set=``, the interpreter of ``python=``."""
    command = both("command", one, two, _command)
    return [
        *command,
        *both("variables", one, two, _variables),
        *both("interpreter", one, two, lambda session: session.environment.get("python")),
        *([*_reported(one, two), *_flop(one, two)] if command else []),
    ]


def _hook(session: Summary) -> str | None:
    """Whether the hook measured the steps."""
    if session.hooked is None:
        return None
    return "by the hook" if session.hooked else "without the hook"


def told_by_one(
    one: Sequence[Summary], two: Sequence[Summary], labels: tuple[str, str]
) -> list[str]:
    """A clause per side on work that only the runs of that side report."""
    clauses = []
    for side, other, (label, silent) in ((one, two, labels), (two, one, labels[::-1])):
        only = [
            f"{what} ({listed(values)})"
            for what, value in _REPORTED
            if (values := known(side, value)) and not known(other, value)
        ]
        if only:
            clauses.append(f"known of {label} alone, not of {silent}: {', '.join(only)}")
    return clauses


def device_kind(session: Summary) -> str | None:
    """``GPU`` or ``CPU``; ``None`` if no used GPU is known and the run reports no device."""
    if used_gpus(session):
        return "GPU"
    device = session.run.get("device")
    if device is None:
        return None
    return "CPU" if str(device).startswith("cpu") else "GPU"


def samples_of_a_step(session: Summary) -> float | None:
    """Samples of a full step: from the step lines, else from ``count``."""
    told = session.steps.samples_per_step
    return number(session.count.get("samples")) if told is None else told


def _told_differently(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    command = both("command", one, two, _command)
    found = [
        *(f"{each} (--across-commands compares them)" for each in command),
        *_reported(one, two),
        *both("gpuwatch workloads (SHA-256)", one, two, _archive),
        *both("program (SHA-256)", one, two, _program),
    ]
    batches = any(each.startswith("batch size") for each in found)
    return [f"different {e}" for e in (found if batches else [*found, *_samples(one, two)])]


def _reported(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    """What differs in the settings, the model and the data that the runs were given or report."""
    keys = sorted({key for session in [*one, *two] for key in training(session)})
    given = {key for session in [*one, *two] for key in mapping(session.workload.get("parameters"))}
    settings = [(key.replace("_", " "), _setting(key, given=key in given)) for key in keys]
    of_run = (("data type", "dtype"), ("batch size", "batch_size"), ("model", "model"))
    told = [(what, _of_run(key)) for what, key in of_run if key not in keys]
    values: list[tuple[str, Value]] = [*settings, ("data", _data), *told]
    return [text for what, value in values for text in both(what, one, two, value)]


def _setting(key: str, *, given: bool) -> Value:
    """A setting as text.

    A finished run without reported settings has the default of a flag given to others; the setting
    of an unfinished one is unknown.
    """

    def value(session: Summary) -> str | None:
        settings = training(session)
        silent = key not in settings and not session.run.get("parameters")
        if silent and not (given and session.status.state is State.FINISHED):
            return None
        return parameter_text(settings.get(key))

    return value


def _command(session: Summary) -> str | None:
    arguments = session.workload.get("arguments")
    if session.workload.get("kind") != "command" or not isinstance(arguments, list):
        return None
    files = dict(_recorded(session))  # a checkout in another folder is the same program
    words = (PurePath(each).name if each in files else each for each in map(str, arguments))
    return " ".join(map(shell, words))


def _data(session: Summary) -> str | None:
    data = mapping(session.run.get("data"))
    kind, samples = data.get("kind"), data.get("samples")
    if kind is None:
        return None
    return f"{kind}" if samples is None else f"{kind}, {samples} samples"


def _of_run(key: str) -> Value:
    return lambda session: session.run.get(key)


def _archive(session: Summary) -> str | None:
    digest = mapping(session.facts.get("host")).get("gpuwatch.workloads.sha256")
    return None if digest is None else str(digest)[:12]


def _program(session: Summary) -> str | None:
    """The files of a command with their digests; ``None`` where it names none."""
    files = (f"{PurePath(path).name} {digest}" for path, digest in _recorded(session))
    return ", ".join(files) or None


def _changed(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    """The files that the commands of both sides name, and whose content differs."""
    sides = [[dict(_recorded(session)) for session in side] for side in (one, two)]
    clauses = []
    for name in dict.fromkeys(name for files in sides[0] for name in files):
        first, second = ({files[name] for files in side if name in files} for side in sides)
        if first and second and first != second:
            told = f"{listed(sorted(first))} against {listed(sorted(second))}"
            clauses.append(f"{clean(name, _LONGEST_NAME)} (SHA-256): {told}")
    return clauses


def _recorded(session: Summary) -> list[tuple[str, str]]:
    """The files of a command with their digests, from ``src/train.py 3fa1c0e2b7d4, a.yaml ...``."""
    files = mapping(session.facts.get("host")).get(PROGRAM)
    entries = (each.rpartition(" ") for each in str(files or "").split(", ") if each)
    return [(path, digest) for path, _, digest in entries]


def digests(session: Summary) -> list[str]:
    """Of the files of a command, in their order."""
    return [digest for _, digest in _recorded(session)]


def _variables(session: Summary) -> str | None:
    """The variables of ``set=``; ``none`` in an environment without."""
    variables = mapping(session.environment.get("variables"))
    return " ".join(f"{name}={value}" for name, value in variables.items()) or "none"


def _either(key: str) -> Value:
    """The value that the run reported, else its flag."""
    return lambda session: session.run.get(key) or training(session).get(key)


def _batch(session: Summary) -> str | None:
    size, samples = _either("batch_size")(session), samples_of_a_step(session)
    if size is not None:
        return str(size)
    return None if samples is None else _figures(samples)


def _figures(samples: float) -> str:
    """``samples`` rounded so that a partial batch makes no difference."""
    return f"{samples:.0f}" if samples >= 9999.5 else f"{samples:.4g}"


def gpu_models(session: Summary) -> str | None:
    """Names of the used GPUs, or ``none``; ``None``: not known which they are."""
    names = [gpu.name for gpu in used_gpus(session)]
    return " + ".join(sorted(names)) if names else None if unknown_gpus(session) else "none"


_REPORTED: tuple[tuple[str, Value], ...] = (
    ("data type", _either("dtype")),
    ("batch size", _batch),
    ("model", _of_run("model")),
    ("data", _data),
    ("device", device_kind),
    ("GPU", gpu_models),
)
"""What a comparison rests on, but a run need not report."""


def _samples(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    return _apart("samples per step", one, two, samples_of_a_step, _figures)


def _flop(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    """A clause on the FLOP of one step, if counted on both sides."""
    return _apart(
        "work per step",
        one,
        two,
        lambda session: number(session.count.get("flop_per_step")),
        lambda value: units.si(value, "FLOP"),
    )


def _apart(
    what: str,
    one: Sequence[Summary],
    two: Sequence[Summary],
    value: Callable[[Summary], float | None],
    text: Callable[[float], str],
) -> list[str]:
    """A clause with both amounts, if all of one side are above all of the other."""
    sides = [[found for each in side if (found := value(each))] for side in (one, two)]
    if not all(sides):
        return []
    low, high = ((min(of), max(of)) for of in sides)
    if low[1] * (1 + SAME_WORK) >= high[0] and high[1] * (1 + SAME_WORK) >= low[0]:
        return []
    return [f"{what}: {text(low[0])} against {text(high[0])}"]
