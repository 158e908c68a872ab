"""Keys of a build side as its batches have them: all of them or none, within limits, and filters that are the same."""

import pyarrow as pa
import pytest

from engine.graph.runtime_filter import RuntimeFilter
from engine.graph.said_operators import JoinType
from engine.join import build_keys
from engine.join.hash_join import HashJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.memory.budget import Budget, Kind
from engine.operators import kept_keys, runtime_filters
from engine.operators.kept_keys import KeptKeys
from engine.operators.runtime_filters import make_filters
from tests.join.join_oracle import join_memory

SCHEMA = pa.schema([("w", pa.string()), ("k", pa.int64()), ("n", pa.int64())])


def batch(start, count):
    numbers = [None if row % 7 == 0 else row for row in range(start, start + count)]
    return pa.record_batch([[f"word {row}" for row in numbers], numbers, numbers], schema=SCHEMA)


@pytest.fixture(autouse=True)
def budget(monkeypatch):
    budget = Budget()
    monkeypatch.setattr(runtime_filters, "process_budget", budget)
    monkeypatch.setattr(kept_keys, "process_budget", budget)
    yield budget
    assert budget.held(Kind.ARROW) == 0


def test_all_values_of_a_column_are_kept_as_copies_and_counted(budget):
    kept = KeptKeys(SCHEMA, [1, 0], 100, 1 << 20)
    batches = [batch(0, 10), batch(10, 90)]
    for one in batches:
        kept.add(one)
    assert kept.arrays([0, 1]) == [[one.column(0) for one in batches], [one.column(1) for one in batches]]
    for array, one in zip(kept.arrays([1])[0], batches, strict=True):
        assert array.buffers()[1].address != one.column(1).buffers()[1].address
    assert budget.held(Kind.ARROW) == sum(one.column(at).nbytes for one in batches for at in (0, 1))
    assert kept.arrays([2]) is None
    kept.close()
    kept.close()


@pytest.mark.parametrize("limits", [(99, 1 << 20), (100, 800)])
def test_none_are_kept_beyond_the_limits(budget, limits):
    kept = KeptKeys(SCHEMA, [1], *limits)
    kept.add(batch(0, 10))
    assert kept.arrays([1])
    kept.add(batch(10, 90))
    assert kept.arrays([1]) is None
    kept.add(batch(0, 1))
    assert kept.arrays([1]) is None
    assert budget.held(Kind.ARROW) == 0


def test_of_a_slice_its_rows_are_kept_alone(budget):
    kept = KeptKeys(SCHEMA, [1], 100, 200)
    kept.add(batch(0, 1000).slice(501, 5))
    ((array,),) = kept.arrays([1])
    assert array.to_pylist() == [501, 502, 503, None, 505]
    assert array.get_total_buffer_size() <= 200
    kept.close()


def test_none_are_kept_where_there_is_no_memory_or_a_column_has_codes(budget):
    budget.set_limit(Kind.ARROW, 16)
    kept = KeptKeys(SCHEMA, [1], 100, 1 << 20)
    kept.add(batch(0, 10))
    assert kept.arrays([1]) is None
    budget.set_limit(Kind.ARROW, 1 << 20)
    kept = KeptKeys(SCHEMA, [0], 100, 1 << 20)
    plain = batch(0, 10)
    kept.add(plain.set_column(0, "w", plain.column(0).dictionary_encode()))
    assert kept.arrays([0]) is None


def test_nothing_is_kept_of_what_did_not_come_or_where_nothing_is_wanted():
    assert KeptKeys(SCHEMA, [1], 100, 1 << 20).arrays([1]) is None
    kept = KeptKeys(SCHEMA, [], 100, 1 << 20)
    kept.add(batch(0, 10))
    assert kept.arrays([1]) is None


def test_filters_of_kept_keys_are_those_of_the_rows_and_no_row_is_decoded_for_them(tmp_path, monkeypatch):
    probe = JoinInput(pa.schema([("n", pa.int64()), ("t", pa.string())]), (0, 1))
    spec = JoinSpec(
        how=JoinType.SEMI, left=probe, right=JoinInput(SCHEMA, (1, 0)), output=((0, 0),),
        output_schema=pa.schema([("n", pa.int64())]),
    )  # fmt: skip
    wanted = [RuntimeFilter(3, "join", 0, "n"), RuntimeFilter(3, "join", 1, "t")]
    with join_memory(tmp_path, 100, 4096) as (pool, space):
        join = HashJoin(spec, pool, space)
        kept = KeptKeys(SCHEMA, [0, 1], 1000, 1 << 20)
        for one in (batch(0, 10), batch(10, 90).slice(30, 40)):
            join.add_build_batch(one)
            kept.add(one)
        join.finish_build()
        of_rows = make_filters(join, wanted)
        monkeypatch.setattr(build_keys, "build_keys", lambda *_: pytest.fail("rows are decoded"))
        of_kept = make_filters(join, wanted, kept=kept)
        texts = pa.array([f"word {row}" for row in range(-50, 200)])
        for values, one, other in zip(
            (pa.array(range(-50, 200)), texts), of_rows.tests(wanted), of_kept.tests(wanted), strict=True
        ):
            asked = pa.record_batch({one.column: values})
            assert one.mask_of(asked).array().to_pylist() == other.mask_of(asked).array().to_pylist()
        for closed in (of_rows, of_kept, kept, join):
            closed.close()
