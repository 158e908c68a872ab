"""Functions of elements are called once, read columns of the row, and say what cannot stand in them."""

import pyarrow as pa
import pytest

from engine import SchemaError, array, col, element, row_number, sum_, udf
from engine.graph.expression import children_of
from tests.expressions.function_oracle import values

X, Y = col("x"), col("y")
LISTS = pa.array([[1, 2, None], [], None])


def test_functions_take_the_element_and_its_place():
    assert values(X.list.transform(lambda one: one + Y), x=LISTS, y=[10, 20, 30]) == [[11, 12, None], [], None]
    assert values(X.list.transform(lambda one, place: place), x=LISTS) == [[0, 1, 2], [], None]
    assert values(X.list.transform(lambda one, power=2: one**power), x=LISTS)[0] == [1.0, 4.0, None]
    assert values(X.list.transform(element().is_null()), x=LISTS) == [[False, False, True], [], None]
    assert values(X.list.transform(lambda _one: "a"), x=LISTS) == [["a", "a", "a"], [], None]
    assert values(X.list.filter(lambda one, place: place > 0), x=LISTS) == [[2, None], [], None]


def test_conditions_are_asked_of_any_and_of_all():
    assert values(X.list.any(element() > 1), x=LISTS) == [True, False, None]
    assert values(X.list.all(element() > 1), x=LISTS) == [False, True, None]
    assert values(X.list.exists(lambda one: one == Y), x=LISTS, y=[2, 2, 2]) == [True, False, None]


def test_lists_of_lists_have_functions_within_functions():
    lists = [[[1, 2], [3]], []]
    inner = X.list.transform(lambda one: one.list.transform(lambda each: each * Y + one.list.length()))
    assert values(inner, x=lists, y=[10, 0]) == [[[12, 22], [31]], []]
    assert values(X.list.eval(element().list.eval(element() + 1)), x=lists) == [[[2, 3], [4]], []]


def test_reduce_begins_with_the_first_element_or_a_value():
    assert values(X.list.reduce(lambda total, one: total * 10 + one), x=[[1, 2, 3], [4], []]) == [123, 4, None]
    assert values(X.list.reduce(lambda total, one, place: total + one * place, 0.5), x=[[1, 2], []]) == [2.5, 0.5]


def test_equal_functions_are_equal_plans():
    one, other = (X.list.transform(lambda each: each + Y).expression for _ in range(2))
    assert one == other
    assert [child.name for child in children_of(one)] == ["x", "y"]


def test_several_lists_go_side_by_side():
    found = values(X.list.zip(Y, array(1), names=["a", "b", "c"]), x=[[1, 2], None], y=[["p"], ["q"]])
    assert found == [[{"a": 1, "b": "p", "c": 1}, {"a": 2, "b": None, "c": None}], [{"a": None, "b": "q", "c": 1}]]
    with pytest.raises(SchemaError, match="there are 2 lists; give as many names"):
        X.list.zip(Y, names=["a"])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, "write a function, lambda x: x"),
        (lambda: 1, "is called with 1 values, or 2"),
        (lambda one: sum_(one).over(), "a window within a list"),
        (lambda one: sum_(one) + 1, "an aggregate within a list"),
        (lambda one: row_number().over(order_by=one), "a window within a list"),
        (udf(int)(lambda value: value), "a Python function within a list"),
    ],
)
def test_what_is_no_function_of_elements_is_said(function, message):
    with pytest.raises(SchemaError, match=rf"list\.transform.*{message}"):
        X.list.transform(function)


def test_an_element_outside_of_a_list_is_no_column():
    with pytest.raises(SchemaError, match="stands in functions of lists"):
        values(element() + 1, x=[1])
