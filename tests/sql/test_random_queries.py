"""Random queries: Drey's answers are DuckDB's. What Drey refuses it refuses by name, and seldom."""

from __future__ import annotations

import contextlib
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
_FIRST = int(os.environ.get("FIRST_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + int(os.environ.get("SEEDS", "300" if IS_TORTURE else "40")))
SEEDS = [pytest.param(seed, marks=[] if seed < 2 else [pytest.mark.thorough]) for seed in _SEEDS]


#: what parts of a plan in one subtask read (tables have up to two kilobytes): nothing, some of them, all
_SMALL_PART_SIZES = ("0b", "200b", "1kb", "1mb")


@pytest.fixture(scope="module")
def runners(nothing_is_left_by_the_module: None) -> Iterator[list[Environment]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Environment(config={"parallelism.default": 3, "debug.small-part-size": size}))
            for size in _SMALL_PART_SIZES
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_answers_are_duckdbs(runners: list[Environment], seed: int) -> None:
    generator, runner = Generator(seed), runners[seed % len(runners)]
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
