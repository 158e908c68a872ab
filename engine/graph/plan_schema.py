"""A schema as plan, graphs and JobManager carry it: per column a small readable row and its exact type as bytes.

    PlanSchema ── ColumnInfo(name, type_text, width_bytes, width_is_exact, nullable, is_key_type, ipc) * columns

The engine has one type system, pyarrow's; but what plans and schedules must not import pyarrow. So the exact type of
every column travels as opaque Arrow IPC bytes, and beside it stands just what planning needs: name, the type's text,
how many bytes a value takes and whether it may be null. Since each column carries its own bytes, planning can take
subsets, reorder and rename columns without Arrow. ``engine.expressions.schema_bridge`` makes one from a
pyarrow.Schema and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from engine.errors import SchemaError
from engine.graph.exact import Exact


class ColumnInfo(Exact, frozen=True):
    """A column as planning knows it.

    ``ipc`` is the Arrow IPC schema message of one field with this column's type (and field metadata). The name inside
    it is empty and its own nullability true, whatever the column's: ``name`` and ``nullable`` here are those that
    count, so that equal types have equal bytes and a column is renamed without touching them.
    """

    name: str
    #: Arrow's own text of the type, for people: "int64", "timestamp[us, tz=UTC]"
    type_text: str
    #: bytes of one value: exact for fixed-width types, a documented guess (``width_is_exact`` False) for others
    width_bytes: int
    width_is_exact: bool
    nullable: bool
    #: True if it may be a key of join, group_by, sort and partitioning
    is_key_type: bool
    #: Arrow IPC schema message of a single field of this type
    ipc: bytes


class PlanSchema(Exact, frozen=True, dict=True):
    """Columns of a data set, in order. Names are unique."""

    columns: tuple[ColumnInfo, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def by_name(self) -> dict[str, ColumnInfo]:
        """Columns by name; callers must not change it."""
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> ColumnInfo:
        """Return the column of that name, or raise SchemaError naming those there are."""
        found = self.by_name.get(name)
        if found is None:
            raise SchemaError(f"no column {name!r}; there are: {', '.join(self.names) or 'none'}")
        return found

    def index(self, name: str) -> int:
        """Return the 0-based position of the column of that name, or raise SchemaError."""
        return self.columns.index(self.column(name))

    def select(self, names: Iterable[str]) -> PlanSchema:
        """Return the schema of those columns, in the order asked for; an unknown one raises SchemaError."""
        return PlanSchema(tuple(map(self.column, names)))

    def rename(self, new_names: Mapping[str, str]) -> PlanSchema:
        """Return the schema with some columns renamed, old name to new name."""
        return PlanSchema(
            tuple(
                msgspec.structs.replace(column, name=new_names.get(column.name, column.name)) for column in self.columns
            )
        )

    @property
    def row_width_bytes(self) -> int:
        """Estimated bytes of one row's values."""
        return sum(column.width_bytes for column in self.columns)
