"""Sorts that combine rows of equal keys: partial states of groups against plain Python."""

import contextlib
import itertools
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.accumulators.aggregate_functions import result_schema, state_schema
from engine.accumulators.aggregate_layout import aggregate_layout
from engine.accumulators.state_combiner import StateCombiner
from engine.accumulators.state_results import results_of_states
from engine.accumulators.ungrouped_states import ungrouped_states
from engine.errors import DataError, NotYetSupportedError
from engine.graph.expression import AggregateCall, ColumnRef
from engine.graph.sort_key import SortKey
from engine.sort.external_sorter import ExternalSorter
from engine.sort.merged_batches import MergedBatches
from engine.sort.run_transfer import RunReceiver
from tests.aggregate import group_oracle
from tests.aggregate.group_oracle import VALUE_TYPES, argument_types_of, input_table, make_calls, make_table
from tests.sort.sort_oracle import order_of
from tests.sort.test_run_transfer import pages_of, receive
from tests.sort.test_sorted_runs import bounds_of

MEMORIES = {"fits": 400, "half": 30, "minimum": 6}


class Groups:
    """Rows as states of one, and what their groups come to."""

    def __init__(self, table, calls, keys=("key",), order=None):
        self.table, self.calls, self.keys = table, calls, keys
        self.order = order or tuple(SortKey(key) for key in keys)
        fields = [table.schema.field(key) for key in keys]
        types = argument_types_of(table, calls)
        layout = aggregate_layout(table.schema, keys, calls, merging=False)
        self.schema = state_schema(fields, calls, types)
        self.output = result_schema(fields, calls, types)
        self.results = layout.results
        self.combiner = StateCombiner(self.schema, len(keys), layout.merge_operations, layout.overflow_texts)
        for column in layout.columns_as_double:
            name = table.schema.names[column]
            table = table.set_column(column, name, table.column(column).cast(pa.float64(), safe=False))
        self.states = pa.Table.from_batches(
            [ungrouped_states(batch, layout, self.schema) for batch in table.to_batches(max_chunksize=100)],
            self.schema,
        )

    def sorter(self, pool, space, **options):
        return ExternalSorter(self.schema, self.order, pool, space, combiner=self.combiner, **options)

    def take_runs(self, pool, space, share=slice(None), **options):
        sorter = self.sorter(pool, space, **options)
        for batch in self.states.to_batches()[share]:
            sorter.add_batch(batch)
        runs = sorter.take_runs()
        sorter.close()
        return runs

    def merged(self, sources, pool, lower=None, upper=None, **options):
        merged = MergedBatches(sources, pool, lower, upper, combiner=self.combiner)
        with contextlib.closing(merged):
            return self.finished(merged.batches(**options))

    def finished(self, batches):
        done = [results_of_states(batch, len(self.keys), self.results, self.output) for batch in batches]
        return pa.Table.from_batches(done, self.output)

    def check(self, result):
        """Each group is there once, with its results, and in order."""
        assert group_oracle.rows_of(result) == group_oracle.oracle(self.table, self.keys, self.calls)
        rows = [tuple(order_of(row[key.column], key) for key in self.order) for row in result.to_pylist()]
        assert all(left < right for left, right in itertools.pairwise(rows))


def sort(groups, pool, space, **options):
    batch_options = {name: options.pop(name) for name in ("max_rows", "max_bytes") if name in options}
    sorter = groups.sorter(pool, space, **options)
    with contextlib.closing(sorter):
        for batch in groups.states.to_batches():
            sorter.add_batch(batch)
        sorter.finish()
        return groups.finished(sorter.batches(**batch_options)), sorter.spilled_bytes


