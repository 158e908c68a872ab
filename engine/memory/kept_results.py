"""KeptResults: results of questions that come again, by their keys, the latest of them; their bytes have a limit.

    kept.of(key, find)       the kept result, or what ``find`` returns; the least recently used ones go first

They are limited by bytes, not by number: questions about two data sets of 24 tables have 700 of some kinds, and where
each round asks for more than is kept, all of it is found anew. One of a file of a thousand columns is as large as a
thousand others.

Held by: tests/memory/test_kept_results.py
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Found = TypeVar("_Found")


class KeptResults(Generic[_Key, _Found]):
    """Results by key. Thread: any.

    Args:
        bytes_max: limit of the bytes of all of them.
        size_of: bytes of a key and its result.
    """

    def __init__(self, bytes_max: int, size_of: Callable[[_Key, _Found], int]) -> None:
        self._bytes_max = bytes_max
        self._size_of = size_of
        self._lock = threading.Lock()
        #: guarded by: self._lock
        self._found: OrderedDict[_Key, tuple[_Found, int]] = OrderedDict()
        self._bytes = 0  # guarded by: self._lock

    def of(self, key: _Key, find: Callable[[], _Found]) -> _Found:
        """Return the kept result of a key, or the result of a function. Raises what it does."""
        with self._lock:
            known = self._found.get(key)
            if known is not None:
                self._found.move_to_end(key)
                return known[0]
        found = find()
        size = self._size_of(key, found)
        with self._lock:
            if key not in self._found:
                self._found[key] = found, size
                self._bytes += size
            while self._bytes > self._bytes_max:
                self._bytes -= self._found.popitem(last=False)[1][1]
        return found
