"""Joins whose subtasks mark the rows of one build side: the same rows as DuckDB's, whatever fails or ends early."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.fault_points import InjectedFaultError
from engine.operators.hash_join_driver import HashJoinDriver
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

FEW = pa.table({"k": [n if n % 13 else None for n in range(3000)], "a": [n % 7 for n in range(3000)]})
MANY = pa.table({"j": [n * 7919 % 4000 for n in range(60_000)], "b": [n % 5 for n in range(60_000)]})
RESTARTS = {"type": "fixed-delay", "fixed-delay.attempts": 30, "fixed-delay.delay": "10 ms"}
QUERIES = {
    "left": "SELECT k, a, b FROM few LEFT JOIN many ON k = j",
    "left, condition": "SELECT k, a, b FROM few LEFT JOIN many ON k = j AND a < b",
    "right": "SELECT k, a, b FROM many RIGHT JOIN few ON k = j",
    "semi": "SELECT k, a FROM few WHERE EXISTS (SELECT 1 FROM many WHERE k = j)",
    "semi, condition": "SELECT k, a FROM few WHERE EXISTS (SELECT 1 FROM many WHERE k = j AND a <> b)",
    "anti": "SELECT k, a FROM few WHERE NOT EXISTS (SELECT 1 FROM many WHERE k = j)",
    "anti, condition": "SELECT k, a FROM few WHERE NOT EXISTS (SELECT 1 FROM many WHERE k = j AND a = b + 3)",
}


def tables_of(environment, folder):
    """Register both tables as files of many row groups, so that each subtask reads some."""
    for name, table in {"few": FEW, "many": MANY}.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1000)
        environment.register(name, environment.read_parquet(folder / f"{name}.parquet"))
    return environment


def asked(environment, query):
    found = environment.sql(query)
    text = found.explain()
    assert "join on" in text
    assert "build: BROADCAST" in text
    return rows_of(found.to_arrow())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("force_spill", [False, True])
def test_each_row_that_is_kept_comes_out_as_often_as_it_should(open_environment, tmp_path, query, force_spill):
    environment = tables_of(open_environment(**{"parallelism.default": 3, "debug.force-spill": force_spill}), tmp_path)
    for _ in range(3):
        assert_same_rows(asked(environment, QUERIES[query]), duck(QUERIES[query], few=FEW, many=MANY))


@pytest.mark.parametrize("query", ["left", "semi, condition", "anti"])
@pytest.mark.parametrize("place", ["_build_shared", "_probe_with", "_finish_marked"])
def test_another_attempt_marks_rows_anew(open_environment, tmp_path, monkeypatch, query, place):
    restarts = {f"restart-strategy.{key}": value for key, value in RESTARTS.items()}
    environment = tables_of(open_environment(**{"parallelism.default": 3, **restarts}), tmp_path)
    run, calls = getattr(HashJoinDriver, place), itertools.count()

    def fails_at_first(*arguments):
        result = run(*arguments)
        if next(calls) in (0, 2):
            raise InjectedFaultError("now and then")
        return result

    monkeypatch.setattr(HashJoinDriver, place, fails_at_first)
    assert_same_rows(asked(environment, QUERIES[query]), duck(QUERIES[query], few=FEW, many=MANY))
    assert next(calls) > 1


@pytest.mark.parametrize("query", ["left", "anti"])
def test_a_subtask_that_has_enough_rows_goes_on_marking(open_environment, tmp_path, query):
    environment = tables_of(open_environment(**{"parallelism.default": 3}), tmp_path)
    every = {*map(tuple, duck(QUERIES[query], few=FEW, many=MANY))}
    for count in (1, 40, 200):
        found = asked(environment, f"{QUERIES[query]} LIMIT {count}")
        assert len(found) == count
        assert every.issuperset(found)
