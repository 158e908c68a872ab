"""Joins by keys of two types, against Python's exact numbers: what is equal, and what type a key comes out with."""

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from engine import coalesce, col, greatest, least, when
from engine.errors import SchemaError
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

FAR = 2**53
#: keys of each type: values that other types have, and values that only look like them
NUMBERS = {
    pa.int8(): [0, 7, -1, None],
    pa.uint8(): [0, 7, 255, None],
    pa.int32(): [0, 7, -1, 2**31 - 1, None],
    pa.uint32(): [0, 7, 2**32 - 1, None],
    pa.int64(): [0, 7, -1, FAR, FAR + 1, FAR + 2, 2**63 - 1, -(2**63), None],
    pa.uint64(): [0, 7, FAR + 1, 2**63, 2**64 - 1, None],
    pa.float32(): [0.0, -0.0, 7.0, 7.5, float(FAR), math.inf, math.nan, None],
    pa.float64(): [-0.0, 7.0, 7.5, -1.0, 0.1, float(FAR), float(FAR + 2), 2.0**63, -(2.0**63), 2.0**64, math.nan, None],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("7.00"), Decimal("7.50"), Decimal("0.10"), None],
    pa.decimal128(38, 0): [Decimal(7), Decimal(FAR + 1), Decimal(2**63), None],
}
DAY = 86400 * 10**9
#: units of values in nanoseconds; a value beyond the range of a finer unit equals none of it
TIMES = {
    pa.date32(): (DAY, [0, 1, 2932896, None]),
    pa.timestamp("s"): (10**9, [0, 86400, 86401, 253402214400, None]),
    pa.timestamp("us"): (1000, [0, 86400 * 10**6, 1, 253402214400 * 10**6, None]),
    pa.timestamp("ns"): (1, [0, DAY, DAY + 1, 1000, None]),
}
REFUSED = [(pa.decimal128(38, 0), pa.float32()), (pa.decimal128(38, 0), pa.float64())]
PAIRS = [
    (one, other)
    for kind in (NUMBERS, TIMES)
    for one in kind
    for other in kind
    if one != other and (one, other) not in REFUSED and (other, one) not in REFUSED
]


@pytest.fixture(scope="module")
def env(open_environment):
    return open_environment(**{"parallelism.default": 1})


def column(data_type):
    if data_type in TIMES:
        values = pa.array(TIMES[data_type][1], pa.int32() if pa.types.is_date32(data_type) else pa.int64())
        return values.view(data_type)
    return pa.array(NUMBERS[data_type], data_type)


def exact(data_type, other):
    """Return the values of a column as numbers that are equal where the values of both types are."""
    if data_type in TIMES:
        unit, values = TIMES[data_type]
        return [None if value is None else value * unit for value in values]
    return [number(value, beside_floats=pa.types.is_floating(other)) for value in NUMBERS[data_type]]


def number(value, *, beside_floats):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None if value is None else str(value)
    return Fraction(float(value) if isinstance(value, Decimal) and beside_floats else value)


def matches(left, right):
    ours, theirs = exact(left, right), exact(right, left)
    return [
        (index, other)
        for index, value in enumerate(ours)
        for other, found in enumerate(theirs)
        if value is not None and value == found
    ]


def test_every_pair_of_types_matches_what_is_equal_and_each_column_keeps_its_type(env):
    for left, right in PAIRS:
        lefts = pa.table({"k": column(left), "n": range(len(column(left)))})
        rights = pa.table({"j": column(right), "m": range(len(column(right)))})
        found = env.from_arrow(lefts).join(env.from_arrow(rights), left_on="k", right_on="j").to_arrow()
        pairs = matches(left, right)
        assert sorted(zip(found["n"].to_pylist(), found["m"].to_pylist(), strict=True)) == pairs, (left, right)
        assert (found.schema.field("k").type, found.schema.field("j").type) == (left, right)
        order = found.sort_by([("n", "ascending"), ("m", "ascending")])
        for name, table, places in (("k", lefts, [n for n, _ in pairs]), ("j", rights, [m for _, m in pairs])):
            assert str(order[name].to_pylist()) == str(table[name].take(pa.array(places, pa.int64())).to_pylist())


