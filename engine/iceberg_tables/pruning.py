"""Files of a source that are left out while a job is planned, by what manifests say, and samples of the others.

    bounds(spec, names) -> pa.Table                       a row for each split; None where the plan of files is gone
    files_between(metadata, files, {"x": (1, 9)}, call)   those that may have a row with such values
    without_other_buckets(source, schema, predicate)      of ``id = 7`` the files of its bucket alone
    with_sample(source, schema, names, ...)               as Parquet's, of files that have columns as the table does

Held by: tests/iceberg_tables/test_pruning.py
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
import pyarrow as pa

from engine.errors import EngineError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.formats.split_pruning import may_be_between, with_splits
from engine.graph.expression import Call, ColumnRef, Expression, Literal, conjuncts
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics
from engine.iceberg_tables.arrow_types import field_id, to_arrow
from engine.iceberg_tables.bounds import file_bounds
from engine.iceberg_tables.file_columns import FileColumns
from engine.iceberg_tables.planned_files import PlannedFile, data_path, kept_plan
from engine.parquet.footers import arrow_schema, read_footer
from engine.parquet.sample import sampled_groups
from engine.parquet.sample import with_sample as parquet_sample
from engine.parquet.scan_request import file_source

_BUCKET: Final = re.compile(r"bucket\[(\d+)\]\Z")
#: members of a list whose buckets are looked up
_MEMBERS_MAX: Final = 1000
#: files of which the footers are read for a sample
_SAMPLED_FILES: Final = 4


def bounds(spec: FormatSource, names: Sequence[str]) -> pa.Table | None:
    """Return the bounds of columns for each split."""
    found = _planned(spec)
    if found is None:
        return None
    metadata, files = found
    schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
    paths = list(dict.fromkeys(split.path for split in spec.splits))
    table = file_bounds(metadata, [files[path] for path in paths], schema, names)
    places = {path: index for index, path in enumerate(paths)}
    return table if len(paths) == len(spec.splits) else table.take([places[split.path] for split in spec.splits])


def files_between(
    metadata: Any, files: Sequence[PlannedFile], between: Mapping[str, tuple[Any, Any]], call: str
) -> list[PlannedFile]:
    """Return the files that may have rows with values of columns between the lowest and the highest."""
    known = file_bounds(metadata, files, to_arrow(metadata.schema(), call), list(between))
    return [each for each, may in zip(files, may_be_between(known, between).to_pylist(), strict=True) if may]


def _planned(spec: FormatSource) -> tuple[Any, dict[str, PlannedFile]] | None:
    """Return the table's metadata and its files, by path."""
    kept = kept_plan(str(spec.options["plan"]))
    if kept is None:
        return None
    metadata, plan = kept
    files = (*plan.files, *plan.equality_deletes)
    return metadata, {data_path(each.file.file_path): each for each in files}


def without_other_buckets(source: Source, schema: PlanSchema, predicate: Expression | None) -> Source:
    """Return a source without files whose bucket has none of the values that a column is to be equal to."""
    spec = source.spec
    assert isinstance(spec, FormatSource)
    found = _planned(spec) if predicate is not None and spec.splits else None
    if found is None or predicate is None:
        return source
    metadata, files = found
    types, ids = to_arrow_schema(schema), pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
    wanted: dict[tuple[int, int], set[Any]] = {}
    for part in conjuncts(predicate):
        for name, values in _equal_to(part):
            _add_buckets(wanted, metadata, ids.field(name), types.field(name).type, values)
    if not wanted:
        return source
    paths = {split.path for split in spec.splits}
    gone = {path for path in paths if _is_elsewhere(metadata, files[path], wanted)}
    kept = tuple(split for split in spec.splits if split.path not in gone)
    return with_splits(source, msgspec.structs.replace(spec, splits=kept), None, "files") if gone else source


def _equal_to(part: Expression) -> list[tuple[str, list[Any]]]:
    """Return the column and the values one of which it must be equal to, for a part of a filter; [] for others."""
    match part:
        case Call(function="equal", arguments=(ColumnRef(name=name), Literal(value=value))):
            return [(name, [value])]
        case Call(function="equal", arguments=(Literal(value=value), ColumnRef(name=name))):
            return [(name, [value])]
        case Call(function="is_in", arguments=(ColumnRef(name=name), *members)) if len(members) <= _MEMBERS_MAX:
            values = [each.value for each in members if isinstance(each, Literal)]
            return [(name, values)] if len(values) == len(members) else []
    return []


def _add_buckets(
    wanted: dict[tuple[int, int], set[Any]], metadata: Any, field: pa.Field, data_type: pa.DataType, values: list[Any]
) -> None:
    """Add the buckets of values, by specification and place of the field in it. Integers and texts are looked up."""
    is_integer = pa.types.is_integer(data_type) and all(type(each) is int for each in values)
    is_text = pa.types.is_string(data_type) and all(type(each) is str for each in values)
    if not (is_integer or is_text):
        return
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import LongType, StringType

    for spec_id, partition_spec in metadata.specs().items():
        for place, one in enumerate(partition_spec.fields):
            if one.source_id == field_id(field) and _BUCKET.match(str(one.transform)):
                assert isinstance(one.transform, BucketTransform)
                bucket = one.transform.transform(LongType() if is_integer else StringType())
                buckets = {bucket(each) for each in values if not is_integer or -(1 << 63) <= each < 1 << 63}
                key = (spec_id, place)
                wanted[key] = wanted[key] & buckets if key in wanted else buckets


def _is_elsewhere(metadata: Any, planned: PlannedFile, wanted: dict[tuple[int, int], set[Any]]) -> bool:
    spec_id, values = planned.partition
    return any((spec_id, place) in wanted and value not in wanted[spec_id, place] for place, value in enumerate(values))


def with_sample(
    source: Source,
    schema: PlanSchema,
    names: Collection[str],
    predicates: Sequence[Expression],
    carried: Collection[str],
) -> SourceStatistics:
    """Return statistics with what a sample of files says of columns."""
    spec = source.spec
    assert isinstance(spec, FormatSource)
    if not spec.splits:
        return source.statistics
    with suppress(OSError, pa.ArrowException, EngineError):
        whole = {split.path: split for split in reversed(spec.splits)}
        splits = list(map(_first_group, whole.values()))
        paths = [each.path for each in sampled_groups(splits)]
        if all(_is_alike(spec, path, names) for path in paths):
            found = file_source(list(whole), _alone(splits, paths), spec.columns)
            return parquet_sample(found, source.statistics, schema, names, predicates, carried)
    return source.statistics


def _first_group(split: SourceSplit) -> SourceSplit:
    return SourceSplit(split.path, 0, 1, split.size_bytes)


def _alone(splits: Sequence[SourceSplit], paths: Sequence[str]) -> Sequence[SourceSplit]:
    """Return all row groups, where there are few files: a sample of all rows is known as such."""
    if len(splits) > _SAMPLED_FILES:
        return splits
    return [SourceSplit(path, each, each + 1, 1) for path in paths for each in range(read_footer(path).num_row_groups)]


def _is_alike(spec: FormatSource, path: str, names: Collection[str]) -> bool:
    """Return whether a file has columns under the names of the table, and of its types."""
    schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
    found = arrow_schema(read_footer(path))
    fields = [schema.field(name) for name in names]
    columns = FileColumns(found, fields, {}, str(spec.options["mapping"]), path)
    is_simple = {*names} <= columns.simple
    return is_simple and all(
        field.name in found.names and found.field(field.name).type == field.type for field in fields
    )
