"""Projections and conditions over narrow decimals: which columns may come so, and that the values are the same."""

from decimal import Decimal

import pyarrow as pa
import pytest

from engine.column_expressions.expressions import col, lit
from engine.errors import DataError
from engine.expressions.evaluate import compile_expression, compile_predicate, compile_projection
from engine.graph.expression import NamedExpression
from engine.records.narrow_decimals import narrow_type

D = Decimal
SCHEMA = pa.schema([("p", pa.decimal128(15, 2)), ("q", pa.decimal128(15, 2)), ("t", pa.string())])
WIDE = pa.record_batch(
    [
        pa.array([D("1.25"), None, D("-7.50")], SCHEMA.field("p").type),
        pa.array([D("0.04"), D("0.10"), D("9999999999999.99")], SCHEMA.field("q").type),
        pa.array(["a", "b", None]),
    ],
    schema=SCHEMA,
)
CHARGED = col("p") * (1 - col("q"))


def narrow(batch, names):
    fields = [field.with_type(narrow_type(field.type)) if field.name in names else field for field in batch.schema]
    arrays = [column.cast(field.type) for column, field in zip(batch.columns, fields, strict=True)]
    return pa.record_batch(arrays, schema=pa.schema(fields))


def projection(narrow_outputs=(), **columns):
    named = [NamedExpression(name, one.expression) for name, one in columns.items()]
    types = [compile_expression(one.expression, SCHEMA).type for one in named]
    output = pa.schema(list(zip(columns, types, strict=True)))
    return compile_projection(named, SCHEMA, output, narrow_outputs)


def test_what_steps_read_may_be_narrow():
    assert projection(x=CHARGED).narrow_columns == {"p", "q"}
    assert compile_predicate((col("p") < col("q")).expression, SCHEMA).narrow_columns == {"p", "q"}


def test_what_arrow_reads_too_may_not():
    rounded = col("q").round(1)
    assert projection(x=CHARGED, y=rounded).narrow_columns == {"p"}
    assert projection(x=col("p") + 1, y=col("p").cast(pa.string())).narrow_columns == set()
    assert projection(x=CHARGED * rounded).narrow_columns == {"p"}


def test_what_is_passed_on_is_as_who_takes_it_says():
    assert projection(x=CHARGED, p=col("p")).narrow_columns == {"q"}
    assert projection(["p", "t"], x=CHARGED, p=col("p"), t=col("t")).narrow_columns == {"p", "q"}
    assert projection(["p", "t"], p=col("p"), t=col("t")).narrow_columns == {"p"}
    assert projection(["a"], a=col("p"), b=col("p")).narrow_columns == set()


@pytest.mark.parametrize("outputs", [(), ("x",), ("x", "p"), ("p",)])
def test_values_are_those_of_wide_ones(outputs):
    wide = projection(x=CHARGED, p=col("p"), t=col("t"))(WIDE)
    made = projection(outputs, x=CHARGED, p=col("p"), t=col("t"))
    for names in ((), ("q",), *((("p", "q"), ("p",)) if "p" in outputs else ())):
        found = made(narrow(WIDE, names))
        kinds = [pa.types.is_decimal64(data_type) for data_type in found.schema.types]
        assert kinds == ["x" in outputs, "p" in names, False]
        assert found.to_pylist() == wide.to_pylist()
        assert found.schema.names == wide.schema.names


def test_an_error_is_arrows_whatever_came():
    """Where steps have no result, rows are made wide before Arrow says what is wrong."""
    schema = pa.schema([("p", pa.decimal128(18, 0)), ("q", pa.decimal128(18, 0))])
    expression = (col("p") * col("q")).cast(pa.int64()).expression
    batch = pa.record_batch([pa.array([D(3), D(10**17)], schema.types[0])] * 2, schema=schema)
    texts = []
    for given in (batch, narrow(batch, ("p", "q"))):
        with pytest.raises(DataError) as raised:
            compile_expression(expression, schema)(given)
        with pytest.raises(DataError, match="p=Decimal"):
            named = [NamedExpression("x", expression)]
            compile_projection(named, schema, pa.schema([("x", pa.int64())]))(given)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
    assert compile_expression(expression, schema).narrow_columns == {"p", "q"}


def test_a_condition_over_narrow_decimals():
    condition = compile_predicate(((col("p") > lit(D("0.5"))) & col("q").is_not_null()).expression, SCHEMA)
    assert condition.narrow_columns >= {"p"}
    assert condition(narrow(WIDE, ("p", "q"))).to_pylist() == condition(WIDE).to_pylist() == [True, None, False]
