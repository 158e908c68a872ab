"""A merge: rows that change, go into, or leave a table by what another data set has under the same keys.

    1  lowest and highest keys of the source ──► files of the table that may have one of them
    2  those files with the source's keys     ──► files that have one; an error where a key is twice in the source
    3  rows of these files, joined with the source ──► their rows then, and new ones, in new files; one commit

The joins are those of every job, so that they keep to its memory whatever the sizes are. Files without a matching row
are not touched, unless rows that the source does not have are changed, too. Where rows are only inserted no file is.
The source is read in each step, so that its rows must be the same each time.

Where the table deletes rows by their places, the third step is all: changed rows, with the places of the old ones, and
new ones go into new files, and the places into files of deletes.

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import col, count, lit, max_, min_
from engine.api.merge_clauses import IN_SOURCE, SOURCE, TARGET, Clause, MergeClauses, Sides
from engine.api.table_rows import table_rows
from engine.errors import ConfigurationError, DataError, SchemaError
from engine.graph.merge_action import ACTION, FILE, INSERTED, KEPT, POSITION
from engine.graph.plan import Source
from engine.lowering.logical_node import LogicalNode

if TYPE_CHECKING:
    from engine.formats.source_format import FoundSource
    from engine.formats.table_target import TableTarget, TableVersion
    from engine.graph.expression import Expression

_CALL: Final = "merge_into"
_PLACES: Final = (FILE, POSITION)
_COUNT: Final = "rows of the source"


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
    version = target.at_present(_CALL)
    _check_keys(keys, version, source.schema)
    return _Merge(source, version, list(keys), MergeClauses(Sides(version.schema, source.schema), *clauses)).run()


def _check_keys(keys: Sequence[str], version: TableVersion, source: pa.Schema) -> None:
    if not keys:
        raise ConfigurationError(f"{_CALL}: on=[]: name the columns by which rows match")
    for key in keys:
        for side, schema in (("the table", version.schema), ("the data set", source)):
            if key not in schema.names:
                raise SchemaError(f"{_CALL}: on={key!r}: {side} has no such column; it has {schema.names}")


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
        if self._version.deletes_rows:
            return self._result(self._written(self._marked(), []), 0)
        touched = self._touched()
        if not touched and self._clauses.not_matched.action is None:
            return self._result({}, 0)
        return self._result(self._written(self._rewritten(touched), touched), len(touched))

    def _result(self, facts: dict[str, Any], rewritten: int) -> MergeResult:
        inserted, updated, deleted = (int(facts.get(f"rows_{word}", 0)) for word in ("inserted", "updated", "deleted"))
        return MergeResult(inserted, updated, deleted, rewritten, int(facts.get("version", self._version.version)))

    def _data_set(self, found: FoundSource) -> Any:
        spec, statistics, schema = found
        return self._source._with(LogicalNode(Source(spec, statistics), (), schema))

    def _written(self, rows: Any, removed: Sequence[str]) -> dict[str, Any]:
        """Write rows into the place of files, at once; return what the output tells of itself."""
        looked_for = None if self._clauses.by_source.action is not None else self._bounds or None
        output = self._version.rewrite(removed, looked_for, merges=True, changes_data=True)
        node = table_rows(rows._node, output, _CALL)
        return dict(rows._environment.run_to_sink(node, output.spec, _CALL).outputs[0].facts)

    # ---- files that are touched

    def _possible(self, names: Sequence[str], *, has_file: bool = False, has_place: bool = False) -> Any:
        """Return columns of the table's rows whose keys lie between those of the source."""
        rows = self._version.rows(self._data_set, has_file=has_file, has_place=has_place)
        for key, (low, high) in self._bounds.items():
            rows = rows.filter((col(key) >= low) & (col(key) <= high))
        return rows.select(*names)

    @cached_property
    def _bounds(self) -> dict[str, tuple[Any, Any]]:
        """The lowest and the highest value of keys in the source."""
        ordered = [key for key in self._keys if _has_order(self._source.schema.field(key).type)]
        if not ordered:
            return {}
        asked = {f"{word} {key}": call(key) for key in ordered for word, call in (("low", min_), ("high", max_))}
        (found,) = self._source.agg(**asked).to_arrow().to_pylist()
        return {key: (found[f"low {key}"], found[f"high {key}"]) for key in ordered if found[f"low {key}"] is not None}

    def _known_keys(self) -> Any:
        """Return the source's rows that may match."""
        rows = self._source
        for key in self._keys:
            rows = rows.filter(col(key).is_not_null())
        return rows

    def _source_keys(self) -> Any:
        """Return the source's keys, and how many rows have each."""
        return self._known_keys().group_by(*self._keys).agg(**{_COUNT: count()})

    def _check_matches(self) -> None:
        """Raise DataError where several rows of the source have the key of one of the table."""
        twice = self._source_keys().filter(col(_COUNT) > 1)
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
        """Return the files with a row that changes. Raises: DataError, as ``_check_matches``."""
        if self._clauses.by_source.action is not None:
            self._check_matches()
            return [file.path for file in self._version.files()]
        if self._clauses.matched.where is not None and self._clauses.not_matched.action is None:
            self._check_matches()
            return self._touched_by(self._clauses.matched.where)
        pairs = self._possible([*self._keys, FILE], has_file=True).join(self._source_keys(), on=self._keys)
        found = pairs.group_by(FILE).agg(**{_COUNT: max_(_COUNT)}).to_arrow().to_pylist()
        if any(each[_COUNT] > 1 for each in found):
            self._check_matches()
        return sorted(each[FILE] for each in found)

    def _touched_by(self, where: Expression) -> list[str]:
        """Return the files with a row for which a condition over both sides is true."""
        left = self._possible([*self._version.schema.names, FILE], has_file=True)
        pairs = self._pairs(left, _renamed(self._known_keys(), SOURCE), "inner")
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
        there = self._version.rows(self._data_set, touched)
        rows = self._changed(there, "left").select(*self._version.schema.names, ACTION)
        if self._clauses.not_matched.action is None:
            return rows
        return rows.union(self._inserted(there.select(*self._keys)))

    def _marked(self) -> Any:
        """Return the rows that change or go, with their places, and those that are new."""
        self._check_matches()
        names = self._version.schema.names
        by_source = self._clauses.by_source.action is not None
        if by_source:
            there = self._version.rows(self._data_set, has_file=True, has_place=True)
        else:
            there = self._possible([*names, FILE, POSITION], has_file=True, has_place=True)
        rows = self._changed(there, "left" if by_source else "inner").filter(col(ACTION) != KEPT)
        rows = rows.select(*names, ACTION, FILE, POSITION)
        if self._clauses.not_matched.action is None:
            return rows
        inserted = self._inserted(self._possible(self._keys))
        return rows.union(inserted.with_columns(**{FILE: lit(None, pa.string()), POSITION: lit(None, pa.int64())}))

    def _changed(self, there: Any, how: str) -> Any:
        """Return rows of the table as they are then, with what becomes of them, and where they are if that is known."""
        source = _renamed(self._source, SOURCE).with_columns(**{IN_SOURCE: lit(True)})
        pairs = self._pairs(there, source, how).with_columns(**{ACTION: self._clauses.action()})
        columns = {name: self._clauses.column(name, ACTION) for name in self._version.schema.names}
        return pairs.select(**columns, **{name: col(name) for name in (ACTION, *_PLACES) if name in pairs.schema.names})

    def _pairs(self, there: Any, source: Any, how: str) -> Any:
        """Return rows of the table beside those of the source with the same keys."""
        left_on, right_on = ([side + key for key in self._keys] for side in (TARGET, SOURCE))
        return _renamed(there, TARGET).join(source, left_on=left_on, right_on=right_on, how=how)


def _renamed(rows: Any, side: str) -> Any:
    """Return rows with the side in front of the names of columns, but for those of their places."""
    return rows.select(**{name if name in _PLACES else side + name: col(name) for name in rows.schema.names})


def _has_order(data_type: Any) -> bool:
    """Return whether the lowest and the highest value of a type rule out files."""
    simple = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_decimal)
    # Python has no moments of nanoseconds.
    is_moment = pa.types.is_timestamp(data_type) and data_type.unit != "ns"
    return is_moment or any(is_kind(data_type) for is_kind in simple)
