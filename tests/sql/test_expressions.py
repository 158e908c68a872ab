"""Expressions in SQL over every row of tables with nulls: Drey's values are DuckDB's, or those of the standard."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, Environment, NotYetSupportedError, SchemaError
from tests.sql.batches import columns_of, differences, in_batches
from tests.sql.conftest import Answers, rows_of

EXPRESSIONS = (
    "v + k * 2 - 1",
    "-v",
    "abs(k - 3)",
    "v % k",
    "CASE WHEN v > 20 THEN k END",
    "CASE k WHEN 2 THEN v ELSE k END",
    "coalesce(v, k)",
    "nullif(k, 2)",
    "ifnull(v, k)",
    "least(v, k)",
    "greatest(v, k, 3)",
    "k & 3",
    "k | 4",
    "k << 2",
    "round(v / 7.0, 2)",
    "floor(v / 7.0)",
    "sqrt(v)",
    "power(k, 2)",
    "upper(s)",
    "substring(s, 1, 1)",
    "substring(s, 1)",
    "substring('abcdef' || s, 2, 3)",
    "substring('abcdef' || s, 0, 3)",
    "substring('abcdef' || s, 3, 0)",
    "substring('abcdef' || s, 4)",
    "length(s)",
    "s LIKE 'a%'",
    "s LIKE '_'",
    "s NOT LIKE '%b%'",
    "s LIKE ''",
    "s ILIKE 'A%'",
    "trim(s) || '!'",
    "concat(s, '-', k)",
    "concat(NULL, s)",
    "left(s, 1)",
    "right(s, 1)",
    "replace(s, 'a', 'xy')",
    "strpos(s, 'b')",
    "TRY_CAST(s AS INTEGER)",
    "s IN ('a', 'b')",
    "k IN (1, 2, NULL)",
    "k BETWEEN 1 AND 3",
    "k = 1 OR v IS NULL",
    "NOT (k = 1 AND v = 10)",
    "k IS DISTINCT FROM v",
    "(k > 1) IS NOT TRUE",
    "(k > 1) IS UNKNOWN",
    "extract(year FROM DATE '1995-03-15' + INTERVAL '1' DAY) + k",
    "split_part(s || ',x', ',', 2)",
    "split_part(s || ',x', ',', -1)",
    "split_part(s, ',', 3)",
    "regexp_replace(s || 'aab', '[ab]', 'x', 'g')",
    "lpad(s || 'ab', 2, 'x')",
    "lpad(s, 5, 'x')",
    "rpad(s, 3, ' ')",
    "rpad(s || 'abc', 0, ' ')",
    "repeat(s, k - 1)",
    "concat_ws('-', s, NULL, k)",
    "trunc(CAST(k - 2 AS DOUBLE) / 4)",
    "md5(s)",
    "isnan(CAST(k AS DOUBLE))",
    "CAST(v - 25 AS DOUBLE) % 7.5",
    "CAST(v - 25 AS DOUBLE) % -7",
    "CAST(k AS VARCHAR)",
    "CAST(v * 50000000000000003 AS DOUBLE)",
    "1 / 3.0 + k",
    "CAST(v AS DECIMAL(10, 2)) > CAST(k AS DOUBLE)",
    "contains(s, 'a')",
    "CAST(k AS DOUBLE) / 4",
    "CAST(v AS DECIMAL(10, 2)) * 1.05",
)


@pytest.mark.parametrize("expressions", in_batches(EXPRESSIONS, 14))
def test_the_values_are_duckdbs(answers: Answers, expressions: tuple[str, ...]) -> None:
    assert differences(expressions, *answers(f"SELECT k, v, s, {columns_of(expressions)} FROM t")) == {}


OF_TIMES = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
OF_TIMES += ("doy", "dow", "isodow", "epoch", "isoyear", "decade", "century", "millennium")
OF_DATES = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "epoch", "isoyear")
MOMENTS = (
    *(f"extract({part} FROM ts)" for part in OF_TIMES),
    *(f"extract({part} FROM d)" for part in OF_DATES),
    *(f"date_trunc('{unit}', ts)" for unit in OF_TIMES[:9]),
    "CAST(date_trunc('month', d) AS DATE)",
    "CAST(d + INTERVAL '5' DAY AS DATE)",
    "CAST(d - INTERVAL '1 month' AS DATE)",
    "CAST(d + INTERVAL '1 year 2 months 3 days' AS DATE)",
    "ts + INTERVAL '5 days 3 hours'",
    "ts - INTERVAL '90 minutes'",
    "ts + INTERVAL '1.5 seconds'",
    "d - DATE '2024-01-01'",
)


@pytest.mark.parametrize("expressions", in_batches(MOMENTS, 15))
def test_the_values_of_moments_are_duckdbs(answers: Answers, expressions: tuple[str, ...]) -> None:
    moments = "(NULL), ('2024-02-29 13:14:15.678901'), ('1969-12-31 23:59:59.999999'), ('2020-12-31 00:00:00')"
    source = f"(SELECT CAST(x AS TIMESTAMP) AS ts FROM (VALUES {moments}) AS v (x)) AS m"
    both = f"(SELECT ts, CAST(ts AS DATE) AS d FROM {source}) AS b"
    assert differences(expressions, *answers(f"SELECT d, {columns_of(expressions)} FROM {both}")) == {}


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("regexp_replace(s, 'a', 'b', 'x')", "the flags 'x' of REGEXP_REPLACE"),
        ("trunc(CAST(v AS DOUBLE), 1)", "to a number of digits"),
    ],
)
def test_what_is_not_there_is_said(environment: Environment, expression: str, said: str) -> None:
    with pytest.raises(NotYetSupportedError, match=said):
        environment.sql(f"SELECT {expression} AS x FROM t")


def test_integers_are_divided_as_the_standard_says(environment: Environment) -> None:
    query = (
        "SELECT a / b AS q, a % b AS r FROM (VALUES (7, 2), (-7, 2), (7, -2), (-7, -2), (6, -3), (NULL, 2)) AS x (a, b)"
    )
    found = environment.sql(query).to_arrow()
    assert found.to_pydict() == {"q": [3, -3, -3, 3, -2, None], "r": [1, -1, 1, -1, 0, None]}


def test_constants_of_every_type_keep_it(environment: Environment) -> None:
    query = "SELECT 1 AS i, 1.50 AS d, 'x' AS s, TRUE AS b, NULL AS n, DATE '2020-02-29' AS t, CAST(1 AS SMALLINT) AS h"
    found = environment.sql(query).to_arrow()
    assert rows_of(found) == [(1, 1.5, "x", True, None, date(2020, 2, 29), 1)]
    assert found.schema.field("h").type == pa.int16()
    assert environment.sql("SELECT CAST('12.50' AS DECIMAL(9, 2)) AS d").to_arrow()["d"].to_pylist() == [
        Decimal("12.50")
    ]


@pytest.mark.parametrize("digits", [18, 38])
def test_a_cast_has_room_for_the_digit_that_rounding_carries_over(environment: Environment, digits: int) -> None:
    value = "9" * (digits - 2) + ".99"
    environment.register("full", environment.from_arrow(decimals(value, digits, 2)))
    query = f"SELECT CAST(x AS DECIMAL({digits}, 1)) AS one, CAST(x AS DECIMAL({digits}, 0)) AS none FROM full"
    expected = Decimal(10) ** (digits - 2)
    assert rows_of(environment.sql(query).to_arrow()) == [(expected, expected)]


def decimals(text: str, digits: int, scale: int) -> pa.Table:
    return pa.table({"x": pa.array([Decimal(text)], pa.decimal128(digits, scale))})


EXACT = (
    "d * 0.1 = 1.7",
    "d * 0.1",
    "0.1 + 0.2 = 0.3",
    "d BETWEEN 16.99 AND 17.00",
    "d IN (0.3, 17.0)",
    "k * 0.5",
    "coalesce(d, 0.0)",
    "CASE WHEN k = 1 THEN d ELSE 0.5 END",
    # what is no constant has no exponent
    "0.1 + 0.2 = 0.3 AND 'a5e3' <> '1e3'",
    "0.1 + 0.2 = 0.3 /* 1e3 */",
    "(SELECT 0.1 + 0.2 = 0.3 AS x1e3)",
    '(SELECT 0.1 + 0.2 = 0.3 AS "1e3")',
)
#: doubles, and what has no room among decimals
IN_DOUBLES = (
    "f > 0.5",
    "f = 0.3",
    "coalesce(f, 0.0)",
    "f * 0.1",
    "k * 1e3",
    "k < 1.5e-3",
    "k * .5E+1 + 0.1",
    "2.e1*0.1",
    "greatest(f, 0.5)",
)


@pytest.mark.parametrize("expressions", in_batches((*EXACT, *IN_DOUBLES), 7))
def test_constants_with_a_point_are_those_of_duckdb(environment: Environment, expressions: tuple[str, ...]) -> None:
    decimals = pa.array([Decimal("17.00"), Decimal("0.30"), None], pa.decimal128(15, 2))
    table = pa.table({"k": [1, 2, 3], "d": decimals, "f": [1e30, 0.3, float("inf")]})
    environment.register("m", environment.from_arrow(table))
    query = f"SELECT k, {columns_of(expressions)} FROM m"
    with duckdb.connect() as oracle:
        oracle.register("m", table)
        wanted = sorted(oracle.sql(query).fetchall(), key=repr)
        assert differences(expressions, rows_of(environment.sql(query).to_arrow()), wanted) == {}


CASTS = ("f AS INT", "f AS BIGINT", "d AS INT", "d AS DECIMAL(10, 1)", "d AS DECIMAL(12, 3)", "f AS DECIMAL(10, 1)")


@pytest.mark.parametrize("cast", ["CAST", "TRY_CAST"])
def test_a_cast_rounds_as_that_of_duckdb(environment: Environment, cast: str) -> None:
    floats = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, -0.25, 0.75, 7.0, 1e6 + 0.49, None]
    decimals = pa.array([None if one is None else Decimal(str(one)) for one in floats], pa.decimal128(15, 2))
    table = pa.table({"k": range(len(floats)), "f": pa.array(floats), "d": decimals})
    environment.register("m", environment.from_arrow(table))
    casts = tuple(f"{cast}({one})" for one in CASTS)
    query = f"SELECT k, {columns_of(casts)} FROM m"
    with duckdb.connect() as oracle:
        oracle.register("m", table)
        wanted = sorted(oracle.sql(query).fetchall(), key=repr)
        assert differences(casts, rows_of(environment.sql(query).to_arrow()), wanted) == {}


@pytest.mark.parametrize("cast", ["CAST", "TRY_CAST"])
def test_a_text_is_a_time_as_in_duckdb(environment: Environment, cast: str) -> None:
    texts = ["9:5", "09:05:03.25", "23:59:59.1234567", "0:0:1.5", None]
    texts += ["x", "9:61", ""] if cast == "TRY_CAST" else []
    table = pa.table({"k": range(len(texts)), "s": texts})
    environment.register("m", environment.from_arrow(table))
    query = f"SELECT k, {cast}(s AS TIME) AS t FROM m"
    with duckdb.connect() as oracle:
        oracle.register("m", table)
        assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(query).fetchall())


def test_a_cast_of_what_does_not_fit_ends_the_job(environment: Environment) -> None:
    for value in ("1e30", "nan", "inf"):
        environment.register("m", environment.from_arrow(pa.table({"f": [float(value)]})))
        with pytest.raises(DataError, match="cast"):
            environment.sql("SELECT CAST(f AS INT) AS x FROM m").to_arrow()


def test_a_product_whose_type_has_all_digits_is_exact(environment: Environment) -> None:
    table = pa.table({"a": pa.array([Decimal("0.50")], pa.decimal128(15, 2))})
    environment.register("m", environment.from_arrow(table))
    found = environment.sql("SELECT 100.00 * sum(a * a * a * a) AS x FROM m").to_arrow()
    assert (found.schema.field("x").type, found["x"].to_pylist()) == (pa.decimal128(38, 10), [Decimal("6.25")])


def test_a_moment_as_text_has_no_zeros_at_its_end(environment: Environment, oracle: duckdb.DuckDBPyConnection) -> None:
    moments = pa.table({"m": pa.array([0, 10**6 - 10, 86399 * 10**6 + 500000, None], pa.timestamp("us"))})
    environment.register("moments", environment.from_arrow(moments))
    oracle.register("moments", moments)
    query = "SELECT CAST(m AS VARCHAR) AS x FROM moments"
    assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(query).fetchall(), key=repr)


def test_a_date_and_days_are_a_date(environment: Environment) -> None:
    environment.register("days", environment.from_arrow(pa.table({"d": pa.array([date(2024, 2, 28)])})))
    assert environment.sql("SELECT d + 2 AS x FROM days").to_arrow().to_pydict() == {"x": [date(2024, 3, 1)]}


def test_whole_numbers_beyond_int64_are_compared_with_columns_that_hold_them() -> None:
    with Environment() as env:
        env.register("t", env.from_arrow(pa.table({"u": pa.array([1, 2**63, 2**64 - 1], pa.uint64())})))
        assert env.sql("SELECT u FROM t WHERE u = 9223372036854775808").to_arrow()["u"].to_pylist() == [2**63]
        found = env.sql("SELECT u FROM t WHERE u IN (18446744073709551615, 1) ORDER BY u")
        assert found.to_arrow()["u"].to_pylist() == [1, 2**64 - 1]


def test_whole_numbers_beyond_int64_are_divided() -> None:
    values, others = [1, 2**63, 2**64 - 1, 7, None], [1, 3, 2**63, 2, 1]
    with Environment() as env, duckdb.connect() as connection:
        table = pa.table({"u": pa.array(values, pa.uint64()), "w": pa.array(others, pa.uint64())})
        env.register("t", env.from_arrow(table))
        connection.register("t", table)
        for sign, duck in (("/", "//"), ("//", "//"), ("%", "%")):
            found = env.sql(f"SELECT u {sign} w AS a, u {sign} 3 AS b FROM t").to_arrow()
            wanted = connection.sql(f"SELECT u {duck} w AS a, u {duck} 3 AS b FROM t").to_arrow_table()
            assert found.to_pylist() == wanted.to_pylist()
            assert found.schema.types == [pa.uint64()] * 2
        with pytest.raises(DataError, match="divide by zero"):
            env.sql("SELECT u / 0 AS a FROM t").collect()


def test_a_division_by_zero_is_told_as_it_was_written() -> None:
    with Environment() as env:
        env.register("t", env.from_arrow(pa.table({"i": [1]})))
        with pytest.raises(Exception, match="i / 0: divide by zero; in a row with i=1"):
            env.sql("SELECT i / 0 AS a FROM t").collect()


def test_decimals_of_more_than_38_digits_are_reckoned_with(environment: Environment) -> None:
    table = pa.table({"w": pa.array([Decimal("1.5"), None], pa.decimal256(50, 5))})
    environment.register("m", environment.from_arrow(table))
    found = environment.sql("SELECT w + 1 AS a, w * w AS b, round(w, 1) AS c FROM m").to_arrow()
    assert found.to_pylist()[0] == {"a": Decimal("2.5"), "b": Decimal("2.25"), "c": Decimal("1.5")}
    assert found.schema.types == [pa.decimal256(51, 5), pa.decimal256(76, 10), pa.decimal256(47, 1)]


def test_quotients_of_durations_are_those_of_the_api(environment: Environment) -> None:
    environment.register("m", environment.from_dict({"d": [timedelta(seconds=5), None, timedelta(seconds=-5)]}))
    data = environment.sql("SELECT d // 2 AS x, d / 2 AS y FROM m").to_dicts()
    half = [timedelta(seconds=2.5), None, timedelta(seconds=-2.5)]
    assert data == [{"x": each, "y": each} for each in half]
    with pytest.raises(SchemaError, match=r"d % 2: d is duration.*only numbers can be divided"):
        environment.sql("SELECT d % 2 FROM m")
