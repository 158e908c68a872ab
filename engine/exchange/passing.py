"""Waits of a thread that others are told of before: a task may wait for one that would begin behind it.

    with passing_on(begin_next): ... before_wait() ─► begin_next(), at most once a block

Held by: tests/taskexecutor/test_task_rows.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

_OWN = threading.local()


class _Passing:
    """A block before whose first wait a function is called."""

    __slots__ = ("_begin_next",)

    def __init__(self, begin_next: Callable[[], None] | None) -> None:
        self._begin_next = begin_next

    def __enter__(self) -> None:
        _OWN.begin_next = self._begin_next

    def __exit__(self, *_: object) -> None:
        _OWN.begin_next = None


def passing_on(begin_next: Callable[[], None] | None) -> AbstractContextManager[None]:
    """Call a function before the first wait of the block."""
    return _Passing(begin_next)


def before_wait() -> None:
    """Have others begin that this thread's task may wait for."""
    begin_next: Callable[[], None] | None = getattr(_OWN, "begin_next", None)
    if begin_next is not None:
        _OWN.begin_next = None
        begin_next()
