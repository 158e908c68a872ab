"""Waits of a thread that others are told of before: a task may wait for one that would begin behind it.

    with passing_on(begin_next): ... before_wait() ─► begin_next(), at most once a block

Held by: tests/taskexecutor/test_task_rows.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_OWN = threading.local()


@contextmanager
def passing_on(begin_next: Callable[[], None] | None) -> Iterator[None]:
    """Call a function before the first wait of the block."""
    _OWN.begin_next = begin_next
    try:
        yield
    finally:
        _OWN.begin_next = None


def before_wait() -> None:
    """Have others begin that this thread's task may wait for."""
    begin_next: Callable[[], None] | None = getattr(_OWN, "begin_next", None)
    if begin_next is not None:
        _OWN.begin_next = None
        begin_next()
