"""Parts of a predicate: taken apart left to right however they were joined, and joined without great depth."""

import functools

import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, col
from engine.graph.expression import conjunction, conjuncts, depth_of, disjunction, disjuncts


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 127, 1000, 10_001])
def test_parts_come_back_in_their_order(count):
    parts = tuple((col("x") != number).expression for number in range(count))
    for join, split in ((conjunction, conjuncts), (disjunction, disjuncts)):
        joined = join(parts)
        assert split(joined) == parts
        assert depth_of(joined) <= 64 + 10 + 2
        if count == 3:
            assert joined == join([join(parts[:2]), parts[2]])


def test_hundreds_of_filters_one_behind_the_other_are_one():
    with Environment(config={"parallelism.default": 1}) as env:
        numbers = env.from_arrow(pa.table({"x": range(1000)}))
        kept = functools.reduce(lambda data, number: data.filter(col("x") != number), range(600), numbers)
        assert kept.count() == 400


def test_a_moment_that_nanoseconds_do_not_hold_says_what_to_cast():
    far = pa.table({"far": pa.array([253402214400000000], pa.timestamp("us")), "ns": pa.array([0], pa.timestamp("ns"))})
    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_arrow(far)
        with pytest.raises(JobExecutionError, match=r"2262; cast what is timestamp\[ns\] to pa.timestamp\('us'\)"):
            data.filter(col("far") > col("ns")).collect()
        assert data.filter(col("far") > col("ns").cast(pa.timestamp("us"))).count() == 1
