"""A merge: rows that change, go into, or leave a table by what another data set has under the same keys.

    1  lowest and highest keys of the source  ──► files of the table that may have one of them
    2  keys of those files, a few keys of the source first, then all ──► files that have one
    3  rows of these files, joined with the source ──► their rows then, and new ones, in new files; one commit

Most tables need neither step 2 nor the rows that stay as they are: the join has keys and places of the table's rows,
and its sink gets the changes of each file in order. It writes the file anew, and copies what has no change (``patch``).

The joins are those of every job, so that they keep to its memory whatever the sizes are. Files without a matching row
are not touched, unless rows that the source does not have are changed, too. Where rows are only inserted no file is.
Often a few keys of a large source are in all files, so that its others need not be looked up in step 2. Two rows of the
source for one row of the table make more rows in step 3 than its files have, so that the commit is refused.
A table with deletion vectors has no step 2: rows that change are found by the join, deleted by their places, and
written anew; the files stay, and only keys and the columns that a clause takes are read of them.
The source is read in each step, so that its rows must be the same each time.

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, count, lit, when
from engine.errors import DataError, JobExecutionError
from engine.graph.merge_action import ACTION, DELETED, FILE, IGNORED, INSERTED, KEPT, POSITION, UPDATED
from engine.graph.plan import Source
from engine.lowering.logical_node import LogicalNode
from engine.outputs.merge_clauses import IN_SOURCE, IN_TARGET, SOURCE, TARGET, Clause, MergeClauses, Sides
from engine.outputs.merge_keys import Bounds, check_keys, in_table, key_bounds
from engine.outputs.table_rows import in_file_order, kept_ids, table_rows, with_images

if TYPE_CHECKING:
    from engine.formats.source_format import FoundSource
    from engine.formats.table_target import TableOutput, TablePatch, TableTarget, TableVersion
    from engine.graph.expression import Expression

_CALL: Final = "merge_into"
_COUNT: Final = "rows of the source"
#: keys of the source that are looked up first
_FIRST_KEYS: Final = 4096


class MergeResult(NamedTuple):
    """The changes that a merge made."""

    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    #: files of the table that others took the place of
    files_rewritten: int
    #: version of the table that has the changes, or the one before where there are none
    version: int


def merged(
    source: Any, target: TableTarget, keys: tuple[str, ...], clauses: tuple[Clause, Clause, Clause]
) -> MergeResult:
    """Merge the rows of a DataSet into a table; ``clauses``: of matched rows, those of the source, of the table."""
    version = target.at_present(_CALL, source._environment.configuration)
    check_keys(keys, version.schema, source.schema)
    found = MergeClauses(Sides(version.schema, source.schema), *clauses, version.default_of)
    return _Merge(source, version, list(keys), found).run()


class _Merge:
    """One merge."""

    def __init__(self, source: Any, version: TableVersion, keys: list[str], clauses: MergeClauses) -> None:
        self._source = source
        self._version = version
        self._keys = keys
        self._clauses = clauses

    def run(self) -> MergeResult:
        """Run it; nothing is changed where it fails."""
        changes = self._clauses.matched.action is not None
        if not changes and self._clauses.by_source.action is None:
            if self._clauses.not_matched.action is None:
                return self._result({}, 0)
            return self._result(self._written(self._inserted(self._possible(self._keys)), []), 0)
        self._version.check_removal(_CALL)
        patch = self._patch()
        if patch is not None:
            return self._patched(patch)
        touched = [] if self._version.deletes_rows else self._touched()
        if not touched and not self._version.deletes_rows and self._clauses.not_matched.action is None:
            return self._result({}, 0)
        row_count = None if self._version.deletes_rows else self._version.row_count(touched)
        if not self._is_checked(row_count):
            self._check_matches()
        rows = self._changed() if self._version.deletes_rows else self._rewritten(touched)
        try:
            facts = self._written(rows, touched, row_count)
        except JobExecutionError:
            self._check_matches()
            raise
        return self._result(facts, len(touched))

    def _patch(self) -> TablePatch | None:
        """Return the way of rows alone that change, where the table has one and the others are not needed."""
        if self._clauses.by_source.action is not None:
            return None
        matched = self._clauses.matched
        deletes = matched.action == DELETED or matched.deletes is not None
        return self._version.patch(self._clauses.changes(self._keys), self._looked_for, deletes=deletes)

    def _patched(self, patch: TablePatch) -> MergeResult:
        """Write files anew with the rows that change."""
        # Of two that match a condition may leave one.
        if self._clauses.matched.where is not None:
            self._check_matches()
        inserts = self._clauses.not_matched.action is not None
        pairs = self._pairs(self._between(patch.rows(self._data_set)), "right" if inserts else "inner")
        pairs = pairs.filter((col(ACTION) != KEPT) & (col(ACTION) != IGNORED))
        rows = pairs.select(
            **{name: self._patched_column(name, patch) for name in self._version.schema.names},
            **{name: col(name) for name in (ACTION, FILE, POSITION)},
        )
        output = patch.output(self._looked_for or None)
        try:
            facts = self._run(in_file_order(rows, output, patch.spread or self._keys, _CALL), output)
        except JobExecutionError:
            self._check_matches()
            raise
        return self._result(facts, int(facts.get("files_removed", 0)))

    def _patched_column(self, name: str, patch: TablePatch) -> Expr:
        value = self._clauses.changed(name, ACTION, self._clauses.changes(self._keys))
        if name not in patch.kept:
            return value
        return when(col(ACTION) == INSERTED).then(value).otherwise(col(TARGET + name))

    def _is_checked(self, row_count: int | None) -> bool:
        """Return whether the commit refuses two rows of the source for one of the table."""
        if not self._version.deletes_rows:
            return row_count is not None and self._version.checks_matches
        # Of two that match a condition may leave one.
        return self._version.checks_matches and self._clauses.matched.where is None

    def _result(self, facts: dict[str, Any], rewritten: int) -> MergeResult:
        inserted, updated, deleted = (int(facts.get(f"rows_{word}", 0)) for word in ("inserted", "updated", "deleted"))
        return MergeResult(inserted, updated, deleted, rewritten, int(facts.get("version", self._version.version)))

    def _data_set(self, found: FoundSource) -> Any:
        spec, statistics, schema = found
        return self._source._with(LogicalNode(Source(spec, statistics), (), schema))

    def _written(self, rows: Any, removed: Sequence[str], row_count: int | None = None) -> dict[str, Any]:
        """Write rows into the place of files, at once; return what the output tells of itself.

        row_count: rows of these files, each of which is once among the rows, whatever becomes of it.
        """
        looked_for = None if self._clauses.by_source.action is not None else self._looked_for or None
        output = self._version.rewrite(removed, looked_for, merges=True, changes_data=True, row_count=row_count)
        return self._run(table_rows(rows._node, output, _CALL), output)

    def _run(self, node: LogicalNode, output: TableOutput) -> dict[str, Any]:
        """Write rows; return what the output tells of itself."""
        return dict(self._source._environment.run_to_sink(node, output.spec, _CALL).outputs[0].facts)

    # ---- files that are touched

    def _possible(self, names: Sequence[str], *, has_file: bool = False, paths: Sequence[str] | None = None) -> Any:
        """Return columns of the table's rows whose keys lie between those of the source."""
        return self._between(self._version.rows(self._data_set, paths, has_file=has_file)).select(*names)

    def _between(self, rows: Any) -> Any:
        """Return rows of the table whose keys lie between those of the source."""
        for key, (low, high) in self._bounds.items():
            data_type = self._source.schema.field(key).type
            rows = rows.filter((col(key) >= lit(low, data_type)) & (col(key) <= lit(high, data_type)))
        return rows

    @cached_property
    def _bounds(self) -> Bounds:
        """The lowest and the highest value of keys in the source."""
        return key_bounds(self._source, self._keys)

    @cached_property
    def _looked_for(self) -> Bounds:
        """The same, as the table has such values."""
        return in_table(self._bounds, self._version.schema, self._source.schema)

    def _known_keys(self) -> Any:
        """Return the source's rows that may match."""
        rows = self._source
        for key in self._keys:
            rows = rows.filter(col(key).is_not_null())
        return rows

    def _check_matches(self) -> None:
        """Raise DataError where several rows of the source have the key of one of the table."""
        counted = self._known_keys().group_by(*self._keys).agg(**{_COUNT: count()})
        twice = counted.filter(col(_COUNT) > 1)
        if self._version.deletes_rows and not twice.limit(1).to_arrow().num_rows:
            return
        found = self._possible(self._keys).join(twice, on=self._keys).limit(1).to_arrow().to_pylist()
        if found:
            key = ", ".join(f"{name}={found[0][name]!r}" for name in self._keys)
            raise DataError(
                f"{_CALL}({self._version.name!r}): {found[0][_COUNT]} rows of the source have the key {key} of one row"
                " of the table; nothing was changed: keep one of them, as by distinct(subset=...)"
            )

    def _touched(self) -> list[str]:
        """Return the files with a row that changes."""
        matched, alone = self._clauses.matched, self._clauses.by_source
        files = [file.path for file in self._version.files()]
        if alone.action is not None:
            return files
        if matched.where is not None and self._clauses.not_matched.action is None:
            return self._touched_by(matched.where)
        # A row that matches and does not change is none that is inserted, so that all matches count.
        keys = self._known_keys().select(*self._keys)
        found = self._files_with(keys.limit(_FIRST_KEYS), files)
        if len(found) < len(files):
            found += self._files_with(keys, sorted({*files} - {*found}))
        return sorted(found)

    def _files_with(self, keys: Any, paths: Sequence[str]) -> list[str]:
        """Return the files of ``paths`` that have a row with one of some keys."""
        pairs = self._possible([*self._keys, FILE], has_file=True, paths=paths).join(keys, on=self._keys, how="semi")
        found: list[str] = pairs.select(FILE).distinct().to_arrow().column(FILE).to_pylist()
        return found

    def _touched_by(self, where: Expression) -> list[str]:
        """Return the files with a row for which a condition over both sides is true."""
        left = self._possible([*self._version.schema.names, FILE], has_file=True)
        pairs = _renamed(left, TARGET).join(
            _renamed(self._known_keys(), SOURCE),
            left_on=[TARGET + key for key in self._keys],
            right_on=[SOURCE + key for key in self._keys],
        )
        found: list[str] = pairs.filter(Expr(where)).select(FILE).distinct().to_arrow().column(FILE).to_pylist()
        return sorted(found)

    # ---- rows that are written

    def _inserted(self, there: Any) -> Any:
        """Return the new rows: those of the source that match none of some rows, which have the keys alone."""
        rows = _renamed(self._source.join(there, on=self._keys, how="anti"), SOURCE)
        if self._clauses.not_matched.where is not None:
            rows = rows.filter(Expr(self._clauses.not_matched.where))
        columns = {name: self._clauses.inserted(name) for name in self._version.schema.names}
        return rows.select(**columns, **{ACTION: lit(INSERTED)})

    def _rewritten(self, touched: Sequence[str]) -> Any:
        """Return the rows of files as they are then, and those that are new."""
        inserts = self._clauses.not_matched.action is not None
        there = self._version.rows(self._data_set, touched, moves=bool(touched))
        pairs = self._pairs(there, "full" if inserts else "left")
        if self._clauses.not_matched.where is not None:
            pairs = pairs.filter(col(ACTION) != IGNORED)
        ids = kept_ids(self._version, col(ACTION) == UPDATED, TARGET) if touched else {}
        return self._with_images(pairs, {ACTION: col(ACTION), **ids})

    def _changed(self) -> Any:
        """Return the rows that change, each with the place of what it was, and those that are new."""
        inserts = self._clauses.not_matched.action is not None
        there = self._version.rows(self._data_set, has_file=True, has_place=True)
        if self._clauses.by_source.action is not None:
            pairs = self._pairs(there, "full" if inserts else "left")
        else:
            pairs = self._pairs(self._between(there), "right" if inserts else "inner")
        pairs = pairs.filter((col(ACTION) != KEPT) & (col(ACTION) != IGNORED))
        return self._with_images(pairs, {name: col(name) for name in (ACTION, FILE, POSITION)})

    def _pairs(self, there: Any, how: str) -> Any:
        """Return rows of the table beside those of the source with the same keys, and what becomes of each pair."""
        pairs = _renamed(there, TARGET).with_columns(**{IN_TARGET: lit(True)})
        pairs = pairs.join(
            _renamed(self._source, SOURCE).with_columns(**{IN_SOURCE: lit(True)}),
            left_on=[TARGET + key for key in self._keys],
            right_on=[SOURCE + key for key in self._keys],
            how=how,
        )
        return pairs.with_columns(**{ACTION: self._clauses.action()})

    def _with_images(self, pairs: Any, facts: dict[str, Expr]) -> Any:
        """Return the rows of pairs as they are then, beside columns of facts; where it is wanted, as they were, too."""
        names = self._version.schema.names
        # Of a pair that is updated values of the source need no old one, which would be read of all rows.
        is_plain = self._version.deletes_rows and self._clauses.updates_alone
        column = self._clauses.updated if is_plain else self._clauses.column
        rows = pairs.select(**{name: column(name, ACTION) for name in names}, **facts)
        if not self._version.keeps_changes:
            return rows
        before = pairs.filter(col(ACTION) == UPDATED)
        return with_images(rows, before.select(**{name: col(TARGET + name) for name in names}))


def _renamed(rows: Any, side: str) -> Any:
    """Return rows with the side in front of the names of columns, but for those of places."""
    return rows.select(**{name if name in (FILE, POSITION) else side + name: col(name) for name in rows.schema.names})
