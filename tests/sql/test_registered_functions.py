"""Functions of Python in SQL, by the names that they are registered under."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine import DataSet, Environment, NotYetSupportedError, PlanError, SchemaError, col, udf


def rows_of(data: DataSet) -> list[tuple[object, ...]]:
    """Return rows in their order."""
    return [tuple(row) for row in data.collect()]


def _twice(value: int | None) -> int | None:
    return None if value is None else 2 * value


def _joined(left: str, right: str) -> str:
    return f"{left}-{right}"


@pytest.fixture
def known(environment: Environment) -> Environment:
    environment.register("q", environment.from_arrow(pa.table({"k": [1, 2, None], "s": ["a", "b", "c"]})))
    environment.register_function("twice", _twice)
    environment.register_function("Joined", udf(str)(_joined))
    environment.register_function(
        "sizes", udf(pa.int64(), kind="arrow")(lambda texts: pa.array([len(texts)] * len(texts)))
    )
    return environment


def test_functions_are_called_wherever_expressions_are(known: Environment) -> None:
    query = """
        SELECT twice(k) AS a, JOINED(s, 'x') AS b, sum(twice(k)) OVER () AS c FROM q WHERE twice(k) > 1 OR k IS NULL
        ORDER BY twice(k) DESC
    """
    assert rows_of(known.sql(query)) == [(None, "c-x", 6), (4, "b-x", 6), (2, "a-x", 6)]
    grouped = "SELECT twice(k) AS g, count(*) FROM q GROUP BY twice(k) HAVING max(twice(k)) < 4"
    assert rows_of(known.sql(grouped)) == [(2, 1)]
    assert rows_of(known.sql("SELECT twice(twice(3)) AS a")) == [(12,)]
    computed = (
        "SELECT joined(upper(s), 'y') AS a, upper(joined(upper(s), 'y')) AS b FROM q WHERE joined(upper(s), 'y') < 'B'"
    )
    assert rows_of(known.sql(computed)) == [("A-y", "A-Y")]
    assert rows_of(known.sql("SELECT sizes(s) > 0 AS a FROM q WHERE k = 1")) == [(True,)]


def test_functions_have_priority_and_may_be_given_anew(known: Environment) -> None:
    known.register_function("upper", udf(str)(lambda text: f"<{text}>"))
    assert rows_of(known.sql("SELECT upper(s) AS a FROM q WHERE k = 1")) == [("<a>",)]
    known.register_function("upper", udf(str)(lambda text: text * 2))
    assert rows_of(known.sql("SELECT Upper(s) AS a FROM q WHERE k = 1")) == [("aa",)]


def test_mistakes_are_told(known: Environment) -> None:
    with pytest.raises(PlanError, match=r"line 1, column 8: twice\(value: .*\).*: too many positional arguments"):
        known.sql("SELECT twice(k, 1) FROM q")
    with pytest.raises(PlanError, match="no function twise; did you mean twice or"):
        known.sql("SELECT twise(k) FROM q")
    with pytest.raises(SchemaError, match=r"register_function\('a b'\): expected a name"):
        known.register_function("a b", _twice)
    with pytest.raises(SchemaError, match=r"register_function\('f', 3\): expected a function"):
        known.register_function("f", 3)
    with pytest.raises(SchemaError, match=r"what .*lambda.* returns is not known"):
        known.register_function("f", lambda value: value)
    with pytest.raises(NotYetSupportedError, match=r"column \d+: functions of Python in conditions of joins"):
        known.sql("SELECT 1 FROM q JOIN q AS r ON twice(q.k) = r.k")
    assert rows_of(known.from_arrow(pa.table({"k": [1]})).select(a=known.functions["twice"](col("k")))) == [(2,)]
