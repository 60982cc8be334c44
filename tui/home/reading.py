"""Which sessions the home screen lists: read by the command, kept up to date, put in order."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.summary.listing import Listed, ListedSession, ListedStudy, values_of
from gpuwatch.tui import commands
from gpuwatch.tui.home import watch
from gpuwatch.tui.home.actions import HomeActs
from gpuwatch.tui.home.list import ListOptions, arranged
from gpuwatch.tui.home.rows import look

_REFRESH_SECONDS = 2.0
_DISK_SECONDS = 10.0
_READING = "list"
"""The group of workers that read the list."""


class SessionReading(HomeActs):
    """The list, and where it is empty what can run here."""

    def __init__(self) -> None:
        super().__init__()
        self._wanted: Path | None = None
        self._seen: watch.Signature | None = None
        self._looked = False
        self.little_room = ""
        """As :func:`watch.little_room` says it."""
        self._room_read = -math.inf

    def on_mount(self) -> None:
        self.set_interval(_REFRESH_SECONDS, self.look_for_news)

    def remember(self, current: Path, marked: Sequence[Path], message: str) -> None:
        """The session to stand on, marks and a word that another screen leaves for this one."""
        self._wanted = current
        self.state = replace(self.state, message=message)
        if marked:
            self._lent = tuple(marked)
            how = replace(self.state.how, query="")  # the other one may be any
            self.state = replace(self.state, marked=self._lent, how=how)

    def action_refresh(self) -> None:
        self.run_worker(self._read_list(), exclusive=True, group=_READING)

    def action_look_again(self) -> None:
        """The list, and where it is empty what can run here."""
        self._looked = False
        self.action_refresh()

    async def _read_list(self) -> None:
        before = await asyncio.to_thread(watch.signature, self._listed.sessions)
        listed, complaint = await _listed()
        if complaint is not None and self.state.entries:
            self.say(complaint)
            return
        after = await asyncio.to_thread(watch.signature, listed.sessions)
        # What changed while the list was read is new the next time.
        self._seen = {**after, **before}
        self._show(listed, complaint)
        self.look_around()

    async def _read_news(self) -> None:
        if time.monotonic() - self._room_read >= _DISK_SECONDS:
            self._room_read = time.monotonic()
            self.little_room = await asyncio.to_thread(watch.little_room)
        seen = await asyncio.to_thread(watch.signature, self._listed.sessions)
        if seen != self._seen:
            await self._read_list()
            return
        fresh = await asyncio.to_thread(watch.fresh, self._listed.sessions)
        if fresh:
            sessions = tuple(fresh.get(each.path, each) for each in self._listed.sessions)
            self._show(replace(self._listed, sessions=sessions), None)

    def look_for_news(self) -> None:
        """Read again what changed, in the background."""
        if self.on_top and all(each.group != _READING for each in self.workers):
            self.run_worker(self._read_news(), group=_READING)

    def _show(self, listed: Listed, complaint: str | None) -> None:
        self._listed = listed
        paths = {entry.path for entry in listed.sessions}
        paths |= {study.path for study in listed.studies}
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted not in paths:
            wanted = wanted.resolve()
        how = self.state.how
        if wanted is not None and wanted.parent in {study.path for study in listed.studies}:
            how = replace(how, opened=how.opened | {wanted.parent})
        # A session from another folder is in no list and can be compared all the same.
        marked = [path if path in paths else path.resolve() for path in self.state.marked]
        self._lent = tuple(path if path in paths else path.resolve() for path in self._lent)
        self.state = replace(
            self.state,
            entries=listed.sessions,
            complaint=complaint,
            marked=tuple(path for path in marked if path in paths or path.exists()),
        )
        self.put_in_order(how, wanted)

    def put_in_order(self, how: ListOptions, wanted: Path | None = None) -> None:
        """Put the rows in order; the cursor stays on its row, or goes to ``wanted``, of what is
        sought to the first one."""
        current = self.state.current
        stand = wanted or (current.path if current is not None else None)
        items = arranged(self._listed, how)
        paths = [item.path for item in items]
        if how.query and how.query != self.state.how.query:
            cursor = 0
        elif stand in paths:
            cursor = paths.index(stand)
        elif stand is not None and stand.parent in paths:
            cursor = paths.index(stand.parent)
        else:
            cursor = min(self.state.cursor, max(0, len(items) - 1)) if wanted is None else 0
        self.state = replace(self.state, how=how, items=items, cursor=cursor)
        self.paint()

    def look_around(self) -> None:
        """Once, where nothing was recorded yet and the devices are there: what can run here."""
        known = self.state.devices is not None or self.state.devices_trouble is not None
        if known and self.state.entries == () and not self._looked and not self.state.complaint:
            self._looked = True
            self.run_worker(self._look(), group="look")

    async def _look(self) -> None:
        found = await look()
        self.state = replace(self.state, found=found)  # as it is now, not as it was on asking
        self.paint()


async def _listed() -> tuple[Listed, str | None]:
    """The saved and running sessions as the command lists them, and a complaint if it failed."""
    outcome = await commands.run("sessions", "--format", "json")
    if not outcome.good:
        return Listed(), outcome.complaint
    return await asyncio.to_thread(_read, outcome.out)


def _read(text: str) -> tuple[Listed, str | None]:
    try:
        found = json.loads(text)
        sessions = [watch.drawable(ListedSession(**values_of(each))) for each in found["sessions"]]
        studies = [watch.drawable(ListedStudy(**values_of(each))) for each in found["studies"]]
    except (ValueError, KeyError, TypeError):  # another version wrote it
        return Listed(), "the list of sessions could not be read"
    return Listed(tuple(sessions), tuple(studies)), None
