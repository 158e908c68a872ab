"""Programs of expressions are kept for the types of their columns; columns that are passed on stay as they are."""

import pyarrow as pa
import pytest

from engine.expressions.evaluate import compile_expression, compile_projection
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.graph.expression import Call, ColumnRef, NamedExpression
from tests.expressions.test_evaluate import A, B, batch, call


def test_what_was_compiled_is_kept_for_the_same_types_and_as_long_as_its_program_is_of_use():
    expression = call("multiply", call("add", A, B), A)
    schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    first = compile_expression(expression, schema)
    assert compile_expression(call("multiply", call("add", A, B), A), schema) is first
    other = compile_expression(expression, pa.schema({"a": pa.int32(), "b": pa.int64()}))
    assert other is not first and other(batch([2], [3], pa.int32())).to_pylist() == [10]
    assert compile_expression(call("multiply", call("add", A, 1), A), schema) is not first
    assert compile_expression(call("multiply", call("add", A, 1.0), A), schema).type == pa.float64()
    first._program.give_up()
    anew = compile_expression(expression, schema)
    assert anew is not first and anew(batch([2], [3])).to_pylist() == [10]


def test_what_is_long_is_compiled_each_time():
    expression = call("is_in", A, *range(2000))
    schema = pa.schema({"a": pa.int64()})
    assert compile_expression(expression, schema) is not compile_expression(expression, schema)


def test_what_is_equal_in_python_alone_has_meanings_of_its_own():
    schema = pa.schema([])
    types = [infer_type(make_literal(one), schema) for one in (1, 1.0, True)]
    calls = [Call("add", (make_literal(one), make_literal(one))) for one in (1, 1.0)]
    assert types == [pa.int64(), pa.float64(), pa.bool_()]
    assert [infer_type(call, schema) for call in calls for _ in range(2)] == [pa.int64()] * 2 + [pa.float64()] * 2


def test_a_type_is_that_of_the_schema_it_is_asked_over():
    doubled = Call("add", (ColumnRef("a"), ColumnRef("a")))
    for data_type in (pa.int64(), pa.float64(), pa.int64()):
        assert infer_type(doubled, pa.schema([("a", data_type)])) == data_type


@pytest.mark.parametrize("named", [("a", "b"), ("b",), ()])
def test_columns_that_are_passed_on_stay_codes_whatever_came_before(named):
    input_schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    output_schema = pa.schema([input_schema.field(name) for name in named], metadata={"of": "the output"})
    projected = compile_projection(
        [NamedExpression(name, ColumnRef(name)) for name in named], input_schema, output_schema
    )
    texts = pa.array(["x", None, "x"])
    for column in (
        texts,
        texts.dictionary_encode(),
        texts.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
        texts,
    ):
        batch = pa.record_batch([column, pa.array([1, 2, 3])], names=["a", "b"])
        found = projected(batch)
        assert found.num_rows == 3
        assert found.columns == [batch.column(name) for name in named]
        assert not named or found.schema.metadata == {b"of": b"the output"}
