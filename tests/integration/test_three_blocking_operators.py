"""A sort, a join and an aggregate in one plan, in little memory and with every spill path forced."""

import random

import pyarrow as pa
import pytest

from engine import JoinHint, avg, col, count, max_, sum_
from tests.integration.row_oracle import duck

ROWS = 40_000
HINTS = [
    JoinHint.OPTIMIZER_CHOOSES,
    JoinHint.REPARTITION_HASH_FIRST,
    JoinHint.REPARTITION_HASH_SECOND,
    JoinHint.REPARTITION_SORT_MERGE,
]

SQL = """
    SELECT name, count(*) AS orders, sum(amount)::BIGINT AS total, max(note) AS note, round(avg(amount), 6) AS mean
    FROM orders JOIN customers USING (customer) WHERE amount > 10
    GROUP BY name ORDER BY total DESC, name
"""


@pytest.fixture(scope="module")
def tables():
    chance = random.Random(4)
    heavy = [1 if chance.random() < 0.9 else chance.randrange(2, 3000) for _ in range(ROWS)]
    orders = pa.table(
        {
            "customer": pa.array([None if n % 97 == 0 else customer for n, customer in enumerate(heavy)], pa.int64()),
            "amount": [chance.randrange(1000) for _ in range(ROWS)],
            "note": [f"note {chance.randrange(10**9)} {'x' * (n % 60)}" for n in range(ROWS)],
        }
    )
    customers = pa.table({"customer": range(2500), "name": [f"customer {n % 1200}" for n in range(2500)]})
    return {"orders": orders, "customers": customers}


@pytest.fixture(scope="module")
def expected(tables):
    return duck(SQL, **tables)


def build(env, tables, hint):
    orders, customers = env.from_arrow(tables["orders"]), env.from_arrow(tables["customers"])
    joined = orders.filter(col("amount") > 10).join(customers, on="customer", hint=hint)
    calls = {"orders": count(), "total": sum_(col("amount")), "note": max_(col("note")), "mean": avg(col("amount"))}
    grouped = joined.group_by("name").agg(**calls)
    return grouped.sort(["total", "name"], descending=[True, False])


def check(rows, expected):
    assert [(*row[:4], round(row[4], 6)) for row in rows] == expected


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: hint.value)
@pytest.mark.parametrize("size", ["16mb", "1mb"])
def test_three_blocking_operators_in_little_memory(open_environment, tables, expected, parallelism, hint, size):
    env = open_environment(**{"parallelism.default": parallelism, "taskmanager.memory.managed.size": size})
    check(build(env, tables, hint).collect(), expected)


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("mode", ["PIPELINED", "BATCH"])
@pytest.mark.parametrize("hint", HINTS[:3], ids=lambda hint: hint.value)
def test_three_blocking_operators_that_all_spill(open_environment, tables, expected, hint, mode):
    env = open_environment(
        **{"debug.force-spill": True, "taskmanager.memory.managed.size": "16mb", "execution.mode": mode}
    )
    check(build(env, tables, hint).collect(), expected)


FULL_AND_ANTI_SQL = """
    SELECT name, count(*) AS rows, sum(amount)::BIGINT AS total, max(note) AS note
    FROM (SELECT coalesce(o.customer, c.customer) AS customer, * EXCLUDE (customer)
          FROM orders o FULL JOIN customers c ON o.customer = c.customer AND o.amount > c.least) j
         ANTI JOIN blocked USING (customer)
    GROUP BY name ORDER BY total DESC NULLS FIRST, name NULLS FIRST
"""


@pytest.fixture(scope="module")
def more_tables(tables):
    customers = tables["customers"].append_column("least", pa.array([n % 900 for n in range(2500)], pa.int64()))
    blocked = pa.table({"customer": pa.array([None, *range(0, 2500, 3)], pa.int64())})
    return {"orders": tables["orders"], "customers": customers, "blocked": blocked}


@pytest.fixture(scope="module")
def expected_of_more(more_tables):
    return duck(FULL_AND_ANTI_SQL, **more_tables)