# --------------------------------------------------------------------------------------------------- types and memory


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("key_type", VALUE_TYPES)
def test_keys_of_every_type_are_combined_like_the_oracle(workshop, key_type, memory):
    groups = Groups(*make_table(key_type, "int64", 500, 60))
    with workshop.operator(MEMORIES[memory]) as (pool, space):
        groups.check(sort(groups, pool, space)[0])
        groups.check(sort(groups, pool, space, force_spill=True)[0])


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("value_type", VALUE_TYPES)
def test_states_of_every_type_are_combined_like_the_oracle(workshop, value_type, memory):
    groups = Groups(*make_table("int64", value_type, 500, 60))
    with workshop.operator(MEMORIES[memory]) as (pool, space):
        groups.check(sort(groups, pool, space)[0])
        groups.check(sort(groups, pool, space, force_spill=True)[0])


@pytest.mark.parametrize("distinct", [1, 7, 900], ids=["one", "few", "many"])
@pytest.mark.parametrize("null_share", [0.0, 0.9])
@pytest.mark.parametrize("memory", MEMORIES)
def test_duplicates_and_nulls_in_any_share_are_combined(workshop, distinct, null_share, memory):
    groups = Groups(*make_table("int64", "double", 1000, distinct, null_share))
    with workshop.operator(MEMORIES[memory]) as (pool, space):
        for options in ({}, {"max_rows": 1}, {"max_rows": 49, "max_bytes": 500}):
            groups.check(sort(groups, pool, space, **options)[0])


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from([None, "", "the same beginning a", "the same beginning b"]))
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_keys_in_any_direction_are_combined(workshop, rows):
    calls = make_calls(("sum", "count_all", "last"))
    keys = [[row[0] or None for row in rows], [row[1] for row in rows]]
    values = [[index % 5 or None for index in range(len(rows))]] * 2
    table = input_table(("a", "b"), [pa.int8(), pa.string()], calls, [pa.int32(), None, pa.int32()], [*keys, *values])
    for descending, nulls_last in itertools.product((False, True), repeat=2):
        order = (SortKey("b", descending, nulls_last), SortKey("a"))
        groups = Groups(table, calls, ("a", "b"), order)
        with workshop.operator(6) as (pool, space):
            groups.check(sort(groups, pool, space, force_spill=descending)[0])


def extremes(rows):
    """Groups with the least and the largest of two columns of strings."""
    calls = tuple(
        AggregateCall(function, ColumnRef(column), f"{function}_{column}")
        for column in ("x", "y")
        for function in ("min", "max")
    )
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    values = [columns[1], columns[1], columns[2], columns[2]]
    types = [pa.string(), pa.string(), pa.binary(), pa.binary()]
    return Groups(input_table(("key",), [pa.int8()], calls, types, [columns[0], *values]), calls)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.none() | st.builds(lambda text, count: text * count, st.text("abz", max_size=3), st.integers(0, 40)),
            st.none() | st.binary(max_size=30),
        ),
        max_size=100,
    ),
    pages=st.sampled_from([6, 40, 400]),
    force_spill=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_that_grow_and_shrink_are_combined_like_the_oracle(workshop, rows, pages, force_spill):
    groups = extremes(rows)
    with workshop.operator(pages) as (pool, space):
        groups.check(sort(groups, pool, space, force_spill=force_spill, max_rows=3)[0])


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_combined_row_that_fits_in_no_place_of_its_rows_is_made_by_the_merge(workshop, memory):
    rows = [(1, "z" * 300, b"a"), (1, "a", b"z" * 300), (0, "b", None), (1, "b" * 50, b"zzz"), (2, None, b"")] * 3
    groups = extremes(rows)
    with workshop.operator(MEMORIES[memory]) as (pool, space):
        for force_spill in (False, True):
            groups.check(sort(groups, pool, space, force_spill=force_spill)[0])


def test_values_larger_than_the_memory_are_combined(workshop):
    rng = random.Random(2)
    rows = [(rng.randrange(5), rng.choice("abc") * rng.choice([1, 9_000, 90_000]), b"b" * 5000) for _ in range(60)]
    groups = extremes(rows)
    with workshop.operator(6) as (pool, space):
        groups.check(sort(groups, pool, space)[0])
        groups.check(sort(groups, pool, space, max_rows=1)[0])


