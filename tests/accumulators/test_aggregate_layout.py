"""Calls as states: what is kept of each, what it reads, and how states of states merge."""

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_layout import STDDEV, VARIANCE, aggregate_layout, check_output, result_of_nothing
from engine.errors import SchemaError
from engine.graph.expression import AggregateCall, Call, ColumnRef
from tests.aggregate.group_oracle import make_calls

INPUT = pa.schema([("__arg0", pa.int32()), ("key", pa.string()), ("__arg1", pa.int32()), ("__arg2", pa.int32())])


def layout_of(*functions, keys=("key",), schema=INPUT, merging=False):
    return aggregate_layout(schema, keys, make_calls(functions), merging)


def test_an_average_is_a_sum_and_a_count_and_a_deviation_is_moments():
    layout = layout_of("avg", "stddev", "variance")
    assert [spec.operation for spec in layout.specs] == ["sum", "count", "moments", "moments"]
    assert layout.columns == [0, 0, 2, 3]
    assert layout.results == [(0, 1), (2, STDDEV), (3, VARIANCE)]
    assert layout.columns_as_double == [2, 3]


def test_states_of_states_are_read_from_the_columns_in_which_they_are_given_out():
    first = layout_of("avg", "max", "variance")
    second = layout_of("avg", "max", "variance", schema=first.state_schema, merging=True)
    assert second.columns == first.merge_columns == [1, 2, 3, 4]
    assert second.operations == first.merge_operations == second.merge_operations
    assert second.state_schema == first.state_schema
    assert second.columns_as_double == []
    counts = layout_of("count").operations, layout_of("count").merge_operations
    assert counts[0] != counts[1], "counts are added"


def test_without_rows_counts_are_zero_and_all_else_is_null():
    layout = layout_of("count", "sum", "avg", keys=())
    output = pa.schema([("count", pa.int64()), ("sum", pa.int64()), ("avg", pa.float64())])
    check_output(layout, output, gives_states=False)
    assert result_of_nothing(layout, output).to_pylist() == [{"count": 0, "sum": None, "avg": None}]


@pytest.mark.parametrize("gives_states", [True, False])
def test_an_output_of_other_types_is_refused(gives_states):
    layout = layout_of("sum")
    check_output(layout, pa.schema([("key", pa.string()), ("sum", pa.int64())]), gives_states=gives_states)
    with pytest.raises(SchemaError, match=r"an aggregate gives columns of types \[string, int64\]"):
        check_output(layout, pa.schema([("key", pa.string()), ("sum", pa.int32())]), gives_states=gives_states)


def test_columns_that_are_not_there_are_named():
    with pytest.raises(SchemaError, match="no column 'country'; there are: __arg0, key"):
        layout_of("sum", keys=("country",))
    with pytest.raises(SchemaError, match="no column __state0_0"):
        layout_of("sum", merging=True)


def test_states_that_are_the_same_of_the_same_column_are_kept_once():
    schema = pa.schema([("__arg0", pa.float64()), ("key", pa.string()), *((f"__arg{k}", pa.float64()) for k in (1, 2))])
    layout = layout_of("avg", "count", "sum", schema=schema)
    assert layout.twins == [0, 1, 1, 0]
    assert layout.places_without_twins == [(0, -1), (1, -1), (1, -1), (0, -1)]
    kept = layout.without_twins
    assert kept.columns == [0, 0]
    assert kept.state_schema == pa.schema(list(layout.state_schema)[:3])
    assert len(kept.specs) == len(kept.operations) == len(kept.overflow_texts) == kept.empty_states.num_columns == 2
    # integers add up in 128 bits for an average
    assert layout_of("sum", "avg").twins == [0, 1, 2]
    other = aggregate_layout(
        schema, ("key",), tuple(AggregateCall("sum", ColumnRef(name), name) for name in ("x", "y", "x")), merging=False
    )
    assert other.twins == [0, 1, 0]
    computed = Call("add", (ColumnRef("x"), ColumnRef("y")))
    both = tuple(AggregateCall("sum", computed, name) for name in ("one", "other"))
    assert aggregate_layout(schema, ("key",), both, merging=False).twins == [0, 1]
    merging = layout_of("avg", "count", "sum", schema=layout.state_schema, merging=True)
    assert merging.twins == [0, 1, 2, 3]
