"""Splits of CSV files: byte ranges that begin and end between two records, also when fields hold line ends.

    provisional_splits(paths, parallelism)        sizes only, nothing is read: for explain
    exact_splits(spec, parallelism)               boundaries moved to record ends: for execution

    files      |------ 0 ------|--- 1 ---|------ 2 ------|      parallelism 2: the middle of all bytes lies in file 1
    splits     |------ 0 ------|-1a-|-1b-|------ 2 ------|      and that is the only place to be looked at

Splits are given out as contiguous runs of about equal size, so files are cut only where one share ends and the next
begins, and not even there when a file ends nearby. Where a byte lies relative to quotes is known only from the begin
of its file: such a file is scanned up to its last cut (in blocks, far faster than it is read later); without any quote
up to there (one pass of memchr) each cut needs a look only. Files are scanned by two threads. A compressed file is one
split, whatever its size.

Held by: tests/csv/test_reader.py
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import msgspec

from engine.csv.dialect import CsvDialect
from engine.csv.scan import RecordScanner, contains_byte
from engine.csv.text import begin_of, is_stream, open_csv
from engine.files.compression import codec_of, split_weights
from engine.graph.source_spec import CsvSource, SourceSplit
from engine.storage.file_systems import file_system_of, size_of
from engine.storage.known_objects import shared

#: a share is not made smaller than this, and a file no larger stays whole
SHARE_BYTES_MIN = 1 << 20
#: part of a share by which it may differ from others to end with a file
_SNAP = 1 / 50
_CHUNK_BYTES = 4 << 20
_SCAN_THREADS = 2


def share_boundaries(sizes: Sequence[int], parallelism: int) -> list[list[int]]:
    """Return the positions within each file where one subtask's share should end and the next begin."""
    total = sum(sizes)
    share_count = max(1, min(parallelism, round(total / SHARE_BYTES_MIN)))
    tolerance = total / share_count * _SNAP
    cuts: list[list[int]] = []
    begin = 0
    for size in sizes:
        inside = (total * index // share_count - begin for index in range(1, share_count))
        is_small = size <= SHARE_BYTES_MIN
        cuts.append([] if is_small else [cut for cut in inside if tolerance < cut < size - tolerance])
        begin += size
    return cuts


def _to_splits(path: str, boundaries: Sequence[int], compression: str) -> list[SourceSplit]:
    if codec_of(path, compression):
        # A stream, whose text weighs what the last boundary says.
        return [SourceSplit(path, 0, size_of(path), boundaries[-1])] if boundaries[-1] else []
    return [SourceSplit(path, start, end, end - start) for start, end in pairwise(boundaries) if end > start]


def provisional_splits(paths: Sequence[str], parallelism: int, compression: str = "") -> tuple[SourceSplit, ...]:
    """Return splits by size alone; they may cut records and are not for reading."""
    sizes = split_weights(paths, compression)
    cuts = share_boundaries(sizes, parallelism)
    return tuple(
        split
        for path, size, inner in zip(paths, sizes, cuts, strict=True)
        for split in _to_splits(path, [0, *inner, size], compression)
    )


def record_boundaries(path: str, targets: Sequence[int], dialect: CsvDialect, begin: int = 0) -> list[int]:
    """Return the ends of the records at the targets, in order, without repetition.

    ``begin``: of the first record; there is none at targets before it.
    """
    targets = [target for target in targets if target > begin]
    if not targets:
        return []
    if dialect.quote < 0 or not _has_quote(path, targets[-1], dialect.quote):
        found = _boundaries_without_quotes(path, targets, dialect.quote)
        if found is not None:
            return found
    return _boundaries_with_quotes(path, targets, dialect, begin)


def _has_quote(path: str, end: int, quote: int) -> bool:
    """Return whether there is a quote before ``end`` (or a little behind it)."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    with file_system_of(path).open_stream(path) as file:
        while file.tell() <= end and (count := file.readinto(buffer)):  # type: ignore[attr-defined]
            if contains_byte(buffer[:count], quote):
                return True
    return False


def _boundaries_without_quotes(path: str, targets: Sequence[int], quote: int) -> list[int] | None:
    """Find the next newline after each target; None: there is a quote on the way to one."""
    found: list[int] = []
    with file_system_of(path).open_stream(path, is_buffered=True) as file:
        for target in targets:
            if found and target < found[-1]:
                continue
            file.seek(target)
            line = file.readline()
            if quote >= 0 and quote in line:
                return None
            if not line.endswith(b"\n"):
                break
            found.append(target + len(line))
    return found


def _boundaries_with_quotes(path: str, targets: Sequence[int], dialect: CsvDialect, begin: int) -> list[int]:
    """Carry the quote state from the first record to the last target."""
    scanner = RecordScanner(dialect.delimiter, dialect.quote)
    found: list[int] = []
    pending = list(reversed(targets))
    with file_system_of(path).open_stream(path) as file:
        position = file.seek(begin)
        while pending:
            chunk = memoryview(file.read(_CHUNK_BYTES))
            if not chunk:
                break
            _scan_chunk(scanner, chunk, position, pending, found)
            position += len(chunk)
    return found


def _scan_chunk(scanner: RecordScanner, chunk: memoryview, position: int, pending: list[int], found: list[int]) -> None:
    """Pass a chunk that begins at ``position``: append to ``found``, take from the end of ``pending``."""
    passed = 0
    while pending:
        skip = pending[-1] - position
        if skip >= len(chunk):
            break
        if skip > passed:
            scanner.advance(chunk[passed:skip])
            passed = skip
        end = scanner.next_record_end(chunk[passed:])
        if end < 0:
            return
        passed += end
        found.append(position + passed)
        while pending and pending[-1] < found[-1]:
            pending.pop()
    scanner.advance(chunk[passed:])


def exact_splits(spec: CsvSource, parallelism: int) -> CsvSource:
    """Return the source with splits that are ready to be read."""
    dialect = CsvDialect.of(spec.delimiter, spec.quote)
    sizes = split_weights(spec.paths, spec.compression)

    def splits_of(file_cuts: tuple[str, int, list[int]]) -> list[SourceSplit]:
        path, size, cuts = file_cuts
        if is_stream(spec, path) or not cuts:
            return _to_splits(path, [0, size], spec.compression)
        with open_csv(spec, path) as file:
            begin = begin_of(spec, file)
        return _to_splits(path, [0, *record_boundaries(path, cuts, dialect, begin), size], spec.compression)

    with ThreadPoolExecutor(_SCAN_THREADS, "csv-scan") as pool:
        cut = zip(spec.paths, sizes, share_boundaries(sizes, parallelism), strict=True)
        found = list(pool.map(shared(splits_of), cut))
    return msgspec.structs.replace(spec, splits=tuple(split for splits in found for split in splits))
