"""Random queries: Drey's answers are DuckDB's. What Drey refuses it refuses by name, and seldom."""

from __future__ import annotations

import os
from collections.abc import Iterator

import duckdb
import pytest

from engine import Environment, NotYetSupportedError
from tests.sampling import IS_TORTURE
from tests.sql.random_queries import Generator
from tests.tpch.answers import difference

#: queries of one seed, which share their tables
_QUERIES = 10
_SEEDS = range(int(os.environ.get("SEEDS", "300" if IS_TORTURE else "60")))
SEEDS = [pytest.param(seed, marks=[] if seed < 6 else [pytest.mark.thorough]) for seed in _SEEDS]


@pytest.fixture(scope="module")
def runner(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


@pytest.mark.parametrize("seed", SEEDS)
def test_the_answers_are_duckdbs(runner: Environment, seed: int) -> None:
    generator = Generator(seed)
    answered = 0
    with duckdb.connect() as oracle:
        for name, table in generator.tables.items():
            runner.register(name, runner.from_arrow(table))
            oracle.register(name, table)
        for _ in range(_QUERIES):
            query = generator.query()
            wanted = oracle.sql(query).to_arrow_table()
            try:
                found = runner.sql(query).to_arrow()
            except NotYetSupportedError:
                continue
            answered += 1
            assert difference(found, wanted) == "", query
    assert answered >= _QUERIES // 2
