"""Dialects of services that run nowhere here: the answers are those of their documentation."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from engine import Environment, PlanError
from engine.errors import NotYetSupportedError
from tests.sql.test_function_calls import plain

ANSWERS: dict[str, dict[str, Any]] = {
    "snowflake": {
        "7 / 2": 3.5,
        "DIV0(7, 0)": 0,
        "IFF(1 > 0, 'a', 'b')": "a",
        "NVL(NULL, 3)": 3,
        "ZEROIFNULL(NULL)": 0,
        "NULLIFZERO(0)": None,
        "DECODE(2, 1, 'a', 2, 'b', 'c')": "b",
        "DATEADD(day, 3, DATE '2024-02-28')": date(2024, 3, 2),
        "DATEDIFF(month, DATE '2024-01-31', DATE '2024-02-01')": 1,
        "DATEDIFF(year, DATE '2023-12-31', DATE '2024-01-01')": 1,
        "DAYOFWEEK(DATE '2024-02-25')": 0,
        "DAYNAME(DATE '2024-02-29')": "Thu",
        "MONTHNAME(DATE '2024-02-29')": "Feb",
        "LAST_DAY(DATE '2024-02-10')": date(2024, 2, 29),
        "SUBSTR('snow', 2, 2)": "no",
        "SUBSTR('snow', 2, -1)": "",
        "LEFT('snow', 2)": "sn",
        "CHARINDEX('o', 'snow')": 3,
        "CONTAINS('snow', 'no')": True,
        "STARTSWITH('snow', 's')": True,
        "SPLIT_PART('a.b', '.', 2)": "b",
        "TRY_CAST('x' AS INT)": None,
        "'12'::INT": 12,
        "COALESCE(NULL, 1)": 1,
        "GREATEST(1, 3)": 3,
        "CEIL(1.2)": 2,
        "MOD(7, 3)": 1,
        "EQUAL_NULL(NULL, NULL)": True,
        "REGEXP_REPLACE('aab', 'a', 'x')": "xxb",
        r"'a\\b' LIKE 'a\\_'": True,
        r"'a_' LIKE 'a\\_' ESCAPE '\\'": True,
        "REGEXP_SUBSTR('abc', 'b')": "b",
        "REGEXP_SUBSTR('abc', 'x')": None,
        "CAST(2.5::DOUBLE AS INT)": 3,
    },
    "bigquery": {
        "7 / 2": 3.5,
        "DIV(7, 2)": 3,
        "SAFE_DIVIDE(1, 0)": None,
        "IF(TRUE, 'a', 'b')": "a",
        "IFNULL(NULL, 3)": 3,
        "DATE_ADD(DATE '2024-02-28', INTERVAL 3 DAY)": date(2024, 3, 2),
        "DATE_SUB(DATE '2024-03-01', INTERVAL 1 DAY)": date(2024, 2, 29),
        "DATE_DIFF(DATE '2024-02-01', DATE '2024-01-31', MONTH)": 1,
        "DATE_DIFF(DATE '2024-01-01', DATE '2023-12-31', YEAR)": 1,
        "DATE_TRUNC(DATE '2024-02-29', MONTH)": date(2024, 2, 1),
        "EXTRACT(DAYOFWEEK FROM DATE '2024-02-25')": 1,
        "EXTRACT(YEAR FROM DATE '2024-02-29')": 2024,
        "FORMAT_DATE('%Y/%m', DATE '2024-02-29')": "2024/02",
        "PARSE_DATE('%d.%m.%Y', '05.01.2024')": date(2024, 1, 5),
        "SUBSTR('query', 2, 2)": "ue",
        "STRPOS('query', 'e')": 3,
        "STARTS_WITH('query', 'qu')": True,
        "REGEXP_CONTAINS('query', r'e.y')": True,
        "SAFE_CAST('x' AS INT64)": None,
        "CAST('12' AS INT64)": 12,
        "[10, 20][OFFSET(0)]": 10,
        "[10, 20][ORDINAL(1)]": 10,
        "ARRAY_LENGTH([1, 2])": 2,
        "SPLIT('a,b', ',')": ["a", "b"],
        "UPPER('a')": "A",
        "MOD(7, 3)": 1,
        "'it\\'s'": "it's",
        "FORMAT('%s-%d', 'a', 1)": "a-1",
        "FORMAT('%s-%d', 'a', NULL)": None,
        "REGEXP_EXTRACT('abc', 'a(.)')": "b",
        "REGEXP_EXTRACT('abc', 'x')": None,
        "TIMESTAMP_DIFF(TIMESTAMP '2024-01-01 11:10:00', TIMESTAMP '2024-01-01 10:50:00', HOUR)": 0,
        "EXTRACT(ISOWEEK FROM DATE '2024-02-29')": 9,
        "SUBSTR('hello', 0, 2)": "he",
        "CAST(CAST('2.5' AS FLOAT64) AS INT64)": 3,
        "SAFE_CAST(CAST('-2.5' AS FLOAT64) AS INT64)": -3,
        "STRUCT(1 AS a).a": 1,
    },
    "trino": {
        "7 / 2": 3,
        "7 % 2": 1,
        "7.0 / 2": 3.5,
        "TRY_CAST('x' AS BIGINT)": None,
        "IF(1 > 0, 'a', 'b')": "a",
        "COALESCE(NULL, 3)": 3,
        "date_add('day', 3, DATE '2024-02-28')": date(2024, 3, 2),
        "date_diff('month', DATE '2024-01-31', DATE '2024-02-01')": 0,
        "date_diff('day', DATE '2024-01-31', DATE '2024-02-01')": 1,
        "date_trunc('month', DATE '2024-02-29')": date(2024, 2, 1),
        "day_of_week(DATE '2024-02-25')": 7,
        "day_of_year(DATE '2024-02-01')": 32,
        "date_format(TIMESTAMP '2024-02-29 10:11:12', '%Y/%m')": "2024/02",
        "year(DATE '2024-02-29')": 2024,
        "substr('trino', 2, 2)": "ri",
        "strpos('trino', 'i')": 3,
        "starts_with('trino', 'tr')": True,
        r"'a\b' LIKE 'a\_'": True,
        "regexp_like('trino', 'r.n')": True,
        "split_part('a.b', '.', 2)": "b",
        "ARRAY[10, 20][1]": 10,
        "element_at(ARRAY[10, 20], -1)": 20,
        "cardinality(ARRAY[1, 2])": 2,
        "contains(ARRAY[1, 2], 2)": True,
        "array_join(ARRAY['a', 'b'], '+')": "a+b",
        "concat('a', 'b')": "ab",
        "CAST('12' AS BIGINT)": 12,
        "CAST(DOUBLE '2.5' AS BIGINT)": 3,
        "format('%s-%d', 'a', 1)": "a-1",
        "regexp_extract('abc', 'x')": None,
        "regexp_replace('abc', '(b)', '<$1>')": "a<b>c",
        "regexp_replace('abc', 'b', '\\$1')": "a$1c",
        "slice(ARRAY[1, 2, 3, 4], 2, 2)": [2, 3],
        "slice(ARRAY[1, 2, 3, 4], -2, 2)": [3, 4],
        "slice(ARRAY[1, 2], -3, 2)": [],
        "contains(ARRAY[1, NULL], 2)": None,
        "sequence(3, 1)": [3, 2, 1],
        "extract(DOW FROM DATE '2024-02-25')": 7,
        "extract(DAY_OF_WEEK FROM DATE '2024-02-26')": 1,
        "substr('hello', 0, 2)": "",
    },
}

#: forms with another meaning here, or none: each ends in an error that names it
REFUSED = [
    ("bigquery", "SELECT x, o FROM UNNEST([7, 8]) x WITH OFFSET o", "WITH OFFSET"),
    ("bigquery", "SELECT FORMAT('%05d', 42)", "format()"),
    ("bigquery", "SELECT EXTRACT(WEEK FROM DATE '2024-02-29')", "EXTRACT(WEEK ...)"),
    ("bigquery", "SELECT EXTRACT(WEEK(MONDAY) FROM DATE '2024-02-29')", "EXTRACT(WEEK ...)"),
    ("trino", "SELECT split('a,b,c', ',', 2)", "split() with a limit"),
    ("trino", "SELECT repeat('a', 2)", "repeat()"),
    ("trino", "SELECT slice(ARRAY[1, 2], 0, 1)", "slice()"),
    ("trino", "SELECT regexp_replace('a', 'a', '${name}')", "the replacement '${name}'"),
    ("snowflake", "SELECT shorten(s => 'snow', n => 2)", "the argument s by its name"),
    ("postgres", "SELECT make_interval(days => 3)", "the argument days by its name"),
    ("duckdb", "SELECT lower(s := 'A')", "the argument s by its name"),
    ("spark", "SELECT to_timestamp('2024', 'QQ')", "a format of moments with QQ"),
    ("spark", "SELECT unix_timestamp('2024', 'QQ')", "a format of moments with QQ"),
    ("spark", "SELECT from_unixtime(0, 'QQ')", "a format of moments with QQ"),
]


@pytest.mark.parametrize("dialect", ANSWERS)
def test_an_expression_has_the_documented_value(environment: Environment, dialect: str) -> None:
    found = {}
    for expression in ANSWERS[dialect]:
        rows: pa.Table = environment.sql(f"SELECT {expression} AS value", dialect=dialect).to_arrow()
        found[expression] = plain(rows["value"][0].as_py())
    assert found == {expression: plain(value) for expression, value in ANSWERS[dialect].items()}


@pytest.mark.parametrize(("dialect", "query", "said"), REFUSED)
def test_what_means_something_else_is_refused(environment: Environment, dialect: str, query: str, said: str) -> None:
    with pytest.raises(NotYetSupportedError) as failure:
        environment.sql(query, dialect=dialect)
    assert said in str(failure.value)


@pytest.mark.parametrize(
    ("dialect", "ascending"),
    [("snowflake", [1, 2, None]), ("bigquery", [None, 1, 2]), ("trino", [1, 2, None]), ("spark", [None, 1, 2])],
)
def test_nulls_are_where_the_dialect_has_them(environment: Environment, dialect: str, ascending: list[Any]) -> None:
    environment.register("q", environment.from_arrow(pa.table({"v": pa.array([2, None, 1], pa.int64())})))
    assert environment.sql("SELECT v FROM q ORDER BY v", dialect=dialect).to_arrow()["v"].to_pylist() == ascending


@pytest.mark.parametrize(
    ("dialect", "query", "said"),
    [
        ("spark", "SELECT 1,\n  prcie FROM q", "line 2, column 3: no column prcie; did you mean price?"),
        ("bigquery", "SELECT `prcie` FROM q", "line 1, column 8: no column prcie"),
        ("postgres", "SELECT price FROM q WHRE price > 1", "line 1, column 26: expected: end of statement"),
        ("snowflake", "SELECT nosuch(price) FROM q", "no function nosuch"),
        ("oracle", "SELECT 1", "no dialect 'oracle'; there are drey, duckdb, postgres, spark"),
    ],
)
def test_mistakes_have_their_place_in_the_text_that_was_given(
    environment: Environment, dialect: str, query: str, said: str
) -> None:
    environment.register("q", environment.from_arrow(pa.table({"price": [1.0]})))
    with pytest.raises(PlanError) as failure:
        environment.sql(query, dialect=dialect)
    assert said in str(failure.value)


def test_columns_are_named_as_they_were_written(environment: Environment) -> None:
    environment.register("q", environment.from_arrow(pa.table({"price": [1.0], "k": [1]})))
    found = environment.sql("SELECT sum(price), COUNT(*), k / 2, price FROM q GROUP BY price, k", dialect="spark")
    assert found.schema.names == ["sum(price)", "count(*)", "k / 2", "price"]
