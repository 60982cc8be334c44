"""What goes on without a thread that the system refuses, and with it once there is one."""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpuwatch.core.errors import NO_THREAD
from gpuwatch.core.users import Users
from tests.waiting import until

_MORE_THAN_THERE_IS = 1 << 46


@contextmanager
def refused() -> Iterator[None]:
    """No thread can be started meanwhile: none has room for its stack."""
    before = threading.stack_size(_MORE_THAN_THERE_IS)
    try:
        yield
    finally:
        threading.stack_size(before)


def test_python_says_what_is_looked_for() -> None:
    with refused(), pytest.raises(RuntimeError) as said:
        threading.Thread(target=int).start()
    assert str(said.value) == NO_THREAD


def test_a_user_s_name_is_asked_for_again() -> None:
    users = Users()
    with refused():
        assert users.name(os.getuid()) == f"uid {os.getuid()}"
    until(lambda: users.name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name)
