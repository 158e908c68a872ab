"""KeptKeys: the key columns of a build side whose rows come as batches, for the filters that are made of them.

    kept = KeptKeys(schema, columns)
    kept.add(batch)* ─┬─► kept.arrays(columns)      all of them: no row has to be decoded again
                      └─► give_up(), or too many    None: the join's rows have the keys (``join.build_keys``)
    kept.close()

While a filter is made, the other subtasks of the join wait for it, and keys are copied faster than rows decoded. They
are copies, since columns of a batch may lie in one buffer: to hold one is to hold all.

Limits: ``rows_max`` rows and ``bytes_max`` bytes, which are reserved of the memory for batches. Null keys are among
them, and match nothing.

Held by: tests/operators/test_kept_keys.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from engine.memory.budget import Kind, process_budget


class KeptKeys:
    """Args: schema: of the build side; columns: indices of those that are kept. Thread: the task's."""

    def __init__(self, schema: pa.Schema, columns: Collection[int], rows_max: int, bytes_max: int) -> None:
        self._arrays: dict[int, list[pa.Array]] | None = {column: [] for column in columns} or None
        self._types = {column: schema.field(column).type for column in columns}
        self._rows_left, self._bytes_max = rows_max, bytes_max
        self._size_bytes = 0
        self._reserved = process_budget.reserve(Kind.ARROW)

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep the keys of a batch, where there is room for them."""
        if self._arrays is None:
            return
        self._rows_left -= batch.num_rows
        is_plain = True  # no codes of a dictionary
        columns = []
        for column, arrays in self._arrays.items():
            array = batch.column(column)
            columns.append((arrays, array))
            self._size_bytes += array.nbytes
            is_plain = is_plain and array.type == self._types[column]
        has_room = self._rows_left >= 0 and self._size_bytes <= self._bytes_max
        if not (is_plain and has_room and self._reserved.resize(self._size_bytes)):
            self.give_up()
            return
        for arrays, array in columns:
            arrays.append(pa.concat_arrays([array, array.slice(0, 0)]))  # of two arrays it makes a new one

    def give_up(self) -> None:
        """Keep nothing: rows come in another form."""
        self._arrays = None
        self._reserved.close()

    def arrays(self, columns: Sequence[int]) -> list[list[pa.Array]] | None:
        """Return the arrays of each of some columns, None where not all of them are kept."""
        found = self._arrays
        if found is None or not all(found.get(column) for column in columns):
            return None
        return [found[column] for column in columns]

    def close(self) -> None:
        """Drop the columns; idempotent."""
        self.give_up()
