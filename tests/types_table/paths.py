"""Ways on which values of many types go at once: one job has a column of each type.

A way is a function of a ``Load`` that returns a table with the column ``k``, the place of each row, and the columns;
``WAYS`` has for each also the places of the rows that should come out. Ways that ``SPILLING`` names go over the disk,
too.
"""

from __future__ import annotations

import contextlib
import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq

import engine
from engine import JoinHint, col, lit, when
from tests.types_table.sampled_types import ROWS, plain, values_of

COUNT = len(ROWS)
PLACES = pa.array(range(COUNT), pa.int64())
ALL = tuple(range(COUNT))
WAYS = {}
SPILLING = set()


class Load:
    """Columns of some types, named after them; ``k`` is the place of a row."""

    def __init__(self, names, environment, folder):
        self.names, self.environment, self.folder = list(names), environment, folder
        self.table = pa.table({"k": PLACES, **{name: values_of(name) for name in self.names}})
        self.rows = environment.from_arrow(self.table)
        self.places = environment.from_arrow(pa.table({"k": PLACES}))

    def each(self, function):
        """Return expressions of the columns."""
        return {name: function(col(name)) for name in self.names}

    @property
    def declared(self):
        """The schema as it was given, with types that are encoded."""
        return self.table.schema

    def written(self, write):
        """Return the folder that a call of the rows has written."""
        write(self.rows, self.folder / "out")
        self.environment.execute()
        return self.folder / "out"


def way(places=ALL, spills=False):
    """Have a function among the ways; it gives the rows of these places."""

    def keep(function):
        WAYS[function.__name__] = (function, places)
        if spills:
            SPILLING.add(function.__name__)
        return function

    return keep


# -- sources, sinks and results


@way()
def to_arrow(load):
    return load.rows.to_arrow()


@way()
def to_batches(load):
    with load.rows.to_batches() as batches:
        return pa.Table.from_batches(list(batches), load.rows.schema)


@way()
def from_rows(load):
    rows = [tuple(row.values()) for row in load.table.to_pylist()]
    return load.environment.from_rows(rows, load.declared).to_arrow()


@way()
def write_parquet(load):
    return pq.read_table(load.written(lambda rows, path: rows.write_parquet(path)))


@way()
def read_parquet(load):
    return load.environment.read_parquet(load.written(lambda rows, path: rows.write_parquet(path))).to_arrow()


@way()
def write_ipc(load):
    files = sorted(load.written(lambda rows, path: rows.write_ipc(path)).iterdir())
    return pa.concat_tables([pa.feather.read_table(file) for file in files])


@way()
def read_ipc(load):
    """Others' files have types as they are encoded."""
    with pa.ipc.new_file(load.folder / "in.arrow", load.declared) as writer:
        writer.write_table(load.table)
    return load.environment.read_ipc(load.folder / "in.arrow").to_arrow()


@way()
def write_orc(load):
    files = sorted(load.written(lambda rows, path: rows.write_orc(path)).iterdir())
    return pa.concat_tables([pa.orc.read_table(file) for file in files])


@way()
def read_orc(load):
    return load.environment.read_orc(load.written(lambda rows, path: rows.write_orc(path))).to_arrow()


@way()
def records(load):
    return load.environment.read_records(load.written(lambda rows, path: rows.write_records(path))).to_arrow()


@way()
def write_csv(load):
    """What was written is read as its own type."""
    folder = load.written(lambda rows, path: rows.write_csv(path, header=True))
    return load.environment.read_csv(folder, schema=load.declared, header=True).to_arrow()


@way(places=(1,))
def read_csv(load):
    (load.folder / "in.csv").write_text(",".join(["k", *load.names]) + "\n1" + "," * len(load.names) + "\n")
    return load.environment.read_csv(load.folder / "in.csv", schema=load.declared, header=True).to_arrow()


@way()
def write_json(load):
    folder = load.written(lambda rows, path: rows.write_json(path))
    return load.environment.read_json(folder, schema=load.declared).to_arrow()


@way(places=(1,))
def read_json(load):
    (load.folder / "in.json").write_text('{"k": 1}\n')
    return load.environment.read_json(load.folder / "in.json", schema=load.declared).to_arrow()


