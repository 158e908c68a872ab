"""KnownObjects: statuses of objects, kept while a plan is made, so that a store is asked once for each.

    with known_statuses(statuses): ...      of this thread; what a data set says of its objects is known at once
    known = current_known()                 None: nothing is kept
    known.statuses[path]                    None: there is no such object
    known.tails.pop(path, b"")              the end of an object that was read with its status

    work = shared(work)                     a function that other threads call on behalf of this one: what it asks is
                                            counted here (``store_counters``), what is known here is known there, and
                                            the settings of this thread are used (``store_client``)
    in_parallel(work, items, at_once)       the results, in order

Held by: tests/storage/test_store_counters.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeVar

from engine.storage.file_system import FileStatus
from engine.storage.store_client import current_settings, using_settings
from engine.storage.store_counters import counted, current_traffic
from engine.storage.store_folder import FolderState

T = TypeVar("T")
R = TypeVar("R")

_known = threading.local()
#: results that wait for those before them, beside those that are made
_WAITING: Final = 64


class KnownObjects:
    """Statuses and ends of objects, and states of prefixes. Thread: any."""

    def __init__(self, statuses: Mapping[str, FileStatus], *, reads_tails: bool) -> None:
        #: True: the end of an object is read in place of its status alone
        self.reads_tails = reads_tails
        self.statuses: dict[str, FileStatus | None] = dict(statuses)
        self.tails: dict[str, bytes] = {}
        self.states: dict[str, FolderState] = {}


def current_known() -> KnownObjects | None:
    """Return the objects that this thread knows; None: nothing is kept."""
    found: KnownObjects | None = getattr(_known, "objects", None)
    return found


@contextmanager
def _knowing(objects: KnownObjects | None) -> Iterator[None]:
    before, _known.objects = current_known(), objects
    try:
        yield
    finally:
        _known.objects = before


@contextmanager
def known_statuses(
    statuses: Mapping[str, FileStatus] = MappingProxyType({}), *, reads_tails: bool = False
) -> Iterator[None]:
    """Ask a store once for the status of a path, for this thread and until the end of the block."""
    known = current_known()
    if known is not None:
        known.statuses.update(statuses)
        yield
        return
    with _knowing(KnownObjects(statuses, reads_tails=reads_tails)):
        yield


def shared(work: Callable[[T], R]) -> Callable[[T], R]:
    """Return a function that does on another thread what it would do on this one."""
    settings, traffic, known = current_settings(), current_traffic(), current_known()

    def run(item: T) -> R:
        with using_settings(settings), counted(traffic), _knowing(known):
            return work(item)

    return run


def in_parallel(work: Callable[[T], R], items: Iterable[T], at_once: int) -> Iterator[R]:
    """Yield the results of a function for items, in their order, from so many threads. Raises its errors."""
    listed: Sequence[T] = list(items)
    if len(listed) < 2:
        yield from map(work, listed)
        return
    with ThreadPoolExecutor(min(at_once, len(listed)), "drey-store") as threads:
        remaining, run = iter(listed), shared(work)
        futures = [threads.submit(run, item) for item in islice(remaining, at_once + _WAITING)]
        try:
            while futures:
                yield futures.pop(0).result()
                futures += [threads.submit(run, item) for item in islice(remaining, 1)]
        finally:
            for future in futures:
                future.cancel()
