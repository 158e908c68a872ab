"""Whole groups: states that are all of their group become results as they come; where they may not be, they merge."""

import random

import pyarrow as pa
import pytest

from engine import Environment
from engine.aggregate.full_aggregation import FullAggregation
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

SALES = 40_000
CUSTOMERS = 150
MARK = "gives out states as they come if each is all of its group"
#: of each operator
ONE_SUBTASK = {"parallelism.default": 2, "debug.small-part-size": "1gb"}
#: a first phase holds 16 groups, and joins 8 build rows
SPILLING = {"debug.force-spill": True}
AGGREGATES = (
    "sum(price) AS s, count(*) AS n, count(tax) AS m, avg(price) AS a, min(tax) AS t, max(note) AS x, "
    "sum(exact) AS e, avg(exact) AS f, round(stddev(price), 6) AS d"
)


@pytest.fixture(scope="module")
def tables():
    """Sales, of which some have no customer; customers by a key, and beside them some of whom two have one key."""
    chance = random.Random(3)

    def some(make):
        return [None if chance.random() < 0.05 else make() for _ in range(SALES)]

    sales = {
        "customer": pa.array(some(lambda: chance.randrange(CUSTOMERS + 20)), pa.int64()),
        "day": pa.array(some(lambda: chance.randrange(5)), pa.int64()),
        "price": pa.array(some(lambda: chance.randrange(-90, 100)), pa.int32()),
        "tax": pa.array(some(lambda: chance.randrange(64) / 8), pa.float64()),
        "note": pa.array(some(lambda: f"note {chance.randrange(10**6)}")),
        "exact": pa.array(some(lambda: chance.randrange(999)), pa.int32()).cast(pa.decimal128(12, 2)),
    }
    names = ["Ada", "Bob", "Cleo", None]
    unique = {"id": range(CUSTOMERS), "name": [chance.choice(names) for _ in range(CUSTOMERS)]}
    twice = {"id": [*unique["id"], 5], "name": [*unique["name"], unique["name"][5]]}
    return {"sales": pa.table(sales), "customers": pa.table(unique), "twice": pa.table(twice)}


@pytest.fixture
def taken(monkeypatch):
    """Aggregates that have been told that what comes are whole groups."""
    found, take = [], FullAggregation.take_whole_groups
    monkeypatch.setattr(FullAggregation, "take_whole_groups", lambda self: (found.append(self), take(self)))
    return found


def answer(tables, query, **config):
    """The plan of a query whose answer is DuckDB's."""
    with Environment(config={**ONE_SUBTASK, **config}) as env:
        for name, table in tables.items():
            env.register(name, env.from_arrow(table))
        found = env.sql(query)
        assert_same_rows(rows_of(found.to_arrow()), duck(query, **tables))
        return found.explain()


def grouped(keys, joins="JOIN customers ON customer = id", where=""):
    return f"SELECT {keys}, {AGGREGATES} FROM sales {joins} {where} GROUP BY {keys}"


@pytest.mark.parametrize(
    "keys", ["id, name, day", "day, customer", "name, id"], ids=["by the other key", "by its own", "of fewer keys"]
)
def test_states_of_whole_groups_are_results(tables, taken, keys):
    assert MARK in answer(tables, grouped(keys))
    assert len(taken) == 1


def test_whole_groups_of_two_joins_one_after_the_other(tables, taken):
    others = "(SELECT id AS other, name AS called FROM customers) AS others"
    joins = f"JOIN customers ON customer = id JOIN {others} ON day = other"
    text = answer(tables, grouped("called, name, id, other", joins))
    assert MARK in text
    assert len(taken) == 1


def test_a_preserved_side_keeps_its_groups(tables, taken):
    assert MARK in answer(
        tables, grouped("customer, name, day", "LEFT JOIN customers ON customer = id AND name <> 'Bob'")
    )
    assert len(taken) == 1


def test_groups_that_a_filter_above_drops(tables, taken):
    query = f"SELECT * FROM ({grouped('id, name, day')}) AS g WHERE a > 3 OR n < 40"
    assert MARK in answer(tables, query)
    assert len(taken) == 1


def test_no_rows_are_no_groups(tables, taken):
    none = {**tables, "sales": tables["sales"].slice(0, 0)}
    answer(none, grouped("id, name, day"))
    assert taken == []


def test_build_rows_that_share_a_key_make_states_meet(tables, taken):
    text = answer(tables, grouped("id, name, day", "JOIN twice ON customer = id"))
    assert MARK in text
    assert taken == []


def test_a_first_phase_that_gave_groups_out_early_makes_states_meet(tables, taken):
    assert MARK in answer(tables, grouped("id, name, day"), **SPILLING)
    assert taken == []


@pytest.mark.parametrize("keys", ["name, day", "id + 0, name, day", "customer % 3, day"])
def test_keys_that_do_not_say_which_group_it_was(tables, taken, keys):
    assert MARK not in answer(tables, grouped(keys))
    assert taken == []


def test_keys_of_a_side_that_a_join_fills_with_nulls(tables, taken):
    """Sales without a customer are one group by id, and of many customers below."""
    assert MARK not in answer(tables, grouped("id, day", "LEFT JOIN customers ON customer = id"))
    assert taken == []


def test_several_subtasks_have_groups_in_common(tables, taken):
    text = answer(tables, grouped("id, name, day"), **{"debug.small-part-size": "0b"})
    assert MARK not in text
    assert taken == []