@pytest.mark.parametrize("force_spill", [False, True])
def test_rows_that_grow_on_their_way_to_another_process_are_asked_for_on_their_own(workshop, force_spill):
    rng = random.Random(3)
    rows = [(rng.randrange(40), rng.choice("abc") * rng.choice([1, 9, 3000]), rng.randbytes(9)) for _ in range(400)]
    groups = extremes(rows)
    with workshop.operator(60) as here, workshop.operator(60) as there, workshop.operator(8) as (pool, space):
        local = groups.take_runs(*here, share=slice(2), force_spill=force_spill)
        sender = groups.take_runs(*there, share=slice(2, None), force_spill=force_spill)
        receiver = RunReceiver(groups.schema, groups.order, space, 4096)
        pages = list(pages_of(sender))
        assert any(len(page) > 4096 for page in pages)
        receive(receiver, pages)
        received = receiver.take_runs()
        groups.check(groups.merged([local, received], pool))
        for runs in (local, sender, received):
            runs.release()


def test_moments_of_groups_are_merged(workshop):
    rng = random.Random(1)
    calls = make_calls(("variance", "stddev"))
    values = [rng.choice([None, rng.gauss(1e6, 1.0)]) for _ in range(600)]
    columns = [[rng.randrange(200) for _ in values], values, values]
    table = input_table(("key",), [pa.int64()], calls, [pa.float64()] * 2, columns)
    groups = Groups(table, calls)
    with workshop.operator(6) as (pool, space):
        result, _ = sort(groups, pool, space, force_spill=True)
    whole, _ = group_oracle.single(workshop, 200, table, ("key",), calls)
    found, expected = (
        {row["key"]: (row["variance_0"], row["stddev_1"]) for row in each.to_pylist()} for each in (result, whole)
    )
    assert found.keys() == expected.keys()
    for key, pair in expected.items():
        assert found[key] == (pair if None in pair else pytest.approx(pair, rel=1e-6))


def test_combined_rows_are_written_once(workshop):
    """A run holds a group once: of many rows with few keys hardly anything is spilled."""
    groups = Groups(*make_table("int64", "int64", 20_000, 50))
    with workshop.operator(40) as (pool, space):
        result, spilled = sort(groups, pool, space)
        groups.check(result)
        with contextlib.closing(ExternalSorter(groups.schema, groups.order, pool, space)) as plain:
            for batch in groups.states.to_batches():
                plain.add_batch(batch)
            plain.finish()
            assert sum(batch.num_rows for batch in plain.batches()) == 20_000
            assert 0 < spilled < plain.spilled_bytes / 10


def test_keys_larger_than_the_memory_are_combined(workshop):
    calls = make_calls(("sum", "avg"))
    keys = ["a" * 100_000, "b", "a" * 100_000, "c" * 30_000, "b", "c" * 30_000, "a" * 100_000]
    table = input_table(("key",), [pa.string()], calls, [pa.int64()] * 2, [keys, list(range(7)), list(range(7))])
    groups = Groups(table, calls)
    with workshop.operator(6) as (pool, space):
        groups.check(sort(groups, pool, space)[0])


# -------------------------------------------------------------------------------------------------- runs and readers


@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("key_type", ["int64", "string", "double"])
def test_ranges_of_many_sorters_hold_each_group_once(workshop, key_type, force_spill):
    groups = Groups(*make_table(key_type, "decimal", 2000, 150))
    bounds = [None, *bounds_of(groups.states, groups.order, [0.3, 0.6]), None]
    with contextlib.ExitStack() as stack:
        rooms = [stack.enter_context(workshop.operator(60)) for _ in range(3)]
        pool, _ = stack.enter_context(workshop.operator(8))
        runs = [
            groups.take_runs(*room, share=slice(index, None, 3), force_spill=force_spill)
            for index, room in enumerate(rooms)
        ]
        # a consumer that runs again finds the rows as they were
        for max_rows in (1000, 3):
            parts = [groups.merged(runs, pool, *pair, max_rows=max_rows) for pair in itertools.pairwise(bounds)]
            ordered = pa.concat_tables(parts)
            assert ordered.num_rows == len(group_oracle.oracle(groups.table, ("key",), ()))
            assert sum(part.num_rows > 0 for part in parts) >= 2
            if key_type != "double":
                assert_without_order_of_rows(groups, ordered)
        for each in runs:
            each.release()


