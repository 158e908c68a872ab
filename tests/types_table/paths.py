"""Ways that values go; each gives what came out, and what should have.

A path is a function of a ``Cell``: the table of a type, a data set of it, and a folder. It returns two arrays, or two
lists, which are to be the same. Oracles are by hand: ``ROWS`` says which rows have equal values, and which are less.
"""

from __future__ import annotations

import contextlib
import io
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq

import engine as functions
from engine import JoinHint, col, lit, when
from tests.types_table.sampled_types import FOREIGN, ROWS, TYPES, table_of

PATHS = {}
COUNT = len(ROWS)
PLACES = pa.array(range(COUNT), pa.int64())


def plain(data_type):
    """Return the type that rows have for one that is encoded."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return data_type.value_type
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_list_view(data_type):
        return pa.list_(data_type.value_type)
    if pa.types.is_large_list_view(data_type):
        return pa.large_list(data_type.value_type)
    if pa.types.is_list(data_type) and pa.types.is_dictionary(data_type.value_type):
        return pa.list_(data_type.value_type.value_type)
    return data_type


def decoded(array):
    """Return the values in the plain type."""
    target = plain(array.type)
    if target == array.type:
        return array
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return pa.array(array.to_pylist(), target)


class Cell:
    """A type on a path."""

    def __init__(self, name, environment, folder):
        self.name, self.environment, self.folder = name, environment, folder
        self.table = table_of(name)
        self.type = self.table.schema.field("v").type
        self.array = decoded({**TYPES, **FOREIGN}[name])

    @cached_property
    def rows(self):
        return self.environment.from_arrow(self.table)

    @cached_property
    def ranks(self):
        """Which of the distinct values each row has."""
        texts = [None if value is None else str(value) for value in self.array.to_pylist()]
        ascending = list(dict.fromkeys(texts[ROWS.index(each)] for each in (0, 1, 2)))
        if self.name in FOREIGN: ascending = [t for t in dict.fromkeys(texts) if t is not None]
        return [None if text is None else ascending.index(text) for text in texts]

    def taken(self, places):
        return self.array.take(pa.array(places, pa.int64()))

    def first_places(self):
        """Return the first place of each distinct value, ascending, and of null."""
        known = sorted({rank for rank in self.ranks if rank is not None})
        return [self.ranks.index(rank) for rank in known] + ([self.ranks.index(None)] if None in self.ranks else [])

    def sorted_places(self):
        """Return the places of rows in the order of their values, nulls last, ties by place."""
        return sorted(range(COUNT), key=lambda place: (self.ranks[place] is None, self.ranks[place] or 0, place))

    def equal_to(self, place):
        return [other for other in range(COUNT) if self.ranks[other] == self.ranks[place]]


def path(function):
    PATHS[function.__name__] = function
    return function


def _by_place(data, column="v"):
    table = data if isinstance(data, pa.Table) else data.to_arrow()
    return table.sort_by("k")[column].combine_chunks()


# -- results


@path
def to_arrow(cell):
    return _by_place(cell.rows), cell.array


@path
def collect(cell):
    return [row.v for row in sorted(cell.rows.collect(), key=lambda row: row.k)], cell.array.to_pylist()


@path
def iter_rows(cell):
    return [row.v for row in sorted(cell.rows.iter_rows(), key=lambda row: row.k)], cell.array.to_pylist()


@path
def to_pandas(cell):
    frame = cell.rows.to_pandas().sort_values("k").reset_index(drop=True)
    want = pa.table({"k": PLACES, "v": cell.array}).to_pandas()
    return frame.to_dict("list").__repr__(), want.to_dict("list").__repr__()


@path
def to_polars(cell):
    import polars as pl

    try:
        from engine.records.frame_columns import polars_table; want = pl.from_arrow(polars_table(pa.table({"k": PLACES, "v": cell.array})))
    except BaseException as error:
        want = error
    return cell.rows.to_polars().sort("k")["v"].to_list(), want["v"].to_list()


@path
def show(cell):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        cell.rows.show()
    return len(text.getvalue().splitlines()) >= COUNT, True


@path
def explain(cell):
    return "v" in cell.rows.filter(col("v").is_not_null()).explain(), True


@path
def explain_analyze(cell):
    return "v" in cell.rows.filter(col("v").is_not_null()).explain(analyze=True), True


@path
def html(cell):
    return "v" in cell.rows._repr_html_(), True


# -- sources and sinks


@path
def from_rows(cell):
    schema = pa.schema([("k", pa.int64()), ("v", cell.type)])
    rows = list(zip(range(COUNT), cell.table["v"].to_pylist(), strict=True))
    return _by_place(cell.environment.from_rows(rows, schema)), cell.array


@path
def parquet_there(cell):
    cell.rows.write_parquet(cell.folder / "out")
    cell.environment.execute()
    return _by_place(pq.read_table(cell.folder / "out")), cell.array


@path
def parquet_back(cell):
    cell.rows.write_parquet(cell.folder / "out")
    cell.environment.execute()
    return _by_place(cell.environment.read_parquet(cell.folder / "out")), cell.array


@path
def read_parquet(cell):
    pq.write_table(cell.table, cell.folder / "in.parquet")
    return _by_place(cell.environment.read_parquet(cell.folder / "in.parquet")), cell.array


@path
def ipc_there(cell):
    cell.rows.write_ipc(cell.folder / "out")
    cell.environment.execute()
    files = sorted((cell.folder / "out").iterdir())
    return _by_place(pa.concat_tables([pa.feather.read_table(file) for file in files])), cell.array


@path
def ipc_back(cell):
    cell.rows.write_ipc(cell.folder / "out")
    cell.environment.execute()
    return _by_place(cell.environment.read_ipc(cell.folder / "out")), cell.array


@path
def read_ipc(cell):
    with pa.ipc.new_file(cell.folder / "in.arrow", cell.table.schema) as writer:
        writer.write_table(cell.table)
    return _by_place(cell.environment.read_ipc(cell.folder / "in.arrow")), cell.array


@path
def orc_back(cell):
    cell.rows.write_orc(cell.folder / "out")
    cell.environment.execute()
    return _by_place(cell.environment.read_orc(cell.folder / "out")), cell.array


@path
def orc_there(cell):
    cell.rows.write_orc(cell.folder / "out")
    cell.environment.execute()
    files = sorted((cell.folder / "out").iterdir())
    return _by_place(pa.concat_tables([pa.orc.read_table(file) for file in files])), cell.array


@path
def records_back(cell):
    cell.rows.write_records(cell.folder / "out")
    cell.environment.execute()
    return _by_place(cell.environment.read_records(cell.folder / "out")), cell.array


@path
def csv_back(cell):
    schema = cell.rows.schema
    cell.rows.write_csv(cell.folder / "out", header=True)
    cell.environment.execute()
    return _by_place(cell.environment.read_csv(cell.folder / "out", schema=schema, header=True)), cell.array


@path
def csv_read(cell):
    schema = cell.rows.schema
    (cell.folder/"a.csv").write_text("k,v\n0,\n")
    return cell.environment.read_csv(cell.folder / "a.csv", schema=schema, header=True).to_arrow()["v"].combine_chunks(), cell.taken([1])

@path
def json_back(cell):
    schema = cell.rows.schema
    cell.rows.write_json(cell.folder / "out")
    cell.environment.execute()
    return _by_place(cell.environment.read_json(cell.folder / "out", schema=schema)), cell.array

@path
def json_read(cell):
    schema = cell.rows.schema
    (cell.folder/"a.json").write_text('{"k":0,"v":null}\n')
    return cell.environment.read_json(cell.folder / "a.json", schema=schema).to_arrow()["v"].combine_chunks(), cell.taken([1])


@path
def text_there(cell):
    cell.rows.select("v").write_text(cell.folder / "out")
    cell.environment.execute()
    return 1,1


@path
def partition_by(cell):
    cell.rows.write_parquet(cell.folder / "out", partition_by="v")
    cell.environment.execute()
    schema = pa.schema([("v", cell.array.type)])
    return _by_place(cell.environment.read_parquet(cell.folder / "out", partitioning=schema)), cell.array


@path
def cache(cell):
    return _by_place(cell.rows.shuffle().cache()), cell.array


# -- rows on their way


@path
def exchange(cell):
    return _by_place(cell.rows.shuffle()), cell.array


@path
def broadcast_join(cell):
    left = cell.environment.from_arrow(pa.table({"k": PLACES}))
    return _by_place(left.join(cell.rows, on="k", hint=JoinHint.BROADCAST_HASH_SECOND)), cell.array


@path
def hash_join(cell):
    left = cell.environment.from_arrow(pa.table({"k": PLACES}))
    return _by_place(left.join(cell.rows, on="k", how="left", hint=JoinHint.REPARTITION_HASH_SECOND)), cell.array

@path
def sort_merge_join(cell):
    left = cell.environment.from_arrow(pa.table({"k": PLACES}))
    return _by_place(left.join(cell.rows, on="k", how="full", hint=JoinHint.REPARTITION_SORT_MERGE)), cell.array

@path
def cross_join(cell):
    left = cell.environment.from_arrow(pa.table({"one": [1]}))
    return _by_place(left.join(cell.rows, how="cross")), cell.array

@path
def nested_loop(cell):
    left = cell.environment.from_arrow(pa.table({"one": [-1]}))
    return _by_place(left.join(cell.rows, how="inner", condition=col("one") < col("k"))), cell.array

@path
def asof_join(cell):
    left = cell.environment.from_arrow(pa.table({"k": PLACES}))
    return _by_place(left.asof_join(cell.rows, on="k")), cell.array


@path
def sorted_rows(cell):
    return cell.rows.sort("k", descending=True).to_arrow()["v"].combine_chunks(), cell.taken(range(COUNT)[::-1])


@path
def top(cell):
    return cell.rows.top(3, "k").to_arrow()["v"].combine_chunks(), cell.taken([0, 1, 2])


@path
def union(cell):
    both = cell.rows.union(cell.rows.with_columns(k=col("k") + COUNT))
    return _by_place(both), cell.taken([*range(COUNT), *range(COUNT)])

@path
def limit(cell):
    return cell.rows.limit(100, offset=3).to_arrow()["v"].combine_chunks(), cell.taken(range(3,COUNT))

@path
def sample(cell):
    return _by_place(cell.rows.sample(1.0)), cell.array

@path
def with_row_index(cell):
    return _by_place(cell.rows.with_row_index()), cell.array

@path
def drop_duplicates_value(cell):
    return _by_place(cell.rows.drop_duplicates("k", keep="last", order_by="k")), cell.array

@path
def head_of_groups(cell):
    return _by_place(cell.rows.group_by("k").head(1,"k")), cell.array

@path
def drop_nulls(cell):
    kept = [place for place in range(COUNT) if cell.ranks[place] is not None]
    return _by_place(cell.rows.drop_nulls("v")), cell.taken(kept)

@path
def fill_null_data_set(cell):
    kept = [place for place in range(COUNT) if cell.ranks[place] is not None]
    if not kept: kept=[0]
    value = cell.array[kept[0]]
    want=[kept[0] if r is None else i for i,r in enumerate(cell.ranks)]
    return _by_place(cell.rows.fill_null({"v": value.as_py()})), cell.taken(want)

@path
def fill_null_column(cell):
    kept = [place for place in range(COUNT) if cell.ranks[place] is not None] or [0]
    rows = cell.rows.join(cell.rows.filter(col("k")==kept[0]).select(w=col("v")),how="cross")
    want=[kept[0] if r is None else i for i,r in enumerate(cell.ranks)]
    return _by_place(rows.with_columns(v=col("v").fill_null(col("w")))), cell.taken(want)

@path
def coalesce(cell):
    return _by_place(cell.rows.with_columns(v=functions.coalesce(col("v"),col("v")))), cell.array

@path
def chosen(cell):
    return _by_place(cell.rows.with_columns(v=when(col("k")<3).then(col("v")).otherwise(None))), cell.taken([0,1,2]+[1]*5)

@path
def chosen2(cell):
    return _by_place(cell.rows.with_columns(v=when(col("k")<3).then(col("v")).when(col("k")<5).then(col("v")).otherwise(col("v")))), cell.array

@path
def literal(cell):
    return _by_place(cell.rows.with_columns(v=lit(cell.array.to_pylist()[0], cell.array.type))), cell.taken([0]*COUNT)

@path
def cast_to_text(cell):
    got=_by_place(cell.rows.with_columns(v=col("v").cast("string")))
    return got.null_count, cell.array.null_count

@path
def cast_to_itself(cell):
    return _by_place(cell.rows.with_columns(v=col("v").cast(cell.type))), cell.array

@path
def try_cast_to_itself(cell):
    return _by_place(cell.rows.with_columns(v=col("v").try_cast(cell.type))), cell.array

@path
def array_of(cell):
    got=_by_place(cell.rows.with_columns(v=functions.array(col("v"),col("v"))))
    return got.to_pylist(), [[v,v] for v in cell.array.to_pylist()]

@path
def struct_of(cell):
    return _by_place(cell.rows.with_columns(v=functions.struct(a=col("v"))).unnest("v"),"a"), cell.array

@path
def collected_and_exploded(cell):
    lists = cell.rows.group_by().agg(v=functions.collect_list(functions.struct(k=col("k"), v=col("v"))))
    return _by_place(lists.explode("v").unnest("v")), cell.array


# -- keys

def _key(cell):
    return [None if r is None else r for r in cell.ranks]

@path
def sort_key(cell):
    return cell.rows.sort(["v", "k"], nulls_last=True).to_arrow()["k"].to_pylist(), cell.sorted_places()


@path
def sort_key_descending(cell):
    known = [place for place in range(COUNT) if cell.ranks[place] is not None]
    want = [place for place in range(COUNT) if cell.ranks[place] is None]
    want += sorted(known, key=lambda place: (-cell.ranks[place], place))
    return cell.rows.sort(["v", "k"], descending=[True, False]).to_arrow()["k"].to_pylist(), want

@path
def top_key(cell):
    cell.environment

    return cell.rows.top(3, ["v", "k"], nulls_last=True).to_arrow()["k"].to_pylist(), cell.sorted_places()[:3]

@path
def group_key(cell):
    groups = cell.rows.group_by("v").agg(k=functions.min_("k"), count=functions.count())
    want = cell.first_places()
    got = groups.sort("k").to_arrow()
    want.sort()
    counts = [len(cell.equal_to(place)) for place in want]
    return [got["v"].combine_chunks().cast(cell.array.type), got["count"].to_pylist(), got.schema.field("v").type], [cell.taken(want), counts, cell.array.type]

@path
def rollup_key(cell):
    got = cell.rows.group_by("v").rollup().agg(k=functions.min_("k"), n=functions.count()).to_arrow()
    return [len(got), got.schema.field("v").type], [len(cell.first_places()) + 1, cell.array.type]

@path
def distinct(cell):
    got = cell.rows.select("v").distinct().to_arrow()["v"].combine_chunks()
    return sorted(map(str,got.to_pylist())), sorted(map(str,cell.taken(cell.first_places()).to_pylist()))

@path
def drop_duplicates(cell):
    return _by_place(cell.rows.drop_duplicates("v", order_by="k")), cell.taken(sorted(cell.first_places()))

@path
def intersect(cell):
    got = cell.rows.intersect(cell.rows)
    return _by_place(got), cell.array

@path
def except_(cell):
    got = cell.rows.except_(cell.rows.filter(col("k")<2), all=True)
    return _by_place(got), cell.taken(range(2,COUNT))

@path
def join_key(cell):
    right = cell.rows.select("v", j=col("k"))
    pairs = sorted(zip(*cell.rows.join(right, on="v", hint=JoinHint.REPARTITION_HASH_FIRST).select("k", "j").to_arrow().to_pydict().values()))
    return pairs, sorted((one, other) for one in range(COUNT) if cell.ranks[one] is not None for other in cell.equal_to(one))

@path
def join_key_merge(cell):
    right = cell.rows.select("v", j=col("k"))
    pairs = sorted(zip(*cell.rows.join(right, on="v", hint=JoinHint.REPARTITION_SORT_MERGE).select("k", "j").to_arrow().to_pydict().values()))
    return pairs, sorted((one, other) for one in range(COUNT) if cell.ranks[one] is not None for other in cell.equal_to(one))

@path
def semi_join(cell):
    return _by_place(cell.rows.join(cell.rows.filter(col("k")<1), on="v", how="semi"),"k").to_pylist(), cell.equal_to(0) if cell.ranks[0] is not None else []

@path
def asof_key(cell):
    kept=cell.rows.drop_nulls("v")
    got=kept.asof_join(kept.select("v",j=col("k")).filter(col("k")>=0) if 0 else kept.select("v").distinct().with_columns(j=lit(1)), on="v")
    return got.to_arrow()["j"].to_pylist(), [1]*(COUNT-cell.array.null_count)

@path
def asof_by(cell):
    kept=cell.rows
    got=kept.asof_join(kept.with_columns(j=col("k")), on="k", by="v")
    return _by_place(got,"j").to_pylist(), [None if cell.ranks[p] is None else p for p in range(COUNT)]

@path
def key_by(cell):
    return _by_place(cell.rows.key_by("v")), cell.array

@path
def partition_by_range(cell):
    return _by_place(cell.rows.partition_by_range("v")), cell.array

@path
def pivot(cell):
    got = cell.rows.pivot("v", values="k", agg="count").to_arrow()
    return len(got), 1

@path
def heavy_key(cell):
    big = cell.environment.from_arrow(pa.table({"v": pa.concat_arrays([cell.table["v"].combine_chunks()]+[cell.table["v"].combine_chunks().take(pa.array([0]*20000))]), "k": pa.array(range(20008))}))
    got = big.join(cell.rows.select("v",j=col("k")), on="v", hint=JoinHint.REPARTITION_HASH_SECOND)
    return got.count(), (20000*len(cell.equal_to(0)) if cell.ranks[0] is not None else 0) + sum(len(cell.equal_to(p)) for p in range(COUNT) if cell.ranks[p] is not None)


# -- aggregates

def _agg(cell, **named):
    return cell.rows.with_columns(g=col("k")*0).group_by("g").agg(**named).to_arrow()

def _one(cell, value):
    return _agg(cell, v=value)["v"].combine_chunks()

@path
def agg_count(cell):
    return _one(cell, functions.count("v")).to_pylist(), [COUNT-cell.array.null_count]

@path
def agg_count_distinct(cell):
    return _one(cell, functions.count_distinct("v")).to_pylist(), [len({r for r in cell.ranks if r is not None})]

@path
def agg_approx_count_distinct(cell):
    return _one(cell, functions.approx_count_distinct("v")).to_pylist(), [len({r for r in cell.ranks if r is not None})]

@path
def agg_min(cell):
    return _one(cell, functions.min_("v")), cell.taken([cell.sorted_places()[0]])

@path
def agg_max(cell):
    best=max(range(COUNT), key=lambda p:-1 if cell.ranks[p] is None else cell.ranks[p])
    return _one(cell, functions.max_("v")), cell.taken([best])

@path
def agg_first(cell):
    return _one(cell, functions.first("v")), cell.taken([0])

@path
def agg_last(cell):
    return cell.rows.set_parallelism(1).agg(v=functions.last("v")).to_arrow()["v"].combine_chunks(), cell.taken([7])

@path
def agg_first_global(cell):
    return cell.rows.agg(v=functions.first("v")).to_arrow()["v"].combine_chunks(), cell.taken([0])

@path
def agg_min_global(cell):
    return cell.rows.agg(v=functions.min_("v")).to_arrow()["v"].combine_chunks(), cell.taken([cell.sorted_places()[0]])

@path
def agg_min_distinct_many(cell):
    # many groups by k
    got=cell.rows.group_by("k").agg(v=functions.max_("v"))
    return _by_place(got), cell.array

@path
def agg_min_by(cell):
    return _one(cell, functions.min_by("v","k")), cell.taken([0])

@path
def agg_min_by_key(cell):
    return _one(cell, functions.min_by("k","v")).to_pylist(), [None if cell.array.null_count==COUNT else cell.sorted_places()[0]]

@path
def agg_list(cell):
    got=_one(cell, functions.collect_list("v", order_by="k"))
    return [got.flatten().to_pylist(), got.type.value_type], [cell.array.to_pylist(), cell.array.type]

@path
def agg_list_by(cell):
    got=_one(cell, functions.collect_list("k", order_by=["v","k"]))
    return got.to_pylist(), 0

@path
def agg_set(cell):
    got=_one(cell, functions.collect_set("v"))
    return sorted(map(str,got.to_pylist()[0])), sorted(map(str,cell.taken([p for p in cell.first_places() if cell.ranks[p] is not None]).to_pylist()))

@path
def agg_mode(cell):
    return _one(cell, functions.mode("v")), cell.taken([0])

@path
def agg_histogram(cell):
    got=_one(cell, functions.histogram("v"))
    return got.type, 0

@path
def agg_string_agg(cell):
    return _one(cell, functions.string_agg("v",",", order_by="k")).type, pa.string()

def number(name, oracle=None):
    def run(cell):
        got=_one(cell, getattr(functions,name)("v"))
        return [got.type, got.to_pylist()], 0
    run.__name__="agg_"+name
    path(run)

for n in ("sum_","avg","median","stddev","variance_pop","product","bit_and","skewness","any_"):
    number(n)

@path
def agg_quantile(cell):
    got=_one(cell, functions.quantile("v",0.5))
    return [got.type, got.to_pylist()], 0
@path
def agg_approx_quantile(cell):
    got=_one(cell, functions.approx_quantile("v",0.5))
    return [got.type, got.to_pylist()], 0
@path
def describe(cell):
    return len(cell.rows.describe().to_arrow())>3, True

# -- windows

def _over(cell, function, **over):
    return _by_place(cell.rows.with_columns(w=function.over(**over)), "w")

@path
def w_row_number(cell):
    places=cell.sorted_places()
    return _over(cell, functions.row_number(), order_by=["v","k"], nulls_last=[True,False]).to_pylist(), [places.index(p)+1 for p in range(COUNT)]

@path
def w_partition(cell):
    return _over(cell, functions.count(), partition_by="v").to_pylist(), [len(cell.equal_to(p)) for p in range(COUNT)]

@path
def w_rank(cell):
    return _over(cell, functions.dense_rank(), order_by="v", nulls_last=True).to_pylist(), [max((r for r in cell.ranks if r is not None),default=-1)+2 if r is None else r+1 for r in cell.ranks]

@path
def w_lag(cell):
    return _over(cell, functions.lag("v"), order_by="k"), cell.taken([1,*range(COUNT-1)])

@path
def w_lead_default(cell):
    value=cell.array.to_pylist()[0]
    return _over(cell, functions.lead("v",1,lit(value,cell.array.type)), order_by="k"), cell.taken([*range(1,COUNT),0])

@path
def w_first_value(cell):
    return _over(cell, functions.first_value("v"), order_by="k"), cell.taken([0]*COUNT)
@path
def w_last_value(cell):
    return _over(cell, functions.last_value("v"), order_by="k", rows=(0,2)), cell.taken([min(p+2,7) for p in range(COUNT)])
@path
def w_nth(cell):
    return _over(cell, functions.nth_value("v",1), order_by="k"), cell.taken([0]*COUNT)

def frame(function, **over):
    def run(cell):
        got=_over(cell, getattr(functions,function)("v"), **over)
        return [got.type,got.to_pylist()], 0
    run.__name__="w_"+function+"_"+"_".join(over)
    path(run)

for f in ("sum_","avg","min_","max_","first","count","count_distinct","stddev"):
    frame(f, order_by="k", rows=(-1,0))
    frame(f, partition_by="k")
frame("median", partition_by="k")
frame("collect_list", partition_by="k")

@path
def w_range_current(cell):
    got=_by_place(cell.rows.with_columns(w=functions.count().over(order_by="v", range=(0,0))),"w")
    return got.to_pylist(), [len(cell.equal_to(p)) for p in range(COUNT)]

@path
def w_range_unbounded(cell):
    got=_by_place(cell.rows.with_columns(w=functions.count().over(order_by="v",nulls_last=True, range=(None,0))),"w")
    return got.to_pylist(), [sum(x is not None and (y is None or x<=y) or y is None for x in cell.ranks) for y in cell.ranks]

@path
def w_range_distance(cell):
    distance = "1 days" if pa.types.is_temporal(cell.array.type) else 1
    got=_by_place(cell.rows.with_columns(w=functions.count().over(order_by="v", range=(-1 if distance==1 else "-1 days",distance))),"w")
    return got.to_pylist()[0]>=1, True

# -- functions

SCHEMA = lambda cell: pa.schema([("k",pa.int64()),("v",cell.type)])

@path
def map_(cell):
    return _by_place(cell.rows.map(lambda row: (row.k, row.v), SCHEMA(cell))), cell.array
@path
def map_columns(cell):
    return _by_place(cell.rows.map(lambda k, v: {"k":k,"v":v}, SCHEMA(cell), columns=["k","v"])), cell.array
@path
def flat_map(cell):
    return _by_place(cell.rows.flat_map(lambda row: [row], SCHEMA(cell))), cell.array
@path
def map_batches_arrow(cell):
    return _by_place(cell.rows.map_batches(lambda b: b, SCHEMA(cell))), cell.array
@path
def map_batches_arrow2(cell):
    return _by_place(cell.rows.map_batches(lambda b: pa.Table.from_batches([b]), SCHEMA(cell))), cell.array
@path
def map_batches_pandas(cell):
    return _by_place(cell.rows.map_batches(lambda b: b, SCHEMA(cell), format="pandas")), cell.array
@path
def map_batches_numpy(cell):
    return _by_place(cell.rows.map_batches(lambda b: b, SCHEMA(cell), format="numpy")), cell.array
@path
def map_partition(cell):
    return _by_place(cell.rows.map_partition(lambda rows: rows, SCHEMA(cell))), cell.array
@path
def filter_(cell):
    return _by_place(cell.rows.filter(lambda row: row.v is not None)), cell.taken([p for p in range(COUNT) if cell.ranks[p] is not None])
@path
def reduce(cell):
    return _by_place(cell.rows.group_by("k").reduce(lambda rows: list(rows), SCHEMA(cell))), cell.array
@path
def reduce_key(cell):
    got=cell.rows.group_by("v").reduce(lambda rows: [(r.k, r.v) for r in rows], SCHEMA(cell))
    return _by_place(got), cell.array
@path
def co_group(cell):
    got=cell.rows.co_group(cell.rows, "k", lambda a,b: list(a)+[r for r in b if 0], SCHEMA(cell))
    return _by_place(got), cell.array
@path
def udf(cell):
    f=functions.udf(lambda v: v, ) if 0 else functions.udf(returns=cell.type)(lambda v: v)
    return _by_place(cell.rows.with_columns(v=f(col("v")))), cell.array
@path
def udf_arrow(cell):
    f=functions.udf(returns=cell.type, kind="arrow")(lambda v: v)
    return _by_place(cell.rows.with_columns(v=f(col("v")))), cell.array
@path
def on_error(cell):
    def fail(row): raise ValueError("x")
    got=cell.rows.map(fail, pa.schema([("k",pa.int64())]), on_error="collect").to_arrow()
    return sorted(map(str,(r["v"] for r in got["error_input"].to_pylist()))), sorted(map(str,cell.array.to_pylist()))
@path
def partition_custom(cell):
    return _by_place(cell.rows.partition_custom(lambda v, n: 0, "v")), cell.array

# -- expressions
@path
def is_in(cell):
    v=cell.array.to_pylist()[0]
    return _by_place(cell.rows.with_columns(w=col("v").is_in([v])),"w").to_pylist(), [None if r is None else r==cell.ranks[0] for r in cell.ranks]
@path
def equal(cell):
    return _by_place(cell.rows.with_columns(w=col("v")==col("v")),"w").to_pylist(), [None if r is None else True for r in cell.ranks]
@path
def less(cell):
    return _by_place(cell.rows.with_columns(w=col("v")<col("v")),"w").to_pylist(), [None if r is None else False for r in cell.ranks]
@path
def equal_literal(cell):
    v=cell.array.to_pylist()[0]
    return _by_place(cell.rows.filter(col("v")==lit(v)),"k").to_pylist(), cell.equal_to(0) if cell.ranks[0] is not None else []
@path
def eq_null_safe(cell):
    return _by_place(cell.rows.with_columns(w=col("v").eq_null_safe(col("v"))),"w").to_pylist(), [True]*COUNT
@path
def nullif(cell):
    return _by_place(cell.rows.with_columns(v=col("v").nullif(col("v")))).null_count, COUNT
@path
def greatest(cell):
    return _by_place(cell.rows.with_columns(v=functions.greatest(col("v"),col("v")))), cell.array
@path
def hash64(cell):
    got=_by_place(cell.rows.with_columns(v=functions.hash64(col("v")))).to_pylist()
    return [got[0]==got[p] for p in range(COUNT)], [cell.ranks[0]==r for r in cell.ranks]

# -- SQL
def sql(name, text, result):
    def run(cell):
        cell.environment.register("t", cell.rows)
        got=cell.environment.sql(text).to_arrow()
        return result(cell, got)
    run.__name__="sql_"+name
    path(run)
sql("select","SELECT k, v FROM t ORDER BY k", lambda c,g:(g["v"].combine_chunks(), c.array))
sql("order","SELECT k FROM t ORDER BY v NULLS LAST, k", lambda c,g:(g["k"].to_pylist(), c.sorted_places()))
sql("group","SELECT v, COUNT(*) n, MIN(k) k FROM t GROUP BY v", lambda c,g:(_by_place(g), c.taken(sorted(c.first_places()))))
sql("distinct","SELECT COUNT(DISTINCT v) n FROM t", lambda c,g:(g["n"].to_pylist(), [len({r for r in c.ranks if r is not None})]))
sql("join","SELECT a.k FROM t a JOIN t b ON a.v = b.v", lambda c,g:(len(g), sum(len(c.equal_to(p)) for p in range(COUNT) if c.ranks[p] is not None)))
sql("union","SELECT k, v FROM t UNION ALL SELECT k, v FROM t", lambda c,g:(len(g), 16))
sql("union_distinct","SELECT k, v FROM t UNION SELECT k, v FROM t", lambda c,g:(_by_place(g), c.array))
sql("case","SELECT k, CASE WHEN k < 100 THEN v END v FROM t", lambda c,g:(_by_place(g), c.array))
sql("coalesce","SELECT k, COALESCE(v, v) v FROM t", lambda c,g:(_by_place(g), c.array))
sql("cast","SELECT k, CAST(v AS VARCHAR) v FROM t", lambda c,g:(_by_place(g).null_count, c.array.null_count))
sql("window","SELECT k, LAG(v) OVER (ORDER BY k) v FROM t", lambda c,g:(_by_place(g), c.taken([1,*range(7)])))
sql("in","SELECT k FROM t WHERE v IN (SELECT v FROM t)", lambda c,g:(len(g), COUNT-c.array.null_count))
sql("min","SELECT MIN(v) v FROM t", lambda c,g:(g["v"].combine_chunks(), c.taken([c.sorted_places()[0]])))
