"""The states of an aggregate: which follow on which, and that real ones go through them."""

import pytest

from engine.accumulators.aggregate_functions import result_schema, state_schema
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.aggregate_state import TRANSITIONS, AggregateProgress, AggregateState
from engine.aggregate.hash_aggregate import HashAggregate
from engine.iomanager.spill_writer import SpillWriter
from tests.aggregate.group_oracle import argument_types_of, make_table


@pytest.fixture
def visited(monkeypatch):
    """The states that aggregates entered, in order."""
    states = []
    enter = AggregateProgress.enter

    def noting(self, state):
        if state is not self.state:
            states.append(state.name)
        enter(self, state)

    monkeypatch.setattr(AggregateProgress, "enter", noting)
    return states


def run(workshop, phase, pages, table, calls, **options):
    fields, types = [table.schema.field("key")], argument_types_of(table, calls)
    output = (state_schema if phase == "partial" else result_schema)(fields, calls, types)
    with workshop.operator(pages) as (pool, space):
        operator = HashAggregate(AggregateSpec(phase, table.schema, ("key",), calls, output, **options), pool, space)
        for batch in table.to_batches(max_chunksize=100):
            list(operator.add_batch(batch))
        list(operator.finish())
        operator.close()
        assert operator.state is AggregateState.CLOSED


def test_every_state_is_reached_and_can_be_closed():
    assert set(TRANSITIONS) == set(AggregateState)
    reached = set().union(*TRANSITIONS.values()) | {AggregateState.GROUPING}
    assert reached == set(AggregateState)
    for state, following in TRANSITIONS.items():
        assert (AggregateState.CLOSED in following) == (state is not AggregateState.CLOSED)


def test_a_move_that_the_table_does_not_know_is_refused():
    progress = AggregateProgress()
    progress.enter(AggregateState.EMITTING)
    with pytest.raises(RuntimeError, match="emitting cannot become evicting"):
        progress.enter(AggregateState.EVICTING)
    assert progress.state is AggregateState.EMITTING


def test_few_groups_stay_in_the_table(workshop, visited):
    run(workshop, "single", 40, *make_table("int64", "int64", 1000, 10))
    assert visited == ["EMITTING", "CLOSED"]


def test_groups_that_repeat_are_evicted(workshop, visited):
    run(workshop, "single", 8, *make_table("int64", "string", 3000, 400))
    assert visited[:2] == ["EVICTING", "EMITTING"]
    assert visited[-1] == "CLOSED"


def test_groups_that_are_new_go_to_partitions_and_partitions_are_levels_of_their_own(workshop, visited, monkeypatch):
    """Where rows cannot be merged as rows, such as those with keys that are floats."""
    monkeypatch.setattr("engine.aggregate.partition_merger.may_be_merged", lambda codec, key_count: False)
    run(workshop, "single", 130, *make_table("large", "string", 6000, 100000))
    assert visited[:2] == ["PARTITIONED", "EMITTING"]
    assert visited.count("GROUPING") > 1


def test_a_partial_aggregate_of_new_groups_passes_rows_through(workshop, visited, monkeypatch):
    monkeypatch.setattr("engine.aggregate.pre_aggregation.PASS_ROWS", 200)
    run(workshop, "partial", 40, *make_table("int64", "int64", 1000, 100000))
    assert visited == ["PASSING_THROUGH", "EMITTING", "CLOSED"]


def test_closing_goes_on_where_a_part_fails(workshop, monkeypatch):
    table, calls = make_table("int64", "string", 3000, 2500)
    output = result_schema([table.schema.field("key")], calls, argument_types_of(table, calls))

    def failing(self):
        raise OSError("no such disk")

    with workshop.operator(8) as (pool, space):
        operator = HashAggregate(AggregateSpec("single", table.schema, ("key",), calls, output), pool, space)
        for batch in table.to_batches(max_chunksize=100):
            operator.add_batch(batch)
        discarded = []
        discard = SpillWriter.discard
        failing_once = iter([failing])

        class Writer:
            def __init__(self, writer):
                self.writer = writer

            def discard(self):
                discarded.append(self.writer)
                discard(self.writer)
                next(failing_once, lambda _: None)(self)

        files = operator._grouping._work.files
        assert len(files._writers) > 1
        count = len(files._writers)
        files._writers = {key: Writer(writer) for key, writer in files._writers.items()}
        with pytest.raises(OSError, match="no such disk"):
            operator.close()
        assert len(discarded) == count
        assert pool.pages_used == 0
