"""What ran and why it failed, in few words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from gpuwatch.core.models import JSON, mapping, sequence
from gpuwatch.core.text import clean, cut, shell
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import FAILED, State, Status, signal_name

_LONGEST = 300
"""Characters of a command in a list."""
_MOST_WORDS = 100


def command_of(workload: Mapping[str, JSON]) -> str:
    """``train.py --bs 64`` of ``python3 src/train.py --bs 64``, ``mnist-cnn --steps 100``,
    ``A=1 train.py`` of ``env A=1 python3 train.py``.

    Quoted for a shell, and cut if it is very long.
    """
    name = clean(workload.get("name") or "")
    words = [str(word) for word in sequence(workload.get("arguments"))[:_MOST_WORDS]]
    front, behind = list[str](), list(map(shell, words))
    if workload.get("kind") == "command":
        front, behind = _around(name, words)
    variables = [shell(word) for word in front if re.match(r"[A-Za-z_]\w*=", word)]
    return cut(clean(" ".join([*variables, name, *behind]), 2 * _LONGEST), _LONGEST)


def _around(name: str, command: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and behind the program or script that ``name`` is short for, also in the
    one word of ``sh -c``."""
    for at, word in enumerate(command):
        if name in (word, PurePath(word).name) and "=" not in word:
            return command[:at], [shell(each) for each in command[at + 1 :]]
        of_shell = rf"(?:^|[\s/'\"]){re.escape(name)}['\"]?(?=[\s;&|]|$)(.*)"
        if at and command[at - 1] == "-c" and (found := re.search(of_shell, word, re.DOTALL)):
            return word[: found.start()].split(), found[1].split()
    return [], [shell(each) for each in command[1:]]


_OUT_OF_MEMORY = re.compile(
    r"(\b\w{2,5} out of memory)\. Tried to allocate ([\d.]{1,12} ?[KMGTP]?i?B)\b", re.IGNORECASE
)
"""As torch says it, for CUDA, HIP and XPU. Digits are few here and below: others may print them."""
_CLASS_PATH = re.compile(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*:)")
_CLASS = re.compile(r"^[A-Z]\w*: ")
_NEXT_SENTENCE = re.compile(r"\.\s+(?=[A-Z])")
_OF_RANK = re.compile(r"((?:\[\w+\]: ?)*)(.*)")
_BY_TORCHRUN = re.compile(r"\[?[EW]?\d[\d-]* .*\btorch[./]distributed[./]")
"""Begin of what torchrun logs itself, with the date or a letter and the day."""
_TRY_FAILED = re.compile(r"(?:E\d{4} \S+ (\d+) )?.*\bfailed \(exitcode: -?\d+\) local_rank: ")
"""What torchrun, whose process this is, logs of processes that failed, also if it starts others."""
_RANK = re.compile(r"(?:rank \d{1,6}: )?")
_LOST_A_RANK = re.compile(
    r"gloo/transport|by peer|Broken pipe|remote process|ncclRemoteError|DistNetworkError"
)
"""What an error says where the process at the other end died."""
_ENDED = re.compile(r"\brank +: (\d{1,6})\b.*\n.*\bexitcode +: (?!-15)(-?\d{1,6})\b")
"""In torchrun's summary a rank that torchrun did not end itself; the first that failed is last."""
_TRACEBACK, _OF_TORCHRUN = "Traceback (most recent call last):", "ChildFailedError"
_OF_A_WRAPPER = re.compile(r"subprocess\.CalledProcessError: Command '\['[^']*python")
"""What ``accelerate launch`` raises where the program that it runs failed."""
_RULES = 2
"""Rules of torchrun's summary: below the exception, and at its end."""
_IGNORED = "Exception ignored"
_RAISED = re.compile(
    r"(?:[A-Za-z_][\w.]*\.\w+|\w*(?:Error|Exception|Interrupt|Exit|Warning)|[A-Z]+[a-z]\w*[A-Z]\w*)"
    r"(?:: .*|:?$)"
)
_CLASS_ALONE = re.compile(r"[A-Z]\w{,60}(?:Error|Exception|Interrupt|Exit|Warning)(?=:|$)")
_OF_AN_END = re.compile(
    r"CUDA kernel errors|For debugging consider|Compile with|Device-side assertions"
    r"|\[?[EFIW]\d{4} |wandb: |srun: |slurmstepd: |make\b.*: |.*Warning: "
    r"|terminate called|.*\d%\|"
)
"""Hints of CUDA, and what libraries, launchers and progress bars add after the last exception."""
_MESSAGE_LINES, _AT_ONCE_NS = 4, 100_000_000
"""Unindented lines that a message has at most after its first, and the time to print it."""
_LAST_LINES, _LAST_LOOKED_AT = 300, 1000
"""Lines of standard error searched for a reason, and log lines among which they are sought."""
_SIGNALS = {
    "SIGABRT": "aborted",
    "SIGBUS": "bus error",
    "SIGFPE": "arithmetic error",
    "SIGHUP": "hung up",
    "SIGILL": "illegal instruction",
    "SIGINT": "interrupted",
    "SIGKILL": "killed",
    "SIGSEGV": "segmentation fault",
    "SIGTERM": "terminated",
}


def reason_of(reader: SessionReader, meta: Mapping[str, JSON], status: Status) -> str:
    """Why a run failed: the error it reported, else :func:`cause_in` its standard error."""
    if status.state not in FAILED:
        return ""
    if reported := mapping(meta.get("error")).get("message"):
        return clean(reported)
    last = reader.last_log()
    lines = reader.log_lines(
        last + 1, _LAST_LINES, stream="stderr", upto=last, back=True, least=last - _LAST_LOOKED_AT
    )
    return cause_in([clean(line.text).rstrip() for line in lines], [line.t for line in lines])


