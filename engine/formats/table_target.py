"""Tables that jobs change in place: what ``merge_into`` and ``env.optimize`` ask of one, of whatever format it is.

    delta("folder")   ─► TableTarget.at_present(...) ─► TableVersion: columns, files, rows of some files, and a sink
    iceberg("db.t")                                     that puts a job's rows into the place of files, or of rows

Rows on their way into such a sink have columns that say what becomes of them (``engine.graph.merge_action``), and a
writer's ``MergedRows`` takes these from them.

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine.formats.source_format import FoundSource
from engine.graph.expression import NamedExpression
from engine.graph.source_spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.config.loader import Configuration


class TableFile(NamedTuple):
    """A file of a table."""

    #: name of the file in the values of ``TableVersion.rows``
    path: str
    size_bytes: int
    #: a value that files of one partition share
    partition: str


class TableOutput(NamedTuple):
    """A sink of a table, and the form in which it takes rows."""

    spec: SinkSpec
    #: columns behind those of the table, computed from them: the values of hidden partitions
    partitions: tuple[NamedExpression, ...] = ()
    #: columns in whose order rows are
    order: tuple[str, ...] = ()


class TablePatch(Protocol):
    """Files of a table that are written anew with the rows alone that change."""

    @property
    def spread(self) -> tuple[str, ...]:
        """Columns, or partitions of the output, by which new rows are divided, and in whose order they are."""
        ...

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns of which rows that change have the values, too."""
        ...

    def rows(self, data_set: Callable[[FoundSource], Any]) -> Any:
        """Return the rows that may change; their file is a number in ``merge_action.FILE``, beside their place."""
        ...

    def output(self, looked_for: Mapping[str, tuple[Any, Any]] | None) -> TableOutput:
        """Return the output of changes, which come in the order of their files and places, and of new rows."""
        ...


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
    def keeps_ids(self) -> bool:
        """Whether rows have ids, which they keep in other files."""
        ...

    def check_removal(self, call: str) -> None:
        """Raise PlanError where no row of the table may change or go."""
        ...

    def default_of(self, name: str) -> pa.Scalar | None:
        """Return the value of a column in a new row of which it is not said; None: null."""
        ...

    @property
    def deletes_rows(self) -> bool:
        """Whether a merge deletes rows by their places in files (merge-on-read), in place of writing files anew."""
        ...

    @property
    def checks_matches(self) -> bool:
        """Whether a commit of rows refuses those of a merge in which one of the table is there twice."""
        ...

    @property
    def keeps_changes(self) -> bool:
        """Whether a merge has rows as they were before an update, too (``merge_action.PREIMAGE``)."""
        ...

    def files(self) -> Sequence[TableFile]:
        """Return the files."""
        ...

    def rows(
        self,
        data_set: Callable[[FoundSource], Any],
        paths: Collection[str] | None = None,
        *,
        has_file: bool = False,
        has_place: bool = False,
        moves: bool = False,
    ) -> Any:
        """Return the rows of files as a data set.

        Args:
            data_set: makes one of a source.
            paths: of the files, None for all.
            has_file: whether each row has its file in the column ``merge_action.FILE``.
            has_place: whether it has its place in the file, from 0 on, in ``merge_action.POSITION``.
            moves: whether it goes into another file, with its id in ``merge_action.ROW_ID`` if it has one.
        """
        ...

    def patch(
        self, columns: Collection[str], bounds: Mapping[str, tuple[Any, Any]], *, deletes: bool
    ) -> TablePatch | None:
        """Return the way of files that are written anew with the rows alone that change; None: all rows are needed.

        Args:
            columns: those that change.
            bounds: lowest and highest value of columns in rows that change.
            deletes: whether rows may go.
        """
        ...

    def row_count(self, paths: Collection[str]) -> int | None:
        """Return the number of rows of some files; None: not known of all."""
        ...

    def rewrite(
        self,
        removed: Sequence[str],
        looked_for: Mapping[str, tuple[Any, Any]] | None = None,
        *,
        merges: bool,
        changes_data: bool,
        row_count: int | None = None,
    ) -> TableOutput:
        """Return the output of rows that go into the place of files.

        Args:
            removed: paths of files, which are not of the table any more.
            looked_for: lowest and highest value of columns in all rows that the job has looked for: other writers may
                change rows beyond them meanwhile. None: it has looked at all rows.
            merges: whether rows have the columns of a merge.
            row_count: rows with an action of the table's rows; with others nothing is committed. None: any.
            changes_data: whether the table has other rows then.
        """
        ...


class TableTarget(Protocol):
    """A table, by its place."""

    def at_present(self, call: str, configuration: Configuration) -> TableVersion:
        """Return the last version, which an environment opens.

        Raises: PlanError (no table), NotYetSupportedError (it cannot be written).
        """
        ...

    def changes(self, since: int | None, environment: Any) -> Any:
        """Return the rows that versions have changed, as a data set. Raises: PlanError, NotYetSupportedError."""
        ...
