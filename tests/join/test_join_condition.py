"""Conditions beside the keys, NOT IN, copied rows: every type, either side built, resident, spilled, block-wise."""

import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import SchemaError
from engine.exchange.key_selector import HashSelector
from engine.graph.said_operators import JoinType
from engine.join.pair_condition import PairCondition
from engine.join.replicated_keys import ReplicatedKeys
from tests.join.join_oracle import (
    ALL_TYPES,
    LEFT_ONLY,
    assert_joins_like_oracle,
    oracle_not_in,
    pair_condition,
    rows_of,
    run_join,
    table_rows,
)

MEMORY = [(512, False), (512, True), (6, False)]


def draw(seed, rows, domain, heavy=0.0, null_share=0.1):
    """Keys with nulls, numbers with nulls, and a text that makes the rows wide."""
    chance = random.Random(seed)
    keys = [
        None if chance.random() < null_share else 0 if chance.random() < heavy else chance.randrange(domain)
        for _ in range(rows)
    ]
    numbers = [None if chance.random() < 0.1 else chance.randrange(50) for _ in range(rows)]
    texts = pa.array(["t" * chance.randrange(400) for _ in range(rows)], pa.string())
    return pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array(numbers, pa.int32()), "t": texts})


def less(left_row, right_row):
    return left_row[1] is not None and right_row[1] is not None and left_row[1] < right_row[1]


def condition_less(left, right):
    return pair_condition(left, right, [(1, 1), (0, 1)], lambda pairs: pc.less(pairs["b"], pairs["a"]))


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", ALL_TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize(("pages", "force_spill"), MEMORY)
@pytest.mark.parametrize(("heavy", "batch_rows"), [((0.0, 0.0), 7), ((0.99, 0.99), 49), ((0.99, 0.0), 8192)], ids=str)
def test_pairs_match_when_keys_and_condition_do(tmp_path, how, build_is_left, pages, force_spill, heavy, batch_rows):
    left, right = draw(1, 150, 25, heavy[1 - build_is_left]), draw(2, 140, 25, heavy[build_is_left])
    run = assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages, force_spill=force_spill,
        batch_rows=batch_rows, confirm=less, condition=condition_less(left, right),
    )  # fmt: skip
    assert (run.counters["partitions_spilled"] > 0) == (pages == 6 or force_spill)


@pytest.mark.parametrize("how", ALL_TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("answer", [True, False, None])
def test_a_condition_that_is_always_the_same_is_no_special_case(tmp_path, how, build_is_left, answer):
    left, right = draw(3, 60, 8), draw(4, 50, 8)
    condition = pair_condition(
        left, right, [(0, 0)], lambda pairs: pa.array([None, *[answer] * len(pairs)], pa.bool_()).slice(1)
    )
    assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left,
        confirm=lambda left_row, right_row: bool(answer), condition=condition,
    )  # fmt: skip


@pytest.mark.parametrize("how", [how for how in ALL_TYPES if how is not JoinType.CROSS])
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize(("pages", "force_spill"), MEMORY)
def test_without_keys_the_condition_alone_decides(tmp_path, how, build_is_left, pages, force_spill):
    left, right = draw(5, 60, 8), draw(6, 70, 8)
    assert_joins_like_oracle(
        tmp_path, how, left, right, [], [], build_is_left=build_is_left, pages=pages, force_spill=force_spill,
        confirm=less, condition=condition_less(left, right),
    )  # fmt: skip


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.SEMI, JoinType.FULL])
def test_confirmed_pairs_come_in_full_batches_of_bounded_size(tmp_path, how):
    left = pa.table({"k": pa.array([1] * 120, pa.int64()), "n": range(120), "t": ["l" * 1500] * 120})
    right = pa.table({"k": pa.array([1] * 120, pa.int64()), "n": range(120), "t": ["r" * 1500] * 120})
    run = assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], pages=512, confirm=less, condition=condition_less(left, right)
    )
    assert all(batch.nbytes <= 1_300_000 for batch in run.batches)
    assert len(run.batches) < 60


@pytest.mark.parametrize("how", sorted(LEFT_ONLY))
@pytest.mark.parametrize("build_is_left", [False, True])
def test_rows_wanted_once_are_not_compared_with_all_of_a_heavy_key(tmp_path, how, build_is_left):
    left = pa.table({"k": pa.array([1] * 3000, pa.int64()), "n": range(3000)})
    right = pa.table({"k": pa.array([1] * 2000, pa.int64()), "n": [n * 1009 % 3500 for n in range(2000)]})
    asked = []

    def predicate(pairs):
        asked.append(len(pairs))
        return pc.less(pairs["a"], pairs["b"])

    condition = pair_condition(left, right, [(0, 1), (1, 1)], predicate)
    run = run_join(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=256, condition=condition)
    # 2999 is the largest on the left, 3499 on the right: every left row has a match
    assert sum(batch.num_rows for batch in run.batches) == (3000 if how is JoinType.SEMI else 0)
    assert sum(asked) < 200_000


