"""What is wrong with a text is said in one sentence, with its place, with names that are near, and in words of SQL."""

from __future__ import annotations

import re

import pytest

from engine import ConfigurationError, Environment, NotYetSupportedError, PlanError
from engine.dialects.excerpts import excerpt
from engine.dialects.parser import Drey
from engine.errors import EngineError
from engine.statements.statements import statement

SAID = {
    'SELEC k FROM t': 'line 1, column 1: expected: an SQL statement, found: SELEC; did you mean SELECT for SELEC?',
    'SELECT k FORM t': 'line 1, column 15: expected: end of statement, found: t; did you mean FROM for FORM?',
    'SELECT k\nFROM t\nWHER k = 1': (
        'line 3, column 6: expected: end of statement, found: k; did you mean WHERE for WHER?'
    ),
    'SELECT k FROM t WHERE (k = 1': 'line 1, column 28: expected: ), found: the end',
    "SELECT 'abc FROM t": 'line 1, column 8: unterminated string literal',
    'SELECT k FROM t WHERE k BETWEEN 1': 'line 1, column 33: between is not complete, found: the end',
    'SELECT k FROM t;; SELECT 1': 'line 1, column 16: more than one statement',
    "SELECT s LIKE 'a' ESCAPE '!' AS x, k FORM t": (
        'line 1, column 43: expected: end of statement, found: t; did you mean FROM for FORM?'
    ),
    'SHOW TABELS': 'line 1, column 1: SHOW is followed by TABLES',
    'SELECT substr(s, 2, -1) FROM t': (
        "line 1, column 8: substr() with a negative length, of which dialects differ; write abs(n), or pass "
        "dialect='duckdb'"
    ),
    'SELECT ROW() = ROW() FROM t': 'line 1, column 8: a row of no values is compared',
    "SELECT CASE WHEN k > 1 THEN DATE '2024-01-01' ELSE 1 END FROM t": (
        'line 1, column 18: the values of CASE are DATE and BIGINT, which have no common type; cast them'
    ),
    'SELECT CAST([k] AS INT) FROM t': 'line 1, column 14: BIGINT[] cannot be cast to INTEGER',
    'SELECT k, CAST(k > 1 AS DATE) FROM t': 'line 1, column 16: BOOLEAN cannot be cast to DATE',
    "SELECT make_date(s, 1, 1) FROM t": (
        'line 1, column 8: no function has these types of arguments: make_date(VARCHAR, BIGINT, BIGINT)'
    ),
    'SELECT kk FROM t': 'line 1, column 8: no column kk; did you mean k? (there are k, v, s)',
    "SELECT k,\n  'vv' AS vv, t.vv\nFROM t": (
        'line 2, column 15: no column t.vv; did you mean v? (there are k, v, s)'
    ),
    'SELECT k FROM t WHERE x.zz = 1': 'line 1, column 23: no column x.zz (there are k, v, s)',
    'SELECT k FROM "a.parquet"': (
        "line 1, column 15: no table a.parquet; a file stands in single quotes: FROM 'a.parquet'"
    ),
    'SELECT k FROM nowhere': 'line 1, column 15: no table nowhere (there are t, u, e, n)',
    'SELECT k FROM t JOIN uu ON t.k = uu.k': (
        'line 1, column 22: no table uu; did you mean u? (there are t, u, e, n)'
    ),
    'SELECT lenght(s) FROM t': 'line 1, column 8: no function lenght; did you mean length or len?',
    'SELECT nonsense(k) FROM t': 'line 1, column 8: no function nonsense',
    'SELECT k, nonsense(v) FROM t GROUP BY k': 'line 1, column 11: no function nonsense',
    'SELECT row_number() FROM t': 'line 1, column 8: row_number() needs OVER (ORDER BY ...)',
    'SELECT k FROM t JOIN u ON t.k = u.k': (
        'line 1, column 8: column k is in several tables; write which one, as in t.k'
    ),
    'SELECT k, v FROM t GROUP BY k': 'line 1, column 11: column v is neither in GROUP BY nor in an aggregate',
    'SELECT k FROM t HAVING v > 1': 'line 1, column 24: column v is neither in GROUP BY nor in an aggregate',
    'SELECT k FROM t WHERE sum(v) > 1': 'line 1, column 23: an aggregate in WHERE; write it in HAVING',
    'SELECT k + s FROM t': 'line 1, column 8: BIGINT + VARCHAR is not defined; cast one side',
    'SELECT k FROM t WHERE s LIKE 5': 'line 1, column 23: VARCHAR LIKE BIGINT is not defined; cast one side',
    'SELECT count(DISTINCT) FROM t': 'line 1, column 8: count(DISTINCT) of nothing; write count(DISTINCT x)',
    'SELECT sum(s) FROM t': 'line 1, column 8: no function has these types of arguments: sum(VARCHAR)',
    "SELECT k FROM t WHERE k = 'abc'": "line 1, column 23: 'abc' is no BIGINT",
    "SELECT DATE '2024-13-01'": "line 1, column 13: '2024-13-01' is no DATE",
    'SELECT k::foo FROM t': 'line 1, column 8: no type foo',
    'SELECT substring(s) FROM t': 'line 1, column 18: substring needs a start, as in substring(s, 1, 2)',
    'SELECT NOT k FROM t': 'line 1, column 12: NOT takes a condition, this is BIGINT; write = ... or IS NOT NULL',
    'SELECT k FROM t LIMIT -1': 'line 1, column 24: LIMIT -1 is negative',
    'SELECT k FROM t UNION SELECT k, w FROM u': 'line 1, column 30: both sides of UNION need as many columns',
    'SELECT k FROM t WHERE k IN (SELECT k, w FROM u)': (
        'line 1, column 23: a query of one column is needed here, not of 2; for several write EXISTS (SELECT '
    ),
    'SELECT k FROM t GROUP k': 'line 1, column 23: expected: end of statement, found: k; write GROUP BY',
    'SELECT sum(v) OVER (ORDER BY k ROWS 1 PRECEEDING) FROM t': (
        'line 1, column 39: expected: ), found: PRECEEDING; did you mean PRECEDING for PRECEEDING?'
    ),
    'SELECT k FROM t WHERE s = "abc"': (
        "line 1, column 27: no column abc (there are k, v, s); a text stands in single quotes: 'abc'"
    ),
    'SELECT CAST(k AS INTT) FROM t': 'line 1, column 13: no type INTT; did you mean INT or BIGINT?',
    'SELECT * FROM t, t': 'line 1, column 18: t stands twice in FROM; give each a name, as in t AS a, t AS b',
    'SELECT k FROM t a LEFT JOIN u b': (
        'line 1, column 29: a join that keeps rows needs ON a.k = b.k, or USING (k)'
    ),
    'SELECT k FROM t WHERE k': (
        'line 1, column 23: WHERE takes a condition, this is BIGINT; write = ... or IS NOT NULL'
    ),
    "SELECT INTERVAL '1 dya' + DATE '2024-01-01'": "'1 dya' is no INTERVAL; write INTERVAL '1 day'",
    'SELECT sum(sum(k)) FROM t': (
        'line 1, column 12: an aggregate of an aggregate; write the inner one in a query of FROM'
    ),
    'SELECT k FROM t WHERE rank() OVER (ORDER BY k) = 1': (
        'line 1, column 23: a function over a window in WHERE; write it in QUALIFY'
    ),
    "SELECT extract(yeer FROM DATE '2024-01-01')": (
        "'yeer' is not a part of a date; did you mean year? (there are year, quarter, month, week, day, hour,"
    ),
    "SELECT date_trunc('mounth', DATE '2024-01-01')": (
        "'mounth' is not a unit of date_trunc; did you mean month? (there are year, quarter, month, week, day"
    ),
    'SELECT k FROM t LIMIT (SELECT 2)': 'line 1, column 31: LIMIT and OFFSET take a constant that is not negative',
    "SELECT k FROM t LIMIT 'a'": 'line 1, column 23: LIMIT takes a number of rows',
    'SELECT substr(s, 1, 2, 3) FROM t': 'line 1, column 8: substr() has 4 arguments here and takes 2 or 3',
    'SELECT year(k) FROM t': 'line 1, column 8: no function has these types of arguments: year(BIGINT)',
    'SELECT k,\n  sign(s) FROM t': 'line 2, column 3: no function has these types of arguments: sign(VARCHAR)',
    'SELECT k,\n  strftime(k) FROM t': 'line 2, column 3: strftime() has 1 arguments here and takes 2',
    'SELECT list_append([1]) FROM t': 'line 1, column 8: list_append() has 1 arguments here and takes 2',
    'SELECT TOP 5 k FROM t': 'line 1, column 12: expected: end of statement, found: 5',
    'SELECT k FROM t ORDER BY s COLLATE NOCASE': (
        'line 1, column 26: COLLATE is not there; texts compare by bytes, write lower(s)'
    ),
    "SELECT k FROM t PIVOT (v FOR s IN ('a'))": 'line 1, column 24: expected: an aggregation function in PIVOT',
    'SELECT t.k FROM t ASOF JOIN u ON t.k = u.k': (
        'line 1, column 34: ASOF JOIN needs one comparison of both sides, as in a.ts >= b.ts'
    ),
    'SELECT k FROM t TABLESAMPLE (120 PERCENT)': 'line 1, column 15: a sample of 120 percent',
    'SELECT k FROM range(DATE \'2024-01-01\', DATE \'2024-01-02\')': 'line 1, column 15: range() of times takes',
    'SELECT k && v FROM t': 'line 1, column 8: && is not there; write AND, or list_has_any(a, b) of lists',
    'SHOW TABLES': 'line 1, column 1: SHOW TABLES is no query; write list(env.tables)',
    'SELECT 1 WHERE': 'line 1, column 10: WHERE is not complete, found: the end',
    'SELECT 1 FROM': 'line 1, column 10: expected: a table, found: the end',
    'SELECT 1 + ': 'line 1, column 10: + is not complete, found: the end',
    'VALUES': 'line 1, column 1: VALUES alone is no query; a query begins with SELECT, FROM, WITH or VALUES',
    'EXPLAIN EXPLAIN SELECT 1': 'line 1, column 9: a query is expected here; EXPLAIN stands alone',
    '': 'there is no statement in the text',
}  # fmt: skip


