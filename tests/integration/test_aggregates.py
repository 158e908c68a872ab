"""Aggregate functions of the whole interface against DuckDB: nulls, duplicates, skew, subtasks, spilling."""

import decimal
import random
import statistics
from fractions import Fraction

import pyarrow as pa
import pytest
from pyarrow import parquet

from engine import SchemaError, avg, col, count, count_distinct, first, last, lit, max_, min_, stddev, sum_, variance
from tests.integration.row_oracle import KEY_VALUES, assert_same_rows, duck, key_table, plain, rows_of

TYPES = pytest.mark.parametrize("data_type", KEY_VALUES, ids=str)

#: (rows, distinct keys, share of the first key, share of nulls)
SHAPES = {
    "few groups": (3000, 7, 0.0, 0.1),
    "many groups": (3000, 2500, 0.0, 0.1),
    "skew": (3000, 300, 0.9, 0.1),
    "no nulls": (2000, 50, 0.3, 0.0),
    "nulls": (500, 20, 0.0, 0.9),
    "one row": (1, 1, 0.0, 0.0),
    "nothing": (0, 1, 0.0, 0.0),
}


@pytest.fixture(params=SHAPES)
def table(request):
    """Keys k (int64), s (string); values x (int32), y (double), t (string), in duplicates; i numbers the rows."""
    rows, distinct, skew, nulls = SHAPES[request.param]
    chance = random.Random(request.param)

    def some(make):
        return [None if chance.random() < nulls else make() for _ in range(rows)]

    return pa.table(
        {
            "k": pa.array(some(lambda: 0 if chance.random() < skew else chance.randrange(distinct)), pa.int64()),
            "s": pa.array(some(lambda: chance.choice(["", "a", "ä"])), pa.string()),
            "x": pa.array(some(lambda: chance.randrange(-40, 40)), pa.int32()),
            "y": pa.array(some(lambda: chance.randrange(1000) / 8), pa.float64()),
            "t": pa.array(some(lambda: "text" * chance.randrange(30)), pa.string()),
            "i": pa.array(range(rows), pa.int64()),
        }
    )


# --------------------------------------------------------------------------------------------------- count distinct


@pytest.mark.sample("values")
@pytest.mark.parametrize("keys", [(), ("k", "s")], ids=len)
def test_count_distinct_alone(any_environment, table, keys):
    result = any_environment.from_arrow(table).group_by(*keys).agg(n=count_distinct("t"))
    names = ", ".join(keys) or "'all'"
    by = f"GROUP BY {names}" if keys else ""
    expected = duck(f"SELECT {f'{names}, ' if keys else ''}count(DISTINCT t) FROM t1 {by}", t1=table)
    assert_same_rows(rows_of(result.to_arrow()), expected)


@pytest.mark.sample("values")
@pytest.mark.parametrize("keys", [(), ("k",)], ids=len)
def test_counts_of_several_arguments_mix_with_other_aggregates(any_environment, table, keys):
    data = any_environment.from_arrow(table)
    result = data.group_by(*keys).agg(
        a=count_distinct("x"),
        rows=count(),
        b=count_distinct(col("x") % lit(7)),
        total=sum_("x"),
        c=count_distinct(col("t")),
        mean=avg("y"),
        again=count_distinct(col("x")),
        least=min_("t"),
        most=max_("y"),
    )
    calls = (
        "count(DISTINCT x), count(*), count(DISTINCT ((x % 7) + 7) % 7), sum(x)::BIGINT, count(DISTINCT t), avg(y), "
        "count(DISTINCT x), min(t), max(y)"
    )
    names = ", ".join(keys)
    expected = duck(f"SELECT {f'{names}, {calls} FROM t1 GROUP BY {names}' if keys else f'{calls} FROM t1'}", t1=table)
    found = result.to_arrow()
    assert found.schema.names == [*keys, "a", "rows", "b", "total", "c", "mean", "again", "least", "most"]
    assert [found.schema.field(name).type for name in ("a", "b", "again", "rows")] == [pa.int64()] * 4
    assert_same_rows(rows_of(found), expected)


