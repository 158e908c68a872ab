"""Aggregates of all values of a frame: those of DuckDB, in Python and SQL, in several tasks and in little memory."""

import datetime
import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import col, collect_list, collect_set, count_distinct, median, quantile, string_agg
from engine.errors import NotYetSupportedError, SchemaError
from tests.window.duckdb_windows import values_differ

ROWS = 400
MODES = {
    "1": {"parallelism.default": 1},
    "3, spilling": {"parallelism.default": 3, "debug.force-spill": True},
    "2, six pages": {"parallelism.default": 2, "taskmanager.memory.managed.size": "250kb"},
}
#: window of ours -> SQL
WINDOWS = {
    "sliding": (
        {"partition_by": "k", "order_by": "id", "rows": (-7, 2)},
        "partition by k order by id rows between 7 preceding and 2 following",
    ),
    "of all": ({"order_by": "id", "rows": (2, 5)}, "order by id rows between 2 following and 5 following"),
    "running": (
        {"partition_by": "k", "order_by": "id", "descending": True},
        "partition by k order by id desc",
    ),
    "distances": (
        {"partition_by": "k", "order_by": "id", "range": (-40, 0)},
        "partition by k order by id range between 40 preceding and current row",
    ),
    "groups": (
        {"partition_by": "k", "order_by": ["j", "id"], "groups": (-3, 0)},
        "partition by k order by j nulls first, id groups between 3 preceding and current row",
    ),
    "behind": (
        {"partition_by": "k", "order_by": "id", "rows": (1, None)},
        "partition by k order by id rows between 1 following and unbounded following",
    ),
    "whole": ({"partition_by": "k", "order_by": "id", "rows": (None, None)}, "partition by k"),
}
FUNCTIONS = {
    "middle": (median("x"), "median(x)"),
    "low": (quantile("j", 0.3), "quantile_cont(j, 0.3)"),
    "both": (quantile("x", [0.1, 0.9]), "list_value(quantile_cont(x, 0.1) over w, quantile_cont(x, 0.9) over w)"),
    "exact": (quantile("d", 0.5), "quantile_cont(d::double, 0.5)"),
    "day": (median("t"), "quantile_cont(t::timestamp, 0.5)"),
    "kept": (median("x", filter=col("j") > 3), "median(x) filter (j > 3)"),
    "kinds": (count_distinct("s"), "count(distinct s)"),
    "lists": (collect_list("j"), "list(j)"),
    "some": (collect_list("j", filter=col("j") > 3), "list(j) filter (j > 3)"),
    "texts": (string_agg("s", "; "), "string_agg(s, '; ')"),
    "set": (collect_set("s"), "list_sort(list_distinct(list(s) filter (s is not null) over w))"),
}


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(7)

    def some(make):
        return [None if rng.random() < 0.2 else make() for _ in range(ROWS)]

    day = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "id": range(ROWS),
            "k": some(lambda: rng.choice("abc")),
            "x": some(lambda: rng.choice([rng.random(), 1.5, -0.0])),
            "j": some(lambda: rng.randrange(-50, 50)),
            "d": pa.array(some(lambda: Decimal(rng.randrange(1_000)).scaleb(-2)), pa.decimal128(10, 2)),
            "t": some(lambda: day + datetime.timedelta(rng.randrange(90))),
            "s": some(lambda: rng.choice(["a", "b", "", "cc"])),
        }
    )


def _texts(sql):
    each = {name: text if "over w" in text else f"{text} over w" for name, (_, text) in FUNCTIONS.items()}
    if sql == "partition by k":
        # lists of whole partitions have no order there
        ordered = "(partition by k order by id rows between unbounded preceding and unbounded following)"
        each = {name: text.replace("over w", f"over {ordered}") for name, text in each.items()}
    return f"select id, {', '.join(f'{text} as {name}' for name, text in each.items())} from rows window w as ({sql})"


def _differ(ours, theirs):
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) != len(theirs) or any(map(values_differ, ours, theirs))
    return values_differ(ours, theirs)


@pytest.mark.parametrize(
    ("name", "mode"), [*((name, "1") for name in WINDOWS), ("sliding", "3, spilling"), ("running", "2, six pages")]
)
def test_aggregates_of_frames_are_those_of_duckdb(open_environment, rows, name, mode):
    window, sql = WINDOWS[name]
    data = open_environment(**MODES[mode]).from_arrow(rows)
    made = {one: function.over(**window) for one, (function, _) in FUNCTIONS.items()}
    if name == "whole":
        del made["lists"], made["some"], made["texts"]  # of whole partitions, in any order
    found = data.select("id", **made).sort("id").to_arrow()
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        wanted = connection.sql(f"{_texts(sql)} order by id").to_arrow_table()
    for one in made:
        pairs = zip(found[one].to_pylist(), wanted[one].to_pylist(), strict=True)
        faults = [(row, *pair) for row, pair in enumerate(pairs) if _differ(*pair)]
        assert not faults, (one, faults[:3])


def test_sql_has_the_same(open_environment, rows):
    env = open_environment()
    env.register("rows", env.from_arrow(rows))
    sql = WINDOWS["sliding"][1]
    found = env.sql(f"{_texts(sql).replace('::double', '')} order by id").to_arrow()
    window = WINDOWS["sliding"][0]
    ours = env.from_arrow(rows).select("id", **{one: made.over(**window) for one, (made, _) in FUNCTIONS.items()})
    assert found.to_pydict() == ours.sort("id").to_arrow().to_pydict()


def test_medians_of_spans_of_time_are_those_of_their_rows(open_environment):
    table = pa.table({"n": [1, 4, 5, 12, None], "x": [4.0, 1.0, 3.0, None, 2.0]}).slice(0, 4)
    found = open_environment().from_arrow(table).rolling("n", 5).agg(m=median("x"), all=collect_list("x"))
    assert found.sort("n").collect() == [
        (1, 4.0, [4.0]),
        (4, 2.5, [4.0, 1.0]),
        (5, 3.0, [4.0, 1.0, 3.0]),
        (12, None, [None]),
    ]


def test_frames_without_rows_and_without_values_are_null(open_environment):
    table = pa.table({"id": [1, 2, 3], "x": pa.array([None, 2.0, None])})
    behind = {"order_by": "id", "rows": (1, 1)}
    data = open_environment().from_arrow(table)
    found = data.select("id", m=median("x").over(**behind), l=collect_list("x").over(**behind))
    assert found.sort("id").collect() == [(1, 2.0, [2.0]), (2, None, [None]), (3, None, None)]


def test_what_frames_do_not_have_is_refused(open_environment, rows):
    data = open_environment().from_arrow(rows)
    with pytest.raises(NotYetSupportedError, match="over frames with another order than theirs"):
        data.select(a=collect_list("x", order_by="j").over(order_by="id"))
    assert data.select(a=collect_list("x", order_by="id").over(order_by="id")).count() == ROWS
    with pytest.raises(NotYetSupportedError, match="EXCLUDE of this function"):
        data.select(a=median("x").over(order_by="id", rows=(-2, 2), exclude="current row"))
    with pytest.raises(SchemaError, match="quantile takes numbers and times, the argument is string"):
        data.select(a=median("s").over(order_by="id"))