def cause_in(lines: Sequence[str], times: Sequence[int] = ()) -> str:
    """The line that begins the last exception, of torchrun's the one of the first rank that failed;
    the last line that is no mere rule without one, or if the program went on after it.

    ``times``: those of the lines in nanoseconds, if they are known.
    """
    unfinished = dict[str, bool]()  # ranks within a traceback, and whether Python ignored it
    raised, after, last, began, rules = list[tuple[str, str]](), list[str](), "", 0, 0
    tried: str | None = ""  # the torchrun whose processes failed last
    before = 0  # exceptions raised until then
    late = False  # a message of several lines cannot be told from a few others printed at once
    for line, time in zip(lines, times or [0] * len(lines), strict=True):
        rank, text = _OF_RANK.findall(line)[0]
        indented = text.startswith(" ")
        if text.startswith(_IGNORED):
            unfinished[rank] = True
        elif text.endswith(_TRACEBACK):
            unfinished.setdefault(rank, False)
        elif rank in unfinished and _RAISED.match(text):
            wraps = _OF_A_WRAPPER.match(text) and raised and not late
            if not unfinished.pop(rank) and not wraps:
                raised.append((rank, text.rstrip(":")))
                after, late, began, rules = [], False, time, 0
        elif _BY_TORCHRUN.match(text):
            if failed := _TRY_FAILED.match(text):
                raised = raised[before:] if failed[1] == tried else raised
                tried, before = failed[1], len(raised)
        elif indented and rank in unfinished:
            continue
        elif raised and _OF_TORCHRUN in raised[-1][1] and rules < _RULES:
            rules += text.startswith("====")  # its summary
        elif re.search(r"\w", text) and not (raised and _OF_AN_END.match(text)):
            last = line.strip()
            if not raised or rank != raised[-1][0]:
                continue
            if not indented:
                after.append(last)
                late = late or rules == _RULES or time - began > _AT_ONCE_NS
            elif not late:  # ordinary lines seldom are
                after.clear()
    if not raised or unfinished.get(raised[-1][0]) is False:
        return last
    if late or len(after) > _MESSAGE_LINES:
        return after[-1]
    own = [each for each in raised if _OF_TORCHRUN not in each[1]]
    rank, cause = raised[-1]
    of_ranks = _OF_TORCHRUN in cause or (rank and own != raised)
    return _of_ranks(own, lines, last) if of_ranks else cause


def _of_ranks(raised: Sequence[tuple[str, str]], lines: Sequence[str], last: str) -> str:
    """Of a run of torchrun, whose summary is in ``lines``, the exception of the first rank that
    ``raised`` one, else the ``last`` line. Where all only lost another: how that one died."""
    own = [each for each in raised if not _LOST_A_RANK.search(each[1])]
    if not own and all("[rank" in rank for rank, _ in raised):  # else the dead one may be of them
        losers = "".join(rank for rank, _ in raised)
        ended = _ENDED.findall("\n".join(lines))
        died = [(rank, int(code)) for rank, code in ended if f"[rank{rank}]" not in losers]
        if died and (raised or died[-1][1] < 0 or not last):
            rank, code = died[-1]
            how = f"exit code {code}" if code >= 0 else f"killed by {signal_name(-code)}"
            return f"rank {rank} died first: {how}"
    own = own or [*raised]
    if not own:
        return last
    number = re.search(r"\[rank(\d+)\]", own[0][0])
    cause = [text for rank, text in own if rank == own[0][0]][-1]
    return f"rank {number[1]}: {cause}" if number else cause


def failure_of(
    meta: Mapping[str, JSON], status: Status, reason: str, *, printed: bool = True
) -> str:
    """:func:`in_few_words` of the run that ``meta`` is of, for its :func:`reason_of`."""
    out_of_memory = mapping(meta.get("result")).get("out_of_memory") is True
    return in_few_words(status, reason, out_of_memory=out_of_memory, printed=printed)


def in_few_words(
    status: Status, reason: str, *, out_of_memory: bool = False, printed: bool = True
) -> str:
    """Of a run that failed or was killed: ``CUDA out of memory (tried 20.00 GiB)``, ``exit code 1:
    ModuleNotFoundError: No module named 'x'``, ``segmentation fault (SIGSEGV)``; else empty.

    ``reason`` is that of :func:`reason_of`; ``out_of_memory``: the kernel ended it for want of
    memory. Not ``printed``: without what the program printed, but for the class of an exception or
    that memory was short, as nobody knows what else stands there.
    """
    if status.state not in FAILED:
        return ""
    rank = _RANK.findall(reason)[0]
    if found := _OUT_OF_MEMORY.search(reason):
        return f"{rank}{found[1]} (tried {found[2]})"
    if status.state is State.KILLED and status.exit_code is not None:
        name = signal_name(status.exit_code - 128)
        words = _SIGNALS.get(name, "ended")
        return f"{'out of memory, ' if out_of_memory else ''}{words} ({name})"
    if status.exit_code is None:
        return first_sentence(status.text if printed else status.text.partition(": ")[0])
    cause = first_sentence(_CLASS_PATH.sub("", reason.removeprefix(rank).strip()))
    if "out of memory" in cause.lower():
        return _CLASS.sub("", cause) if printed else "out of memory"
    if not printed:
        cause = found[0] if (found := _CLASS_ALONE.match(cause)) else ""
    ended = f"exit code {status.exit_code}{', out of memory' if out_of_memory else ''}"
    return f"{ended}: {rank}{cause}" if cause else ended


def first_sentence(text: str) -> str:
    """``text`` up to its first full stop, without that."""
    return _NEXT_SENTENCE.split(text, maxsplit=1)[0].rstrip(".")
