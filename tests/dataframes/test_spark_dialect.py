"""Spark's dialect: the answers are those of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine import Environment
from tests.sql.dialects.compared import Answer, assert_refused, assert_same, assert_same_query, groups_of
from tests.sql.dialects.rows import TABLE
from tests.sql.dialects.spark_rows import AGGREGATES, EXPRESSIONS, QUERIES, REFUSED

pytestmark = pytest.mark.spark
Both = tuple[Environment, Answer]
_SCHEMA = (
    "n bigint, i bigint, k bigint, v double, p decimal(10, 2), s string, t string, d date, e date, m timestamp_ntz, "
    "b boolean, l array<bigint>, w array<string>"
)


@pytest.fixture(scope="module")
def both(spark: Any) -> Iterator[Both]:
    spark.createDataFrame([tuple(row.values()) for row in TABLE.to_pylist()], _SCHEMA).createOrReplaceTempView("x")
    with Environment() as environment:
        environment.register("x", environment.from_arrow(TABLE))
        yield environment, lambda query: spark.sql(query).collect()


@pytest.mark.parametrize("expressions", groups_of(EXPRESSIONS, REFUSED), ids=lambda some: some[0])
def test_a_row_has_the_values_of_spark(both: Both, expressions: list[str]) -> None:
    assert_same(both[0], "spark", both[1], expressions, " ORDER BY n")


@pytest.mark.parametrize("expressions", groups_of(AGGREGATES, REFUSED), ids=lambda some: some[0])
def test_all_rows_have_the_values_of_spark(both: Both, expressions: list[str]) -> None:
    assert_same(both[0], "spark", both[1], expressions, "")


@pytest.mark.parametrize("query", [one for one in QUERIES if one not in REFUSED])
def test_a_query_has_the_rows_of_spark(both: Both, query: str) -> None:
    assert_same_query(both[0], "spark", both[1], query)


def test_what_is_not_there_is_refused(both: Both) -> None:
    for one in REFUSED:
        query = one if one in QUERIES else f"SELECT {one} FROM x"
        assert_refused(both[0], "spark", query)