def shapes(left, right, both):
    lefts, rights = [(n, None) for n in range(left)], [(None, m) for m in range(right)]
    alone = [one for one in lefts if one[0] not in {n for n, _ in both}]
    others = [one for one in rights if one[1] not in {m for _, m in both}]
    return {
        "inner": both,
        "left": both + alone,
        "right": both + others,
        "full": both + alone + others,
        "semi": sorted({(n, None) for n, _ in both}),
        "anti": alone,
    }


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.int64()),
        (pa.int32(), pa.uint64()),
        (pa.date32(), pa.timestamp("ns")),
    ],
    ids=str,
)
def test_every_kind_of_join_by_one_name(env, left, right):
    lefts = pa.table({"k": column(left), "n": range(len(column(left)))})
    rights = pa.table({"k": column(right), "m": range(len(column(right)))})
    is_lossy = {left, right} == {pa.int64(), pa.float64()}
    one, other = env.from_arrow(lefts), env.from_arrow(rights)
    for how, expected in shapes(len(lefts), len(rights), matches(left, right)).items():
        if how == "full" and is_lossy:
            with pytest.raises(SchemaError, match=r"int64.*one column cannot have both exactly.*left_on="):
                one.join(other, on="k", how=how)
            joined = one.join(other.rename(k="j"), left_on="k", right_on="j", how=how)
        elif how == "full" and pa.types.is_date(left):
            continue  # a day of the year 9999 is no value of the column that a full join has
        else:
            joined = one.join(other, on="k", how=how)
            wanted = {"right": right, "full": pa.decimal128(20, 0)}.get(how, left)
            assert joined.schema.field("k").type == wanted, how
        found = joined.to_arrow()
        there = [found[name].to_pylist() if name in found.schema.names else [None] * len(found) for name in ("n", "m")]
        assert sorted(map(str, zip(*there, strict=True))) == sorted(map(str, expected)), how


@pytest.mark.parametrize("how", ["inner", "left", "right", "semi", "anti"])
def test_null_equals_null_and_a_value_without_an_equal_equals_nothing(env, how):
    left = env.from_arrow(pa.table({"k": pa.array([0, 7, None, FAR + 1], pa.int64()), "n": [0, 1, 2, 3]}))
    right = env.from_arrow(pa.table({"k": [7.0, 7.5, None, float(FAR)], "m": [0, 1, 2, 3]}))
    found = left.join(right, on="k", how=how, null_safe=True).to_arrow()
    both = [(1, 0), (2, 2)]
    there = [found[name].to_pylist() if name in found.schema.names else [None] * len(found) for name in ("n", "m")]
    assert_same_rows(list(zip(*there, strict=True)), shapes(4, 4, both)[how])
    if how == "right":
        assert_same_rows(rows_of(found.select(["k"])), [(7.0,), (7.5,), (None,), (float(FAR),)])


