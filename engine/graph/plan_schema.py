"""A schema as plan, graphs and JobManager carry it: Arrow IPC bytes beside a small readable table.

The engine has one type system, pyarrow's; but what plans and schedules must not import pyarrow. So the full schema
travels as opaque IPC bytes, and beside it stands, per column, just what planning needs: name, a type's text, how many
bytes a value takes and whether it may be null. ``engine.expressions.schema_bridge`` makes one from a pyarrow.Schema
and back.
"""

from __future__ import annotations

import msgspec

from engine.errors import SchemaError


class ColumnInfo(msgspec.Struct, frozen=True):
    """What planning knows of a column."""

    name: str
    #: Arrow's own text of the type, for people: "int64", "timestamp[us, tz=UTC]"
    type_text: str
    #: bytes of one value: exact for fixed-width types, a documented guess (``width_is_exact`` False) for others
    width_bytes: int
    width_is_exact: bool
    nullable: bool
    #: may be a key of join, group_by, sort and partitioning
    is_key_type: bool


class PlanSchema(msgspec.Struct, frozen=True):
    """Columns of a data set: a table for planning and the exact schema as Arrow IPC bytes."""

    columns: tuple[ColumnInfo, ...]
    ipc: bytes

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> ColumnInfo:
        """Return the column of that name, or raise SchemaError naming those there are."""
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"no column {name!r}; there are: {', '.join(self.names) or 'none'}")

    @property
    def row_width_bytes(self) -> int:
        """Estimated bytes of one row's values."""
        return sum(column.width_bytes for column in self.columns)