def without_place(said: str, wanted: str) -> str:
    """Return what was said, with its place if one is wanted: some have one by the only word that it may be about."""
    said = said.removeprefix("sql: ")
    return said if wanted.startswith("line") else re.sub(r"^line \d+, column \d+: ", "", said)


@pytest.mark.parametrize("query", SAID)
def test_what_is_wrong_is_said_with_its_place(environment: Environment, query: str) -> None:
    with pytest.raises(PlanError) as caught:
        environment.sql(query)
    assert without_place(str(caught.value), SAID[query]).startswith(SAID[query])
    assert "\n" not in str(caught.value)


NOT_THERE = {
    "BEGIN": "line 1, column 1: BEGIN (a query begins with SELECT, FROM, WITH or VALUES; each MERGE, UPDATE",
    "start transaction": "line 1, column 1: START (a query begins with",
    "COMMIT": "line 1, column 1: COMMIT (a query begins with",
    "PREPARE p AS SELECT 1": "line 1, column 1: PREPARE (a query begins with SELECT, FROM, WITH or VALUES; write",
    "SELECT s ->> '/a/0' FROM t": "a place in a JSON pointer is not supported yet; write it as in '$.list[0]'",
    "SELECT s -> '$.*' FROM t": 'line 1, column 8: a path of JSON with *, .. or a condition',
    'INSERT INTO t VALUES (1)': (
        'INSERT (a query begins with SELECT, FROM, WITH or VALUES; write data.write_parquet(path, mode=...))'
    ),
    'CREATE TABEL x AS SELECT 1': (
        "CREATE (a query begins with SELECT, FROM, WITH or VALUES; write env.register(name, env.sql('SELECT ...')))"
    ),
    'SELECT k FROM t FETCH FIRST 3 ROWS WITH TIES': 'line 1, column 8: FETCH FIRST ... WITH TIES',
    'SELECT t.k FROM t POSITIONAL JOIN u': (
        'line 1, column 35: POSITIONAL JOIN (number both sides with row_number())'
    ),
    'SELECT t.k FROM t ASOF RIGHT JOIN u ON t.k >= u.k': 'line 1, column 35: ASOF RIGHT JOIN',
}  # fmt: skip


