"""Random queries that look at rows outside, wherever they stand: Drey's answers are DuckDB's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import duckdb
import pytest

from engine import Environment
from tests.sql.correlated_queries import CorrelatedGenerator
from tests.tpch.answers import difference

#: queries of one seed, which share their tables
_QUERIES = 6
_FIRST = int(os.environ.get("FIRST_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + int(os.environ.get("SEEDS", "30")))
SEEDS = [pytest.param(seed, marks=[] if seed < 2 else [pytest.mark.thorough]) for seed in _SEEDS]


@pytest.fixture(scope="module")
def runner(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_the_answers_are_duckdbs(runner: Environment, seed: int) -> None:
    generator, answered = CorrelatedGenerator(seed), 0
    with duckdb.connect() as oracle:
        oracle.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for name, table in generator.tables.items():
            runner.register(name, runner.from_arrow(table))
            oracle.register(name, table)
        for _ in range(_QUERIES):
            query = generator.query()
            try:
                wanted = oracle.sql(query).to_arrow_table()
            except duckdb.Error:
                continue
            answered += 1
            assert difference(runner.sql(query).to_arrow(), wanted) == "", query
    assert answered >= _QUERIES // 2
