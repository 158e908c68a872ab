"""UPDATE and DELETE of a table's rows by a condition over them, by one commit.

    files with a row that meets the condition ──► their rows as they are then, in new files
    or, where the table deletes rows by their places ──► rows that are updated, in new files; places of the old ones

A filter of the table's rows finds them, so that files that cannot have one are ruled out as in every query.

Held by: tests/sql/test_table_changes.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.api.merge_plan import MergeResult
from engine.api.table_rows import table_rows, with_images
from engine.graph.merge_action import ACTION, DELETED, FILE, KEPT, POSITION, UPDATED
from engine.graph.plan import Source
from engine.lowering.logical_node import LogicalNode

if TYPE_CHECKING:
    from engine.formats.source_format import FoundSource
    from engine.formats.table_target import TableTarget


def changed(
    environment: Any, target: TableTarget, where: Expr | None, values: Mapping[str, Expr] | None, call: str
) -> MergeResult:
    """Update the rows that meet a condition, None for all, or delete them where there are no ``values``."""
    version = target.at_present(call)

    def data_set(found: FoundSource) -> Any:
        spec, statistics, schema = found
        return environment._data_set(LogicalNode(Source(spec, statistics), (), schema))

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
        there = version.rows(data_set, removed).with_columns(**{ACTION: becomes})
    columns = {name: col(name) for name in version.schema.names}
    for name, value in (values or {}).items():
        new = value.cast(version.schema.field(name).type)
        columns[name] = new if version.deletes_rows else when(col(ACTION) == UPDATED).then(new).otherwise(col(name))
    places = [name for name in (ACTION, FILE, POSITION) if name in there.schema.names]
    rows = there.select(**columns, **{name: col(name) for name in places})
    if version.keeps_changes and values is not None:
        rows = with_images(rows, there.filter(col(ACTION) == UPDATED).select(*version.schema.names))
    output = version.rewrite(removed, merges=True, changes_data=True)
    facts = environment.run_to_sink(table_rows(rows._node, output, call), output.spec, call).outputs[0].facts
    inserted, updated, deleted = (int(facts.get(f"rows_{word}", 0)) for word in ("inserted", "updated", "deleted"))
    return MergeResult(inserted, updated, deleted, len(removed), int(facts.get("version", version.version)))
