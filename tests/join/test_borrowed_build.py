"""A build side that several joins probe, or copy: the same rows as with one of their own."""

import threading
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.graph.said_operators import JoinType
from engine.join.borrowed_build import borrow_build, can_be_borrowed, copy_build, finish_borrowed
from tests.join.join_oracle import (
    hash_join,
    join_memory,
    oracle_join,
    oracle_not_in,
    pair_condition,
    rows_of,
    table_rows,
)

TYPES = [JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI]


def draw(rows, domain, tag, null_every=0):
    keys = [None if null_every and n % null_every == 0 else n * 7919 % domain for n in range(rows)]
    return pa.table({"k": pa.array(keys, pa.int64()), "n": range(rows), "t": [tag * (n % 90) for n in range(rows)]})


LEFT, RIGHT = draw(3000, 700, "l", null_every=11), draw(900, 600, "r", null_every=13)


def less(left_row, right_row):
    return left_row[1] < right_row[1]


def new_join(how, pool, space, with_condition, right=RIGHT, null_aware=False):
    sides = (0,) if how in (JoinType.SEMI, JoinType.ANTI) else (0, 1)
    output = [(side, column) for side in sides for column in range(3)]
    schema = pa.schema([(f"c{n}", LEFT.schema.field(column).type) for n, (_, column) in enumerate(output)])
    condition = None
    if with_condition:
        condition = pair_condition(LEFT, right, [(0, 1), (1, 1)], lambda pairs: pc.less(pairs["a"], pairs["b"]))
    arguments = (how, right.schema, LEFT.schema, [0], [0], False, output, schema, pool, space)
    return hash_join(*arguments, condition=condition, null_aware=null_aware)


def fill(join, table):
    for batch in table.to_batches(max_chunksize=200):
        join.add_build_batch(batch)
    join.finish_build()
    return join


def probed(join, table):
    rows = []
    for batch in table.to_batches(max_chunksize=500):
        rows.extend(join.probe(batch))
    rows.extend(join.finish_probe())
    return rows_of(rows)


def expected(how, with_condition):
    confirm = less if with_condition else lambda left_row, right_row: True
    return oracle_join(how, table_rows(LEFT), table_rows(RIGHT), [0], [0], (3, 3), confirm)


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("with_condition", [False, True])
@pytest.mark.parametrize("pages", [60, 512], ids=["rows decoded", "columns kept"])
def test_joins_in_several_threads_probe_one_build_side(tmp_path, how, with_condition, pages):
    with join_memory(tmp_path, pages, 4096) as (pool, space):
        owner = fill(new_join(how, pool, space, with_condition), RIGHT)
        assert can_be_borrowed(owner)
        used = pool.pages_used
        borrowers = [new_join(how, pool, space, with_condition) for _ in range(3)]
        results = {}

        def work(index):
            borrow_build(borrowers[index], owner)
            results[index] = probed(borrowers[index], LEFT)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert pool.pages_used == used
        assert list(results.values()) == [expected(how, with_condition)] * 3
        assert [join.build_rows for join in borrowers] == [900] * 3
        for join in (*borrowers, owner):
            join.close()


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize(("pages", "own_pages"), [(12, 12), (12, 6), (512, 12), (12, 512)])
def test_a_copy_is_a_build_side_of_its_own(tmp_path, how, pages, own_pages):
    with ExitStack() as stack:
        memories = []
        for name, size in (("owner", pages), ("copy", own_pages)):
            (tmp_path / name).mkdir()
            memories.append(stack.enter_context(join_memory(tmp_path / name, size, 4096)))
        owner = fill(new_join(how, *memories[0], False), RIGHT)
        assert can_be_borrowed(owner) == (pages == 512)
        batches = LEFT.to_batches(max_chunksize=1500)
        # the owner probes while it is copied
        owned = list(owner.probe(batches[0]))
        join = new_join(how, *memories[1], False)
        for _ in copy_build(join, owner):
            pass
        owned += [*owner.probe(batches[1]), *owner.finish_probe()]
        join.finish_build()
        assert probed(join, LEFT) == rows_of(owned) == expected(how, False)
        assert join.build_rows == 900
        join.close()
        owner.close()


