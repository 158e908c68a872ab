"""Objects of a store, open for ranges or as a stream.

    StoreRangeFile      any range, several at once; the end of the object is read once, where footers are
    StoreStream         from any position; read ahead in growing parts as long as it is read in order

Every request says which version it means: an object that is replaced meanwhile is an error, and no mixture.

Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Self, TypeAlias, cast

from engine.storage.file_system import NO_DESCRIPTOR, Buffer, ByteRanges
from engine.storage.known_objects import in_parallel
from engine.storage.store_client import asked, client_library, client_of, place_of
from engine.storage.store_counters import note

#: bytes that are read with the end of an object; where its size is known, a part of it
_TAIL_BYTES: Final = 64 << 10
_TAIL_BYTES_MIN: Final = 16 << 10
_TAIL_BYTES_MAX: Final = 512 << 10
_TAIL_SHARE: Final = 2048
#: bytes between ranges that are read with them in fewer requests: a part of what is wanted, or so many
_BETWEEN_SHARE: Final = 20
_BETWEEN_BYTES: Final = 16 << 10
#: requests of one file at the same time
_AT_ONCE: Final = 8
#: bytes of one request: a larger range is several
_REQUEST_BYTES: Final = 8 << 20
#: bytes that a stream reads first, and at most, at a time
_FIRST_BYTES: Final = 256 << 10
_WINDOW_BYTES: Final = 4 << 20


#: tag, bytes, time of change
Version: TypeAlias = tuple[str | None, int, int]


def version_of(meta: Mapping[str, Any]) -> Version:
    """Return the version of an object by what the client says of it."""
    # Listings tell the time with more digits than answers about one object do, and some the tag without its quotes.
    tag = meta["e_tag"]
    quoted = tag if tag is None or tag.endswith('"') else f'"{tag}"'
    return quoted, meta["size"], int(meta["last_modified"].timestamp()) * 10**9


class StoreRangeFile:
    """An object that is open for ranges. Thread: any."""

    descriptor = NO_DESCRIPTOR

    def __init__(self, path: str, size_bytes: int, version: Version, tail: bytes | None = None) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self.version = version
        self._tag = version[0]
        self._tail = tail

    @property
    def tail(self) -> bytes:
        """The end of the object, as far as it was read."""
        return self._tail or b""

    @classmethod
    def of_tail(cls, path: str) -> Self:
        """Open an object by the request for its end. Raises OSError where there is none."""
        place, obstore = place_of(path), client_library(path)

        def get() -> tuple[Any, bytes]:
            found = obstore.get(client_of(place), place.key, options={"range": {"suffix": _TAIL_BYTES}})
            return found.meta, bytes(found.bytes())

        meta, tail = asked(path, get)
        note(place.root, read_bytes=len(tail))
        return cls(path, meta["size"], version_of(meta), tail)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range; fewer of them at the end of the object."""
        end = min(self.size_bytes, offset + size)
        if offset >= end:
            return b""
        tail = self._tail
        if tail is None:
            if end < self.size_bytes:
                return self._get(offset, end)
            size = min(_TAIL_BYTES_MAX, max(_TAIL_BYTES_MIN, self.size_bytes // _TAIL_SHARE))
            tail = self._tail = self._get(max(0, min(offset, self.size_bytes - size)), self.size_bytes)
        begin = self.size_bytes - len(tail)
        if end <= begin:
            return self._get(offset, end)
        if offset < begin:  # a footer that is longer than what was guessed
            tail = self._tail = self._get(offset, begin) + tail
            begin = offset
        return tail[offset - begin : end - begin]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Buffer]]:
        """Yield the bytes between pairs of positions, as parts (position, bytes)."""
        wanted = [part for begin, end in joined_ranges(ranges) for part in _parts(begin, min(end, self.size_bytes))]
        if self._tail is not None:
            at_end = [part for part in wanted if part[0] >= self.size_bytes - len(self._tail)]
            yield from ((begin, self.read_at(begin, end - begin)) for begin, end in at_end)
            wanted = [part for part in wanted if part not in at_end]
        contents = in_parallel(lambda part: self._buffer(*part), wanted, _AT_ONCE)
        yield from ((begin, content) for (begin, _), content in zip(wanted, contents, strict=True))

    def _get(self, begin: int, end: int) -> bytes:
        return bytes(self._buffer(begin, end))

    def _buffer(self, begin: int, end: int) -> Buffer:
        """Return bytes of a range as the client has them."""
        place, obstore = place_of(self.path), client_library(self.path)
        options: dict[str, Any] = {"range": (begin, end)}
        if self._tag is not None and not self._tag.startswith("W/"):
            options["if_match"] = self._tag

        def get() -> tuple[Any, Buffer]:
            found = obstore.get(client_of(place), place.key, options=options)
            return found.meta, found.bytes()

        meta, content = asked(self.path, get)
        if self._tag is not None and version_of(meta)[0] != self._tag:  # some stores ignore the condition
            raise OSError(errno.ESTALE, "it was replaced meanwhile; run the job again", self.path)
        note(place.root, read_bytes=len(content))
        return cast(Buffer, content)

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""

    def close(self) -> None:
        """Close the file, of which nothing is open between requests."""


def joined_ranges(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order, neighbours as one: the nearest ones first, as long as little is read between them."""
    apart: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if apart and begin <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], end)
        elif begin < end:
            apart.append((begin, end))
    left = max(sum(end - begin for begin, end in apart) // _BETWEEN_SHARE, _BETWEEN_BYTES)
    joined: set[int] = set()
    for size, place in sorted((other[0] - one[1], place) for place, (one, other) in enumerate(pairwise(apart), 1)):
        left -= size
        if left < 0:
            break
        joined.add(place)
    found: list[tuple[int, int]] = []
    for place, (begin, end) in enumerate(apart):
        if place in joined:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def _parts(begin: int, end: int) -> list[tuple[int, int]]:
    return [(each, min(end, each + _REQUEST_BYTES)) for each in range(begin, end, _REQUEST_BYTES)]


class StoreStream(io.RawIOBase):
    """An object that is read from any position."""

    def __init__(self, file: ByteRanges) -> None:
        super().__init__()
        self.name = file.path
        self._file = file
        self._at = self._begin = 0
        self._window = b""
        self._next_bytes = _FIRST_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size_bytes}[whence]
        if start + offset < 0:
            raise ValueError(f"{self.name}: a position before its beginning")
        self._at = start + offset
        return self._at

    def readinto(self, target: Any) -> int:
        """Fill a buffer, as far as what was read ahead goes; return the number of bytes."""
        view = memoryview(target).cast("B")
        end = self._begin + len(self._window)
        if not self._begin <= self._at < end:
            self._next_bytes = min(_WINDOW_BYTES, 2 * self._next_bytes) if self._at == end else _FIRST_BYTES
            self._begin = self._at
            self._window = self._file.read_at(self._at, max(self._next_bytes, min(len(view), _REQUEST_BYTES)))
        start = self._at - self._begin
        part = self._window[start : start + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)