@way()
def read_avro(load):
    import fastavro

    fields = [{"name": name, "type": _AVRO[name]} for name in load.names]
    schema = {"type": "record", "name": "row", "fields": [{"name": "k", "type": "long"}, *fields]}
    with (load.folder / "in.avro").open("wb") as file:
        fastavro.writer(file, schema, [_as_avro(row) for row in load.table.to_pylist()])
    return load.environment.read_avro(load.folder / "in.avro").to_arrow()


def _as_avro(row):
    return {name: dict(value) if name == "map_string" and value is not None else value for name, value in row.items()}


def _or_null(kind, **logical):
    return ["null", {"type": kind, **logical} if logical else kind]


_MOMENT = _or_null("long", logicalType="timestamp-micros")
#: of types that Avro has
_AVRO = {
    "bool": _or_null("boolean"),
    "int32": _or_null("int"),
    "int64": _or_null("long"),
    "float32": _or_null("float"),
    "float64": _or_null("double"),
    "decimal128": _or_null("bytes", logicalType="decimal", precision=20, scale=2),
    "date32": _or_null("int", logicalType="date"),
    "time32_ms": _or_null("int", logicalType="time-millis"),
    "time64_us": _or_null("long", logicalType="time-micros"),
    "timestamp_us_utc": _MOMENT,
    "string": _or_null("string"),
    "binary": _or_null("bytes"),
    "list_int64": _or_null("array", items=["null", "long"]),
    "list_string": _or_null("array", items=["null", "string"]),
    "map_string": _or_null("map", values=["null", "long"]),
}
OF_AVRO = frozenset(_AVRO)


