"""Frames of GROUPS, and frames with EXCLUDE: random ones against DuckDB, and what is refused."""

import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import count_distinct, first_value, nth_value, rank, sum_
from engine.errors import NotYetSupportedError, SchemaError
from engine.optimizer import sort_planning, window_planning
from tests.window.duckdb_windows import values_differ

ROWS = 120
BOUNDS = (
    "UNBOUNDED PRECEDING",
    "2 PRECEDING",
    "1 PRECEDING",
    "CURRENT ROW",
    "1 FOLLOWING",
    "2 FOLLOWING",
    "UNBOUNDED FOLLOWING",
)
EXCLUDED = ("", "EXCLUDE NO OTHERS", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES")
OF_SETS = (
    *("count(*)", "count(i)", "sum(i)", "sum(x)", "sum(d)", "avg(i)", "avg(x)", "avg(d)", "min(i)", "max(x)", "min(s)"),
    *("max(s)", "min(d)", "stddev(i)", "var_samp(x)", "stddev(d)"),
)
OF_ROWS = ("first_value(i)", "last_value(s)", "nth_value(i, 2)", "nth_value(x, 3)", "nth_value(s, 1)", "last_value(d)")


@pytest.fixture(autouse=True)
def small_inputs_are_moved_too(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    monkeypatch.setattr(window_planning, "SMALL_SORT_BYTES", 0)


def table_of(rng):
    decimals = [rng.choice([None, Decimal("1.25"), Decimal("-3.50")]) for _ in range(ROWS)]
    return pa.table(
        {
            "id": list(range(ROWS)),
            "k": [rng.choice([1, 2, None]) for _ in range(ROWS)],
            "j": [rng.choice([1, 2, 3, 5, 8, None]) for _ in range(ROWS)],
            "i": [rng.choice([None, *range(-5, 6)]) for _ in range(ROWS)],
            "x": [rng.choice([None, 0.5, -1.25, 3.75, 2.0]) for _ in range(ROWS)],
            "d": pa.array(decimals, pa.decimal128(9, 2)),
            "s": [rng.choice([None, "a", "b", "cc"]) for _ in range(ROWS)],
        }
    )


def window_of(rng):
    """Return a function over a random window whose answer does not hang on the order of equal rows."""
    kind, first = rng.choice(("ROWS", "RANGE", "GROUPS")), rng.randrange(6)
    last = rng.randrange(max(first, 1), 7)
    down = rng.choice(("", " DESC"))
    is_unique = kind != "RANGE" and (kind == "ROWS" or rng.random() < 0.5)
    order = f"j{down}, id{down}" if is_unique else f"j{down}"
    function = rng.choice((*OF_SETS, *OF_ROWS) if is_unique else OF_SETS)
    frame = f"{kind} BETWEEN {BOUNDS[first]} AND {BOUNDS[last]} {rng.choice(EXCLUDED)}"
    return f"{function} OVER ({rng.choice(('', 'PARTITION BY k '))}ORDER BY {order} {frame})"


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (1, {"parallelism.default": 2}),
        (2, {"parallelism.default": 2, "debug.force-spill": True}),
        (3, {"parallelism.default": 1, "taskmanager.memory.managed.size": "250kb"}),
    ],
)
def test_random_frames_agree_with_duckdb(open_environment, seed, options):
    rng = random.Random(seed)
    table, environment = table_of(rng), open_environment(**options)
    environment.register("t", environment.from_arrow(table))
    with duckdb.connect() as oracle:
        oracle.register("t", table)
        oracle.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for _ in range(4):
            windows = [window_of(rng) for _ in range(8)]
            query = f"SELECT id, {', '.join(f'{one} AS c{at}' for at, one in enumerate(windows))} FROM t ORDER BY id"
            found, wanted = environment.sql(query).to_arrow(), oracle.sql(query).to_arrow_table()
            for at, window in enumerate(windows):
                pairs = zip(found[f"c{at}"].to_pylist(), wanted[f"c{at}"].to_pylist(), strict=True)
                assert [pair for pair in pairs if values_differ(*pair) and not is_near(*pair)][:3] == [], window


def is_near(found, wanted):
    return isinstance(found, float) and wanted is not None and abs(found - wanted) <= 1e-9


def test_the_api_has_the_same_frames(open_environment):
    data = open_environment().from_arrow(pa.table({"k": [1, 2, 2, 5], "v": [10, 20, 30, 40]}))
    found = data.select(
        "v",
        groups=sum_("v").over(order_by="k", groups=(-1, 0)),
        others=sum_("v").over(order_by="k", rows=(None, None), exclude="current row"),
        equals=sum_("v").over(order_by="k", range=(None, None), exclude="ties"),
    )
    assert found.sort("v").to_arrow().to_pylist() == [
        {"v": 10, "groups": 10, "others": 90, "equals": 100},
        {"v": 20, "groups": 60, "others": 80, "equals": 70},
        {"v": 30, "groups": 60, "others": 70, "equals": 80},
        {"v": 40, "groups": 90, "others": 60, "equals": 100},
    ]


def test_what_is_no_frame_is_said(open_environment):
    data = open_environment().from_arrow(pa.table({"k": [1], "v": [10]}))
    with pytest.raises(SchemaError, match="one of current row, group, ties, beside rows="):
        sum_("v").over(order_by="k", exclude="ties")
    with pytest.raises(SchemaError, match="in rows=, in range= or in groups=, not in several"):
        sum_("v").over(order_by="k", rows=(-1, 0), groups=(-1, 0))
    with pytest.raises(SchemaError, match="groups= counts in an order"):
        data.select(x=sum_("v").over("k", groups=(None, None)))
    with pytest.raises(SchemaError, match="takes no rows=, range= or groups="):
        rank().over(order_by="k", groups=(-1, 0))
    with pytest.raises(NotYetSupportedError, match="EXCLUDE of this function"):
        data.select(x=count_distinct("v").over(order_by="k", rows=(None, 0), exclude="ties"))
    with pytest.raises(NotYetSupportedError, match="EXCLUDE of nth_value beyond 16"):
        data.select(x=nth_value("v", 17).over(order_by="k", rows=(None, 0), exclude="group"))
    assert (
        data.select(x=first_value("v").over(order_by="k", rows=(None, 0), exclude="group")).to_arrow()["x"][0].as_py()
        is None
    )
