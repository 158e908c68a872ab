"""``&``, ``|``, coalesce and fill_null look at an operand that may fail only in rows that the first ones leave open."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import array, coalesce, col
from engine.errors import DataError
from engine.expressions.evaluate import evaluate

ROWS = st.lists(st.tuples(st.none() | st.booleans(), st.none() | st.integers(-2, 2)), min_size=1, max_size=30)


def values(expression, batch):
    return evaluate(expression.expression, batch).to_pylist()


def quotient(divisor: int | None) -> bool | None:
    return None if divisor is None else 4 // divisor > 1


def both(first: bool | None, divisor: int | None) -> bool | None:
    if first is False:
        return False
    second = quotient(divisor)
    return second if first else (False if second is False else None)


def either(first: bool | None, divisor: int | None) -> bool | None:
    if first:
        return True
    second = quotient(divisor)
    return second if first is False else (True if second else None)


@given(ROWS)
def test_rows_are_those_of_plain_python_unless_an_open_row_fails(rows):
    first, divisor = zip(*rows, strict=True)
    batch = pa.record_batch({"a": pa.array(first, pa.bool_()), "z": pa.array(divisor, pa.int64())})
    for expression, oracle in (
        (col("a") & (4 // col("z") > 1), both),
        (col("a") | (4 // col("z") > 1), either),
        (coalesce(col("a"), 4 // col("z") > 1), lambda a, z: quotient(z) if a is None else a),
    ):
        try:
            wanted = [oracle(a, z) for a, z in rows]
        except ZeroDivisionError:
            with pytest.raises(DataError, match=r"divide by zero; in a row with .*z=0"):
                values(expression, batch)
        else:
            assert values(expression, batch) == wanted


def test_three_operands_each_see_what_those_before_leave_open():
    batch = pa.record_batch({"a": [1, None, None], "b": [0, 2, None], "z": [0, 0, 2]})
    assert values(coalesce(col("a"), 4 // col("b"), 6 // col("z")), batch) == [1, 2, 3]


def test_lists_and_texts_are_put_back_in_the_order_of_the_rows():
    batch = pa.record_batch({"l": [None, [1], None, []], "s": ["1", "x", "2", "y"], "t": [None, "a", None, "b"]})
    is_large = col("l").is_not_null() | (col("s").cast(pa.int64()) > 1)
    assert values(is_large, batch) == [False, True, True, True]
    number = col("s").cast(pa.int64())
    assert values(coalesce(col("l"), array(number)), batch) == [[1], [1], [2], []]
    texts = col("t").fill_null(number.cast(pa.string()))
    assert values(texts, batch) == ["1", "a", "2", "b"]
