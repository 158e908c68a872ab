"""PartitionMerger: sources of states whose groups are found among their rows, and given out without a table.

    merging = PartitionMerger(layout, output_schema, pool, group_limit, helpers)
    groups = merging.groups_of(source)      KeptRows, or None: the table is to take the source
    for batch in merging.results_of(groups): ...            gives their pages back
    merging.close()

Where keys or states are not of that kind (``state_row_table``), nothing is taken. A partition in memory that turns out
to have more groups than fit is left with the same states in fewer rows; a file is only begun where all probably fit.

Held by: tests/aggregate/test_state_row_table.py
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.accumulators.aggregate_layout import AggregateLayout
from engine.accumulators.state_combiner import StateCombiner
from engine.accumulators.state_results import results_of_states
from engine.aggregate.state_partitions import StatePartitions
from engine.aggregate.state_row_keys import may_be_merged
from engine.aggregate.state_row_table import StateRowTable, state_row_table_of
from engine.iomanager.spill_file import SpillFile
from engine.memory.page_pool import PagePool
from engine.operators.helper_threads import HelperThreads
from engine.partitions.row_partitions import KeptRows
from engine.records.row_codec import RowCodec


class PartitionMerger:
    """Args: group_limit: at most so many groups in memory, 0: no limit; helpers: threads that merge, None: one."""

    def __init__(
        self,
        layout: AggregateLayout,
        output_schema: pa.Schema,
        pool: PagePool,
        group_limit: int,
        helpers: HelperThreads | None = None,
    ) -> None:
        self._helpers = helpers
        self._layout, self._output_schema, self._key_count = layout, output_schema, len(layout.key_columns)
        self._groups: StateRowTable | None = None
        #: groups for each row of the last source
        self.groups_per_row = 1.0
        codec = RowCodec(layout.state_schema)
        self._row_size = codec.fixed_size
        if may_be_merged(codec, self._key_count):
            self._groups = state_row_table_of(codec, self._key_count, self._new_combiner(), pool, group_limit)

    def _new_combiner(self) -> StateCombiner:
        layout = self._layout
        return StateCombiner(layout.state_schema, self._key_count, layout.merge_operations, layout.overflow_texts)

    @property
    def row_size(self) -> int:
        """Bytes of a row of states; of variable size about, before any was merged at least."""
        return self._row_size if self._groups is None else self._groups.row_size

    def merge_parts(self, partitions: StatePartitions) -> bool:
        """Let them merge its rows as they come; False: it does not."""
        if self._groups is None:
            return False
        combiners = [self._new_combiner() for _ in range(1 if self._helpers is None else self._helpers.count)]
        return partitions.merge_with(combiners, self._helpers)

    def groups_of(self, source: SpillFile | KeptRows) -> KeptRows | None:
        """Merge the states of a source. Raises: DataError, CorruptBlockError, SpillError."""
        if isinstance(source, KeptRows) and source.is_merged:
            return source
        if self._groups is None:
            return None
        rows, expected = self._rows_of(source), self.groups_expected(source)
        if isinstance(source, KeptRows):
            merged = self._groups.take() if self._groups.add_kept(source, expected) else None
        else:
            merged = self._groups.merge_file(source, expected)
        if merged is None:
            self._groups.rest()
        else:
            self.groups_per_row = merged.row_count / max(rows, 1)
        return merged

    def _rows_of(self, source: SpillFile | KeptRows) -> int:
        """Return the number of rows of a source, estimated for files."""
        return source.row_count if isinstance(source, KeptRows) else source.raw_bytes // self.row_size

    def groups_expected(self, source: SpillFile | KeptRows) -> int:
        """Return the number of groups of a source that resembles the last one."""
        return int(self._rows_of(source) * self.groups_per_row * 1.1)

    def results_of(self, groups: KeptRows) -> Iterator[pa.RecordBatch]:
        """Yield groups as keys and results."""
        try:
            for states in groups:
                yield results_of_states(states, self._key_count, self._layout.results, self._output_schema)
        finally:
            groups.delete()

    def close(self) -> None:
        """Give every page back; idempotent."""
        if self._groups is not None:
            self._groups.close()
