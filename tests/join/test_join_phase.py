"""The phases of a hash join: which follows which, and that a call in another phase than its own is refused."""

import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.join.borrowed_build import borrow_build, can_be_borrowed
from engine.join.build_keys import build_keys
from engine.join.join_phase import TRANSITIONS, JoinPhase, advanced, refusal
from tests.join.join_oracle import hash_join, join_memory

TABLE = pa.table({"k": [n * 7919 % 900 for n in range(2000)], "n": range(2000)}).combine_chunks()
#: one key that fills the memory several times
HEAVY = pa.table({"k": [7] * 3000, "n": range(3000)}).combine_chunks()


def new_join(pool, space, how=JoinType.LEFT, **options):
    output = [(0, 0), (0, 1), (1, 1)]
    schema = pa.schema([(name, pa.int64()) for name in "abc"])
    return hash_join(how, TABLE.schema, TABLE.schema, [0], [0], False, output, schema, pool, space, **options)


def fill(join, table=TABLE):
    for batch in table.to_batches(max_chunksize=500):
        join.add_build_batch(batch)
    join.finish_build()


CALLS = {
    "add_build_batch": lambda join: join.add_build_batch(TABLE.to_batches()[0]),
    "add_build_pages": lambda join: join.add_build_pages([]),
    "add_build_rows": lambda join: join.add_build_rows(b""),
    "finish_build": lambda join: join.finish_build(),
    "end_build": lambda join: join.end_build(),
    "probe": lambda join: join.probe(TABLE.to_batches()[0]),
    "finish_probe": lambda join: join.finish_probe(),
}
BUILD_CALLS = {"add_build_batch", "add_build_pages", "add_build_rows", "finish_build", "end_build"}


def test_every_phase_can_be_closed_and_is_reached_from_the_first():
    assert set(TRANSITIONS) == set(JoinPhase)
    assert all(JoinPhase.CLOSED in following for following in TRANSITIONS.values())
    reached, new = set(), {JoinPhase.BUILDING}
    while new:
        reached |= new
        new = {following for phase in new for following in TRANSITIONS[phase]} - reached
    assert reached == set(JoinPhase)


@pytest.mark.parametrize("now", JoinPhase)
@pytest.mark.parametrize("following", JoinPhase)
def test_only_what_the_table_says_follows(now, following):
    if following in TRANSITIONS[now]:
        assert advanced(now, following) is following
    else:
        with pytest.raises(RuntimeError, match=f"that is {now.value} cannot be {following.value}"):
            advanced(now, following)


@pytest.mark.parametrize("now", JoinPhase)
def test_a_refusal_says_what_the_join_is_doing(now):
    assert f"probe() is for a hash join that is probing; this one is {now.value}: " in str(
        refusal("probe()", now, JoinPhase.PROBING)
    )


@pytest.mark.parametrize("call", CALLS)
def test_a_call_in_another_phase_than_its_own_is_refused(tmp_path, call):
    with join_memory(tmp_path, 64, 4096) as (pool, space):
        join, borrower = new_join(pool, space), new_join(pool, space)
        if call not in BUILD_CALLS:
            with pytest.raises(RuntimeError, match="this one is building"):
                CALLS[call](join)
        fill(join)
        assert join.phase is JoinPhase.PROBING
        if call in BUILD_CALLS:
            with pytest.raises(RuntimeError, match="this one is probing"):
                CALLS[call](join)
        borrow_build(borrower, join)
        assert (join.phase, borrower.phase) == (JoinPhase.BORROWED, JoinPhase.PROBING)
        with pytest.raises(RuntimeError, match="this one is borrowed"):
            CALLS[call](join)
        list(borrower.finish_probe())
        with pytest.raises(RuntimeError, match="this one is done"):
            CALLS[call](borrower)
        for each in (borrower, join):
            each.close()
            with pytest.raises(RuntimeError, match="this one is closed"):
                CALLS[call](each)


@pytest.mark.parametrize(
    ("table", "options", "repartitions"),
    [(TABLE, {"row_limit": 8}, True), (HEAVY, {}, False)],
    ids=["many keys", "one heavy key"],
)
def test_spilled_pairs_are_scattered_again_or_joined_block_wise(tmp_path, monkeypatch, table, options, repartitions):
    seen = []

    def advance(now, following):
        seen.append(following)
        return advanced(now, following)

    monkeypatch.setattr("engine.join.hash_join.advanced", advance)
    with join_memory(tmp_path, 8, 4096) as (pool, space):
        join = new_join(pool, space, **options)
        fill(join, table)
        list(join.probe(table.slice(0, 1000).to_batches()[0]))
        assert not can_be_borrowed(join)
        assert all(join.phase is seen[-1] for _ in join.finish_probe())
        assert (JoinPhase.REPARTITIONING in seen) == (join.repartition_count > 0) == repartitions
        assert JoinPhase.BLOCK_WISE in seen
        assert seen[-2:] == [JoinPhase.NEXT_PAIR, JoinPhase.DONE]
        join.close()
        join.close()
        assert join.phase is JoinPhase.CLOSED


def test_keys_are_there_before_the_table_and_probing_waits_for_it(tmp_path):
    with join_memory(tmp_path, 64, 4096) as (pool, space):
        join = new_join(pool, space)
        for batch in TABLE.to_batches(max_chunksize=500):
            join.add_build_batch(batch)
        join.end_build()
        assert join.phase is JoinPhase.COMPLETE
        ((*keys,),) = build_keys(join, [0], 5000, 1 << 20)
        assert sorted(pa.chunked_array(keys).to_pylist()) == sorted(TABLE["k"].to_pylist())
        with pytest.raises(RuntimeError, match=r"this one is complete: .* no table of them until fill_table\(\)"):
            join.probe(TABLE.to_batches()[0])
        assert not can_be_borrowed(join)
        join.fill_table()
        with pytest.raises(RuntimeError, match=r"fill_table\(\) is for a hash join that is complete"):
            join.fill_table()
        assert sum(result.num_rows for result in join.probe(TABLE.to_batches()[0])) > TABLE.num_rows
        join.close()


def test_a_join_that_is_not_ready_or_gone_is_not_borrowed(tmp_path):
    with join_memory(tmp_path, 64, 4096) as (pool, space):
        owner, other = new_join(pool, space), new_join(pool, space)
        assert not can_be_borrowed(owner)
        with pytest.raises(RuntimeError, match="building cannot be borrowed"):
            borrow_build(other, owner)
        fill(owner)
        assert can_be_borrowed(owner)
        borrow_build(other, owner)
        assert can_be_borrowed(owner), "to others as well"
        other.close()
        owner.close()
        assert not can_be_borrowed(owner)
