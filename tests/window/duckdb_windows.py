"""Window functions by DuckDB: what calls of ours give over a table, in the order of its column ``id``."""

import math

import duckdb
import pyarrow as pa

#: DuckDB's names
_NAMES = {"avg": "avg", "stddev": "stddev_samp", "variance": "var_samp", "count_all": "count"}


def _bound(offset, direction, unit):
    if offset is None:
        return f"unbounded {direction}"
    if offset == 0:
        return "current row"
    distance = abs(offset)
    text = f"interval {distance} {unit}" if unit else str(distance)
    return f"{text} {'preceding' if offset < 0 else 'following'}"


def frame_text(frame, unit=""):
    """A frame in SQL; offsets of ranges over times are so many units."""
    unit = unit if frame.kind == "range" else ""
    return f"{frame.kind} between {_bound(frame.start, 'preceding', unit)} and {_bound(frame.end, 'following', unit)}"


def order_text(keys):
    return ", ".join(
        f'"{key.column}" {"desc" if key.descending else "asc"} nulls {"last" if key.nulls_last else "first"}'
        for key in keys
    )


def call_text(call, partition_by, order_by, unit=""):
    """A call in SQL. Functions without peers are ordered by all keys, others by their own."""
    given = [] if call.argument is None else [f'"{call.argument}"']
    given += [str(call.count)] if call.function in ("lag", "lead", "nth_value", "ntile") else []
    given += [] if call.default is None else [f'"{call.default}"']
    uses_peers = call.frame is not None and call.frame.kind == "range"
    uses_peers |= call.function in ("rank", "dense_rank", "percent_rank", "cume_dist")
    keys = order_by[: call.order_count] if uses_peers else order_by
    window = f"partition by {', '.join(partition_by)} " if partition_by else ""
    window += f"order by {order_text(keys)} " if keys else ""
    if call.frame is not None and (keys or call.frame.kind == "rows"):
        window += frame_text(call.frame, unit)
    name = _NAMES.get(call.function, call.function)
    return f'{name}({", ".join(given) or ("*" if name == "count" else "")}) over ({window}) as "{call.name}"'


def windows_of(table, partition_by, order_by, calls, unit=""):
    """The table with the results of all calls, by id."""
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        connection.register("rows", table)
        texts = ", ".join(call_text(call, partition_by, order_by, unit) for call in calls)
        return connection.sql(f"select id, {texts} from rows order by id").to_arrow_table()


def sorted_by(table, partition_by, order_by):
    """The rows as a sort by these keys gives them."""
    with duckdb.connect() as connection:
        connection.register("rows", table)
        keys = [f'"{name}" asc nulls first' for name in partition_by]
        keys += [order_text(order_by)] if order_by else []
        found = connection.sql(f"select * from rows order by {', '.join([*keys, 'id'])}").to_arrow_table()
        return found.cast(table.schema)


def values_differ(ours, theirs):
    if ours is None or theirs is None:
        return ours is not theirs
    if isinstance(ours, float):
        theirs = float(theirs)
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) != math.isnan(theirs)
        return not math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return ours != theirs


def differences(found, wanted, calls, most=5):
    """(call, id, ours, theirs) of the first values that differ; both tables have the column id."""
    found = found.sort_by("id")
    assert found.column("id").to_pylist() == wanted.column("id").to_pylist()
    ids = found.column("id").to_pylist()
    faults = []
    for call in calls:
        pairs = zip(ids, found.column(call.name).to_pylist(), wanted.column(call.name).to_pylist(), strict=True)
        faults += [(call, row, ours, theirs) for row, ours, theirs in pairs if values_differ(ours, theirs)]
    return faults[:most]


def table_of(batches, schema):
    return pa.Table.from_batches(list(batches), schema)
