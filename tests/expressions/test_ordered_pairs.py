"""Pairs of a key and a value compare as the two do, and give the value back."""

import datetime
import itertools
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import SchemaError
from engine.expressions.evaluate import compile_expression
from engine.expressions.literals import make_literal
from engine.expressions.ordered_pairs import can_pair, head_of
from engine.graph.expression import Call, ColumnRef

NAN, INF = math.nan, math.inf
EARLY, LATE = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
NUMBERS = [
    *(pa.array([0, 1, 2**width - 1, 2 ** (width - 1), None], f"uint{width}") for width in (8, 16, 32, 64)),
    *(
        pa.array([0, -1, 1, 2 ** (width - 1) - 1, -(2 ** (width - 1)), None], f"int{width}")
        for width in (8, 16, 32, 64)
    ),
    *(pa.array([0.0, -0.0, 0.5, -0.5, INF, -INF, NAN, None], kind) for kind in ("float16", "float32", "float64")),
    pa.array([5e-324, -5e-324, 1.7976931348623157e308, None]),
    pa.array([True, False, None]),
    pa.array([EARLY, LATE, datetime.date(1970, 1, 1), None], pa.date32()),
    pa.array([EARLY, LATE, None], pa.date64()),
    pa.array([0, 1, 86399, None], pa.time32("s")),
    pa.array([0, 1, 86399 * 10**6, None], pa.time64("us")),
    *(pa.array([-(2**62), 0, 2**62, None], pa.timestamp(unit, zone)) for unit, zone in (("us", None), ("ns", "UTC"))),
    pa.array([-(2**62), 0, 2**62, None], pa.duration("ms")),
    pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(-1), Decimal(0), None], pa.decimal128(38, 0)),
    pa.array([Decimal("1.25"), Decimal("-1.25"), Decimal(0), None], pa.decimal128(5, 2)),
]
TEXTS = [
    pa.array(["", "a", "ab", "a\0", "b", "ä", None, "a" * 3000], kind) for kind in (pa.string(), pa.large_string())
]
BYTES = [pa.array([b"", b"\0", b"\xff", b"\xff\xff", None, b"a"], kind) for kind in (pa.binary(), pa.large_binary())]
COUNTS = pa.array([1, -1, 2**62, None])


def placed(value):
    """A value as what Python sorts as the engine does: NaN is the greatest."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def same(found, wanted):
    if isinstance(wanted, float) and math.isnan(wanted):
        return isinstance(found, float) and math.isnan(found)
    return found == wanted


def integers(array):
    """The values of a type without an order in Python, or beyond its range, as integers."""
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    return array.to_pylist()


def paired(keys, values, inverted):
    batch = pa.record_batch({"k": keys, "v": values})
    pair = Call("ordered_pair", (ColumnRef("k"), ColumnRef("v")), {"inverted": inverted})
    pairs = compile_expression(pair, batch.schema)(batch)
    value = Call("paired_value", (ColumnRef("p"), make_literal(None, values.type)), {"head": head_of(keys.type)})
    packed = pa.record_batch({"p": pairs})
    # a slice that begins in the middle of a byte
    padded = pa.record_batch({"p": pa.concat_arrays([pairs.slice(0, 3), pairs])}).slice(min(3, len(pairs)))
    compiled = compile_expression(value, packed.schema)
    return pairs.to_pylist(), compiled(packed), compiled(padded)


def check(keys, values, inverted):
    assert can_pair(keys.type, values.type)
    every = list(itertools.product(range(len(keys)), range(len(values))))
    left = keys.take(pa.array([one for one, _ in every], pa.int64()))
    right = values.take(pa.array([other for _, other in every], pa.int64()))
    pairs, back, of_slice = paired(left, right, inverted)
    assert back.type == of_slice.type == values.type
    rows = list(zip(integers(left), integers(right), pairs, integers(back), integers(of_slice), strict=True))
    for key, value, pair, found, again in rows:
        assert (pair is None) == (key is None or value is None)
        wanted = None if pair is None else value
        assert same(found, wanted) and same(again, wanted)
    there = [row for row in rows if row[2] is not None]
    for one, other in itertools.pairwise(sorted(there, key=lambda row: row[2])):
        first, second = placed(one[0]), placed(other[0])
        assert first >= second if inverted else first <= second
        if first == second:
            assert placed(one[1]) <= placed(other[1])


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("keys", NUMBERS, ids=lambda array: str(array.type))
def test_pairs_are_in_the_order_of_their_keys(keys, inverted):
    for values in (COUNTS, TEXTS[0]):
        check(keys, values, inverted)


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("values", [*NUMBERS, *TEXTS, *BYTES], ids=lambda array: str(array.type))
def test_pairs_of_one_key_are_in_the_order_of_their_values(values, inverted):
    check(COUNTS, values, inverted)
    check(COUNTS.slice(1), values.slice(1), inverted)
    check(COUNTS.slice(0, 0), values, inverted)


def test_types_without_pairs():
    assert not can_pair(pa.string(), pa.int64())
    assert not can_pair(pa.int64(), pa.list_(pa.int64()))
    assert not can_pair(pa.decimal256(50, 2), pa.int64())
    batch = pa.record_batch({"k": ["a"], "v": [1]})
    with pytest.raises(SchemaError, match="keys are numbers, bools and times"):
        compile_expression(Call("ordered_pair", (ColumnRef("k"), ColumnRef("v"))), batch.schema)
    with pytest.raises(SchemaError, match="no pair with a value of int64"):
        compile_expression(Call("paired_value", (ColumnRef("k"), make_literal(None, pa.int64()))), batch.schema)
