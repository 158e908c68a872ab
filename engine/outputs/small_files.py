"""``env.optimize``: rows of small files of a table in few files, as a job; the table has the same rows.

    files smaller than wanted, by partition ──► their rows, sorted ──► files of the wanted size; one commit of the table

A partition with one such file stays as it is. With an order all files are written anew.

Held by: tests/delta_tables/test_optimize.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from engine.expressions.column_names import check_columns
from engine.graph.plan import Source
from engine.lowering.logical_node import LogicalNode
from engine.outputs.sink_options import file_size
from engine.outputs.table_rows import table_rows

if TYPE_CHECKING:
    from engine.formats.source_format import FoundSource
    from engine.formats.table_target import TableFile, TableTarget

_CALL: Final = "optimize"
#: bytes of a file, where the user does not say it
FILE_BYTES: Final = 128 << 20
#: part of the wanted size from which a file is large enough
_ENOUGH: Final = 0.75


class OptimizeResult(NamedTuple):
    """The files that an optimization took away, and those that it made."""

    files_removed: int
    files_added: int
    #: version of the table that has the new files, or the one before where none were made
    version: int


def optimized(
    environment: Any,
    target: TableTarget,
    sort_by: str | Sequence[str] | None,
    target_file_size: int | str | None,
) -> OptimizeResult:
    """Write files of a table anew, in an Environment."""
    version = target.at_present(_CALL, environment.configuration)
    wanted = file_size(target_file_size, _CALL) or FILE_BYTES
    order = [sort_by] if isinstance(sort_by, str) else list(sort_by or ())
    check_columns(order, version.schema)
    files = version.files()
    removed = _chosen(files, wanted, is_sorted=bool(order))
    if not removed:
        return OptimizeResult(0, 0, version.version)
    output = version.rewrite(removed, merges=False, changes_data=False)
    spec = replace(output.spec, target_file_bytes=wanted)
    keys = tuple(dict.fromkeys((*spec.partition_by, *order))) if order else output.order
    # Each subtask makes a file of its own.
    size_bytes = sum(file.size_bytes for file in files if file.path in {*removed})
    subtasks = min(environment.parallelism, max(1, -(-size_bytes // wanted)))

    def data_set(found: FoundSource) -> Any:
        source, statistics, schema = found
        return environment._data_set(LogicalNode(Source(source, statistics), (), schema, parallelism=subtasks))

    rows = table_rows(version.rows(data_set, removed, moves=True)._node, output._replace(spec=spec, order=keys), _CALL)
    facts = environment.run_to_sink(rows, spec, _CALL).outputs[0].facts
    return OptimizeResult(len(removed), int(facts["files_added"]), int(facts["version"]))


def _chosen(files: Sequence[TableFile], wanted: int, *, is_sorted: bool) -> list[str]:
    """Return the paths of files that are written anew."""
    if is_sorted:
        return [file.path for file in files]
    small: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.size_bytes < _ENOUGH * wanted:
            small[file.partition].append(file.path)
    return [path for paths in small.values() if len(paths) > 1 for path in paths]
