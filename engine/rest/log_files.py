"""Log files as answers: a list, and a file that is sent part by part, so that no process holds a large one whole.

A slow reader keeps one part here and one or two in its connection. Parts are small, since many readers may wait.

``?offset=&limit=`` cut a part out of it; a negative offset counts from the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from engine.gateways.insight import LogFile, LogPart
from engine.rpc.http_messages import HttpError, HttpRequest, HttpResponse

_PART_BYTES = 64 << 10
_NOTHING = LogPart(b"", 0, 0)
_TEXT = "text/plain; charset=utf-8"

#: function that returns a part of one file: offset, limit
ReadPart = Callable[[int, int], Awaitable[LogPart]]


def log_list(files: Iterable[LogFile]) -> dict[str, object]:
    """Return files under Flink's names."""
    return {"logs": [{"name": file.name, "size": file.size_bytes, "mtime": file.modified_ms} for file in files]}


async def log_answer(request: HttpRequest, read: ReadPart) -> HttpResponse:
    """Return a file, or the part of it that the query names; raises what ``read`` raises before anything is sent."""
    offset, limit = _whole_number(request, "offset", 0), _whole_number(request, "limit", None)
    if limit is not None and limit < 0:
        raise HttpError(400, "limit must not be negative")
    first = await read(offset or 0, _PART_BYTES if limit is None else min(limit, _PART_BYTES))
    wanted = first.size_bytes - first.offset
    return HttpResponse(
        content_type=_TEXT,
        headers={"X-Log-Size": str(first.size_bytes), "X-Log-Offset": str(first.offset)},
        parts=_Parts(first, read, wanted if limit is None else min(limit, wanted)),
    )


def _whole_number(request: HttpRequest, name: str, default: int | None) -> int | None:
    text = request.query.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 15):
        raise HttpError(400, f"{name} is not a whole number")
    return int(text)


class _Parts:
    """The bytes that a file had when it was asked for."""

    def __init__(self, first: LogPart, read: ReadPart, wanted: int) -> None:
        self._first = first
        self._read = read
        self._wanted = wanted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        part, left = self._first, self._wanted
        self._first = _NOTHING  # sent, it is not kept
        while left > 0 and part.content:
            yield part.content[:left]
            left -= len(part.content)
            if left > 0:
                part = await self._read(part.offset + len(part.content), min(left, _PART_BYTES))

    async def aclose(self) -> None:
        """Hold nothing."""