def test_the_condition_sees_its_own_columns_only(tmp_path):
    left, right = draw(7, 30, 5), draw(8, 30, 5)
    seen = []

    def predicate(pairs):
        seen.append(pairs.schema)
        return pc.is_valid(pairs["a"])

    condition = pair_condition(left, right, [(1, 1)], predicate)
    run_join(tmp_path, JoinType.LEFT, left, right, [0], [0], condition=condition)
    assert seen
    assert set(map(tuple, seen)) == {(pa.field("a", pa.int32()),)}


@pytest.mark.parametrize("answer", [pa.array([True]), pa.array([1, 2, 3]), True])
def test_a_condition_that_does_not_answer_for_each_pair_is_refused(tmp_path, answer):
    table = pa.table({"k": [1, 2, 3]})
    condition = pair_condition(table, table, [(0, 0)], lambda pairs: answer)
    with pytest.raises(SchemaError, match="for 3 pairs, not their booleans"):
        run_join(tmp_path, JoinType.INNER, table, table, [0], [0], condition=condition)
    with pytest.raises(SchemaError, match="at least one column"):
        run_join(tmp_path, JoinType.INNER, table, table, [0], [0], condition=PairCondition((), pa.schema([]), bool))


KEYS = st.lists(st.one_of(st.none(), st.integers(0, 5), st.just(3)), max_size=40)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    left_keys=KEYS,
    right_keys=KEYS,
    how=st.sampled_from(ALL_TYPES),
    build_is_left=st.booleans(),
    pages=st.sampled_from([6, 9, 128]),
    batch_rows=st.sampled_from([1, 5, 100]),
    force_spill=st.booleans(),
    width=st.sampled_from([1, 700, 9000]),
)
def test_any_condition_joins_like_the_oracle(
    tmp_path, left_keys, right_keys, how, build_is_left, pages, batch_rows, force_spill, width
):
    def table(keys):
        size = len(keys)
        return pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array([n * 7 % 11 for n in range(size)], pa.int32()),
                         "t": ["t" * (n * width % 9001) for n in range(size)]})  # fmt: skip

    left, right = table(left_keys), table(right_keys)
    assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages, batch_rows=batch_rows,
        force_spill=force_spill, confirm=less, condition=condition_less(left, right),
    )  # fmt: skip


@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize(("pages", "force_spill"), MEMORY)
@pytest.mark.parametrize("right_nulls", ["none", "one", "all"])
@pytest.mark.parametrize("right_rows", [0, 60])
def test_a_null_aware_anti_join_is_not_in(tmp_path, build_is_left, pages, force_spill, right_nulls, right_rows):
    left = draw(9, 200, 40)
    right = draw(10, right_rows, 40, null_share=1.0 if right_nulls == "all" else 0.0)
    if right_nulls == "one":
        right = pa.concat_tables([right, draw(11, 1, 1, null_share=1.0)])
    run = run_join(
        tmp_path, JoinType.ANTI, left, right, [0], [0], build_is_left=build_is_left, pages=pages,
        force_spill=force_spill, null_aware=True,
    )  # fmt: skip
    expected = oracle_not_in(table_rows(left), table_rows(right), 0, 0)
    assert rows_of(run.batches) == expected
    if not right.num_rows:
        assert sum(expected.values()) == 200


def test_null_aware_is_for_anti_joins_by_one_key(tmp_path):
    table = draw(1, 3, 3)
    for how, keys in ((JoinType.LEFT, [0]), (JoinType.ANTI, [0, 1])):
        with pytest.raises(SchemaError, match="anti join by one key"):
            run_join(tmp_path, how, table, table, keys, keys, null_aware=True)


def hashes_of(keys):
    """Return the exchange's hashes of int64 keys."""
    batch = pa.record_batch({"k": pa.array(keys, pa.int64())})
    return frozenset(HashSelector(1, batch.schema, ["k"]).hashes_of(batch))


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", [how for how in ALL_TYPES if how is not JoinType.CROSS])
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("copied_is_left", [False, True])
@pytest.mark.parametrize(("pages", "force_spill"), MEMORY)
@pytest.mark.parametrize("with_condition", [False, True])
def test_copies_match_and_never_come_out_for_their_own_sake(
    tmp_path, how, build_is_left, copied_is_left, pages, force_spill, with_condition
):
    left, right = draw(12, 120, 15), draw(13, 110, 15)
    copied = [0, 3, 4]
    options = {"condition": condition_less(left, right)} if with_condition else {}
    run = run_join(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages, force_spill=force_spill,
        replicated=ReplicatedKeys(hashes_of(copied), is_build=copied_is_left == build_is_left), **options,
    )  # fmt: skip
    # the same join without copies, less the rows that a copy would have given for its own sake
    whole = run_join(tmp_path, how, left, right, [0], [0], **options)
    expected = Counter()
    for row, count in rows_of(whole.batches).items():
        is_pair = how not in LEFT_ONLY and row[2] is not None and row[5] is not None
        is_left_row = how in LEFT_ONLY or row[2] is not None
        key = row[0] if is_left_row else row[3]
        if is_pair or is_left_row != copied_is_left or key not in copied:
            expected[row] = count
    assert rows_of(run.batches) == expected
