"""Lists, maps and structs agree with plain Python: empty, null, sliced and large ones, nulls among elements."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, array, col, lit, map_from, struct
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import compute, same, values

X, Y = col("x"), col("y")
L = X.list
LISTS = st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=5), min_size=1, max_size=8)


def present(one):
    return [value for value in one if value is not None]


def at(one, index):
    return one[index] if -len(one) <= index < len(one) else None


def in_order(one, descending=False, nulls_last=False):
    nulls = [None] * one.count(None)
    numbers = sorted(present(one), reverse=descending)
    return numbers + nulls if nulls_last else nulls + numbers


AS_PYTHON = {
    "length": (L.length(), len),
    "get": (L.get(1), lambda one: at(one, 1)),
    "get_back": (L.get(-2), lambda one: at(one, -2)),
    "first": (L.first(), lambda one: at(one, 0)),
    "last": (L.last(), lambda one: at(one, -1)),
    "slice": (L.slice(1, 3), lambda one: one[1:3]),
    "slice_back": (L.slice(-2), lambda one: one[-2:]),
    "slice_both": (L.slice(-4, -1), lambda one: one[-4:-1]),
    "contains": (L.contains(3), lambda one: 3 in one),
    "sum": (L.sum(), lambda one: sum(present(one)) if present(one) else None),
    "min": (L.min(), lambda one: min(present(one), default=None)),
    "max": (L.max(), lambda one: max(present(one), default=None)),
    "mean": (L.mean(), lambda one: sum(present(one)) / len(present(one)) if present(one) else None),
    "sort": (L.sort(), in_order),
    "sort_down": (L.sort(True, nulls_last=True), lambda one: in_order(one, True, True)),
    "distinct": (L.distinct(), lambda one: list(dict.fromkeys(one))),
    "concat": (L.concat(X), lambda one: one + one),
}


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
@given(lists=LISTS)
def test_lists_do_what_python_does(kind, lists):
    column = pa.array([[9], None, *lists], kind(pa.int32()))
    for name, (expression, expected) in AS_PYTHON.items():
        found = values(expression, x=column.slice(2))
        assert found == [None if one is None else expected(one) for one in lists], name


@given(lists=st.lists(st.none() | st.lists(st.none() | st.text("abé", max_size=2), max_size=4), max_size=6))
def test_lists_of_texts(lists):
    column = pa.array(lists, pa.list_(pa.string()))
    assert values(L.join(", "), x=column) == [None if one is None else ", ".join(present(one)) for one in lists]
    assert values(L.max(), x=column) == [None if one is None else max(present(one), default=None) for one in lists]
    assert values(L.contains("a"), x=column) == [None if one is None else "a" in one for one in lists]


@given(
    lists=st.lists(st.none() | st.lists(st.none() | LISTS.map(lambda one: (one or [None])[0]), max_size=3), max_size=5)
)
def test_lists_of_lists_are_flattened(lists):
    column = pa.array([[[9]], *lists], pa.list_(pa.large_list(pa.int32()))).slice(1)
    assert values(L.flatten(), x=column) == [
        None if one is None else [each for inner in one for each in inner or []] for one in lists
    ]


def test_what_lies_under_a_null_list_is_no_element():
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False])
    )
    assert values(L.sum(), x=hidden) == [None, 3]
    assert values(L.slice(0), x=hidden) == [None, [3]]
    assert values(L.concat(array(7)), x=hidden) == [None, [3, 7]]
    assert values(L.sum(), x=pa.array([[1, 2], None], pa.list_(pa.int8(), 2))) == [3, None]


def test_floats_have_the_order_of_all_floats():
    nan = math.nan
    lists = [[nan, 1.0, None], [nan], [-0.0, 0.0], []]
    same(values(L.max(), x=lists), [nan, nan, 0.0, None])
    same(values(L.min(), x=lists), [1.0, nan, 0.0, None])
    assert str(values(L.sort(), x=lists)) == "[[None, 1.0, nan], [nan], [-0.0, 0.0], []]"
    assert values(L.contains(nan), x=lists) == [True, True, False, False]
    assert [len(one) for one in values(L.distinct(), x=lists)] == [3, 1, 1, 0]


def test_sums_of_integers_are_exact_or_an_error():
    large = 2**62
    assert values(L.sum(), x=[[large, large - 1], [1], None]) == [2 * large - 1, 1, None]
    assert values(L.sum(), x=[[large, large, -large]]) == [large]
    with pytest.raises(DataError, match=r"sum\(x\).*in a row with x="):
        values(L.sum(), x=[[1], [large, large]])


def test_quantifiers_pass_nulls_over():
    lists = [[True, None], [False, None], [None], [], None]
    assert values(L.any(), x=lists) == [True, False, False, False, None]
    assert values(L.all(), x=lists) == [True, False, True, True, None]


def test_positions_may_be_columns():
    found = values(L.get(Y), x=[["a", "b"]] * 5, y=[0, 1, -2, 2, None])
    assert found == ["a", "b", "a", None, None]
    assert values(L.get(Y), x=[["a"]] * 2, y=[2**63 - 1, -(2**63)]) == [None, None]


def test_arrays_structs_and_maps_are_made_and_taken_apart():
    columns = {"x": [1, None, 3], "y": ["a", "b", None]}
    assert values(array(X, 2.5, X), **columns) == [[1.0, 2.5, 1.0], [None, 2.5, None], [3.0, 2.5, 3.0]]
    made = struct(n=X, t=Y, inner=struct(c=lit(7)))
    assert values(made.field("t"), **columns) == ["a", "b", None]
    assert values(made.field("inner").field("c"), **columns) == [7, 7, 7]
    mapping = map_from(array(lit("n"), Y), array(X, 0))
    assert values(mapping.map.get("n"), x=[1, None], y=["a", "b"]) == [1, None]
    assert values(mapping.map.get("none"), x=[1], y=["a"]) == [None]
    maps = pa.array([[("a", 1), ("b", None)], [], None, [("c", 3)]], pa.map_(pa.string(), pa.int64()))
    assert values(X.map.keys(), x=maps) == [["a", "b"], [], None, ["c"]]
    assert values(X.map.values(), x=maps.slice(1)) == [[], None, [3]]
    assert values(X.map.get("b"), x=maps) == [None, None, None, None]
    assert values(map_from(X.map.keys(), X.map.values()), x=maps) == maps.to_pylist()
    with pytest.raises(SchemaError, match="no value is found by keys of double"):
        values(X.map.get(1.5), x=pa.array([[(1.5, "a")]], pa.map_(pa.float64(), pa.string())))


def test_maps_that_cannot_be_made_name_the_row():
    with pytest.raises(DataError, match="not as many values as keys"):
        values(map_from(X, Y), x=[[1], [1]], y=[[1], [1, 2]])
    with pytest.raises(DataError, match="a key of a map is null"):
        values(map_from(X, X), x=[[1], [None]])
    for keys, shown in ([[1, 2], None, [], [3, 4, 3]], "3"), ([["a"], ["b", "b"]], "'b'"), ([[1.5, 0.0, 1.5]], r"1\.5"):
        with pytest.raises(DataError, match=f"a map has the key {shown} twice"):
            values(map_from(X, X), x=keys)
    assert values(map_from(X, X), x=[[1, 2], None, [2, 1]]) == [[(1, 1), (2, 2)], None, [(2, 2), (1, 1)]]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("n").list.length(), r"length\(n\): n is int64; .list works on lists"),
        (col("n").map.keys(), ".map works on maps"),
        (col("s").field("b"), "there is no field 'b', or several; there are: a"),
        (X.list.join("-"), "join is of texts; these are lists of int64"),
        (X.list.any(), "any is of bools"),
        (X.list.contains("a"), "have no common type"),
        (col("t").list.sum(), "sum is of numbers"),
        (array(col("n"), "a"), "no common type"),
    ],
)
def test_what_is_no_list_is_said_before_anything_runs(expression, message):
    schema = pa.schema(
        {"x": pa.list_(pa.int64()), "n": pa.int64(), "s": pa.struct({"a": pa.int8()}), "t": pa.list_(pa.string())}
    )
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, schema)


def test_types_of_results():
    assert compute(L.sort(), x=pa.array([[1]], pa.large_list(pa.int8()))).type == pa.large_list(pa.int8())
    assert compute(L.sum(), x=pa.array([[1]], pa.list_(pa.int8()))).type == pa.int64()
    with pytest.raises(SchemaError):
        struct()
    with pytest.raises(SchemaError):
        L.slice("a")
