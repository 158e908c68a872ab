"""Quantiles and lists of groups through the whole engine: types x parallelism x memory, against DuckDB."""

import datetime
import random
from collections import Counter
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import JobExecutionError, col, collect_list, count, median, mode, quantile
from tests.integration.row_oracle import plain
from tests.window.duckdb_windows import values_differ

#: more than are grouped as they are, in each of five subtasks
ROWS = 200_000
TYPES = ("bigint", "integer", "double", "float", "decimal(18, 3)", "date", "timestamp", "time")
VALUES = {
    "date": "date '2000-01-01' + (hash(i) % 9000)::int",
    "timestamp": "timestamp '2000-01-01' + interval 1 second * (hash(i) % 900000)::int",
    "time": "time '00:00:00' + interval 1 second * (hash(i) % 80000)::int",
    "double": "case when hash(i) % 50 = 0 then 'nan'::double else (hash(i) % 100000)::double / 8 end",
    "float": "((hash(i) % 100000)::double / 8)::float",
}
MEMORY = {"fits": {}, "half": {"taskmanager.memory.managed.size": "24mb"}, "least": {"debug.force-spill": True}}
#: SQL of a key: many groups, one giant one beside others, all of their own
KEYS = {"many": "hash(i + 1) % 9000", "giant": "case when i % 3 > 0 then -1 else hash(i) % 500 end", "own": "i * 7"}


def table(key, data_type, rows=ROWS):
    value = VALUES.get(data_type, f"((hash(i) % 100000) / 8)::{data_type}")
    made = f"case when hash(i + 3) % 10 = 0 then null else {value} end as v"
    with duckdb.connect() as connection:
        return connection.sql(f"select ({key})::bigint as k, {made} from range({rows}) t(i)").to_arrow_table()


def check(environment, rows, q=0.3):
    found = environment.from_arrow(rows).rebalance().group_by("k").agg(m=median("v"), q=quantile("v", q)).to_arrow()
    data_type = rows.schema.field("v").type
    is_time = pa.types.is_time(data_type)
    # what DuckDB interpolates in other types than float64
    is_other = pa.types.is_decimal(data_type) or pa.types.is_float32(data_type)
    value = "epoch_us(v)::double" if is_time else "v::double" if is_other else "v"
    with duckdb.connect() as connection:
        asked = f"quantile_cont({value}, 0.5) as m, quantile_cont({value}, {q}) as q"
        theirs = connection.sql(f"select k, {asked} from rows group by k order by k").to_arrow_table()
    ours = found.sort_by("k")
    assert ours["k"].equals(theirs["k"])
    for name in ("m", "q"):
        mine = [value.value for value in ours[name]] if is_time else ours[name].to_pylist()
        other = theirs[name].to_pylist()
        wrong = [pair for pair in zip(mine, other, strict=True) if not is_close(*pair)]
        assert wrong == [], (name, wrong[:3])


def is_close(ours, theirs):
    if isinstance(ours, int):
        return theirs is not None and abs(ours - theirs) <= 1
    if hasattr(ours, "timestamp"):
        return theirs is not None and abs(ours - theirs).total_seconds() <= 1e-6
    return not values_differ(ours, theirs)


@pytest.mark.parametrize("data_type", TYPES)
def test_values_of_all_types_agree_with_duckdb(open_environment, data_type):
    check(open_environment(**{"parallelism.default": 2}), table(KEYS["many"], data_type))


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("key", KEYS)
def test_groups_of_all_sizes_agree_with_duckdb_in_any_memory(open_environment, key, parallelism, memory):
    rows = 20_000 if memory == "least" else ROWS
    environment = open_environment(**{"parallelism.default": parallelism, **MEMORY[memory]})
    check(environment, table(KEYS[key], "double", rows))


@pytest.mark.parametrize("memory", MEMORY)
def test_lists_without_an_order_have_all_values_in_that_of_a_sort_before(open_environment, memory):
    environment = open_environment(**{"parallelism.default": 1, **MEMORY[memory]})
    rng = random.Random(1)
    rows = pa.table({"k": [rng.randrange(700) for _ in range(50_000)], "x": range(50_000)})
    made = environment.from_arrow(rows).sort("x", descending=True).group_by("k").agg(x=collect_list("x"), n=count())
    found = made.to_arrow()
    assert sum(found["n"].to_pylist()) == 50_000
    lists = dict(zip(found["k"].to_pylist(), found["x"].to_pylist(), strict=True))
    for key in (0, 1, 699):
        mine = [x for k, x in zip(rows["k"].to_pylist(), rows["x"].to_pylist(), strict=True) if k == key]
        assert lists[key] == mine[::-1]