@pytest.mark.parametrize("way", ["borrow", "copy"])
@pytest.mark.parametrize("right", [RIGHT, RIGHT.filter(pc.is_valid(RIGHT["k"])), RIGHT.slice(0, 0)])
def test_not_in_knows_what_the_owner_knows(tmp_path, way, right):
    with join_memory(tmp_path, 512, 4096) as (pool, space):
        owner = fill(new_join(JoinType.ANTI, pool, space, False, right, null_aware=True), right)
        join = new_join(JoinType.ANTI, pool, space, False, right, null_aware=True)
        if way == "borrow":
            borrow_build(join, owner)
        else:
            for _ in copy_build(join, owner):
                pass
            join.finish_build()
        assert probed(join, LEFT) == oracle_not_in(table_rows(LEFT), table_rows(right), 0, 0)
        join.close()
        owner.close()


@pytest.mark.parametrize("how", [JoinType.RIGHT, JoinType.FULL])
def test_build_rows_that_are_marked_are_not_borrowed(tmp_path, how):
    with join_memory(tmp_path, 512, 4096) as (pool, space):
        owner = fill(new_join(how, pool, space, False), RIGHT)
        assert not can_be_borrowed(owner)
        owner.close()


#: sides that a join marks when it is built
MARKED = {
    JoinType.RIGHT: False,
    JoinType.FULL: False,
    JoinType.LEFT: True,
    JoinType.SEMI: True,
    JoinType.ANTI: True,
}


@pytest.mark.parametrize("how", MARKED)
@pytest.mark.parametrize("with_condition", [False, True])
@pytest.mark.parametrize("pages", [20, 100, 512], ids=["spilled", "rows decoded", "columns kept"])
def test_joins_in_several_threads_mark_the_rows_of_one_build_side(tmp_path, how, with_condition, pages):
    """Each thread has other probe rows; a row is marked by all at one time, and comes out of one."""
    sides = (0,) if how in (JoinType.SEMI, JoinType.ANTI) else (0, 1)
    output = [(side, column) for side in sides for column in range(3)]
    schema = pa.schema([(f"c{n}", LEFT.schema.field(column).type) for n, (_, column) in enumerate(output)])
    built, probe = (LEFT, RIGHT) if MARKED[how] else (RIGHT, LEFT)
    repeated = pa.concat_tables([probe] * 4)
    sides = (repeated, RIGHT) if built is RIGHT else (LEFT, repeated)
    wanted = oracle_join(how, *map(table_rows, sides), [0], [0], (3, 3), less if with_condition else lambda *_: True)
    with join_memory(tmp_path, pages, 4096) as (pool, space):

        def made():
            condition = None
            if with_condition:
                condition = pair_condition(LEFT, RIGHT, [(0, 1), (1, 1)], lambda pairs: pc.less(pairs["a"], pairs["b"]))
            arguments = (how, built.schema, probe.schema, [0], [0], MARKED[how], output, schema, pool, space)
            return hash_join(*arguments, condition=condition)

        owner, turn = fill(made(), built), threading.Lock()
        assert (owner.partitions_spilled > 0) == (pages == 20)
        borrowers, rows = [], [[] for _ in range(4)]
        for _ in range(4):
            borrowers.append(made())
            borrow_build(borrowers[-1], owner, turn)
        together = threading.Barrier(4)

        def work(index):
            together.wait()
            for batch in probe.to_batches(max_chunksize=50):
                rows[index].extend(borrowers[index].probe(batch))
            rows[index].extend(borrowers[index].finish_probe())

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rows_of([batch for each in rows for batch in each] + list(finish_borrowed(owner))) == wanted
        for join in (*borrowers, owner):
            join.close()