def test_a_condition_reads_the_keys_as_they_are(env):
    left = env.from_arrow(pa.table({"k": pa.array([7, 8], pa.int64())}))
    right = env.from_arrow(pa.table({"k": pa.array([7.0, 8.0]), "y": [3, 4]}))
    found = left.join(right, on="k", condition=col("k") // 2 == col("y") - 0)
    assert rows_of(found.to_arrow()) == [(7, 3), (8, 4)]


@pytest.mark.parametrize("number", [pa.float32(), pa.float64()], ids=str)
def test_what_cannot_be_compared_exactly_is_refused_with_what_to_do(env, number):
    wide = env.from_arrow(pa.table({"k": pa.array([Decimal(7)], pa.decimal128(38, 0))}))
    floats = env.from_arrow(pa.table({"k": pa.array([7.0], number)}))
    whole = env.from_arrow(pa.table({"k": pa.array([7], pa.int64())}))
    with pytest.raises(SchemaError, match=r"'k' is decimal128\(38, 0\) left.*15 digits.*cast 'k' to float"):
        wide.join(floats, on="k")
    with pytest.raises(SchemaError, match=r"beyond 2\^53.*cast 'k' to float"):
        whole.asof_join(floats, on="k")
    with pytest.raises(SchemaError, match=r"beyond 2\^53"):
        whole.join(floats, on="k", how="anti", null_aware=True)
    with pytest.raises(SchemaError, match=r"co_group: 'k' is int64 left, 'k' is .* right; many integers beyond 2\^53"):
        whole.co_group(floats, "k", lambda _key, left, right: [], pa.schema([("n", pa.int64())]))
    assert whole.join(floats.select(k=col("k").cast("int64")), on="k", how="anti", null_aware=True).collect() == []


def test_an_as_of_join_keeps_the_type_of_its_time_and_of_what_is_equal(env):
    left = env.from_arrow(pa.table({"t": pa.array([1, 5], pa.int32()), "g": pa.array([FAR + 1, 7], pa.int64())}))
    right = env.from_arrow(pa.table({"t": [0.5, 4.5], "g": [float(FAR), 7.0], "y": [1, 2]}))
    found = left.asof_join(right, on="t", by="g").to_arrow()
    assert found.schema.types == [pa.int32(), pa.int64(), pa.int64()]
    assert_same_rows(rows_of(found), [(1, FAR + 1, None), (5, 7, 2)])
    both = left.asof_join(right.drop("g").rename(t="u"), left_on="t", right_on="u").to_arrow()
    assert both.schema.field("u").type == pa.float64()
    assert_same_rows(rows_of(both.select(["t", "u"])), [(1, 0.5), (5, 4.5)])


def test_texts_and_bytes_of_other_forms_are_equal_and_the_left_keeps_its_form(env):
    texts = pa.table({"k": ["a", "b", None]})
    for left, right in [
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.string(), pa.dictionary(pa.int8(), pa.large_string())),
        (pa.large_string(), pa.string()),
        (pa.string(), pa.string_view()),
    ]:
        one = env.from_arrow(texts.cast(pa.schema({"k": left})))
        joined = one.join(env.from_arrow(pa.table({"k": pa.array(["b", "c"]).cast(right)})), on="k")
        assert joined.schema.field("k").type == one.schema.field("k").type
        assert joined.to_arrow()["k"].to_pylist() == ["b"]


@pytest.mark.parametrize("counts", [False, True], ids=["different", "all"])
@pytest.mark.parametrize("call", ["intersect", "except_"])
def test_sets_compare_exactly_and_return_rows_of_the_left(env, call, counts):
    left = pa.table({"k": pa.array([7, 7, FAR + 1, FAR + 1, None, None, 1], pa.int64()), "x": ["a"] * 7})
    right = pa.table({"x": ["a"] * 4, "k": pa.array([7.0, float(FAR), None, 1.5])})
    found = getattr(env.from_arrow(left), call)(env.from_arrow(right), all=counts).to_arrow()
    assert found.schema.types == left.schema.types
    word = {"intersect": "INTERSECT", "except_": "EXCEPT"}[call] + (" ALL" if counts else "")
    whole = "CASE WHEN k IS NULL THEN NULL WHEN k = trunc(k) THEN k::BIGINT ELSE -99 END"
    assert_same_rows(rows_of(found), duck(f"SELECT k, x FROM l {word} SELECT {whole}, x FROM r", l=left, r=right))


def test_a_column_for_integers_and_floats_has_the_nearest_floats_as_elsewhere(env):
    rows = env.from_arrow(pa.table({"n": pa.array([FAR + 1], pa.int64()), "f": [0.5]}))
    whole, part = col("n"), col("f")
    for widened in (coalesce(whole, part), greatest(whole, part), when(part < 1).then(whole).otherwise(part)):
        found = rows.select(x=widened).to_arrow()["x"]
        assert (found.type, found.to_pylist()) == (pa.float64(), [float(FAR)])
    assert rows.select(x=least(whole, part)).collect() == [(0.5,)]
    assert sorted(rows.select("n").union(rows.select(n=part)).collect()) == [(0.5,), (float(FAR),)]
    assert rows.select(x=whole.is_in([float(FAR)]), y=whole == float(FAR)).collect() == [(True, True)]
    assert rows.select(x=coalesce(whole, col("n").cast(pa.uint64()))).schema.field("x").type == pa.decimal128(20, 0)
    assert rows.select(x=whole.fill_null(1)).schema.field("x").type == pa.int64()
    with pytest.raises(SchemaError, match=r"0\.5 does not fit into int64"):
        rows.select(x=whole.fill_null(0.5))
