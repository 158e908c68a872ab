"""Every expression that Spark computes itself, beside the engine's value for it."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import coalesce, col, lit, when
from engine.dataframes.native_expressions import _CALLS, native_column
from engine.expressions.evaluate import evaluate

pytestmark = pytest.mark.spark

NAN, INFINITY = float("nan"), float("inf")


def _decimals(texts):
    return [None if text == "null" else Decimal(text) for text in texts.split()]


COLUMNS = {
    "i": (pa.int32(), [0, 1, -1, None, 2**31 - 1, -(2**31), 7]),
    "j": (pa.int64(), [3, None, -1, 0, 2**40, -(2**40), 7]),
    "x": (pa.float64(), [0.0, -0.0, NAN, None, INFINITY, -1.5, 7.0]),
    "y": (pa.float64(), [-0.0, NAN, NAN, 1.0, INFINITY, None, 7.5]),
    "d": (pa.decimal128(9, 2), _decimals("0 1.25 -1.25 null 9e6 -3 7")),
    "e": (pa.decimal128(5, 3), _decimals("0 1.25 null 2 -99.999 3 7")),
    "s": (pa.string(), ["", "a", "Ä", None, "ab", "a b", "日本"]),
    "t": (pa.string(), ["", "ab", "ä", "x", "b", "a", "本"]),
    "w": (pa.decimal128(32, 4), _decimals("0 1.2345 -1e12 null 90071992547409.93 -3 1234567890123.4567")),
    "v": (pa.decimal128(38, 2), _decimals("1 9e30 -123456789012345678901234567.12 null -0.01 18446744073709551616 0")),
    "l": (pa.string(), ["a\nb", "ab.c", "a_b\r", None, "ÄÖ a1", "a\\b%c", "b\u2028a\n"]),
    "p": (pa.bool_(), [True, False, None, None, True, False, True]),
    "q": (pa.bool_(), [None, False, None, True, False, True, True]),
    "m": (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31), None, date(2000, 2, 29), date(1, 1, 1),
                        date(9999, 12, 31), date(1582, 10, 10)]),
}  # fmt: skip
EXPRESSIONS = {
    "add": [
        col("i") + col("j"),
        col("i") + 1,
        col("x") + col("y"),
        col("d") + col("e"),
        col("d") + col("x"),
        col("w") + col("v"),
        col("x") + 1,
        col("v") + 7,
    ],
    "subtract": [col("i") - col("j"), col("x") - col("y"), col("d") - col("e")],
    "multiply": [
        col("i") * col("i"),
        col("x") * col("y"),
        col("d") * col("e"),
        col("w") * (1 - col("d")) * 3,
        Decimal("0.5") * col("v"),
        0.2 * col("d"),
        col("w") * col("d"),
    ],
    "divide": [
        col("x") / col("y"),
        col("y") / col("x"),
        col("d") / col("e"),
        col("i") / 2,
        col("v") / col("w"),
        col("w") / 7,
        100 * (col("w") * col("d")) / col("v"),
        col("i") / col("y"),
        -1.0 / col("x"),
    ],
    "equal": [col("i") == col("j"), col("x") == col("y"), col("s") == col("t"), col("m") == "1969-12-31"],
    "not_equal": [col("x") != col("y"), col("s") != col("t"), col("d") != col("d")],
    "less": [
        col("d") < col("x"),
        col("v") < col("w") * col("d"),
        col("d") < 0.2,
        col("v") < col("y"),
        col("x") < col("y"),
        col("s") < col("t"),
        col("i") < 1,
        col("p") < col("q"),
    ],
    "less_equal": [col("x") <= col("y"), col("m") <= date(2000, 2, 29)],
    "greater": [col("x") > col("y"), col("s") > "a"],
    "greater_equal": [col("x") >= col("y"), col("j") >= col("i")],
    "eq_null_safe": [col("x").eq_null_safe(col("y")), col("i").eq_null_safe(col("j"))],
    "between": [col("i").between(0, col("j")), col("x").between(-1.0, col("y"))],
    "and": [col("p") & col("q")],
    "or": [col("p") | col("q")],
    "not": [~col("p")],
    "fill_null": [col("x").fill_null(0.0), col("s").fill_null("none"), col("j").fill_null(col("j") + 1)],
    "coalesce": [
        coalesce(col("d"), lit(None, pa.decimal128(9, 2)), lit(Decimal("1.00"), pa.decimal128(9, 2))),
        coalesce(col("p"), col("q")),
        coalesce(col("j"), col("j") + 1, lit(7)),
        coalesce(col("m"), lit(date(2000, 1, 1))),
    ],
    "abs": [col("x").abs(), col("d").abs(), col("v").abs(), (col("w") * col("d")).abs()],
    "is_null": [col("x").is_null(), (col("p") & col("q")).is_null()],
    "is_not_null": [col("s").is_not_null()],
    "str_starts_with": [col("s").str.starts_with("a"), col("s").str.starts_with("")],
    "str_ends_with": [col("s").str.ends_with("b")],
    "str_contains": [col("s").str.contains(" ")],
    "str_length": [col("s").str.length()],
    "dt_year": [col("m").dt.year()],
    "dt_month": [col("m").dt.month()],
    "dt_day": [col("m").dt.day()],
}
OTHERS = [
    when(col("p")).then(col("i")).otherwise(col("i")),
    when(col("x") > 0).then(col("x")).when(col("q")).then(lit(2.0)).otherwise(None),
    when(col("p")).then(col("d") * (1 - col("e"))).otherwise(0),
    when(col("p")).then(col("e")).otherwise(col("d")),
    col("s").is_in(["a", "Ä", "b"]),
    col("i").is_in([0, 7]),
    col("d").is_in([7, 0]),
    col("d") * col("i"),
    100 * col("d") - col("j"),
    col("d").cast(pa.float64()),
    col("w").cast(pa.float64()),
    col("v").cast(pa.float64()),
    (col("w") * col("d")).cast(pa.float64()),
    when(col("p")).then(col("w") * col("d")).otherwise(Decimal("0.0000")),
    (col("d") < 7) & (col("e") >= col("i")),
    col("d").between(Decimal("0.5"), 8),
    col("d") == col("e"),
    col("i").cast(pa.int64()),
    col("i").cast(pa.float64()),
    *(col(name).str.slice(*part) for name in "sl" for part in [(0,), (0, 2), (1, 3), (2, 1), (0, 0), (5, 9)]),
    *(
        col("l").str.matches(pattern)
        for pattern in ["a.b", "^a", "b$", "[^a]$", r"\.", r"\s", r"\w\W", "a.*b.*c", "ä|Ä. a", "", "c?$", "[a-z_ ]+1"]
    ),
    *(col("l").str.contains(pattern, regex=True) for pattern in ["a.b", "^$", "%c", "b.?a.$"]),
    *(col("l").str.like(pattern) for pattern in ["a%b", "a_b", "%", "", "_____", "%c", "a%", "%.%", "ab.c", "%b%a%"]),
]
ENGINES_OWN = [
    col("s").str.upper(),
    col("j") / 2,
    col("i") // 2,
    col("w") * col("w"),
    col("v") > col("e") * col("e") * col("w"),
    col("x") == col("j"),
    col("j").cast(pa.float64()),
    *(
        col("s").str.matches(pattern)
        for pattern in ["(a)", "a{2}", "a+?", "a*b*c*", r"\ba", "[[:alpha:]]", "a$b", "b^", "*"]
    ),
    col("s").str.like("a\\%"),
    col("s").str.slice(-1),
]


def _table():
    return pa.table({name: pa.array(values, data_type) for name, (data_type, values) in COLUMNS.items()})


def test_every_row_of_the_table_has_its_test():
    assert set(EXPRESSIONS) == set(_CALLS)


def _on_spark(spark, table, expressions):
    from engine.dataframes.needed_settings import with_needed_settings

    data = spark.createDataFrame(table)
    columns = {name: data[name] for name in table.schema.names}
    made = [native_column(each.expression, table.schema, columns) for each in expressions]
    with with_needed_settings(spark):
        native = [column for column in made if column is not None]
        return made, data.select(*(column.alias(f"r{index}") for index, column in enumerate(native))).toArrow()


@pytest.mark.parametrize("name", [*EXPRESSIONS, "others"])
def test_spark_computes_what_the_engine_does(spark, name):
    table, expressions = _table(), EXPRESSIONS.get(name, OTHERS)
    made, rows = _on_spark(spark, table, expressions)
    native = [each for each, column in zip(expressions, made, strict=True) if column is not None]
    assert 4 * len(native) >= 3 * len(expressions), "too little of it is native"
    (batch,) = table.to_batches()
    values = [evaluate(each.expression, batch) for each in native]
    expected = pa.table({f"r{index}": value for index, value in enumerate(values)})
    found = rows.cast(pa.schema([each.with_nullable(True) for each in rows.schema])).cast(expected.schema)
    assert _bits(found) == _bits(expected)


def _bits(table):
    """Return all values, doubles in such a way that -0.0 and the last bit show."""
    return {name: list(map(repr, table[name].to_pylist())) for name in table.schema.names}


def test_what_spark_computes_otherwise_is_the_engines(spark):
    made, _ = _on_spark(spark, _table(), [*ENGINES_OWN, col("i")])
    assert made[:-1] == [None] * len(ENGINES_OWN)