def assert_without_order_of_rows(groups, result):
    """As the oracle, but for first and last: rows were dealt out to several sorters."""
    dropped = [call.name for call in groups.calls if call.function in ("first", "last")]
    calls = tuple(call for call in groups.calls if call.name not in dropped)
    kept = [name for name in groups.table.schema.names if name == "key"]
    names = [f"__arg{index}" for index, call in enumerate(groups.calls) if call in calls and call.argument is not None]
    table = groups.table.select(kept + names)
    table = table.rename_columns(
        kept + [f"__arg{index}" for index, call in enumerate(calls) if call.argument is not None]
    )
    assert group_oracle.rows_of(result.drop_columns(dropped)) == group_oracle.oracle(table, ("key",), calls)


def test_runs_that_lose_their_memory_are_combined_all_the_same(workshop):
    groups = Groups(*make_table("int64", "int64", 2000, 400))
    with workshop.operator(200) as (pool, space), workshop.operator(12) as (merge_pool, _):
        runs = groups.take_runs(pool, space)
        assert runs.runs_in_memory
        merged = MergedBatches([runs], merge_pool, combiner=groups.combiner)
        with contextlib.closing(merged):
            batches = merged.batches(max_rows=30)
            read = list(itertools.islice(batches, 4))
            runs.spill()
            assert not runs.runs_in_memory
            groups.check(groups.finished(read + list(batches)))
        runs.release()


@pytest.mark.parametrize("force_spill", [False, True])
def test_what_was_sent_is_combined_with_what_is_here(workshop, force_spill):
    groups = Groups(*make_table("string", "int64", 900, 80))
    with (
        workshop.operator(60) as here,
        workshop.operator(60) as there,
        workshop.operator(8) as (pool, space),
    ):
        local = groups.take_runs(*here, share=slice(4), force_spill=force_spill)
        sender = groups.take_runs(*there, share=slice(4, None), force_spill=force_spill)
        receiver = RunReceiver(groups.schema, groups.order, space, 4096)
        receive(receiver, pages_of(sender))
        received = receiver.take_runs()
        groups.check(groups.merged([local, received], pool))
        for runs in (local, sender, received):
            runs.release()


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("pages", [6, 400], ids=["merge or run", "memory"])
@pytest.mark.parametrize("data_type", [pa.int64(), pa.decimal128(38, 0)], ids=str)
def test_a_sum_that_overflows_says_which_one(workshop, pages, data_type):
    calls = (AggregateCall("sum", ColumnRef("x"), "total"),)
    largest = 2**63 - 1 if data_type == pa.int64() else 10**38 - 1
    values = [largest, *([0] * 998), 1]
    table = input_table(("key",), [pa.int64()], calls, [data_type], [[7, *range(100, 1098), 7], values])
    groups = Groups(table, calls)
    with workshop.operator(pages) as (pool, space), pytest.raises(DataError, match=r"sum\(x\) overflows"):
        sort(groups, pool, space, force_spill=pages == 6)


def test_least_values_of_nested_types_are_refused():
    calls = (AggregateCall("min", ColumnRef("x"), "least"),)
    states = pa.schema([("key", pa.int64()), ("state", pa.list_(pa.int64()))])
    layout = aggregate_layout(pa.schema([("key", pa.int64()), ("__arg0", pa.string())]), ("key",), calls, merging=False)
    with pytest.raises(NotYetSupportedError, match="list"):
        StateCombiner(states, 1, layout.merge_operations, layout.overflow_texts)


def test_a_limit_is_refused(workshop):
    groups = Groups(*make_table("int64", "int64", 10, 2))
    with workshop.operator(6) as (pool, space), pytest.raises(ValueError, match="limit"):
        groups.sorter(pool, space, limit=3)
