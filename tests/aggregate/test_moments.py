"""Variance and standard deviation: stable, merged in any memory, against exact fractions."""

import decimal
import math
import random
import statistics
from fractions import Fraction

import pyarrow as pa
import pytest

from engine.accumulators.moment_kernels import pairs_of, states_of_values
from tests.aggregate.group_oracle import MEMORIES, input_table, make_calls, single, two_phases

#: as in state_kernels.pxd
ADD_MOMENTS, ADD_COMOMENTS = 7, 18
CALLS = make_calls(["variance", "stddev", "count"])


def expected(values):
    """(variance, standard deviation, count) of a group, exact up to the last rounding."""
    present = [Fraction(value) for value in values if value is not None]
    if len(present) < 2:
        return None, None, len(present)
    variance = statistics.variance(present)
    return float(variance), math.sqrt(variance), len(present)


def make(data_type, make_value, rows=3000, distinct=300, nulls=0.2, seed=3):
    rng = random.Random(seed)
    keys = [rng.randrange(distinct) if rng.random() < 0.5 else 0 for _ in range(rows)]
    values = [None if rng.random() < nulls else make_value(rng) for _ in range(rows)]
    return input_table(("key",), [pa.int64()], CALLS, [data_type] * 3, [keys, values, values, values])


def check(result, table):
    groups = {}
    for row in table.to_pylist():
        groups.setdefault(row["key"], []).append(row["__arg0"])
    rows = {row["key"]: row for row in result.to_pylist()}
    assert rows.keys() == groups.keys()
    for key, values in groups.items():
        variance, deviation, count = expected(values)
        assert rows[key]["count_2"] == count
        assert rows[key]["variance_0"] == (None if variance is None else pytest.approx(variance, rel=1e-9))
        assert rows[key]["stddev_1"] == (None if variance is None else pytest.approx(deviation, rel=1e-9))


TYPES = {
    "int8": (pa.int8(), lambda r: r.randrange(-128, 128)),
    "int64": (pa.int64(), lambda r: r.randrange(-(2**52), 2**52)),
    "uint64": (pa.uint64(), lambda r: r.randrange(2**20)),
    "half": (pa.float16(), lambda r: float(r.randrange(100))),
    "float": (pa.float32(), lambda r: r.randrange(1000) / 4),
    "double": (pa.float64(), lambda r: r.uniform(-1, 1)),
    "large mean": (pa.float64(), lambda r: 1e6 + r.randrange(8)),
    "decimal": (pa.decimal128(12, 2), lambda r: decimal.Decimal(r.randrange(10**6)) / 100),
    "decimal256": (pa.decimal256(50, 2), lambda r: decimal.Decimal(r.randrange(10**6)) / 100),
}


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", TYPES)
def test_every_type_of_number_has_its_variance(workshop, name, memory):
    table = make(*TYPES[name])
    check(single(workshop, MEMORIES[memory], table, ("key",), CALLS)[0], table)


@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("memory", MEMORIES)
def test_states_of_two_phases_merge(workshop, memory, force_spill):
    table = make(*TYPES["large mean"])
    result, operator, _ = two_phases(workshop, MEMORIES[memory], table, ("key",), CALLS, force_spill=force_spill)
    check(result, table)
    assert operator.spilled_bytes > 0 or not force_spill


def test_rows_that_pass_through_are_states_of_one_value(workshop, monkeypatch):
    monkeypatch.setattr("engine.aggregate.pre_aggregation.PASS_ROWS", 2000)
    table = make(*TYPES["int64"], rows=4000, distinct=10**6, seed=5)
    keys = pa.array([key if key else index + 10**7 for index, key in enumerate(table["key"].to_pylist())])
    table = table.set_column(0, "key", keys)
    table = pa.concat_tables([table, table.slice(100)])
    result, _, partial = two_phases(workshop, 3000, table, ("key",), CALLS, batch_rows=400)
    assert partial.num_rows > result.num_rows
    check(result, table)


