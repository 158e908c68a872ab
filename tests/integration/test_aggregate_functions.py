"""Every aggregate through the whole engine: against DuckDB over nulls, duplicates, skew and memory; its example."""

import datetime
import doctest
import inspect
import math
import random

import duckdb
import pyarrow as pa
import pytest

import engine
from engine import (
    MemoryBudgetError,
    SchemaError,
    all_,
    any_,
    approx_count_distinct,
    approx_quantile,
    array,
    avg,
    bit_and,
    bit_or,
    bit_xor,
    col,
    collect_list,
    collect_set,
    corr,
    count,
    count_distinct,
    count_if,
    covar,
    covar_pop,
    first,
    histogram,
    kurtosis,
    last,
    max_,
    max_by,
    median,
    min_,
    min_by,
    mode,
    product,
    quantile,
    skewness,
    stddev_pop,
    string_agg,
    sum_,
    variance_pop,
)
from engine.column_expressions import aggregates, value_aggregates
from tests.integration.row_oracle import KEY_VALUES, key_table, plain
from tests.window.duckdb_windows import values_differ

DOCUMENTED = {
    name: function
    for module in (aggregates, value_aggregates)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and name in engine.__all__
}
ODD = col("i") % 2 == 1

#: name -> (aggregate, SQL)
FUNCTIONS = {
    "n": (count(filter=ODD), "count(*) filter (where i % 2 = 1)"),
    "ci": (count_if(col("i") > 3), "count(*) filter (where i > 3)"),
    "cd": (count_distinct("s", filter=ODD), "count(distinct s) filter (where i % 2 = 1)"),
    "sd": (sum_("j", distinct=True), "sum(distinct j)"),
    "ad": (avg("f", distinct=True), "avg(distinct f)"),
    "an": (any_(col("j") > 4), "bool_or(j > 4)"),
    "al": (all_(col("j") > -4, filter=ODD), "bool_and(j > -4) filter (where i % 2 = 1)"),
    "lo": (min_("s", filter=ODD, distinct=True), "min(s) filter (where i % 2 = 1)"),
    "ratio": (sum_("j") / count(), "sum(j) / count(*)"),
    "range": (max_("day") - min_("day"), "max(day) - min(day)"),
    "vp": (variance_pop("f"), "var_pop(f)"),
    "sp": (stddev_pop("j", filter=ODD), "stddev_pop(j) filter (where i % 2 = 1)"),
    "mb": (max_by("s", "i"), "max_by(s, i)"),
    "ib": (min_by("f", col("s")), "(min_by(f, (s, f)) filter (where f is not null and s is not null))"),
    "mf": (max_by("f", "i"), "max_by(f, i)"),
    "if": (min_by("day", "i", filter=ODD), "(min_by(day, i) filter (where i % 2 = 1))"),
    "cv": (covar("j", "f"), "covar_samp(j, f)"),
    "cp": (covar_pop("j", "i", filter=ODD), "covar_pop(j, i) filter (where i % 2 = 1)"),
    "co": (corr("i", "j"), "corr(i, j)"),
    "sk": (skewness("f"), "skewness(f)"),
    "ku": (kurtosis("j", filter=ODD), "kurtosis(j) filter (where i % 2 = 1)"),
    "pr": (
        product(col("j").nullif(0).clip(-2, 2)),
        "product(case when j = 0 then null when j > 2 then 2 when j < -2 then -2 else j end)",
    ),
    "ba": (bit_and(col("i").cast("int32")), "bit_and(i)"),
    "bo": (bit_or("j"), "bit_or(j)"),
    "bx": (bit_xor("i", filter=ODD), "bit_xor(i) filter (where i % 2 = 1)"),
    "bd": (bit_xor("j", distinct=True), "bit_xor(distinct j)"),
    "md": (median("f"), "median(f)"),
    "qi": (quantile("i", 0.3, filter=ODD), "quantile_cont(i, 0.3) filter (where i % 2 = 1)"),
    "qd": (quantile("day", 0.9), "quantile_cont(day, 0.9)"),
    "qz": (quantile("j", 0.75, distinct=True), "quantile_cont(distinct j, 0.75)"),
    "li": (collect_list("s", order_by="i", filter=ODD), "list(s order by i) filter (where i % 2 = 1)"),
    "ls": (collect_list(array(col("j")), "i", descending=True), "list([j] order by i desc)"),
    "ld": (collect_list("s", distinct=True), "list_sort(list(distinct s), 'asc', 'nulls first')"),
    "cs": (collect_set("j"), "list_sort(list(distinct j) filter (where j is not null))"),
    "sa": (string_agg("s", "|", order_by="i"), "string_agg(s, '|' order by i)"),
    "hi": (histogram("j"), "map_entries(histogram(j))"),
    "xd": (approx_count_distinct("j"), "count(distinct j)"),
    "dp": (count_distinct("j", "s"), "count(distinct (j, s)) filter (where j is not null and s is not null)"),
    "dt": (
        count_distinct("f", "day", "j", filter=ODD),
        "count(distinct (f + 0.0, day, j)) filter (where i % 2 = 1 and f + day::int + j is not null)".replace(
            "day::int", "(day - date '1970-01-01')"
        ),
    ),
}

