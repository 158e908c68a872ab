"""UPDATE and DELETE of a table's rows by a condition over them, by one commit.

    rows that meet the condition, with their places ──► their files, written anew but for what has no change (``patch``)
    or files with such a row ──► their rows as they are then, in new files
    or, where the table deletes rows by their places ──► rows that are updated, in new files; places of the old ones

A filter of the table's rows finds them, so that files that cannot have one are ruled out as in every query.

Held by: tests/sql/test_table_changes.py
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit, when
from engine.graph.merge_action import ACTION, DELETED, FILE, KEPT, POSITION, UPDATED
from engine.graph.plan import Source
from engine.lowering.logical_node import LogicalNode
from engine.outputs.merge_plan import MergeResult
from engine.outputs.table_rows import in_file_order, kept_ids, table_rows, with_images

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.formats.source_format import FoundSource
    from engine.formats.table_target import TableTarget, TableVersion


def changed(
    environment: Any, target: TableTarget, where: Expr | None, values: Mapping[str, Expr] | None, call: str
) -> MergeResult:
    """Update the rows that meet a condition, None for all, or delete them where there are no ``values``."""
    version = target.at_present(call, environment.configuration)
    version.check_removal(call)

    def data_set(found: FoundSource) -> Any:
        spec, statistics, schema = found
        return environment._data_set(LogicalNode(Source(spec, statistics), (), schema))

    # Where all rows change there is nothing to copy but columns, and each would be put into order.
    patch = None if where is None else version.patch([*(values or ())], {}, deletes=values is None)
    if patch is not None:
        rows = _changes(patch.rows(data_set).filter(where), patch.kept, values, version.schema)
        output = patch.output(None)
        facts = environment.run_to_sink(in_file_order(rows, output, (), call), output.spec, call).outputs[0].facts
        return _result(facts, int(facts.get("files_removed", 0)), version)
    meets = lit(True) if where is None else where
    action = DELETED if values is None else UPDATED
    removed: list[str] = []
    if version.deletes_rows:
        there = (
            version.rows(data_set, has_file=True, has_place=True).filter(meets).with_columns(**{ACTION: lit(action)})
        )
    else:
        removed = [file.path for file in version.files()]
        if where is not None:
            found = version.rows(data_set, has_file=True).filter(meets).select(FILE).distinct().to_arrow()
            removed = sorted(found.column(FILE).to_pylist())
        if not removed:
            return MergeResult(0, 0, 0, 0, version.version)
        becomes = when(meets).then(action).otherwise(KEPT)
        there = version.rows(data_set, removed, moves=True).with_columns(**{ACTION: becomes})
    columns = {name: col(name) for name in version.schema.names}
    for name, value in (values or {}).items():
        new = value.cast(version.schema.field(name).type)
        columns[name] = new if version.deletes_rows else when(col(ACTION) == UPDATED).then(new).otherwise(col(name))
    places = [name for name in (ACTION, FILE, POSITION) if name in there.schema.names]
    ids = {} if version.deletes_rows else kept_ids(version, col(ACTION) == UPDATED)
    rows = there.select(**columns, **{name: col(name) for name in places}, **ids)
    if version.keeps_changes and values is not None:
        rows = with_images(rows, there.filter(col(ACTION) == UPDATED).select(*version.schema.names))
    output = version.rewrite(removed, merges=True, changes_data=True)
    facts = environment.run_to_sink(table_rows(rows._node, output, call), output.spec, call).outputs[0].facts
    return _result(facts, len(removed), version)


def _changes(found: Any, kept: Collection[str], values: Mapping[str, Expr] | None, schema: pa.Schema) -> Any:
    """Return the changes of rows: of columns that stay as they are nothing is read, but what is kept."""
    columns = {field.name: col(field.name) if field.name in kept else lit(None, field.type) for field in schema}
    columns |= {name: value.cast(schema.field(name).type) for name, value in (values or {}).items()}
    action = lit(DELETED if values is None else UPDATED)
    return found.select(**columns, **{ACTION: action, FILE: col(FILE), POSITION: col(POSITION)})


def _result(facts: Mapping[str, Any], files: int, version: TableVersion) -> MergeResult:
    inserted, updated, deleted = (int(facts.get(f"rows_{word}", 0)) for word in ("inserted", "updated", "deleted"))
    return MergeResult(inserted, updated, deleted, files, int(facts.get("version", version.version)))
