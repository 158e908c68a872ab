"""Functions of texts whose patterns, separators, widths and counts are columns: the values are DuckDB's."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, Environment
from tests.sql.batches import columns_of, differences, in_batches
from tests.sql.conftest import rows_of

TABLE = pa.table(
    {
        "s": ["abc", "a.b,c", None, "xaay", "", "a%b", "äbc", "a,b"],
        "p": ["a%", "b", "c", None, "%", "a%b", "_bc", "."],
        "sep": [",", ".", ",", "a", "x", "%", "b", ","],
        "k": ["x", "ab", "y", "y", "-", "b", "c", "a"],
        "i": pa.array([1, 2, None, -3, 0, 2, 3, -1], pa.int32()),
        "n": pa.array([1, 2, 3, None, 4, 2, 1, 7], pa.int32()),
    }
)
CALLS = (
    *("s LIKE p", "s NOT LIKE p", "s ILIKE upper(p)", "'abc' LIKE p", "s LIKE '%' || k || '%'", "s ~ k"),
    *("regexp_matches(s, sep)", "regexp_full_match(s, p)", "regexp_replace(s, k, 'Z')", "regexp_extract(s, k)"),
    *("regexp_replace(s, k, sep, 'g')", "regexp_extract_all(s, k)", "length(regexp_extract_all(s, '[ab]'))"),
    *("lpad(s, n, '*')", "rpad(s, n, k)", "lpad(s, 7, k)", "rpad(s, 7, 'abc')", "lpad(s, i, 'ab')", "repeat(k, n)"),
    *("substring(s, i)", "substring(s, i, 2)", "substring(s, i, abs(n))", "substring(s, 2, n)", "substr(s, n)"),
    *("substring(s FROM i FOR 1)", "substring(s, strpos(s, sep) + 1)", "left(s, i)", "right(s, i)", "left(s, n - 1)"),
    *("split_part(s, sep, n)", "split_part(s, ',', n)", "split_part(s, sep, 1)", "string_split(s, sep)"),
    *("replace(s, k, sep)", "replace(s, '', sep)", "replace(s, 'a', k)", "strpos(s, sep)", "position(sep IN s)"),
    *("starts_with(s, k)", "ends_with(s, k)", "contains(s, sep)", "trim(s, k)", "ltrim(s, k)", "rtrim(s, k)"),
    *(
        "lpad(s, n, CAST(NULL AS VARCHAR) || 'x')",
        "repeat(CAST(NULL AS VARCHAR), n)",
        "repeat('', n)",
        "concat_ws(sep, s, k)",
        "round(CAST(n AS DOUBLE) / 3, i)",
        "trim(e'\\t a \\n')",
        "trim('  a ')",
        "levenshtein(s, k)",
    ),
)


@pytest.mark.parametrize("calls", in_batches(CALLS, 13))
def test_the_values_are_duckdbs(environment: Environment, calls: tuple[str, ...]) -> None:
    environment.register("texts", environment.from_arrow(TABLE))
    with duckdb.connect() as oracle:
        oracle.register("texts", TABLE)
        query = f"SELECT row_number() OVER (ORDER BY s, k) AS r, {columns_of(calls)} FROM texts"
        wanted = sorted(oracle.sql(query).fetchall(), key=repr)
        assert differences(calls, rows_of(environment.sql(query).to_arrow()), wanted) == {}


def test_a_negative_length_of_a_column_is_an_error(environment: Environment) -> None:
    query = environment.sql("SELECT substr(s, 2, n) AS c FROM (VALUES ('abc', 1), ('abc', -1)) AS x (s, n)")
    with pytest.raises(DataError, match="negative length, of which dialects differ"):
        query.to_arrow()


def test_occurrences_of_a_pattern_are_counted(environment: Environment) -> None:
    found = environment.sql("SELECT regexp_count('a1b22', '[0-9]+') AS c, regexp_count('abc', '.') AS d").to_arrow()
    assert found.to_pylist() == [{"c": 2, "d": 3}]


def test_a_join_goes_by_a_pattern_of_the_other_side(environment: Environment) -> None:
    environment.register("texts", environment.from_arrow(TABLE))
    query = "SELECT a.s, b.k FROM texts AS a JOIN texts AS b ON a.s LIKE '%' || b.k || '%'"
    with duckdb.connect() as oracle:
        oracle.register("texts", TABLE)
        assert rows_of(environment.sql(query).to_arrow()) == sorted(oracle.sql(query).fetchall(), key=repr)