MODES = {
    "plenty, 1": {"parallelism.default": 1},
    "plenty, 3": {"parallelism.default": 3},
    "batch": {"execution.mode": "BATCH"},
    "spilling": {"debug.force-spill": True},
    "six pages": {"parallelism.default": 3, "taskmanager.memory.managed.size": "1mb"},
}
SHAPES = {
    "few groups": (3000, 7, 0.0, 0.1),
    "many groups": (3000, 2000, 0.0, 0.1),
    "skew": (3000, 300, 0.9, 0.1),
    "nulls": (500, 20, 0.0, 0.9),
    "nothing": (0, 1, 0.0, 0.0),
}


def rows_of(shape):
    """Rows; values of f and i are sums of few powers of two, so that sums are exact in any order."""
    count_of_rows, keys, skew, nulls = SHAPES[shape]
    rng = random.Random(5)

    def column(make):
        return [None if rng.random() < nulls else make() for _ in range(count_of_rows)]

    return pa.table(
        {
            "k": pa.array(column(lambda: 0 if rng.random() < skew else rng.randrange(keys)), pa.int64()),
            "i": pa.array(rng.sample(range(10 * count_of_rows), count_of_rows), pa.int64()),
            "j": pa.array(column(lambda: rng.randrange(-5, 20)), pa.int64()),
            "f": pa.array(column(lambda: rng.choice([0.0, -0.0, 0.25, 7.5, -3.0, 1e6])), pa.float64()),
            "s": pa.array(column(lambda: rng.choice(["", "a", "ab", "b" * 30, "é"])), pa.string()),
            "day": pa.array(column(lambda: rng.randrange(20_000)), pa.date32()),
        }
    )


def assert_same(found, rows, keys, names):
    what = ", ".join([*keys, *(f"{FUNCTIONS[name][1]} as {name}" for name in names)])
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        group = f" group by {', '.join(keys)}" if keys else ""
        expected = connection.sql(f"select {what} from rows{group}").to_arrow_table()
    ours = sorted(found.select(expected.column_names).to_pylist(), key=lambda row: str([row[key] for key in keys]))
    theirs = sorted(expected.to_pylist(), key=lambda row: str([row[key] for key in keys]))
    assert len(ours) == len(theirs)
    for name in expected.column_names:
        pairs = [(mine[name], other[name]) for mine, other in zip(ours, theirs, strict=True)]
        assert [pair for pair in pairs if differ(*pair)][:3] == [], name


def differ(ours, theirs):
    if isinstance(ours, tuple) and isinstance(theirs, dict):
        return ours != (theirs["key"], theirs["value"])
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) != len(theirs) or any(map(differ, ours, theirs))
    if isinstance(ours, datetime.datetime) and theirs is not None:
        return abs(ours - theirs) > datetime.timedelta(microseconds=1)
    if hasattr(ours, "days"):
        ours = ours.days
    return values_differ(ours, theirs)


@pytest.mark.quick
@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_example_of_an_aggregate_is_true(environment, name):
    class Groups:
        def __init__(self, **columns):
            self.agg = lambda **named: environment.from_arrow(pa.table(columns)).agg(**named).collect()

    names = {each: getattr(engine, each) for each in engine.__all__} | {"groups": Groups, "pa": pa}
    (test,) = doctest.DocTestFinder(recurse=False).find(DOCUMENTED[name], name, globs=names)
    assert test.examples, f"{name} has no example"
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.quick
@pytest.mark.parametrize("mode", MODES)
def test_all_aggregates_in_one_agg_agree_with_duckdb(open_environment, mode):
    rows = rows_of("few groups")
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    assert_same(data.group_by("k").agg(**{name: made for name, (made, _) in FUNCTIONS.items()}).to_arrow(),
                rows, ["k"], list(FUNCTIONS))  # fmt: skip


