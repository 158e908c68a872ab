"""Functions under the names of DuckDB, Spark and PostgreSQL, over nulls and edges: the values are those of DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine import DataError, Environment, NotYetSupportedError, PlanError
from engine.sql.aggregates import AGGREGATE_NAMES
from engine.sql_values.function_calls import SCALAR_NAMES
from tests.sql.batches import columns_of, differences, in_batches
from tests.sql.function_columns import TABLE
from tests.sql.function_rows import VALUES
from tests.sql.group_function_rows import AGGREGATES, WINDOWS

OF_MOMENTS = (
    *(f"{name}(m)" for name in ("year", "hour", "second", "dayname", "last_day", "epoch_us")),
    "extract(day FROM last_day(m))",
    "last_day(m) IS DISTINCT FROM last_day(m)",
    "substring('abc' FROM xor(1, 3))",
    "strftime(m, '%Y-%m-%d %H:%M:%S')",
    "date_trunc('day', m)",
    "date_diff('hour', m, m + INTERVAL '1 day')",
    "extract(dow FROM m)",
    "strftime(m + INTERVAL (n) HOUR, '%Y-%m-%d %H')",
)
Both = tuple[Environment, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def both(environment: Environment) -> Iterator[Both]:
    environment.register("x", environment.from_arrow(TABLE))
    with duckdb.connect() as oracle:
        oracle.register("x", TABLE)
        oracle.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        oracle.execute("SET TimeZone = 'UTC'")
        yield environment, oracle


def plain(value: Any) -> Any:
    """Return a value without what types alone tell: 1 and 1.0 are the same, so are a date and its midnight."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return str(number) if math.isnan(number) else float(f"{number:.11g}")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def values_of(both: Both, query: str, oracle_query: str) -> tuple[list[Any], list[Any]]:
    found = both[0].sql(query).to_arrow()
    rows = [plain(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]
    return rows, [plain(row) for row in both[1].execute(oracle_query).fetchall()]


def different(both: Both, query: str, expressions: tuple[str, ...], wanted: dict[str, str]) -> dict[str, Any]:
    """Return the expressions whose values are not those that DuckDB has for what they are wanted to be."""
    expected = columns_of(wanted[expression] or expression for expression in expressions)
    return differences(expressions, *values_of(both, query.format(columns_of(expressions)), query.format(expected)))


@pytest.mark.parametrize("expressions", [*in_batches(VALUES), *in_batches(WINDOWS, 4)])
def test_the_values_of_rows_are_duckdbs(both: Both, expressions: tuple[str, ...]) -> None:
    assert different(both, "SELECT n, {} FROM x ORDER BY n", expressions, {**VALUES, **WINDOWS}) == {}


@pytest.mark.parametrize("expression", AGGREGATES)
def test_the_value_of_all_rows_is_duckdbs(both: Both, expression: str) -> None:
    query = "SELECT {} AS value FROM x"
    found, expected = values_of(both, query.format(expression), query.format(AGGREGATES[expression] or expression))
    assert found == expected


def is_of_any_row(aggregate: str) -> bool:
    return "any_value" in aggregate or aggregate.startswith(("first(", "last(", "first_value(s)"))


@pytest.mark.parametrize("expressions", in_batches((one for one in AGGREGATES if not is_of_any_row(one)), 8))
def test_the_values_of_groups_are_duckdbs(both: Both, expressions: tuple[str, ...]) -> None:
    assert different(both, "SELECT b, {} FROM x GROUP BY b ORDER BY b", expressions, AGGREGATES) == {}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT strftime(d) FROM x", r"strftime\(\) has 1 arguments here and takes 2"),
        ("SELECT ifnull(i) FROM x", r"ifnull\(\) has 1 arguments here and takes 2"),
        ("SELECT nvl(i, 1, 2) FROM x", r"nvl\(\) has 3 arguments here and takes 2"),
        ("SELECT max(i, 2) FROM x", r"takes 1; of several values write \(list\(x ORDER BY x DESC\)"),
        ("SELECT arg_min(i, f, 2) FROM x", r"takes 2; of several values write \(list\(x ORDER BY y\)"),
        ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY f) FROM x", "write percentile_cont or approx_quantile"),
        ("SELECT date_diff('foo', d, e) FROM x", "the unit 'foo' .there are year, quarter, "),
        ("SELECT strftime(i, '%Y') FROM x", r"no function has these types of arguments: strftime.BIGINT, VARCHAR"),
        ("SELECT CAST(i AS TIMESTAMP) FROM x", "a number as a date or a time"),
        ("SELECT uuidv7() FROM x", r"the function uuidv7.* write uuid"),
        ("SELECT to_char(d, 'YYYY') FROM x", "write strftime"),
        ("SELECT printf('%05d', i) FROM x", "%05d in printf"),
        ("SELECT format('{} {}', i) FROM x", "has 1 values, and needs more"),
        ("SELECT nth_value(i, 2) FROM x", "nth_value"),
        ("SELECT hex(f) FROM x", r"no function has these types of arguments: hex\(DOUBLE\)"),
        (
            "SELECT list_aggregate(l, 'product') FROM x",
            r"list_aggregate\(l, 'product'\) is not supported yet; there are sum",
        ),
        (
            "SELECT soundex(s) FROM x",
            r"line 1, column 8: the function soundex\(\) is not supported yet; write levenshtein\(a, b\) or jaro",
        ),
    ],
)
def test_what_is_not_there_is_refused_by_name(both: Both, query: str, said: str) -> None:
    with pytest.raises((PlanError, NotYetSupportedError), match=said):
        both[0].sql(query)