def test_a_large_mean_does_not_eat_the_deviations(workshop):
    values = [1e15 + value for value in (4.0, 7.0, 13.0, 16.0)]
    table = input_table((), [], CALLS, [pa.float64()] * 3, [values] * 3)
    assert single(workshop, 6, table, (), CALLS)[0].to_pylist() == [
        {"variance_0": 30.0, "stddev_1": math.sqrt(30.0), "count_2": 4}
    ]


@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize("values", [[], [None], [3.0], [None, 3.0]])
def test_fewer_than_two_values_have_no_variance(workshop, values, phases):
    table = input_table((), [], CALLS, [pa.float64()] * 3, [values] * 3)
    count = len([value for value in values if value is not None])
    assert phases(workshop, 6, table, (), CALLS)[0].to_pylist() == [
        {"variance_0": None, "stddev_1": None, "count_2": count}
    ]


@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_a_variance_of_nan(workshop, odd, phases):
    values = [1.0, odd, 2.0]
    table = input_table((), [], CALLS, [pa.float64()] * 3, [values] * 3)
    (row,) = phases(workshop, 6, table, (), CALLS)[0].to_pylist()
    assert math.isnan(row["variance_0"])
    assert math.isnan(row["stddev_1"])


def test_the_bytes_of_moments_are_count_mean_and_deviations():
    states = states_of_values(pa.array([0.0, 1.5, None, math.inf])[1:], ADD_MOMENTS, 24)
    assert states.type == pa.binary(24)
    assert states[0].as_py().hex() == "0100000000000000" + "000000000000f83f" + "0000000000000000"
    assert states[1].as_py() is None
    assert states[2].as_py()[:16].hex() == "0100000000000000" + "000000000000f07f"
    assert len(states_of_values(pa.array([], pa.float64()), ADD_MOMENTS, 24)) == 0


def test_pairs_are_sixteen_bytes_and_null_where_one_of_them_is():
    structs = pa.StructArray.from_arrays([pa.array([9.0, 1.5, None, 1.0]), pa.array([9.0, 0.0, 2.0, None])], ["x", "y"])
    pairs = pairs_of(structs.slice(1))
    assert [None if pair is None else pair.hex() for pair in pairs.to_pylist()] == [
        "000000000000f83f" + "0000000000000000", None, None,
    ]  # fmt: skip
    states = states_of_values(pairs, ADD_COMOMENTS, 48)
    assert states[0].as_py().hex() == "0100000000000000" + "000000000000f83f" + "0000000000000000" * 4
    assert states.null_count == 2


def exact_shape(values):
    """(skewness, excess kurtosis) of a sample, exact up to the last steps."""
    n = len(values)
    mean = Fraction(sum(values), 1) / n
    second, third, fourth = (sum((value - mean) ** power for value in values) for power in (2, 3, 4))
    skewness = math.sqrt(n) * float(third) / float(second) ** 1.5 * math.sqrt(n * (n - 1)) / (n - 2)
    whole = (n + 1) * n * fourth / second**2 - 3 * (n - 1)
    return skewness, float(Fraction(n - 1, (n - 2) * (n - 3)) * whole)


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_large_mean_does_not_eat_higher_moments(workshop, memory):
    rng = random.Random(4)
    calls = make_calls(["skewness", "kurtosis"])
    groups = {key: [Fraction(10**7 + rng.choice([0, 0, 0, 1, 5])) for _ in range(40)] for key in range(60)}
    pairs = [(key, float(value)) for key, values in groups.items() for value in values]
    rng.shuffle(pairs)
    keys, values = zip(*pairs, strict=True)
    table = input_table(("key",), [pa.int64()], calls, [pa.float64()] * 2, [list(keys), list(values), list(values)])
    for phases in (single, two_phases):
        for row in phases(workshop, MEMORIES[memory], table, ("key",), calls)[0].to_pylist():
            assert (row["skewness_0"], row["kurtosis_1"]) == pytest.approx(exact_shape(groups[row["key"]]), rel=1e-6)
