"""Functions of elements, JSON's arrows, maps and lists side by side: values are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, NotYetSupportedError, PlanError

ROWS = pa.table(
    {
        "k": [1, 2, 3, 4, 5],
        "l": pa.array([[1, 2, 2], [None, 3], [], None, [7]], pa.list_(pa.int64())),
        "w": pa.array([["a", "b"], None, ["c"], [], [None]], pa.list_(pa.string())),
        "s": ["a b", "", None, "c", "d e f"],
        "st": pa.array(
            [[{"a": 1, "b": "x"}], [{"a": None, "b": "y"}, {"a": 2, "b": None}], [], None, [None]],
            pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ),
        "dotted": ['{"a.b": 1, "a": {"b": 2}, "it\'s": 3}'] * 5,
        "js": ['{"a": 1, "b": [1, {"c": "x"}], "n": null}', '{"a": "t"}', None, '{"a": [1.5, true]}', "[5, 6]"],
    }
)
EXPRESSIONS = (
    "list_transform(l, lambda x: x + 1)",
    "list_transform(l, lambda x: x * k)",
    "list_transform(l, lambda x, i: x * 10 + i)",
    "list_transform(l, lambda k: k + 1)",
    "list_transform(w, lambda x: upper(x) || s)",
    "list_transform(st, lambda x: x.a)",
    "list_transform(st, lambda x: {'n': x.a, 'k': k})",
    "list_transform(l, lambda x: list_transform([1, 2], lambda y: x + y + k))",
    "list_transform(l, lambda x: CASE WHEN x > 1 THEN 'big' ELSE 'small' END)",
    "list_transform(NULL::INT[], lambda x: x + 1)",
    "list_transform([1, 2], lambda x: x + 1)",
    "list_filter(l, lambda x: x > 1)",
    "list_filter(l, lambda x, i: i > 1 OR x IS NULL)",
    "list_filter(w, lambda x: x IS NOT NULL)",
    "list_filter(st, lambda x: x.b = 'x')",
    "list_reduce(list_filter(l, lambda x: x IS NOT NULL), lambda a, x: a + x, 0)",
    "list_reduce(l, lambda a, x: coalesce(a, 0) + coalesce(x, k), 100)",
    "list_reduce([1, 2, 3], lambda a, x: a * 10 + x)",
    "list_reduce([1, 2, 3], lambda a, x, i: a + x * i, 100)",
    "list_reduce(string_split(s, ' '), lambda a, x: a || '-' || x)",
    "[x + 1 FOR x IN l IF x > 1]",
    "[upper(x) FOR x IN w]",
    "list_position(l, 2)",
    "list_position(w, 'z')",
    "list_position(l, NULL)",
    "js -> 'a'",
    "js ->> 'a'",
    "js -> '$.b[1].c'",
    "js -> 'b' -> 1 ->> 'c'",
    "js::json -> 'b' -> 1 ->> 'c'",
    "CAST(js AS JSON) ->> 'a'",
    "js -> 'b'",
    "js -> 0",
    "js ->> 0",
    "js -> 'n'",
    "upper(js -> 'a')",
    "json_extract(js, '$.b')",
    "json_valid(js)",
    "json_type(js)",
    "json_type(js, '$.a')",
    "json_type(js, 'b')",
    "json_array_length(js)",
    "json_array_length(js, '$.b')",
    "json_keys(js)",
    "json_keys(js, '$.b[1]')",
    "json_valid(s)",
    "json_type(js, '$.b[1]')",
    "json_array_length(js, 'b')",
    "json_keys(dotted, '$.a')",
    "dotted ->> 'a.b'",
    "dotted ->> '$.a.b'",
    "dotted ->> '/a/b'",
    "dotted -> '$.\"a.b\"'",
    "dotted ->> 'it''s'",
    "json_extract(dotted, 'a.b')",
    "json_extract_string(dotted, CASE WHEN k > 2 THEN 'a.b' ELSE 'a' END)",
    "gcd(k, 2 * k - 6)",
    "greatest_common_divisor(-12, k)",
    "least_common_multiple(k, -4)",
    "lcm(k, 6)",
    "lcm(k - 3, NULL::INT)",
    "lcm(k - 3, 0)",
    "list_slice(l, NULL, 2)",
    "list_slice(l, 1, NULL)",
    "l[NULL:2]",
    "MAP {'a': k}['a']",
    "MAP {'a': k, 'b': NULL}['b']",
    "map_keys(MAP {k: s})",
    "map_values(MAP {'a': s, 'b': 'y'})",
    "cardinality(MAP {'a': k})",
    "map([1, 2], ['x', s])[2]",
    "typeof(k)",
    "typeof(s)",
)
QUERIES = (
    "SELECT k, list_transform(list(k ORDER BY k), lambda x: x + k) AS r FROM t GROUP BY k ORDER BY k",
    "SELECT list_transform(list(k ORDER BY k), lambda x: x + 1) AS r FROM t",
    "SELECT k FROM t WHERE len(list_filter(l, lambda x: x = 2)) > 0 ORDER BY k",
    "SELECT sum(list_reduce(l, lambda a, x: a + x)) AS r FROM t WHERE len(l) > 0",
    "SELECT t.k, (SELECT count(*) FROM t AS q WHERE len(list_filter(q.l, lambda x: x > t.k)) > 0) AS c FROM t"
    " ORDER BY k",
)
WRONG = {
    "exists(l, 1)": "exists() takes a list and a function, as in exists(l, x -> x > 1)",
    "exists(k, x -> x)": "exists() of BIGINT, which is no list",
    "zip_with(l, (x, y) -> x)": "zip_with() takes two lists and a function, as in zip_with(l, m, (x, y) -> x + y)",
    "zip_with(l, s, (x, y) -> x)": "zip_with() of VARCHAR, which is no list",
    "map_filter(l, (k, v) -> v)": "map_filter() of BIGINT[], which is no map",
    "list_transform(l, x -> y)": "line 1, column 31: no column y",
    "list_transform(k, x -> x)": "line 1, column 8: list_transform() of BIGINT, which is no list",
    "list_transform(l, (x, i, j) -> x)": "the function of list_transform() has 3 parameters; it takes 1 or 2",
    "list_transform(l)": "list_transform() takes a list and a function, as in list_transform(l, x -> x + 1)",
    "list_filter(l, x -> x + 1)": "the condition",
    "list_reduce(l, (a, x) -> 'x' || x)": "the total is int64, and becomes string; cast one of them",
}


@pytest.fixture(scope="module")
def environment(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as made:
        made.register("t", made.from_arrow(ROWS))
        yield made


def test_values_are_those_of_duckdb(environment: Environment) -> None:
    chosen = ", ".join(f"{one} AS c{place}" for place, one in enumerate(EXPRESSIONS))
    query = f"SELECT {chosen} FROM t ORDER BY k"
    found = environment.sql(query).to_arrow().to_pydict()
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        for place, expression in enumerate(EXPRESSIONS):
            wanted = [value for (value,) in connection.sql(f"SELECT {expression} FROM t ORDER BY k").fetchall()]
            assert found[f"c{place}"] == wanted, expression


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_duckdb(environment: Environment, query: str) -> None:
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        wanted = connection.sql(query).fetchall()
    assert [tuple(row.values()) for row in environment.sql(query).to_arrow().to_pylist()] == wanted


@pytest.mark.parametrize("name", ["a.b", "$.a", "/a", "it's"])
def test_behind_an_arrow_of_postgresql_stands_a_name(environment: Environment, name: str) -> None:
    text, name = f"'{{\"{name}\": 3}}'".replace("t's", "t''s"), name.replace("'", "''")
    found = environment.sql(f"SELECT {text} ->> '{name}' AS x, {text} -> '{name}' AS y", dialect="postgres")
    assert found.to_arrow().to_pylist() == [{"x": "3", "y": "3"}]


def test_an_arrow_makes_a_function_as_lambda_does(environment: Environment) -> None:
    one, other = (
        environment.sql(f"SELECT list_reduce(l, {written}) AS r FROM t ORDER BY k").to_arrow()
        for written in ("(a, x) -> a + x", "lambda a, x: a + x")
    )
    assert one == other
    assert one["r"].to_pylist() == [5, None, None, None, 7]


@pytest.mark.parametrize("expression", WRONG)
def test_what_is_wrong_is_said(environment: Environment, expression: str) -> None:
    with pytest.raises(PlanError) as raised:
        environment.sql(f"SELECT {expression} FROM t")
    assert WRONG[expression] in str(raised.value)


def test_a_query_within_a_function_is_refused(environment: Environment) -> None:
    with pytest.raises(NotYetSupportedError, match="a query or a window within the function of a list"):
        environment.sql("SELECT list_transform(l, x -> x + (SELECT max(k) FROM t)) FROM t")


def test_a_value_that_fails_names_the_row(environment: Environment) -> None:
    query = environment.sql("SELECT list_transform(l, x -> x + 9223372036854775807) AS r FROM t")
    with pytest.raises(Exception, match="overflow"):
        query.to_arrow()


def test_is_distinct_from_compares_what_stands_behind_it(environment: Environment) -> None:
    conditions = (
        "true IS DISTINCT FROM k > 2",
        "k > 2 IS NOT DISTINCT FROM k < 4",
        "false IS DISTINCT FROM k = 2 IS NULL",
        "NOT true IS DISTINCT FROM k = 2 AND k > 1",
        "k IS DISTINCT FROM k + 1",
    )
    query = f"SELECT {', '.join(f'{one} AS c{place}' for place, one in enumerate(conditions))} FROM t ORDER BY k"
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        wanted = connection.sql(query).fetchall()
    assert [tuple(row) for row in environment.sql(query).collect()] == wanted


@pytest.mark.parametrize("dialect", ["postgres", "spark", "snowflake", "bigquery", "trino"])
@pytest.mark.parametrize("call", ["json_array_length(js)", "json_type(js)", "json_keys(js)"])
def test_questions_of_json_that_other_dialects_answer_otherwise_are_refused(
    environment: Environment, dialect: str, call: str
) -> None:
    with pytest.raises(NotYetSupportedError, match="of another dialect than DuckDB's"):
        environment.sql(f"SELECT {call} FROM t", dialect=dialect)
    assert environment.sql(f"SELECT {call} AS r FROM t", dialect="duckdb").count() == 5
