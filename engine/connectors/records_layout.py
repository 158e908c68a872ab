"""Layout of record data sets: proofs about the order of rows, by which sorts and shuffles can be saved.

    manifest: each part is sorted by (a, b) ──┐
    footers: no part begins before the last ends ──► the rows are sorted by (a, b), part after part, row group by group
    manifest: equal values of (a) are in one part ──► readers of whole parts have all rows of a value

The manifest's word is not enough for the order: bounds of all row groups must agree with it. Nothing is concluded for
columns with nulls, whose place others see differently, nor for floats, whose NaN has no bounds; where the last value
of a part is the first of the next one, further columns are in order within parts only.

Held by: tests/connectors/test_records_layout.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from engine.connectors.records_manifest import RecordsManifest
from engine.files.native_files import path_or_stream
from engine.graph.sort_key import SortKey
from engine.parquet.row_group_bounds import bounds_of
from engine.records.arrow_functions import pc
from engine.statistics.bounds_predicate import highest, lowest


def proven_order(manifest: RecordsManifest, parts: Sequence[str], schema: pa.Schema) -> tuple[SortKey, ...]:
    """Return the sort keys of the rows of all parts in order; () where no order is proven."""
    keys = []
    for name in manifest.sorted_by:
        if not _has_order(manifest, schema, name):
            break
        keys.append(SortKey(name))
    if not keys:
        return ()
    lows, highs, is_first = _bounds(parts, schema, keys[0].column)
    if lows.null_count or highs.null_count:
        return ()
    ends, begins = highs.slice(0, len(highs) - 1), lows.slice(1)
    if not _all(pc.less_equal(ends, begins)):
        return ()
    # Within a part further columns are in order whatever the first one does.
    is_apart = pc.or_(pc.less(ends, begins), pc.invert(is_first.slice(1)))
    return tuple(keys) if _all(is_apart) else tuple(keys[:1])


def _has_order(manifest: RecordsManifest, schema: pa.Schema, name: str) -> bool:
    known = manifest.columns.get(name)
    index = schema.get_field_index(name)
    if index < 0 or known is None or known.null_count != 0:
        return False
    kind = schema.types[index]
    return not (pa.types.is_floating(kind) or pa.types.is_nested(kind))


def _bounds(parts: Sequence[str], schema: pa.Schema, column: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return lowest and highest value of each row group of all parts, and whether it is the first of its part."""
    lows, highs, is_first = [], [], []
    for part in parts:
        footer = pq.read_metadata(path_or_stream(part))
        groups = [group for group in range(footer.num_row_groups) if footer.row_group(group).num_rows]
        bounds = bounds_of(footer, groups, [column], schema)
        lows.append(bounds[lowest(column)])
        highs.append(bounds[highest(column)])
        is_first += [True] + [False] * (len(groups) - 1)
    return pa.concat_arrays(lows), pa.concat_arrays(highs), pa.array(is_first)


def _all(flags: pa.BooleanArray) -> bool:
    return bool(pc.all(flags, min_count=0).as_py())
