"""Arrow's functions by name: what pyarrow.compute returns, without its import."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute
import pytest

from engine.records.arrow_functions import ArrowFunctions, pc

NUMBERS = pa.array([3, None, 1, 2], pa.int64())
OTHERS = pa.array([1, 2, None, 2], pa.int64())
DOUBLES = pa.array([1.5, None, float("nan"), -0.5])
FLAGS = pa.array([True, False, None, True])
TEXTS = pa.array(["ab", None, "", "Straße"])
BATCH = pa.RecordBatch.from_arrays([NUMBERS, TEXTS], names=["number", "text"])

CALLS = (
    ("add_checked", (NUMBERS, OTHERS), {}),
    ("and_", (FLAGS, FLAGS), {}),
    ("and_kleene", (FLAGS, pa.scalar(None, pa.bool_())), {}),
    ("binary_join_element_wise", (TEXTS, TEXTS, "/"), {}),
    ("binary_join_element_wise", (TEXTS, "-", "/"), {"null_handling": "replace", "null_replacement": "?"}),
    ("cast", (NUMBERS, pa.string()), {}),
    ("coalesce", (NUMBERS, OTHERS, 7), {}),
    ("count_distinct", (NUMBERS,), {}),
    ("equal", (NUMBERS, 1), {}),
    ("fill_null", (DOUBLES, 0.0), {}),
    ("fill_null", (FLAGS, False), {}),
    ("filter", (BATCH, FLAGS), {}),
    ("if_else", (FLAGS, NUMBERS, None), {}),
    ("invert", (FLAGS,), {}),
    ("is_in", (NUMBERS,), {"value_set": pa.array([1, 2], pa.int64())}),
    ("is_null", (DOUBLES,), {}),
    ("is_null", (DOUBLES,), {"nan_is_null": True}),
    ("match_substring", (TEXTS, "a"), {}),
    ("match_substring", (TEXTS,), {"pattern": "A", "ignore_case": True}),
    ("max_element_wise", (NUMBERS, OTHERS), {}),
    ("mean", (NUMBERS,), {}),
    ("or_", (FLAGS, FLAGS), {}),
    ("random", (5,), {"initializer": 3}),
    ("round", (DOUBLES,), {}),
    ("round", (DOUBLES, 1), {}),
    ("sort_indices", (NUMBERS,), {"sort_keys": [("", "descending")]}),
    ("split_pattern", (TEXTS, "a"), {}),
    ("sum", (NUMBERS,), {"min_count": 9}),
    ("take", (BATCH, pa.array([2, 0])), {}),
    ("utf8_slice_codeunits", (TEXTS,), {"start": 1, "stop": 3}),
    ("utf8_upper", (TEXTS,), {}),
    ("value_counts", (NUMBERS,), {}),
    ("index", (NUMBERS, 1), {}),
)


@pytest.mark.parametrize(
    ("name", "arguments", "options"), CALLS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_function_returns_what_pyarrows_own_returns(name, arguments, options):
    expected = getattr(pyarrow.compute, name)(*arguments, **options)
    for _ in range(2):
        found = getattr(pc, name)(*arguments, **options)
        assert type(found) is type(expected)
        assert (
            found.type == expected.type if isinstance(found, pa.Array | pa.Scalar) else found.schema == expected.schema
        )
        assert str(found) == str(expected), "nan is not equal to itself"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add_checked", (pa.scalar(2**63 - 1), pa.scalar(1))),
        ("cast", (TEXTS, pa.int64())),
        ("utf8_upper", (NUMBERS,)),
        ("utf8_upper", (TEXTS, TEXTS)),
        ("take", (NUMBERS, pa.array([9]))),
    ],
)
def test_a_function_raises_what_pyarrows_own_raises(name, arguments):
    with pytest.raises(Exception) as expected:
        getattr(pyarrow.compute, name)(*arguments)
    with pytest.raises(expected.type):
        getattr(pc, name)(*arguments)


def test_a_function_that_there_is_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_function"):
        pc.no_such_function(NUMBERS)


def test_a_function_is_the_same_one_each_time():
    functions = ArrowFunctions()
    assert functions.add_checked is functions.add_checked


def test_calls_with_and_without_options_do_not_import_pyarrow_compute_or_pandas():
    program = """
import sys
import pyarrow as pa
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
texts = pa.nulls(3, pa.string())
assert pc.fill_null(pa.nulls(3, pa.int32()), -1).to_pylist() == [-1] * 3
assert pc.cast(pc.fill_null(pc.match_substring(texts, pattern="a"), scalar_of(True)), pa.int8()).null_count == 0
assert len(pc.random(3, initializer=1)) == 3
assert "pyarrow._compute" in sys.modules and not {"pyarrow.compute", "pandas"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


UNTYPED = pa.struct([("a", pa.null())])


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([{"a": None, "b": 1}, None], {"a": pa.null(), "b": pa.int64()}, {"a": pa.null(), "b": pa.int32()}),
        ([{"a": None, "b": 1}, None], {"a": pa.null(), "b": pa.int64()}, {"a": pa.null(), "b": pa.int64()}),
        ([[("k", None)], None], pa.map_(pa.string(), pa.null()), pa.map_(pa.large_string(), pa.null())),
        ([[{"a": None}], [], None], pa.list_(UNTYPED), pa.large_list(UNTYPED)),
    ],
)
def test_parts_of_arrays_with_untyped_children_are_cast_to_valid_ones(values, source, target):
    source, target = (pa.struct(kind) if isinstance(kind, dict) else kind for kind in (source, target))
    whole = pa.array(values * 50, source)
    for part in (whole, whole.slice(10), whole.slice(0, 10), whole.slice(20, 30)):
        found = pc.cast(part, target)
        found.validate(full=True)
        assert (found.type, found.to_pylist()) == (target, part.to_pylist())
