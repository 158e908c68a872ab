"""Column forms: how the columns of a file are written, chosen by its first rows.

    known = KnownColumns(schema)                         for all files of one sink that follow each other
    forms = known.forms(batch, huge)                     of a file: dictionaries, statistics, codecs, values at once

A column whose values hardly repeat gets no dictionary: building one only to give it up costs a fifth of the time of
writing. What was found for a file goes for the next ones, up to FILES_MAX, unless they have more rows to tell it by, or
room for very wide values: of ten thousand files of a few hundred rows, to look would take as long as to write.

Held by: tests/parquet/test_column_forms.py
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from engine.records.arrow_functions import pc

#: a column gets a dictionary when the first batch has fewer different values than this share of its rows
DICTIONARY_RATIO: Final = 0.5
#: a column with a wider value in the first batch gets no dictionary and no statistics, for which the writer copies
#: minimum and maximum six times
NARROW_WIDTH_MAX: Final = 4 << 10
#: a column with a wider value in the first batch is not compressed: it would be in memory twice more, once for good
PLAIN_WIDTH_MIN: Final = 1 << 20
#: files in a row that are written alike
FILES_MAX: Final = 64
#: bytes of a page, about; values are counted off for it 1024 at a time, unless they are wide
_PAGE_BYTES: Final = 1 << 20
_VALUES_AT_ONCE: Final = 1024

_VARIABLE: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


@dataclass(frozen=True)
class ColumnForms:
    """The settings of Arrow's writer: columns by name, leaves of nested ones by path, True for all."""

    dictionaries: list[str] | bool = False
    statistics: list[str] | bool = False
    values_at_once: int = _VALUES_AT_ONCE
    #: leaves that are written plainly: compression or a dictionary would take two more copies of them
    huge: frozenset[str] = frozenset()
    #: paths of all leaves
    paths: tuple[str, ...] = ()


class KnownColumns:
    """The forms that files of one schema have in common."""

    def __init__(self, schema: pa.Schema) -> None:
        #: columns of a Parquet file
        self.leaf_count = sum(_leaf_count(field.type) for field in schema)
        self._has_nested = any(pa.types.is_nested(field.type) for field in schema)
        self._flat = [field.name for field in schema if not pa.types.is_nested(field.type)]
        self._found = ColumnForms()
        #: rows by which that was found, and files for which it goes
        self._rows_seen = self._files_left = 0

    def forms(self, batch: pa.RecordBatch, huge: Set[str]) -> ColumnForms:
        """Return the forms of a file that begins with a batch; ``huge``: leaves that are huge in any case."""
        is_known = self._files_left > 0 and batch.num_rows <= 2 * self._rows_seen
        if not is_known or huge or self._found.huge or batch.nbytes > PLAIN_WIDTH_MIN:
            self._found = self._look(batch, huge)
            self._rows_seen, self._files_left = batch.num_rows, FILES_MAX
        self._files_left -= 1
        return self._found

    def _look(self, batch: pa.RecordBatch, huge: Set[str]) -> ColumnForms:
        widths = {path: _width_max(leaf) for path, leaf in _leaves_of(batch)}
        all_huge = huge | {path for path, width in widths.items() if width > PLAIN_WIDTH_MIN}
        narrow = [path for path, width in widths.items() if width <= NARROW_WIDTH_MAX and path not in all_huge]
        # Parquet judges the leaves of nested columns itself.
        dictionaries: list[str] | bool = narrow if all_huge else True
        if not self._has_nested:
            dictionaries = [name for name in narrow if _repeats(batch.column(name))] or False
        return ColumnForms(
            dictionaries,
            [name for name in self._flat if name in narrow],
            max(1, min(_VALUES_AT_ONCE, _PAGE_BYTES // max(1, *widths.values()))) if widths else _VALUES_AT_ONCE,
            frozenset(all_huge),
            tuple(widths),
        )


def huge_leaves(batch: pa.RecordBatch) -> set[str]:
    """Return the columns, and leaves of nested ones, with values that are written as they are."""
    return {path for path, leaf in _leaves_of(batch) if _width_max(leaf) > PLAIN_WIDTH_MIN}


def _repeats(column: pa.Array) -> bool:
    values = column.storage if isinstance(column, pa.ExtensionArray) else column
    is_null = pa.types.is_null(values.type)
    if pa.types.is_nested(values.type) or pa.types.is_interval(values.type):
        return False  # what extension types store, of which Arrow counts none
    return is_null or bool(pc.count_distinct(values).as_py() < DICTIONARY_RATIO * len(values))


def _leaves_of(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    """Yield columns with values of their own, and the leaves of nested ones under their Parquet paths."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        yield from _leaves(name, column)


def _leaves(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    if isinstance(array, pa.ExtensionArray):
        yield path, array.storage
    elif pa.types.is_struct(array.type):
        for index, field in enumerate(array.type):
            yield from _leaves(f"{path}.{field.name}", array.field(index))
    elif pa.types.is_map(array.type):
        yield from _leaves(f"{path}.key_value.key", array.keys)
        yield from _leaves(f"{path}.key_value.value", array.items)
    elif pa.types.is_nested(array.type):
        yield from _leaves(f"{path}.list.element", array.values)
    else:
        yield path, array


def _leaf_count(data_type: pa.DataType) -> int:
    """Return the number of leaf columns of a column in a Parquet file."""
    if not pa.types.is_nested(data_type):
        return 1
    return sum(_leaf_count(data_type.field(index).type) for index in range(data_type.num_fields))


def _width_max(column: pa.Array) -> int:
    """Return the bytes of the longest value of variable width; 0 where widths are fixed."""
    if not any(is_of(column.type) for is_of in _VARIABLE):
        return 0
    return int(pc.max(pc.binary_length(column)).as_py() or 0)
