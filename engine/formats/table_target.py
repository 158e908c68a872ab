"""Tables that jobs change in place: what ``merge_into`` and ``env.optimize`` ask of one, of whatever format it is.

    delta("folder")  ─► TableTarget.at_present(call) ─► TableVersion: columns, files, rows of some files, and a sink
                                                        that puts a job's rows into the place of files

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine.formats.source_format import FoundSource

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.graph.source_spec import SinkSpec


class TableFile(NamedTuple):
    """A file of a table."""

    #: name of the file in the values of ``TableVersion.rows``
    path: str
    size_bytes: int
    #: a value that files of one partition share
    partition: str


class TableVersion(Protocol):
    """A table as it is now."""

    @property
    def name(self) -> str:
        """The table in errors."""
        ...

    @property
    def version(self) -> int:
        """The number of the version."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Columns by which rows that are written are to be sorted."""
        ...

    def files(self) -> Sequence[TableFile]:
        """Return the files."""
        ...

    def rows(self, file_column: str = "", paths: Collection[str] | None = None) -> FoundSource:
        """Return the rows of some files, None for all; each with its file in a column of that name, if it has one."""
        ...

    def rewrite(self, removed: Sequence[str], action: str = "", *, changes_data: bool) -> SinkSpec:
        """Return a sink that puts its rows into the place of files.

        Args:
            removed: paths of files, which are not of the table any more.
            action: column that says what becomes of a row, which is counted by it (``engine.graph.merge_action``).
            changes_data: whether the table has other rows then.
        """
        ...


class TableTarget(Protocol):
    """A table, by its place."""

    def at_present(self, call: str) -> TableVersion:
        """Return the last version. Raises: PlanError (no table), NotYetSupportedError (it cannot be written)."""
        ...
