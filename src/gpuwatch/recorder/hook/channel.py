"""Reads the folder in which hooked processes report, a file for each.

The workload can write anything there. So only regular files are opened, never through a link, and
files, lines and bytes have limits; what is beyond them is told once and left out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from itertools import islice
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.recorder.output.step_lines import Malformed, Report, Step, parse_json

MOST_FILES = 1024
"""Most files that are read."""
LONGEST_LINE = 64 << 10
"""Bytes of the longest line."""
MOST_STEPS = 10_000
"""Most steps of a line; each is looked at."""
MOST_BYTES = 256 << 20
"""Most bytes that are read of a run."""
_AT_ONCE = 1 << 20
_MOST_COMPLAINTS = 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Reported:
    """A line, and the file of the process that wrote it."""

    process: str
    line: Step | Report


class Channel:
    """The folder of one run, open until :meth:`close`.

    Raises:
        OSError: there is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._read: dict[str, int] = {}
        """By file: bytes read, up to the end of a line."""
        self._refused: set[str] = set()
        self._full = False
        """Whether there are more files than are read."""
        self._cutting: set[str] = set()
        """Files in the middle of a line that is too long."""
        self._bytes = self._complaints = 0
        self.problems: list[str] = []
        """What is wrong with the files, not taken yet."""

    def close(self) -> None:
        os.close(self._folder)

    def read(self) -> list[Reported]:
        """The whole lines that are new, at most about a MiB of each file; never blocks."""
        return [line for name in self._grown() for line in self._lines(name)]

    def _grown(self) -> list[str]:
        """The files with something new, in the order of their names."""
        grown: list[str] = []
        for name in sorted(self._names()):
            with contextlib.suppress(OSError):  # it was removed
                size = os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_size
                if size > self._read.get(name, -1):
                    grown.append(name)
        return grown

    def _names(self) -> set[str]:
        """The files, those that are refused left out; no new ones after the limit."""
        if not self._full:
            with os.scandir(self._folder) as entries:
                names = [entry.name for entry in islice(entries, MOST_FILES + 1)]
            known = set(names) | set(self._read) | self._refused
            self._full = len(known) > MOST_FILES
            if not self._full:
                return known - self._refused
            self.problems.append(f"only {MOST_FILES:,} files of the hook are read")
            for name in sorted(known - self._refused)[: MOST_FILES - len(self._read)]:
                self._read.setdefault(name, 0)
        return set(self._read) - self._refused

    def _lines(self, name: str) -> list[Reported]:
        try:
            file = os.open(name, _FLAGS, dir_fd=self._folder)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._refuse(name, error.strerror or str(error))
            return []
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                self._refuse(name, "not a regular file")
                return []
            start = self._read.setdefault(name, 0)
            if self._bytes >= MOST_BYTES:
                return []
            data = os.pread(file, _AT_ONCE, start)
        except OSError as error:
            self._refuse(name, error.strerror or str(error))
            return []
        finally:
            os.close(file)
        return self._whole(name, data)

    def _whole(self, name: str, data: bytes) -> list[Reported]:
        """The lines that end in ``data``; the rest is read again when it has grown."""
        *lines, rest = data.split(b"\n")
        taken = len(data) - len(rest)
        if lines and name in self._cutting:
            self._cutting.discard(name)
            del lines[0]
        if len(rest) > LONGEST_LINE:
            self._cutting.add(name)
            taken = len(data)
            self._complain(f"a line of more than {LONGEST_LINE >> 10} KiB")
        elif name in self._cutting:
            taken = len(data)
        self._read[name] += taken
        if self._bytes < MOST_BYTES <= self._bytes + taken:
            self.problems.append(f"only {MOST_BYTES >> 20} MiB of the hook's reports are read")
        self._bytes += taken
        parsed = (self._parsed(line) for line in lines if line)
        return [Reported(name, line) for line in parsed if line is not None]

    def _parsed(self, line: bytes) -> Step | Report | None:
        if len(line) > LONGEST_LINE:
            self._complain(f"a line of more than {LONGEST_LINE >> 10} KiB")
            return None
        try:
            parsed = parse_json(line.decode("utf-8", "replace"))
            if isinstance(parsed, Step) and parsed.count > MOST_STEPS:
                raise Malformed(f'"count" must be at most {MOST_STEPS}')
            return parsed
        except Malformed as error:
            self._complain(f"malformed line: {error}")
            return None

    def _refuse(self, name: str, why: str) -> None:
        self._refused.add(name)
        self._complain(f"a file cannot be read: {why}")

    def _complain(self, text: str) -> None:
        self._complaints += 1
        if self._complaints <= _MOST_COMPLAINTS:
            more = " (further ones are not told)" if self._complaints == _MOST_COMPLAINTS else ""
            self.problems.append(text + more)
