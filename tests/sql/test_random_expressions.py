"""Random expressions over a column, over constants, and over some of both: Drey's values are the same, and DuckDB's."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, Environment, NotYetSupportedError, PlanError
from tests.sampling import IS_TORTURE
from tests.sql.random_expressions import ARROW_TYPES, Expression, Generator

#: expressions of one seed
_EXPRESSIONS = 20
_FIRST = int(os.environ.get("FIRST_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + int(os.environ.get("SEEDS", "200" if IS_TORTURE else "15")))
SEEDS = [pytest.param(seed, marks=[] if seed < 2 else [pytest.mark.thorough]) for seed in _SEEDS]


@pytest.fixture(scope="module")
def runner(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 1}) as environment:
        yield environment


@pytest.mark.parametrize("seed", SEEDS)
def test_the_values_are_duckdbs(runner: Environment, seed: int) -> None:
    generator, chance = Generator(seed), random.Random(seed)
    answered = 0
    with duckdb.connect() as oracle:
        for _ in range(_EXPRESSIONS):
            expression = generator.expression()
            columns = {
                f"c{at}": pa.array([one.value], ARROW_TYPES[one.kind]) for at, one in enumerate(expression.values)
            }
            table = pa.table(columns or {"c0": [None]})
            runner.register("x", runner.from_arrow(table))
            oracle.register("x", table)
            shares = (0, 1, 0.5)
            for query in (_query(expression, chance, share) for share in shares):
                try:
                    wanted = oracle.sql(query).fetchall()[0][0]
                    found = runner.sql(query).to_arrow().column(0).to_pylist()[0]
                except (duckdb.Error, DataError, NotYetSupportedError, PlanError):
                    continue
                answered += 1
                assert _are_same(_plain(found), _plain(wanted)), (query, found, wanted, expression.values)
    assert answered >= 2 * _EXPRESSIONS


def _query(expression: Expression, chance: random.Random, share: float) -> str:
    """Return a query over one row in which so many values are constants."""
    written = [
        value.constant() if chance.random() < share else f"c{place}" for place, value in enumerate(expression.values)
    ]
    return f"SELECT {expression.text.format(*written)} AS r FROM x"


def _plain(value: object) -> object:
    """Return a value as it is compared: numbers as floats, dates as moments."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        number = float(value)
        return "NaN" if math.isnan(number) else number
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return moment.replace(tzinfo=None).isoformat()
    return value


def _are_same(one: object, other: object) -> bool:
    """Return whether values are the same, numbers to nine digits."""
    are_numbers = isinstance(one, float) and isinstance(other, float)
    return math.isclose(one, other, rel_tol=1e-9) if are_numbers else one == other