def test_differences_of_timestamps_are_spans(both: Both) -> None:
    found = both[0].sql("SELECT ts - te AS span FROM x WHERE n = 1").to_arrow()
    assert found["span"].to_pylist() == [timedelta(hours=-12, minutes=14, seconds=15, microseconds=678901)]


def test_a_text_that_is_not_of_the_format_ends_the_job(both: Both) -> None:
    with pytest.raises(DataError, match="is not of the format"):
        both[0].sql("SELECT strptime(s, '%Y') FROM x").to_arrow()


@pytest.mark.parametrize(
    ("unit", "zone"),
    [*((unit, zone) for unit in ("s", "ms", "us") for zone in (None, "UTC", "Europe/Berlin")), ("ns", None)],
)
def test_moments_of_every_unit_and_zone_are_read_as_in_utc(unit: str, zone: str | None) -> None:
    moments = pa.array([1709212455678901234, None, 946684799999000000], pa.timestamp("ns"))
    table = pa.table({"n": [1, 2, 3], "m": pc.cast(moments, pa.timestamp(unit, zone), safe=False)})
    queries = [f"SELECT n, {one} AS x FROM z ORDER BY n" for one in OF_MOMENTS]
    with Environment() as environment, duckdb.connect() as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        environment.register("z", environment.from_arrow(table))
        oracle.register("z", table)
        for query in queries:
            found, expected = values_of((environment, oracle), query, query)
            assert found == expected, query


@pytest.mark.parametrize(
    "call", ["strftime(ts, NULL)", "strftime(NULL, '%Y')", "date_diff('day', NULL, d)", "epoch_ms(NULL)"]
)
def test_of_null_there_is_null(both: Both, call: str) -> None:
    assert both[0].sql(f"SELECT {call} AS x FROM x").to_arrow()["x"].null_count == TABLE.num_rows


def test_directives_of_queries_are_those_of_python(both: Both) -> None:
    written = "%-d.%-m. %e %k %l %P %D %F %T %R %h %C %g %^a %s"
    query = f"SELECT strftime(ts, '{written}') AS a, strptime('9.2.2024 1 PM', '%-d.%-m.%Y %I %p') AS b FROM x"
    found = both[0].sql(query).to_arrow()
    moments = TABLE.column("ts").to_pylist()
    seconds = [one and str(math.floor(one.replace(tzinfo=UTC).timestamp())) for one in moments]
    expected = [
        one and one.strftime(written.removesuffix("%s")) + second for one, second in zip(moments, seconds, strict=True)
    ]
    assert sorted(map(str, found.column("a").to_pylist())) == sorted(map(str, expected))
    assert set(found.column("b").to_pylist()) == {datetime(2024, 2, 9, 13)}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("strftime(d, '%Q')", "has %Q, which is no directive of strftime; there are %Y"),
        ("strftime(d, '%Y%')", "ends within '%'"),
        ("try_strptime(h, '%Q')", "has %Q, which is no directive of strptime"),
        ("to_date(h, '%s')", "has %s, which is written and not read"),
    ],
)
def test_what_is_no_directive_is_an_error_before_a_query_runs(both: Both, call: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        both[0].sql(f"SELECT {call} FROM x")


def test_a_name_means_one_function() -> None:
    assert len(SCALAR_NAMES) > 200 and not SCALAR_NAMES & AGGREGATE_NAMES