# forced, a sort-merge join makes runs of 16 rows from 40 000: seconds of files, and the small joins spill so too
@pytest.mark.parametrize(
    ("hint", "is_forced"), [*((hint, False) for hint in HINTS[1:]), *((hint, True) for hint in HINTS[1:3])]
)
def test_a_full_and_an_anti_join_among_them(open_environment, more_tables, expected_of_more, hint, is_forced):
    size = "16mb" if is_forced else "1mb"
    env = open_environment(**{"taskmanager.memory.managed.size": size, "debug.force-spill": is_forced})
    orders, customers, blocked = (env.from_arrow(table) for table in more_tables.values())
    full = orders.join(customers, on="customer", how="full", hint=hint, condition=col("amount") > col("least"))
    left = full.join(blocked, on="customer", how="anti", hint=hint)
    grouped = left.group_by("name").agg(rows=count(), total=sum_(col("amount")), note=max_(col("note")))
    assert grouped.sort(["total", "name"], descending=[True, False]).collect() == expected_of_more


@pytest.mark.quick
def test_all_three_report_what_they_spilled(open_environment, tables, expected, tmp_path):
    env = open_environment(**{"debug.force-spill": True, "taskmanager.memory.managed.size": "16mb"})
    build(env, tables, JoinHint.REPARTITION_HASH_SECOND).write_parquet(str(tmp_path / "out"))
    report = env.execute("three").to_json_dict()
    spilled = {
        vertex["name"]: sum(task["spilled_bytes"] for task in vertex["subtasks"]) for vertex in report["vertices"]
    }
    for word in ("join", "sort", "aggregate"):
        assert sum(size for name, size in spilled.items() if word in name.lower()) > 0, spilled
    check(env.read_parquet(str(tmp_path / "out")).collect(), expected)


def test_sorting_before_and_after_everything(open_environment, tables):
    env = open_environment(**{"debug.force-spill": True, "taskmanager.memory.managed.size": "16mb"})
    orders = env.from_arrow(tables["orders"])
    top = orders.sort("amount", descending=True).limit(5000)
    joined = top.join(env.from_arrow(tables["customers"]), on="customer", hint=JoinHint.REPARTITION_HASH_FIRST)
    counted = joined.group_by("amount").agg(n=count()).sort("amount")
    amounts = sorted(tables["orders"]["amount"].to_pylist(), reverse=True)[:5000]
    assert [row.amount for row in counted.collect()][1:] == sorted({n for n in amounts if n > min(amounts)})


def test_a_sort_larger_than_its_memory(open_environment, tables, tmp_path):
    env = open_environment(**{"taskmanager.memory.managed.size": "1mb"})
    env.from_arrow(tables["orders"]).sort(["note", "amount"]).write_parquet(str(tmp_path / "out"))
    report = env.execute().to_json_dict()
    assert sum(task["spilled_bytes"] for vertex in report["vertices"] for task in vertex["subtasks"]) > 0
    notes = [row.note for row in env.read_parquet(str(tmp_path / "out")).collect()]
    assert len(notes) == ROWS
    assert notes == sorted(notes)


def test_a_row_larger_than_all_managed_memory(open_environment):
    env = open_environment(**{"taskmanager.memory.managed.size": "1mb", "parallelism.default": 1})
    big = "y" * (3 << 20)
    rows = [(2, "b"), (1, big), (3, "a"), (1, "c")]
    data = env.from_rows(rows, pa.schema([("k", pa.int64()), ("t", pa.string())]))
    assert data.sort(["k", "t"]).collect() == [(1, "c"), (1, big), (2, "b"), (3, "a")]
    names = env.from_rows([(1, "one")], pa.schema([("k", pa.int64()), ("n", pa.string())]))
    for hint in (JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_HASH_SECOND):
        assert sorted(data.join(names, on="k", hint=hint).collect()) == [(1, "c", "one"), (1, big, "one")]
    assert data.group_by("t").agg(n=count()).count() == 4
