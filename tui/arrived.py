"""What a feed has for its screen."""

from __future__ import annotations

from textual.message import Message

from gpuwatch.tui.snapshot import Snapshot, Unreadable


class Arrived(Message):
    """The feed has something new."""

    def __init__(self, news: Snapshot | Unreadable) -> None:
        super().__init__()
        self.news = news

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Arrived)
