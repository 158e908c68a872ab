"""Filters of a complete build side: which there are, and that their memory is counted."""

import pyarrow as pa
import pytest

from engine.graph.runtime_filter import RuntimeFilter
from engine.graph.said_operators import JoinType
from engine.join.hash_join import HashJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.memory.budget import Budget, Kind
from engine.operators import runtime_filters
from engine.operators.runtime_filters import make_filters
from tests.join.join_oracle import join_memory

BUILD = pa.table({"k": pa.array([*range(0, 200, 2), None]), "w": [f"word {row}" for row in range(101)]})
ON_NUMBER = RuntimeFilter(3, "join", 0, "n")
ON_TEXT = RuntimeFilter(3, "join", 1, "t")


@pytest.fixture
def join(tmp_path):
    probe = JoinInput(pa.schema([("n", pa.int64()), ("t", pa.string())]), (0, 1))
    schema = pa.schema([("n", pa.int64())])
    spec = JoinSpec(
        how=JoinType.SEMI, left=probe, right=JoinInput(BUILD.schema, (0, 1)), output=((0, 0),), output_schema=schema
    )
    with join_memory(tmp_path, 100, 4096) as (pool, space):
        join = HashJoin(spec, pool, space)
        for batch in BUILD.to_batches():
            join.add_build_batch(batch)
        join.finish_build()
        yield join
        join.close()


@pytest.fixture
def budget(monkeypatch):
    budget = Budget()
    monkeypatch.setattr(runtime_filters, "process_budget", budget)
    yield budget
    assert budget.held(Kind.ARROW) == 0


def test_each_key_that_is_wanted_has_a_filter_which_is_counted(join, budget):
    made = make_filters(join, [ON_NUMBER, ON_TEXT])
    assert budget.held(Kind.ARROW) == sum(each.size_bytes for each in made.filters.values()) > 0
    number, text = made.tests([ON_NUMBER, ON_TEXT])
    assert (number.column, text.column) == ("n", "t")
    asked = pa.record_batch({"n": [-1, 0, 1, 198, None], "t": ["word 0", "word 99", None, None, None]})
    assert number.mask_of(asked).array().to_pylist() == [False, True, False, True, False]
    # the key of the row with a null in the other one is no key
    assert text.mask_of(asked).array().to_pylist() == [True, True, False, False, False]
    made.close()
    made.close()


def test_a_source_has_the_tests_of_the_filters_that_there_are(join, budget):
    made = make_filters(join, [ON_TEXT])
    assert [test.column for test in made.tests([ON_NUMBER, ON_TEXT])] == ["t"]
    made.close()


def test_one_for_few_build_rows_is_not_made_of_more(join, budget):
    few = RuntimeFilter(3, "join", 0, "n", rows_max=join.build_rows - 1)
    made = make_filters(join, [few, ON_TEXT])
    assert list(made.filters) == [(3, 1)]
    made.close()
    made = make_filters(join, [RuntimeFilter(3, "join", 0, "n", rows_max=join.build_rows)])
    assert list(made.filters) == [(3, 0)]
    made.close()


def test_nothing_is_made_where_nothing_is_wanted(join, budget):
    assert make_filters(join, []) is None


@pytest.mark.parametrize("limit", ["KEYS_MAX", "KEY_BYTES_MAX", "FILTER_BYTES_MAX"])
def test_a_build_side_that_is_too_large_has_none(join, budget, monkeypatch, limit):
    monkeypatch.setattr(runtime_filters, limit, 1)
    assert make_filters(join, [ON_NUMBER, ON_TEXT]) is None


def test_there_is_none_where_there_is_no_memory(join, budget):
    budget.set_limit(Kind.ARROW, 16)
    assert make_filters(join, [ON_NUMBER, ON_TEXT]) is None
