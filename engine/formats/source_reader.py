"""SourceReader: the task's side of a source.

    open_source(spec, splits, new_space) -> SourceReader      iterate: pa.RecordBatch, bounded as in bounded_batches.py
        .bad_rows .bytes_read .pruned_groups       so far
        .close()                                   idempotent; also in the middle

A reader reads the splits it was given, one after the other; the columns of its batches are the spec's ``columns``.
``new_space``: where it may put aside what does not fit into memory. Used by one task thread.

Held by: tests/connectors/test_sinks.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeGuard

from engine.graph.source_spec import SourceSplit

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.records.adaptive_key_filter import AdaptiveKeyFilter
    from engine.records.top_keys import TopTest


class SourceReader(Protocol):
    """Reads the splits of one subtask."""

    @property
    def bad_rows(self) -> int:
        """Rows that were skipped because they are malformed."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes of the splits read so far."""
        ...

    @property
    def pruned_groups(self) -> int:
        """Row groups left out so far because their statistics rule out what the filter wants; 0 in most formats."""
        ...

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches."""
        ...

    def close(self) -> None:
        """Close files; idempotent."""
        ...


class FilteringReader(Protocol):
    """One that leaves out rows where it reads them."""

    def filter_by(self, tests: Sequence[AdaptiveKeyFilter]) -> None:
        """Leave out rows that a test says are not wanted; to be called before the first row is read."""
        ...

    def keep_first(self, top: TopTest) -> None:
        """Leave out rows that cannot be among the first; to be called before the first row is read."""
        ...


class SharingReader(Protocol):
    """One that can be told its splits one by one; all rows of one have come before it takes the next, if in runs."""

    def take_from(self, take: Callable[[], SourceSplit | None]) -> None:
        """Read the splits that are taken, until there is none, in place of its own; before the first row is read."""
        ...


class JoiningReader(SharingReader, Protocol):
    """One for which a split of several that follow one another is as good as these, and takes fewer steps."""

    joins_splits: bool


class StateReader(Protocol):
    """One that reads places that change, as they were when the job began."""

    def read_states(self, names: Mapping[str, str]) -> None:
        """Read places in the states of these names (``held_states``); to be called before the first row is read."""
        ...


class CompactReader(Protocol):
    """One that finds texts as codes of dictionaries in what it reads, and decimals in 64 bits."""

    def keep_compact(self, columns: Collection[str]) -> None:
        """Let columns be as they are there; to be called before the first row is read (``Output.compact_columns``)."""
        ...


class OpeningReader(Protocol):
    """One that makes batches that Arrow does not know."""

    def keep_opened(self) -> None:
        """Let batches come opened (``Output.takes_opened``); to be called before the first row is read."""
        ...


class RunsReader(Protocol):
    """One that tells the rows of its splits apart."""

    #: flag that no batch may have rows of two splits; set before the first row is read
    is_in_runs: bool
    #: a number that grows with each split; of the rows that came out last
    run: int


class NotingReader(Protocol):
    """One that finds what the author of the program is to be told."""

    @property
    def notes(self) -> Mapping[str, str]:
        """Sentences, by what they are about."""
        ...


@cache
def _has(reader: type, method: str) -> bool:
    return hasattr(reader, method)


# To ask a Protocol for its methods takes as long as a small batch.


def is_filtering(reader: SourceReader) -> TypeGuard[FilteringReader]:
    """Whether a reader leaves out rows where it reads them."""
    return _has(type(reader), "filter_by")


def is_sharing(reader: SourceReader) -> TypeGuard[SharingReader]:
    """Whether a reader can be told its splits one by one."""
    return _has(type(reader), "take_from")


def is_joining(reader: SourceReader) -> TypeGuard[JoiningReader]:
    """Whether a reader takes splits joined."""
    return _has(type(reader), "joins_splits")


def reads_states(reader: SourceReader) -> TypeGuard[StateReader]:
    """Whether a reader can be told a state of its place."""
    return _has(type(reader), "read_states")


def is_compact(reader: SourceReader) -> TypeGuard[CompactReader]:
    """Whether a reader finds texts as codes and decimals in 64 bits."""
    return _has(type(reader), "keep_compact")


def is_opening(reader: SourceReader) -> TypeGuard[OpeningReader]:
    """Whether a reader makes opened batches."""
    return _has(type(reader), "keep_opened")


def is_in_runs(reader: SourceReader) -> TypeGuard[RunsReader]:
    """Whether a reader tells the rows of its splits apart."""
    return _has(type(reader), "is_in_runs")


def is_noting(reader: SourceReader) -> TypeGuard[NotingReader]:
    """Whether a reader finds what the author of the program is to be told."""
    return _has(type(reader), "notes")
