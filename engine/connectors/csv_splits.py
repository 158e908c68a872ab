"""Splits of CSV files: byte ranges that begin and end between two records, also when fields hold line ends.

    provisional_splits(paths, parallelism)        sizes only, nothing is read: for explain
    exact_splits(spec, parallelism)               boundaries moved to record ends: for execution

Where a byte lies relative to quotes is known only from the begin of its file. Files without any quote (found by one
pass of memchr) need a look at each boundary only; others are scanned up to the last boundary. Files are scanned by
two threads. A file is cut into pieces of about total / (SPLITS_PER_SUBTASK * parallelism), so that giving them out by
size leaves subtasks within a few percent of each other; small files stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import msgspec

from engine.connectors.csv_dialect import BYTE_ORDER_MARK, CsvDialect
from engine.connectors.csv_scan import RecordScanner, contains_byte
from engine.graph.source_spec import CsvSource, SourceSplit

SPLITS_PER_SUBTASK = 16
SPLIT_BYTES_MIN = 1 << 20
_CHUNK_BYTES = 4 << 20
_SCAN_THREADS = 2


def split_bytes(total_bytes: int, parallelism: int) -> int:
    """Return the size that splits of a source should have."""
    return max(SPLIT_BYTES_MIN, total_bytes // (SPLITS_PER_SUBTASK * max(1, parallelism)))


def _targets(size: int, wanted: int) -> list[int]:
    """Return where a file of that size should be cut."""
    pieces = max(1, round(size / wanted))
    return [size * index // pieces for index in range(1, pieces)]


def _to_splits(path: str, boundaries: Sequence[int]) -> list[SourceSplit]:
    return [SourceSplit(path, start, end, end - start) for start, end in pairwise(boundaries) if end > start]


def provisional_splits(paths: Sequence[str], parallelism: int) -> tuple[SourceSplit, ...]:
    """Return splits by size alone; they may cut records and are not for reading."""
    sizes = [Path(path).stat().st_size for path in paths]
    wanted = split_bytes(sum(sizes), parallelism)
    return tuple(
        split
        for path, size in zip(paths, sizes, strict=True)
        for split in _to_splits(path, [0, *_targets(size, wanted), size])
    )


def record_boundaries(path: str, targets: Sequence[int], dialect: CsvDialect) -> list[int]:
    """Return for each target the end of the record that is there, in order, without repetition."""
    if not targets:
        return []
    if dialect.quote < 0 or not _has_quote(path, dialect.quote):
        return _boundaries_without_quotes(path, targets)
    return _boundaries_with_quotes(path, targets, dialect)


def _has_quote(path: str, quote: int) -> bool:
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    with Path(path).open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            if contains_byte(buffer[:count], quote):
                return True
    return False


def _boundaries_without_quotes(path: str, targets: Sequence[int]) -> list[int]:
    """Find the next newline after each target."""
    found: list[int] = []
    with Path(path).open("rb") as file:
        for target in targets:
            if found and target < found[-1]:
                continue
            file.seek(target)
            line = file.readline()
            if not line.endswith(b"\n"):
                break
            found.append(target + len(line))
    return found


def _boundaries_with_quotes(path: str, targets: Sequence[int], dialect: CsvDialect) -> list[int]:
    """Carry the quote state from the begin of the file to the last target."""
    scanner = RecordScanner(dialect.delimiter, dialect.quote)
    found: list[int] = []
    pending = list(reversed(targets))
    with Path(path).open("rb", buffering=0) as file:
        position = file.seek(len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK else 0)
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
    sizes = [Path(path).stat().st_size for path in spec.paths]
    wanted = split_bytes(sum(sizes), parallelism)

    def splits_of(path: str, size: int) -> list[SourceSplit]:
        inner = record_boundaries(path, _targets(size, wanted), dialect)
        return _to_splits(path, [0, *inner, size])

    with ThreadPoolExecutor(_SCAN_THREADS, "csv-scan") as pool:
        found = list(pool.map(splits_of, spec.paths, sizes))
    return msgspec.structs.replace(spec, splits=tuple(split for splits in found for split in splits))