@pytest.mark.parametrize("keys", [[], ["k"], ["s", "j"]], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_aggregates_of_many_shapes_agree_with_duckdb(environment, shape, keys):
    rows = rows_of(shape)
    data = environment.from_arrow(rows).rebalance()
    names = [name for name in FUNCTIONS if name not in keys]
    found = data.group_by(*keys).agg(**{name: FUNCTIONS[name][0] for name in names}).to_arrow()
    assert_same(found, rows, keys, names)


@pytest.mark.parametrize("seed", range(12))
def test_random_lists_of_aggregates_agree_with_duckdb(open_environment, seed):
    rng = random.Random(seed)
    rows = rows_of(rng.choice([shape for shape in SHAPES if shape != "nothing"]))
    names = rng.sample(list(FUNCTIONS), rng.randrange(1, 4))
    keys = rng.choice([[], ["k"], ["day"], ["k", "s"]])
    data = open_environment(**MODES[rng.choice(list(MODES))]).from_arrow(rows).rebalance()
    found = data.group_by(*keys).agg(**{name: FUNCTIONS[name][0] for name in names}).to_arrow()
    assert_same(found, rows, keys, names)


@pytest.mark.quick
def test_a_first_row_behind_a_filter_follows_a_sort(environment):
    data = environment.from_arrow(pa.table({"k": [1, 1, 1, 2], "x": [3, 1, 2, 1]})).sort("x")
    found = data.group_by("k").agg(a=first("x", filter=col("x") > 1), n=count()).sort("k").collect()
    assert [tuple(row) for row in found] == [(1, 2, 3), (2, None, 1)]


@pytest.mark.quick
def test_first_and_last_pass_over_nulls_where_it_is_said(environment):
    rows = pa.table({"k": [1, 1, 1, 1, 2, 2], "t": [1, 2, 3, 4, 5, 6], "x": [None, 7, 8, None, None, None]})
    data = environment.from_arrow(rows).sort("t")
    found = data.with_columns(wanted=col("x") > 7).group_by("k").agg(
        a=first("x"), b=first("x", ignore_nulls=True), c=last("x", ignore_nulls=True),
        d=last("x", filter=col("t") < 3, ignore_nulls=True), e=first("x", filter="wanted", ignore_nulls=True),
    )  # fmt: skip
    assert [tuple(row) for row in found.sort("k").collect()] == [
        (1, None, 7, 8, 7, 8),
        (2, None, None, None, None, None),
    ]
    windows = data.select(
        "t", v=last("x", ignore_nulls=True).over("k", order_by="t"), w=first("x", ignore_nulls=True).over("k")
    )
    wanted = [(1, None, 7), (2, 7, 7), (3, 8, 7), (4, 8, 7), (5, None, None), (6, None, None)]
    assert [tuple(row) for row in windows.sort("t").collect()] == wanted
    with pytest.raises(SchemaError, match=r"ignore_nulls=1\): True or False"):
        first("x", ignore_nulls=1)


def test_the_most_frequent_value_is_the_least_of_several(environment):
    rows = rows_of("few groups")
    found = environment.from_arrow(rows).group_by("k").agg(a=mode("j")).to_arrow().to_pydict()
    wanted = {}
    for key, value in zip(rows["k"].to_pylist(), rows["j"].to_pylist(), strict=True):
        if value is not None:
            wanted.setdefault(key, {})[value] = wanted.setdefault(key, {}).get(value, 0) + 1
    most = {key: min(counts, key=lambda value: (-counts[value], value)) for key, counts in wanted.items()}
    assert dict(zip(found["k"], found["a"], strict=True)) == most


@pytest.mark.parametrize("different", [1, 300, 5_000, 40_000, 150_000])
def test_an_approximate_count_is_within_its_error(environment, different):
    values = [f"value {number % different}" for number in range(max(different, 2_000))]
    ((found,),) = environment.from_arrow(pa.table({"x": values})).agg(a=approx_count_distinct("x")).collect()
    assert abs(found - different) <= 4 * 0.0081 * different


def test_an_approximate_quantile_is_within_its_error(environment):
    rng = random.Random(3)
    values = [rng.choice([-1, 1]) * 10 ** rng.uniform(-300, 300) for _ in range(5_000)] + [math.inf, 1.7e308]
    shares = {"q0": 0.0, "q1": 0.1, "q2": 0.5, "q3": 0.99, "q4": 1.0}
    data = environment.from_arrow(pa.table({"x": values})).rebalance()
    found = data.agg(**{name: approx_quantile("x", share) for name, share in shares.items()}).to_arrow().to_pylist()[0]
    ordered = sorted(values)
    for name, share in shares.items():
        exact = ordered[max(1, math.ceil(share * len(values))) - 1]
        assert found[name] == exact or abs(found[name] - exact) <= abs(exact) / 8192, name


@pytest.mark.quick
@pytest.mark.parametrize("mode", ["plenty, 1", "spilling", "six pages"])
def test_one_group_of_many_times_the_memory(open_environment, mode):
    rng = random.Random(2)
    values = [rng.random() for _ in range(150_000)]
    data = open_environment(**MODES[mode]).from_arrow(pa.table({"k": [1] * len(values), "x": values})).rebalance()
    wanted = (sorted(values)[len(values) // 2 - 1] + sorted(values)[len(values) // 2]) / 2
    found = data.group_by("k").agg(middle=median("x"), most=quantile("x", 1.0), n=count()).collect()
    assert [tuple(row) for row in found] == [(1, wanted, max(values), len(values))]


def test_a_list_without_room_is_an_error_that_says_what_to_do(open_environment):
    data = open_environment(**MODES["six pages"]).from_arrow(pa.table({"k": [7] * 200_000, "x": range(200_000)}))
    with pytest.raises(MemoryBudgetError, match=r"l: the list of the group k=7 has more than .* bytes"):
        data.group_by("k").agg(l=collect_list("x")).collect()
    (row,) = data.filter(col("x") % 10 == 0).group_by("k").agg(l=collect_list("x", order_by="x")).collect()
    assert row.l == list(range(0, 200_000, 10))


def test_values_without_an_order_come_in_that_of_a_sort(environment):
    data = environment.from_arrow(pa.table({"k": [1, 2] * 3000, "x": list(range(6000))}))
    rows = data.sort("x", descending=True).group_by("k").agg(l=collect_list("x")).sort("k").collect()
    assert [row.l for row in rows] == [list(range(5998, -1, -2)), list(range(5999, -1, -2))]


def test_infinite_values_and_nan_among_quantiles(environment):
    inf, nan = math.inf, math.nan
    rows = pa.table({"k": [1, 1, 2, 2, 3, 3, 4], "x": [inf, inf, -inf, 1.0, 1.0, nan, nan]})
    found = environment.from_arrow(rows).group_by("k").agg(m=median("x"), n=quantile("x", 0.0)).sort("k").collect()
    assert [(row.m, row.n) for row in found[:2]] == [(inf, inf), (-inf, -inf)]
    assert math.isnan(found[2].m) and found[2].n == 1.0 and math.isnan(found[3].n)


def test_lists_and_maps_travel_through_joins_sorts_and_files(environment, tmp_path):
    data = environment.from_arrow(rows_of("few groups"))
    lists = data.group_by("k").agg(l=collect_list("s", order_by="i"), h=histogram("j"), best=max_by("s", "i"))
    wanted = lists.sort("k").collect()
    joined = data.select("k").distinct().join(lists, on="k").sort("k", nulls_last=True)
    joined.write_parquet(str(tmp_path / "out"))
    environment.execute()
    found = environment.read_parquet(str(tmp_path / "out")).sort("k").collect()
    assert found == [row for row in wanted if row.k is not None]


@pytest.mark.parametrize("data_type", KEY_VALUES, ids=str)
def test_values_of_every_type(two_environments, data_type):
    rows = key_table(data_type, 300)
    rng = random.Random(str(data_type))
    rows = rows.append_column("g", [[number % 7 for number in range(300)]])
    rows = rows.append_column("id", [rng.sample(range(300), 300)])
    found = two_environments.from_arrow(rows).rebalance().group_by("g").agg(
        most=mode("k"), first=min_by("k", "id"), top=max_by("id", "k"), top_value=max_("k"),
        all=collect_list("k", order_by="id"), some=collect_set("k"), counts=histogram("k"),
        different=count_distinct("k"), about=approx_count_distinct("k"),
        pairs=count_distinct("k", "n"), some_value=first("k", ignore_nulls=True),
    ).to_arrow()  # fmt: skip
    assert found.schema.field("most").type == found.schema.field("first").type == data_type
    assert found.schema.field("all").type == pa.list_(data_type)
    values_by_id = {row["id"]: plain(row["k"]) for row in rows.to_pylist()}
    for row in found.to_pylist():
        group = sorted((each for each in rows.to_pylist() if each["g"] == row["g"]), key=lambda each: each["id"])
        values = [plain(each["k"]) for each in group]
        there = [value for value in values if value is not None]
        counts = {value: there.count(value) for value in there}
        assert [plain(value) for value in row["all"]] == values
        assert {plain(key): number for key, number in row["counts"]} == counts
        assert sorted(map(repr, map(plain, row["some"]))) == sorted(map(repr, counts))
        assert row["different"] == row["about"] == len(counts)
        pairs = {(plain(each["k"]), each["n"]) for each in group if each["k"] is not None and each["n"] is not None}
        assert row["pairs"] == len(pairs)
        assert plain(row["some_value"]) in counts
        assert counts[plain(row["most"])] == max(counts.values())
        assert plain(row["first"]) == there[0]
        assert values_by_id[row["top"]] == plain(row["top_value"])