@pytest.mark.sample("values")
@TYPES
def test_count_distinct_of_every_type_and_by_every_type(two_environments, data_type):
    table = key_table(data_type, 200)
    data = two_environments.from_arrow(table)
    rows = rows_of(table)
    different = {plain(key) for key, _ in rows if key is not None}
    assert data.group_by().agg(n=count_distinct("k"), rows=count()).collect() == [(len(different), len(rows))]
    groups = {}
    for key, number in rows:
        groups.setdefault(plain(key), (key, set()))[1].add(number)
    expected = [(key, len(numbers - {None})) for key, numbers in groups.values()]
    assert_same_rows(rows_of(data.group_by("k").agg(n=count_distinct("n")).to_arrow()), expected)
    # the key itself is counted too: one value in each group, none in the group of nulls
    own = data.group_by("k").agg(n=count_distinct("k"), most=max_("n")).to_arrow()
    assert_same_rows(
        [(key, n) for key, n, _ in rows_of(own)], [(key, int(key is not None)) for key, _ in groups.values()]
    )


@pytest.mark.quick
def test_lists_cannot_be_counted_as_different(environment):
    data = environment.from_rows([([1],)], pa.schema([("a", pa.list_(pa.int64()))]))
    with pytest.raises(SchemaError, match=r"count\(distinct a\): values of list.* cannot be compared"):
        data.group_by().agg(n=count_distinct("a"))


def test_a_key_may_have_the_name_of_the_column_that_is_counted(environment):
    data = environment.from_rows([(1, 2), (1, 3), (2, 3)], pa.schema([("__distinct", pa.int64()), ("v", pa.int64())]))
    assert sorted(data.group_by("__distinct").agg(n=count_distinct("v")).collect()) == [(1, 2), (2, 1)]