@pytest.mark.parametrize("query", NOT_THERE)
def test_what_is_not_there_is_said_with_what_to_write(environment: Environment, query: str) -> None:
    with pytest.raises(NotYetSupportedError) as caught:
        environment.sql(query)
    assert without_place(str(caught.value), NOT_THERE[query]).startswith(NOT_THERE[query])


def test_of_many_columns_some_are_named(environment: Environment) -> None:
    columns = ", ".join(f"{number} AS c{number}" for number in range(40))
    with pytest.raises(PlanError, match=r"no column x9; did you mean c9.*c11 and 28 more\)$"):
        environment.sql(f"SELECT x9 FROM (SELECT {columns}) AS wide")


def test_columns_without_a_name_are_called_as_they_are_written(environment: Environment) -> None:
    assert environment.sql("SELECT k + 1, s || 'x' FROM t").columns == ["k + 1", "s || 'x'"]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT k,\n  ntile(k) OVER (ORDER BY k) FROM t", "line 2, column 3"),
        ("SELECT date_trunc(s, DATE '2024-01-01') FROM t", "line 1, column 8"),
        (
            "SELECT k FROM t ORDER BY sum(DISTINCT k) OVER (ORDER BY k ROWS 1 PRECEDING EXCLUDE TIES)",
            "line 1, column 26",
        ),
    ],
)
def test_what_is_refused_later_has_the_place_of_the_word_that_it_names(
    environment: Environment, query: str, place: str
) -> None:
    with pytest.raises(NotYetSupportedError, match=f"^sql: {place}: "):
        environment.sql(query)


