"""Row: what a user's function sees of a record: a tuple with names.

    row.price    row["price"]    row[3]    ric, asset, *rest = row    row.asdict()

One class is made for each list of column names and cached; attributes are members in C (row_base.pyx). A name that is
no Python identifier (or is a method of tuple) is reached by ``row["name"]``.

Held by: tests/functions/test_function_runner.py
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from engine.functions.row_base import RowBase, item_member
from engine.records.python_values import shown_value
from engine.records.value_reader import python_values

#: methods of tuple that a column of that name hides: columns named ``count`` are more frequent than searches
_HIDDEN = ("count", "index")


class Row(RowBase):
    """Base of all row classes: a tuple whose items also have names."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _positions: dict[str, int] = {}  # noqa: RUF012 - set once, on each class

    def __repr__(self) -> str:
        items = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"Row({', '.join(items)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return make_row, (self._fields, tuple(self))

    def asdict(self) -> dict[str, Any]:
        """Return the items by column name."""
        return dict(zip(self._fields, self, strict=True))


def is_attribute(name: str) -> bool:
    """Return whether the column of that name can be taken as an attribute of a row."""
    return name.isidentifier() and not keyword.iskeyword(name) and (name in _HIDDEN or not hasattr(Row, name))


@lru_cache(maxsize=256)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """Return the row class of these column names; calling it with an iterable of values makes a row."""
    namespace: dict[str, Any] = {
        "__slots__": (),
        "_fields": names,
        "_positions": {name: position for position, name in enumerate(names)},
    }
    made = type("Row", (Row,), namespace)
    for position, name in enumerate(names):
        if is_attribute(name):
            setattr(made, name, item_member(made, name, position))
    return made


def missing_name(error: BaseException) -> str:
    """Return the message of a missing attribute of a row, with the existing ones; "" for other errors."""
    if isinstance(error, AttributeError) and isinstance(error.obj, Row):
        is_dict = error.name in ("_asdict", "asDict", "keys", "items", "values", "get")
        return f"{error.name!r}; the row has {', '.join(error.obj._fields)}{'; write row.asdict()' * is_dict}"
    return ""


def make_row(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    """Return a row of these names and values (how rows are unpickled)."""
    return row_class(names)(values)


def rows_of(batch: pa.RecordBatch) -> Sequence[Row]:
    """Return the rows of a batch."""
    make = row_class(tuple(batch.schema.names))
    columns = [python_values(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return [make(values) for values in zip(*columns, strict=True)] if columns else [make(())] * batch.num_rows


def taken_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of batches; a batch is not kept while its rows are used, nor a row while the next one is."""
    for batch in batches:
        rows = [*rows_of(batch)]
        del batch
        rows.reverse()
        while rows:
            yield rows.pop()


class View(NamedTuple):
    """The columns of a batch that make up the rows of one side."""

    names: tuple[str, ...]
    columns: tuple[int, ...]

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the view of a batch."""
        return batch.select(list(self.columns)).rename_columns(list(self.names))


class RowsAt(Sequence[Row]):
    """Some rows of a batch, made when they are asked for: to be shown where something went wrong."""

    def __init__(self, batch: pa.RecordBatch, positions: Sequence[int]) -> None:
        self._batch = batch
        self.positions = positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: Any) -> Any:
        position = self.positions[index]
        make = row_class(tuple(self._batch.schema.names))
        return make([shown_value(column[position]) for column in self._batch.columns])