def test_explain_shows_the_two_aggregates_of_a_distinct_count(environment):
    data = environment.from_rows([(1, 2)], pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    text = data.group_by("k").agg(n=count_distinct("v")).explain()
    assert "distinct v by k" in text
    assert "aggregate by k" in text


# ------------------------------------------------------------------------------------------------------- deviations


def close_rows(rows):
    """Rows by all but their floats, which are compared apart."""
    return sorted(rows, key=lambda row: [repr(cell) for cell in row if not isinstance(cell, float)])


def assert_close_rows(actual, expected):
    """Rows with float64 results that depend on the order of additions in their last digits."""
    left, right = close_rows(actual), close_rows(expected)
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        wanted = [pytest.approx(cell, rel=1e-9, abs=1e-9) if isinstance(cell, float) else cell for cell in other]
        assert list(one) == wanted


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("keys", [(), ("k", "s")], ids=len)
def test_variance_and_standard_deviation(any_environment, table, keys):
    money = pa.decimal128(9, 2)
    table = table.append_column("d", table["x"].cast(pa.decimal128(12, 0)).cast(money))
    data = any_environment.from_arrow(table)
    result = data.group_by(*keys).agg(
        n=count("x"), vx=variance("x"), sx=stddev("x"), vy=variance(col("y") * lit(2.0)), sy=stddev("y"), sd=stddev("d")
    )
    calls = "count(x), variance(x), stddev(x), variance(y * 2), stddev(y), stddev(d::DOUBLE)"
    names = ", ".join(keys)
    expected = duck(f"SELECT {f'{names}, {calls} FROM t1 GROUP BY {names}' if keys else f'{calls} FROM t1'}", t1=table)
    found = result.to_arrow()
    assert found.schema.types[-5:] == [pa.float64()] * 5
    assert_close_rows(rows_of(found), expected)


def test_a_large_mean_does_not_eat_the_deviations(any_environment):
    values = [1e9 + number % 5 for number in range(1000)]
    data = any_environment.from_arrow(pa.table({"v": values}))
    ((found,),) = data.group_by().agg(v=variance("v")).collect()
    assert found == pytest.approx(statistics.variance([Fraction(value) for value in values]), rel=1e-6)


# ------------------------------------------------------------------------------------------------------- first, last


@pytest.mark.sample("values")
@pytest.mark.parametrize("keys", [(), ("k", "s")], ids=len)
def test_first_and_last_follow_a_sort(any_environment, table, keys):
    ordered = any_environment.from_arrow(table).sort("i")
    result = ordered.group_by(*keys).agg(n=count(), a=first("x"), b=last("x"), c=first("t"), d=last("t"), e=last("i"))
    calls = "count(*), first(x ORDER BY i), last(x ORDER BY i), first(t ORDER BY i), last(t ORDER BY i), max(i)"
    names = ", ".join(keys)
    expected = duck(f"SELECT {f'{names}, {calls} FROM t1 GROUP BY {names}' if keys else f'{calls} FROM t1'}", t1=table)
    assert_same_rows(rows_of(result.to_arrow()), expected)


@pytest.mark.sample("values")
@TYPES
def test_first_and_last_of_every_type_are_values_of_their_group(two_environments, data_type):
    table = key_table(data_type, 200)
    data = two_environments.from_arrow(table)
    groups = {}
    for key, number in rows_of(table):
        groups.setdefault(number, []).append(plain(key))
    result = data.group_by("n").agg(a=first("k"), b=last("k")).to_arrow()
    assert result.schema.types == [pa.int64(), data_type, data_type]
    assert result.num_rows == len(groups)
    for number, low, high in rows_of(result):
        assert plain(low) in groups[number]
        assert plain(high) in groups[number]
    in_order = two_environments.from_arrow(table).set_parallelism(1)
    (ends,) = in_order.sort("n").group_by().agg(a=first("n"), b=last("n")).collect()
    assert tuple(ends) == (None, max(number for number in groups if number is not None))


@pytest.mark.quick
@pytest.mark.parametrize("managed_size", ["1mb", "768kb"])
def test_all_functions_in_few_pages(open_environment, tmp_path, managed_size):
    """Groups need far more than a subtask has, and first and last keep the order of the sort.

    With less memory, states go past the table while earlier ones still wait to be decoded.
    """
    environment = open_environment(parallelism__default=2, taskmanager__memory__managed__size=managed_size)
    rows = 60_000
    chance = random.Random(2)
    table = pa.table(
        {
            "k": pa.array([chance.randrange(20_000) for _ in range(rows)], pa.int64()),
            "x": pa.array([None if chance.random() < 0.1 else chance.randrange(50) for _ in range(rows)], pa.int64()),
            "i": pa.array(range(rows), pa.int64()),
        }
    )
    data = (
        environment.from_arrow(table)
        .sort("i")
        .group_by("k")
        .agg(n=count(), d=count_distinct("x"), a=first("x"), b=last("x"), s=stddev("x"), total=sum_("x"))
    )
    data.write_parquet(tmp_path / "out")
    subtasks = [subtask for vertex in environment.execute().vertices for subtask in vertex.subtasks]
    assert sum(subtask.spilled_bytes for subtask in subtasks) > table.nbytes
    expected = duck(
        "SELECT k, count(*), count(DISTINCT x), first(x ORDER BY i), last(x ORDER BY i), stddev(x), sum(x)::BIGINT "
        "FROM t1 GROUP BY k",
        t1=table,
    )
    assert_close_rows(rows_of(parquet.read_table(tmp_path / "out")), expected)


def test_wide_decimals_add_up_and_average(any_environment):
    values = [decimal.Decimal(f"{number}{'0' * 40}.25") for number in range(-3, 9)]
    table = pa.table({"k": [number % 3 for number in range(12)], "v": pa.array(values, pa.decimal256(60, 2))})
    result = any_environment.from_arrow(table).group_by("k").agg(s=sum_("v"), a=avg("v")).to_arrow()
    assert result.schema.types == [pa.int64(), pa.decimal256(76, 2), pa.float64()]
    with decimal.localcontext(prec=100):
        sums = {key: sum(values[key::3]) for key in range(3)}
    means = {key: float(Fraction(total) / 4) for key, total in sums.items()}
    assert sorted(rows_of(result)) == [(key, sums[key], means[key]) for key in range(3)]