def shown(environment: Environment, text: str, **options: str) -> list[str]:
    """Return the lines of the error of a text."""
    with pytest.raises(EngineError) as caught:
        environment.sql(text, **options)
    return caught.value.shown().splitlines()


def test_the_line_of_a_place_is_shown_with_a_caret_under_the_word(environment: Environment) -> None:
    said = "PlanError: sql: line 2, column 8: no column kk; did you mean k? (there are k, v, s)"
    expected = [said, "    WHERE kk = 1", "          ^"]
    text = "SELECT k FROM t\n WHERE kk = 1\n LIMIT 3"
    assert shown(environment, text) == expected
    assert shown(environment, text, dialect="duckdb") == expected
    assert shown(environment, f"EXPLAIN {text}") == expected
    with pytest.raises(PlanError) as caught:
        environment.sql(text)
    assert "\n" not in str(caught.value)
    assert caught.value._render_traceback_()[:3] == expected


def test_of_a_long_line_what_is_around_the_caret_is_shown(environment: Environment) -> None:
    some = ", ".join(["k"] * 50)
    _, line, caret = shown(environment, f"SELECT\t{some}, kk, {some} FROM t")
    assert line.startswith("    ...k, k") and line.endswith("k,...")
    assert line[caret.index("^") :].startswith("kk, k")
    assert len(line) < 120


def test_statements_show_their_lines_too_and_no_password_in_them() -> None:
    with pytest.raises(PlanError) as caught:
        statement("EXPLAIN (FORMAT odd) SELECT 1")
    assert caught.value.excerpt.splitlines()[0] == "    EXPLAIN (FORMAT odd) SELECT 1"
    line, _ = excerpt("ATTACH 'postgresql://ada:s3cret@host/db' lake", "sql: line 1, column 42: said").splitlines()
    assert line == "    ATTACH 'postgresql://ada:******@host/db' lake"


@pytest.mark.parametrize("dialect", ["drey", "spark"])
def test_compiled_parts_of_the_parser_are_named(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    def parse(*_: object, **__: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(Drey.__mro__[2], "parse", parse)
    with pytest.raises(ConfigurationError, match="run pip uninstall sqlglotc"):
        environment.sql("SELECT 1", dialect=dialect)