#: what DuckDB makes of a number, in all types whose order is that of words, and in two whose order is not
ORDERS = {
    "tinyint": "(x % 100)::tinyint",
    "uinteger": "(x * 40000)::uinteger",
    "ubigint": "(x + 18446744073709450000)::ubigint",
    "boolean": "x % 2 = 0",
    "float": "case when x % 9 = 0 then 'nan'::float else x / 3 end::float",
    "date": "date '1969-12-01' + (x % 100)::int",
    "time": "time '00:00:00' + interval 1 second * (x % 86400)",
    "timestamptz": "timestamptz '1969-12-31 00:00:00Z' + interval 1 minute * x",
    "decimal": "(x / 4)::decimal(12, 2)",
    "varchar": "'text ' || x",
}


@pytest.mark.parametrize(("descending", "nulls_last"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", ORDERS)
def test_lists_in_an_order_agree_with_duckdb(open_environment, kind, descending, nulls_last):
    environment = open_environment(**{"parallelism.default": 2})
    made = f"case when x % 7 = 0 then null else {ORDERS[kind]} end as o"
    order = f"o {'desc' if descending else 'asc'} nulls {'last' if nulls_last else 'first'}, x desc"
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        numbers = "select i % 300 as k, hash(i)::ubigint % 100000 as x from range(9000) t(i)"
        rows = connection.sql(f"select k, x::bigint as x, {made} from ({numbers})").to_arrow_table()
        theirs = connection.sql(f"select k, list(x order by {order}) from rows group by k").fetchall()
    listed = collect_list("x", order_by=["o", "x"], descending=[descending, True], nulls_last=[nulls_last, False])
    groups = environment.from_arrow(rows).rebalance().group_by("k").agg(l=listed)
    assert ("PARTITIONED" in groups.explain()) == (kind not in ("ubigint", "decimal", "varchar"))
    assert dict(map(tuple, groups.collect())) == dict(theirs)


def test_a_limit_above_it_ends_it_early(open_environment, tmp_path):
    environment = open_environment(**{"parallelism.default": 2, "io.tmp.dirs": str(tmp_path), **MEMORY["half"]})
    data = environment.from_arrow(table(KEYS["many"], "bigint")).rebalance()
    assert data.group_by("k").agg(m=median("v")).limit(3).to_arrow().num_rows == 3
    assert [path for path in tmp_path.rglob("*.spill") if path.is_file()] == []


def test_a_failure_below_it_leaves_no_file(open_environment, tmp_path):
    environment = open_environment(
        **{"parallelism.default": 2, "io.tmp.dirs": str(tmp_path), "debug.force-spill": True}
    )
    data = environment.from_arrow(pa.table({"k": list(range(9000)) * 5, "v": list(range(45_000))})).rebalance()
    failing = data.with_columns(v=1 // (col("v") - 44_999))
    with pytest.raises(JobExecutionError):
        failing.group_by("k").agg(m=median("v")).to_arrow()
    assert [path for path in tmp_path.rglob("*.spill") if path.is_file()] == []


#: name: type, values, whether their modes are found without a sort
MODES = {
    "int64": (pa.int64(), [3, -1, 2**62], True),
    "double": (pa.float64(), [1.5, float("nan"), -0.0, 0.0, float("inf")], True),
    "string": (pa.string(), ["b", "a", "", "a longer text of more than eight bytes"], True),
    "bool": (pa.bool_(), [True, False], True),
    "date": (pa.date32(), [datetime.date(2020, 1, 1), datetime.date(1960, 1, 1)], True),
    "decimal128": (pa.decimal128(30, 2), [Decimal("1.50"), Decimal("-2.25")], True),
    "decimal256": (pa.decimal256(50, 2), [Decimal("1.50"), Decimal("-2.25")], False),
}


@pytest.mark.parametrize("data_type", MODES)
def test_a_mode_is_the_least_of_the_values_that_are_there_most_often(open_environment, data_type):
    value_type, values, is_unsorted = MODES[data_type]
    rng = random.Random(1)
    drawn = pa.array([rng.choice([*values, None]) for _ in range(900)], value_type)
    rows = pa.table({"k": [rng.randrange(60) for _ in range(900)], "v": drawn})
    made = open_environment(**{"parallelism.default": 2}).from_arrow(rows).rebalance().group_by("k").agg(m=mode("v"))
    assert ("SORT" not in made.explain()) == is_unsorted
    counts = {}
    for key, value in zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True):
        counts.setdefault(key, Counter())[plain(value)] += value is not None
    for row in made.collect():
        most = max(counts[row.k].values())
        best = [value for value, count in counts[row.k].items() if count == most]
        assert plain(row.m) == min(best, key=lambda value: (value == "NaN", value)), row
