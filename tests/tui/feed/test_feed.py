"""The feed's thread: delay of new records, and sessions that cannot be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import pytest

from gpuwatch.core.errors import NotASession
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.tui.feed.feed import Feed
from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable, View
from tests.waiting import until

from ..sessions import NS

Make = Callable[..., Path]
News = SimpleQueue[Snapshot | Unreadable]


@contextmanager
def feeding(path: Path, refresh: float) -> Iterator[tuple[Feed, News]]:
    news: News = SimpleQueue()
    feed = Feed(lambda: path, news.put, refresh=refresh)
    feed.start()
    try:
        yield feed, news
    finally:
        feed.close()


def ticks_on(path: Path, seconds: float) -> None:
    """Add one sample."""
    with sqlite3.connect(path) as file:
        last = file.execute("SELECT max(n) FROM tick").fetchone()[0]
        file.execute("INSERT INTO tick (n, t) VALUES (?, ?)", (last + 1, int(seconds * NS)))
    file.close()


def take(news: News) -> Snapshot:
    news_item = news.get(timeout=60)
    assert isinstance(news_item, Snapshot)
    return news_item


def test_what_is_asked_of_now_is_of_now_however_fast_keys_come(session: Make) -> None:
    path = session(seconds=10)
    with feeding(path, refresh=600) as (feed, news):
        assert take(news).t == 10 * NS
        feed.ask(View(at=5 * NS))
        assert take(news).replay is not None
        ticks_on(path, 30)
        feed.ask(View(columns=60))
        assert take(news).t == 30 * NS


def test_while_keys_look_back_faster_than_the_refresh_now_goes_on(session: Make) -> None:
    path = session(seconds=10)
    with feeding(path, refresh=0.2) as (feed, news):
        take(news)
        ticks_on(path, 30)
        moments = count(1)

        def goes_on() -> bool:
            feed.ask(View(at=next(moments)))
            replay = take(news).replay
            return replay is not None and replay.length_ns == 30 * NS

        until(goes_on)


def test_an_earlier_moment_that_cannot_be_read_at_once_is_tried_again(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [NotASession("damaged"), OSError("stale file handle")]
    whole = PastReader.advance

    def advance(self: PastReader, t_ns: int) -> None:
        if failures:
            raise failures.pop()
        whole(self, t_ns)

    monkeypatch.setattr(PastReader, "advance", advance)
    with feeding(session(seconds=10), refresh=600) as (feed, news):
        take(news)
        feed.ask(View(at=5 * NS))
        assert take(news).replay is not None


def test_what_can_never_be_read_is_said(session: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: PastReader, t_ns: int) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(PastReader, "advance", advance)
    with feeding(session(seconds=10), refresh=600) as (feed, news):
        take(news)
        feed.ask(View(at=5 * NS))
        news_item = news.get(timeout=60)
        assert isinstance(news_item, Unreadable)
        assert news_item.trouble.text == "the session cannot be read: Stale file handle"
