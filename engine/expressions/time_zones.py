"""Time zones of the current tz database, for all years: offsets of a zone by its name.

    zone_offsets("Europe/Berlin") -> ZoneOffsets        also "+02:00" and "UTC"
    zone_names("Europe/Berlin") -> "LMT", "CET", ...    what each of its offsets is called

    TZif file of zoneinfo (the system's, else the package tzdata's) ──► changes of clocks up to a year
    zoneinfo.ZoneInfo (which follows the file's rule)  ──► those of the 400 years behind it, which repeat

Arrow's own functions stop at the file's last change, 2037 or long before, and stay at the offset of then.

Source: RFC 9636 (TZif), zoneinfo in Python's library, by whose offsets these are.
"""

from __future__ import annotations

import re
import struct
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from engine.expressions.zone_offsets import CYCLE_SECONDS, ZoneOffsets

_FIXED = re.compile(r"([+-])(\d\d):?(\d\d)$")
_HEADER_BYTES = 44
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: parts of a year in which changes after the end of the file are looked for
_PARTS_OF_YEAR = 12
_YEAR_SECONDS = 31_556_952


class UnknownZoneError(Exception):
    """The tz database has no such zone; the text says so."""


@lru_cache(maxsize=64)
def zone_offsets(name: str) -> ZoneOffsets:
    """Return the offsets of a zone, or raise UnknownZoneError."""
    starts, offsets, cycle_from, _ = _table_of(name)
    return ZoneOffsets(starts, offsets, cycle_from)


@lru_cache(maxsize=64)
def zone_names(name: str) -> pa.Array:
    """Return the name of each offset of a zone, in the order of the table: CET, CEST; UTC+02:00 where there is none.

    Raises UnknownZoneError.
    """
    starts, offsets, _, zone = _table_of(name)
    if zone is None:
        return pa.array([datetime.fromtimestamp(0, timezone(timedelta(seconds=offsets[0]))).tzname()], pa.string())
    moments = [starts[1] - 1 if len(starts) > 1 else 0, *starts[1:]]
    return pa.array([_local(zone, moment).tzname() for moment in moments], pa.string())


@lru_cache(maxsize=64)
def _table_of(name: str) -> tuple[list[int], list[int], int | None, zoneinfo.ZoneInfo | None]:
    """Return the times at which offsets begin, the offsets, the time from which they repeat, and the zone (or None)."""
    fixed = _FIXED.match(name)
    if fixed:
        sign, hours, minutes = fixed.groups()
        seconds = int(hours) * 3600 + int(minutes) * 60
        return [0], [-seconds if sign == "-" else seconds], None, None
    try:
        zone = zoneinfo.ZoneInfo(name)
        data = _file_of(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZoneError(
            f"there is no time zone {name!r} in the tz database: a zone is a name such as 'Europe/Berlin' or an offset"
            " such as '+02:00'"
        ) from None
    starts, offsets, has_rule = _changes(data)
    if not has_rule:
        return starts, offsets, None, zone
    cycle_from = starts[-1] if len(starts) > 1 else 0
    later = _ruled_changes(zone, cycle_from, cycle_from + CYCLE_SECONDS + 2 * _YEAR_SECONDS)
    return starts + [start for start, _ in later], offsets + [offset for _, offset in later], cycle_from, zone


def _file_of(name: str) -> bytes:
    """Return the TZif file that zoneinfo reads."""
    for folder in zoneinfo.TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    import importlib.resources

    *packages, file_name = name.split("/")
    package = ".".join(["tzdata.zoneinfo", *packages])
    return importlib.resources.files(package).joinpath(file_name).read_bytes()


def _changes(data: bytes) -> tuple[list[int], list[int], bool]:
    """Return two lists, times and offsets, of a TZif file, and whether a rule follows."""
    counts = struct.unpack(">6l", data[20:_HEADER_BYTES])
    if data[4:5] == b"\0":
        return *_block(data, _HEADER_BYTES, counts, "l"), False
    # The first block is for readers of 32 bits; another header and the whole follow.
    utc_count, standard_count, leap_count, time_count, type_count, text_count = counts
    skipped = time_count * 5 + type_count * 6 + text_count + leap_count * 8 + standard_count + utc_count
    begin = 2 * _HEADER_BYTES + skipped
    counts = struct.unpack(">6l", data[begin - 24 : begin])
    starts, offsets = _block(data, begin, counts, "q")
    footer = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :].strip()
    return starts, offsets, b"," in footer


def _block(data: bytes, begin: int, counts: tuple[int, ...], code: str) -> tuple[list[int], list[int]]:
    _, _, _, time_count, type_count, _ = counts
    size = struct.calcsize(f">{code}")
    times = list(struct.unpack_from(f">{time_count}{code}", data, begin))
    kinds = struct.unpack_from(f">{time_count}B", data, begin + time_count * size)
    at = begin + time_count * (size + 1)
    types = [struct.unpack_from(">lBB", data, at + 6 * index) for index in range(type_count)]
    # As zoneinfo has it: before the first change, standard time.
    before = next((offset for offset, is_summer, _ in types if not is_summer), types[0][0])
    return [0, *times], [before, *(types[kind][0] for kind in kinds)]


def _ruled_changes(zone: zoneinfo.ZoneInfo, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the (time, offset) pairs of changes between two times, by the zone's rule."""
    found = []
    step = _YEAR_SECONDS // _PARTS_OF_YEAR
    known = _offset_at(zone, begin)
    for part in range(begin + step, end, step):
        offset = _offset_at(zone, part)
        if offset == known:
            continue
        low, high = part - step, part
        while high - low > 1:
            middle = (low + high) // 2
            if _offset_at(zone, middle) == known:
                low = middle
            else:
                high = middle
        found.append((high, offset))
        known = offset
    return found


def _offset_at(zone: zoneinfo.ZoneInfo, second: int) -> int:
    offset = _local(zone, second).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _local(zone: zoneinfo.ZoneInfo, second: int) -> datetime:
    return (_EPOCH + timedelta(seconds=second)).astimezone(zone)
