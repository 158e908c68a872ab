"""Sequences as rows are those of Python's range, over the borders of their ranges, and those of moments."""

import datetime

import pyarrow as pa
import pytest

from engine import Environment, SchemaError, sum_
from engine.api.sequence_rows import ranges_of


@pytest.fixture
def environment():
    with Environment(config={"parallelism.default": 2}) as found:
        yield found


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 200_000, 1), (5, -150_000, -2), (3, 3, 1), (3, 1, 1)])
@pytest.mark.parametrize("closed", ["both", "left"])
def test_numbers_are_those_of_range(environment, start, stop, step, closed):
    wanted = range(start, stop + (closed == "both") * (1 if step > 0 else -1), step)
    found = environment.sequence(start, stop, step, name="n", closed=closed).to_arrow()
    assert found.schema == pa.schema({"n": pa.int64()})
    assert sorted(found.column("n").to_pylist()) == sorted(wanted)


def test_a_long_sequence_is_a_short_table(environment):
    assert ranges_of(0, 10**9, 1, is_left=True).num_rows == 15_259
    total = environment.sequence(1, 300_000).agg(total=sum_("value")).to_arrow().to_pylist()
    assert total == [{"total": 300_000 * 300_001 // 2}]


def test_moments_go_by_a_step(environment):
    days = environment.sequence(datetime.date(2024, 2, 28), datetime.date(2024, 3, 1), name="day")
    assert [one.day for one in days.to_arrow().column("day").to_pylist()] == [28, 29, 1]
    hours = environment.sequence(datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2), "6 hours", closed="left")
    assert hours.count() == 4


def test_what_is_no_sequence_is_said(environment):
    with pytest.raises(SchemaError, match="a step of 0 leads nowhere"):
        environment.sequence(0, 1, 0)
    with pytest.raises(SchemaError, match="choose one of both, left"):
        environment.sequence(0, 1, closed="right")
    with pytest.raises(SchemaError, match="more than 68719476736 numbers"):
        environment.sequence(0, 2**62)
    with pytest.raises(SchemaError, match="sequence"):
        environment.sequence(0, 2.5)
