"""ScanRequest: what a task wants of the Parquet files that it reads, the same for each of them.

    request = ScanRequest.of(spec)
    request.columns         the columns that are read: those that come out, and those that only the predicate looks at
    request.is_filtering    some rows may be left out

    PossibleGroups          the row groups of one open file that may have rows for it

    predicate  of the plan ──┐
    tests      of joins    ──┼─► footers, indexes, Bloom filters ─► row groups ─► RowFilter ─► rows
    first      of a top-n  ──┘

Held by: tests/parquet/test_top_groups.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from engine.graph.expression import Call, Expression, columns_of
from engine.graph.source_spec import ParquetSource, SourceSplit
from engine.parquet.open_file import OpenFile
from engine.parquet.row_group_bounds import matched_groups, possible_groups
from engine.parquet.top_groups import SeenKeys, TopGroups

if TYPE_CHECKING:
    from engine.records.adaptive_key_filter import AdaptiveKeyFilter
    from engine.records.top_keys import TopTest


def file_source(
    paths: Sequence[str],
    splits: Sequence[SourceSplit],
    names: Sequence[str],
    types: pa.Schema | None = None,
    predicate: Expression | None = None,
) -> ParquetSource:
    """Return the source of columns of a table's files, by their own names; ``types``: where they have others."""
    types_ipc = b"" if types is None else types.serialize().to_pybytes()
    return ParquetSource(tuple(paths), tuple(splits), tuple(names), types_ipc, predicate)


@dataclass(slots=True)
class ScanRequest:
    """The columns, the types and the filters of a scan.

    types: the source's types, where its files have others; None: each file has its own.
    compact: columns that may come out as numbers of texts, or as decimals in 64 bits.
    tests: filters of keys that joins make while the job runs.
    first: the keys that were looked at, for an operator that wants the first rows of an order alone.
    is_opened: batches may come opened (``records.opened_batch``).
    """

    spec: ParquetSource
    columns: list[str]
    types: pa.Schema | None
    compact: frozenset[str] = frozenset()
    tests: Sequence[AdaptiveKeyFilter] = ()
    first: SeenKeys | None = None
    is_opened: bool = False

    @classmethod
    def of(cls, spec: ParquetSource) -> Self:
        """Return the request of a source, without filters that are made while the job runs."""
        predicate = () if spec.predicate is None else columns_of(spec.predicate)
        types = pa.ipc.read_schema(pa.py_buffer(spec.types_ipc)) if spec.types_ipc else None
        return cls(spec, list(dict.fromkeys((*spec.columns, *predicate))), types)

    @classmethod
    def of_file(cls, path: str, names: Sequence[str], types: pa.Schema, predicate: Expression | None = None) -> Self:
        """Return the request of columns of one file, by its own names; ``types``: those of its columns."""
        return cls.of(file_source((path,), (), names, types, predicate))

    @property
    def is_filtering(self) -> bool:
        """Whether rows may be left out."""
        return self.spec.predicate is not None or bool(self.tests) or self.first is not None

    @property
    def all_tests(self) -> list[AdaptiveKeyFilter | TopTest]:
        """The filters that are made while the job runs; the threshold of a top-n is the last of them."""
        return [*self.tests, *(() if self.first is None else (self.first.test,))]


class PossibleGroups:
    """The row groups of an open file in which there may be rows for a request that filters.

    Args:
        splits: those of the file that the task knows of when it opens the file.
    """

    def __init__(self, file: OpenFile, request: ScanRequest, schema: pa.Schema, splits: Sequence[SourceSplit]) -> None:
        self._file = file
        self._request = request
        self._schema = schema
        #: The row groups that were examined, possible or not.
        self._examined: set[int] = set()
        groups = self._examine(splits)
        self._possible = set(groups)
        self._whole: set[int] = set()
        first = request.first
        self._top = None if first is None else TopGroups(first.test, file.footer, groups, schema)

    def expect_pages(self) -> None:
        """Have the indexes of pages read together, where the file is in a store: of row groups that have other rows."""
        predicate, groups = self._request.spec.predicate, sorted(self._possible)
        if predicate is None or not self._file.is_fetched:
            return
        others = possible_groups(self._file.footer, groups, Call("not", (predicate,)), self._schema)
        self._whole = self._possible.difference(others)
        self._file.indexes.expect(others, predicate, self._request.columns)

    def is_whole(self, group: int) -> bool:
        """Return whether bounds say that no row of a row group is left out for what it is compared with."""
        return group in self._whole

    def add(self, split: SourceSplit) -> None:
        """Examine a split that was another subtask's when the file was opened."""
        if split.start not in self._examined:
            self._possible.update(self._examine([split]))

    def may_have(self, group: int) -> bool:
        """Return whether there may be a row for the request in a row group, as far as is known by now."""
        if group not in self._possible:
            return False
        if self._top is None or self._request.first is None:
            return True
        return self._top.may_have(group) and self._request.first.may_have((self._file.path, group))

    def runs_of(self, split: SourceSplit) -> Iterable[tuple[int, int]]:
        """Return the row groups of a split that may have rows, in runs, as far as is known when one is asked for."""
        self.add(split)
        groups = range(split.start, split.end)
        if self._top is not None:
            return ((group, group + 1) for group in groups if self.may_have(group))
        if self._possible.issuperset(groups):
            return ((split.start, split.end),)
        found = self._possible.intersection(groups)
        begins = sorted(group for group in found if group - 1 not in found)
        return zip(begins, sorted(group + 1 for group in found if group + 1 not in found), strict=True)

    def to_look_at(self, looked_at: Sequence[str]) -> Iterator[int]:
        """Yield the row groups whose keys are looked at before any row is read, as long as they may have one."""
        for group in () if self._top is None else self._top.to_look_at(self._request.columns, looked_at):
            if self._top is not None and self._top.may_have(group):
                yield group

    def _examine(self, splits: Sequence[SourceSplit]) -> Sequence[int]:
        footer, spec = self._file.footer, self._request.spec
        groups = [group for split in splits for group in range(split.start, split.end)]
        self._examined.update(groups)
        if spec.predicate is not None:
            # Between the row groups of a split there may be some that the plan has left out.
            if spec.pruned_groups is None or len(groups) > len(splits):
                groups = possible_groups(footer, groups, spec.predicate, self._schema)
            if self._file.is_fetched:
                self._file.indexes.expect_filters(groups, spec.predicate)
            groups = list(self._file.indexes.which_may_have(groups, spec.predicate))
        return matched_groups(footer, groups, self._request.tests, self._schema)
