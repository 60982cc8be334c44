"""The first picture: true things, drawn before the screens' program is loaded.

Loading Textual takes most of the time to the first full screen. Until then this frame says what
the kernel and the folders tell at once. Standard library only, and little of that.
"""

from __future__ import annotations


def show(title: str) -> None:
    """Draw the frame on the terminal's alternate screen; ``title`` stands behind the name.

    Does nothing where standard output is no terminal that can place text, or a frame is up.
    """
    raise NotImplementedError


def is_up() -> bool:
    """Whether a frame stands on the alternate screen, which the app then takes over."""
    raise NotImplementedError


def take_over() -> bool:
    """Leave the alternate screen to the app from here on; returns whether a frame was up."""
    raise NotImplementedError


def withdraw() -> None:
    """Give the terminal back as it was: before an error is printed, or after one."""
    raise NotImplementedError