@way()
def shown(load):
    """Whatever is shown of rows."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        load.rows.show()
    assert len(text.getvalue().splitlines()) > COUNT
    assert "filter" in load.rows.filter(col("k") >= 0).explain()
    assert "filter" in load.rows.filter(col("k") >= 0).explain(analyze=True)
    assert "k" in load.rows._repr_html_()
    return load.rows.to_arrow()


@way()
def cache(load):
    return load.rows.shuffle().cache().to_arrow()


# -- rows on their way


@way(spills=True)
def exchange(load):
    return load.rows.shuffle().to_arrow()


@way()
def broadcast_join(load):
    return load.places.join(load.rows, on="k", hint=JoinHint.BROADCAST_HASH_SECOND).to_arrow()


@way(spills=True)
def hash_join(load):
    return load.places.join(load.rows, on="k", how="left", hint=JoinHint.REPARTITION_HASH_SECOND).to_arrow()


@way(spills=True)
def sort_merge_join(load):
    return load.places.join(load.rows, on="k", how="full", hint=JoinHint.REPARTITION_SORT_MERGE).to_arrow()


@way()
def cross_join(load):
    return load.environment.from_arrow(pa.table({"one": [1]})).join(load.rows, how="cross").drop("one").to_arrow()


@way(spills=True)
def asof_join(load):
    return load.places.asof_join(load.rows, on="k").to_arrow()


@way(spills=True)
def sort(load):
    return load.rows.sort("k", descending=True).to_arrow()


@way(places=(0, 1, 2))
def limit(load):
    return load.rows.sort("k").limit(3).to_arrow()


@way(places=sorted([*ALL, *ALL]))
def union(load):
    return load.rows.union(load.rows).to_arrow()


@way(spills=True)
def numbered(load):
    return load.rows.with_row_index().drop("index").to_arrow()


@way(spills=True)
def first_of_groups(load):
    return load.rows.group_by("k").head(1, "k").to_arrow()


@way(spills=True)
def collected(load):
    """A list of all rows, and rows of it."""
    row = engine.struct(k=col("k"), **load.each(lambda value: value))
    return load.rows.agg(row=engine.collect_list(row)).explode("row").unnest("row").to_arrow()


@way(places=(1, *range(COUNT - 1)), spills=True)
def lag(load):
    lags = load.each(lambda value: engine.lag(value).over(order_by="k"))
    return load.rows.select("k", **lags).to_arrow()


@way(places=(0,) * COUNT)
def first_value(load):
    return load.rows.select("k", **load.each(lambda value: engine.first_value(value).over(order_by="k"))).to_arrow()


@way(places=(0,) * COUNT)
def lead_with_default(load):
    default = {name: lit(values_of(name).to_pylist()[0], plain(values_of(name).type)) for name in load.names}
    leads = {name: engine.lead(col(name), COUNT, default[name]).over(order_by="k") for name in load.names}
    return load.rows.select("k", **leads).to_arrow()


@way(spills=True)
def min_by(load):
    return load.rows.group_by("k").agg(**load.each(lambda value: engine.min_by(value, "k"))).to_arrow()


# -- expressions


@way(places=(0, 1, 2, *[1] * (COUNT - 3)))
def when_then(load):
    chosen = load.each(lambda value: when(col("k") < 3).then(value).otherwise(None))
    return load.rows.select("k", **chosen).to_arrow()


@way()
def coalesce(load):
    return load.rows.select("k", **load.each(lambda value: engine.coalesce(value, value))).to_arrow()


@way(places=[place if one is not None else 0 for place, one in enumerate(ROWS)])
def fill_null(load):
    constants = {name: values_of(name).to_pylist()[0] for name in load.names}
    return load.rows.fill_null(constants).to_arrow()


@way()
def cast(load):
    """A cast to the type as it was given."""
    return load.rows.select(
        "k", **{name: col(name).cast(load.declared.field(name).type) for name in load.names}
    ).to_arrow()


@way()
def array(load):
    return load.rows.select("k", **load.each(lambda value: engine.array(value, value).list.get(1))).to_arrow()


@way(places=(0,) * COUNT)
def constant(load):
    constants = {name: lit(values_of(name).to_pylist()[0], load.declared.field(name).type) for name in load.names}
    return load.rows.select("k", **constants).to_arrow()


# -- functions


def _same(row):
    return row


@way()
def map_(load):
    return load.rows.map(_same, load.declared).to_arrow()


@way()
def flat_map(load):
    return load.rows.flat_map(lambda row: [row], load.declared).to_arrow()


@way()
def map_batches(load):
    return load.rows.map_batches(_same, load.declared).to_arrow()


@way()
def map_batches_of_pandas(load):
    return load.rows.map_batches(_same, load.declared, format="pandas").to_arrow()


@way()
def map_batches_of_numpy(load):
    return load.rows.map_batches(_same, load.declared, format="numpy").to_arrow()


@way()
def map_partition(load):
    return load.rows.map_partition(_same, load.declared).to_arrow()


@way(spills=True)
def reduce(load):
    return load.rows.group_by("k").reduce(list, load.declared).to_arrow()


@way(spills=True)
def co_group(load):
    return load.rows.co_group(load.places, "k", lambda left, _: list(left), load.declared).to_arrow()


@way()
def udf(load):
    calls = {name: engine.udf(load.declared.field(name).type)(_same)(col(name)) for name in load.names}
    return load.rows.select("k", **calls).to_arrow()


@way()
def udf_of_arrow(load):
    calls = {name: engine.udf(load.declared.field(name).type, kind="arrow")(_same)(col(name)) for name in load.names}
    return load.rows.select("k", **calls).to_arrow()


@way()
def failed_rows(load):
    """What a function has failed for is kept."""
    kept = load.rows.map(lambda row: 1 // 0, pa.schema([("n", pa.int64())]), on_error="collect")
    return kept.select("error_input").unnest("error_input").to_arrow()


# -- SQL


def _sql(load, text):
    load.environment.register("rows", load.rows)
    try:
        return load.environment.sql(text).to_arrow()
    finally:
        load.environment.unregister("rows")


@way()
def sql(load):
    return _sql(load, "SELECT * FROM rows ORDER BY k")


@way(places=sorted([*ALL, *ALL]))
def sql_union(load):
    return _sql(load, "SELECT * FROM rows UNION ALL SELECT * FROM rows")


@way()
def sql_case(load):
    cases = ", ".join(f'CASE WHEN k < 100 THEN "{name}" END AS "{name}"' for name in load.names)
    return _sql(load, f"SELECT k, {cases} FROM rows")


@way(places=(1, *range(COUNT - 1)))
def sql_lag(load):
    lags = ", ".join(f'LAG("{name}") OVER (ORDER BY k) AS "{name}"' for name in load.names)
    return _sql(load, f"SELECT k, {lags} FROM rows")


def expected(name, places):
    """Return the values of a type that should come out, of these places."""
    return pc.take(values_of(name, is_plain=True), pa.array(places, pa.int64()))
