"""States of groups below joins and for coarser groups: the same rows as DuckDB's, whatever has how many partners."""

import random

import pyarrow as pa
import pytest

from tests.integration.row_oracle import assert_same_rows, duck, rows_of

SALES = 30_000


@pytest.fixture(scope="module")
def tables():
    """Sales, of which some have no customer; customers, of whom some come twice, and some have no sale."""
    chance = random.Random(7)

    def some(make, count):
        return [None if chance.random() < 0.05 else make() for _ in range(count)]

    sales = pa.table(
        {
            "customer": pa.array(some(lambda: chance.randrange(120), SALES), pa.int64()),
            "day": pa.array(some(lambda: chance.randrange(3), SALES), pa.int32()),
            "price": pa.array(some(lambda: chance.randrange(-90, 100), SALES), pa.int32()),
            "tax": pa.array(some(lambda: chance.randrange(64) / 8, SALES), pa.float64()),
            "exact": pa.array(some(lambda: chance.randrange(999), SALES), pa.int32()).cast(pa.decimal128(12, 2)),
        }
    )
    names = ["Ada", "Bob", "Cleo", None]
    customers = pa.table(
        {
            "id": pa.array([*range(20, 140), 21, 22, None], pa.int64()),
            "name": pa.array([chance.choice(names) for _ in range(123)]),
            "country": pa.array([chance.choice(["at", "ch", None]) for _ in range(123)]),
        }
    )
    return {"sales": sales, "customers": customers}


AGGREGATES = "sum(price), count(*), count(tax), avg(price), min(tax), max(day), sum(exact), avg(exact), stddev(price)"
#: what is rounded differently in another order is rounded
ROUNDED = AGGREGATES.replace("stddev(price)", "round(stddev(price), 6)")
FROM_ALL = "FROM sales {how} JOIN customers ON customer = id {also}"


def answer(environment, tables, query):
    for name, table in tables.items():
        environment.register(name, environment.from_arrow(table))
    found = environment.sql(query)
    assert_same_rows(rows_of(found.to_arrow()), duck(query, **tables))
    return found.explain()


@pytest.mark.parametrize("keys", ["name", "name, day", "day", "substr(name, 1, 1), country"])
@pytest.mark.parametrize("how", ["INNER", "LEFT"])
def test_groups_above_a_join(any_environment, tables, how, keys):
    query = f"SELECT {keys}, {ROUNDED} {FROM_ALL} GROUP BY {keys}".format(how=how, also="")
    assert "before the join, which gets fewer rows" in answer(any_environment, tables, query)


@pytest.mark.parametrize("keys", ["id", "name, day", "day", "coalesce(day, 9), country"])
@pytest.mark.parametrize("how", ["LEFT", "RIGHT"])
def test_groups_of_the_side_that_an_outer_join_fills_with_nulls(any_environment, tables, how, keys):
    """Customers come twice, and without a sale; ids and customers are null."""
    sides = "customers LEFT JOIN sales" if how == "LEFT" else "sales RIGHT JOIN customers"
    query = f"SELECT {keys}, {ROUNDED} FROM {sides} ON customer = id GROUP BY {keys}"
    assert "before the join, which gets fewer rows" in answer(any_environment, tables, query)


@pytest.mark.parametrize("empty", ["sales", "customers"])
def test_groups_of_an_outer_join_with_an_empty_side(any_environment, tables, empty):
    left = "customers" if empty == "sales" else "sales"
    key = "name" if empty == "sales" else "day"
    chosen = ("price", "tax", "exact") if empty == "sales" else ("id", "id", "id")
    sums = "count(*), sum({0}), count({0}), avg({1}), max({2})".format(*chosen)
    limited = f"(SELECT * FROM {empty} WHERE {'price' if empty == 'sales' else 'id'} > 1000)"
    query = f"SELECT {key}, {sums} FROM {left} LEFT JOIN {limited} AS other ON customer = id GROUP BY {key}"
    answer(any_environment, tables, query)


def test_what_counts_rows_of_nulls_is_counted_above_an_outer_join(any_environment, tables):
    counted = "count(coalesce(price, 0)), sum(CASE WHEN price IS NULL THEN 1 ELSE 0 END), sum(1), count(price + day)"
    query = f"SELECT name, {counted} FROM customers LEFT JOIN sales ON customer = id GROUP BY name"
    answer(any_environment, tables, query)
    query = f"SELECT name, {ROUNDED} FROM customers LEFT JOIN sales ON customer = id AND day < 2 GROUP BY name"
    answer(any_environment, tables, query)


def test_a_condition_looks_at_rows_below(any_environment, tables):
    query = f"SELECT name, {ROUNDED} {FROM_ALL} GROUP BY name".format(how="LEFT", also="AND day + 1 <> length(name)")
    answer(any_environment, tables, query)


@pytest.mark.parametrize("kind", ["EXISTS", "NOT EXISTS"])
def test_different_rows_and_those_that_a_semi_join_asks(any_environment, tables, kind):
    bought = FROM_ALL.format(how="INNER", also="")
    query = f"SELECT DISTINCT name, day {bought}"
    assert "before the join, which gets fewer rows" in answer(any_environment, tables, query)
    asked = f"SELECT 1 {bought} WHERE customers.name = c.name AND day = c.id % 3"
    query = f"SELECT id FROM customers AS c WHERE {kind} ({asked})"
    assert "before the join, which gets fewer rows" in answer(any_environment, tables, query)


def test_one_group_above_a_join(any_environment, tables):
    query = f"SELECT {ROUNDED} {FROM_ALL}".format(how="INNER", also="")
    assert "before the join, which gets fewer rows" in answer(any_environment, tables, query)


@pytest.mark.parametrize("sets", ["ROLLUP (name, country, day)", "CUBE (name, day)", "GROUPING SETS ((day), (name))"])
def test_sets_of_groups_above_a_join(any_environment, tables, sets):
    query = f"SELECT name, day, grouping(name, day), {ROUNDED} {FROM_ALL} GROUP BY {sets}".format(how="INNER", also="")
    text = answer(any_environment, tables, query)
    assert ("read by coarser groups too" in text) == ("GROUPING" not in sets)


def test_sets_of_groups_of_no_rows(any_environment, tables):
    none = {"sales": tables["sales"].slice(0, 0), "customers": tables["customers"]}
    query = "SELECT day, sum(price), count(*), avg(tax) FROM sales GROUP BY ROLLUP (day)"
    assert "read by coarser groups too" in answer(any_environment, none, query)
