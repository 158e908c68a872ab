"""The keys of a build side are all of them, wherever its rows lie."""

import random

import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.join.build_keys import build_keys
from engine.join.hash_join import HashJoin
from engine.join.join_spec import JoinInput, JoinSpec
from tests.join.join_oracle import join_memory

ROWS = 3000


def table(key_type, draw, texts=lambda chance: "x" * chance.randrange(30)):
    chance = random.Random(4)
    keys = [None if chance.random() < 0.1 else draw(chance) for _ in range(ROWS)]
    return pa.table({"k": pa.array(keys, key_type), "t": [texts(chance) for _ in range(ROWS)], "n": range(ROWS)})


KINDS = {
    "tagged": table(pa.int64(), lambda chance: chance.randrange(1 << 60)),
    "dense": table(pa.int32(), lambda chance: chance.randrange(2000)),
    "text": table(pa.string(), lambda chance: str(chance.randrange(2000))),
}


def built(folder, build, keys, pages, how=JoinType.INNER, row_limit=None):
    schema = pa.schema([("k", build.schema.field(keys[0]).type)])
    spec = JoinSpec(
        how=how,
        left=JoinInput(pa.schema([(f"p{key}", build.schema.field(key).type) for key in keys]), tuple(range(len(keys)))),
        right=JoinInput(build.schema, tuple(keys)),
        output=((0, 0),),
        output_schema=schema,
        row_limit=row_limit,
    )
    with join_memory(folder, pages, 4096) as (pool, space):
        join = HashJoin(spec, pool, space)
        for batch in build.to_batches(max_chunksize=700):
            join.add_build_batch(batch)
        join.finish_build()
        yield join
        join.close()


def values(arrays):
    return sorted(value for array in arrays for value in array.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("pages", "row_limit"), [(400, None), (8, None), (60, 8)])
@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.RIGHT])
def test_all_keys_are_there_in_memory_and_on_disk(tmp_path, kind, pages, row_limit, how):
    build = KINDS[kind]
    for join in built(tmp_path, build, (0,), pages, how, row_limit):
        assert (join.partitions_spilled > 0) == (pages < 400)
        (found,) = build_keys(join, (0,), ROWS, 1 << 20)
        assert values(found) == values([build["k"].drop_null()])


def test_several_keys_come_apart(tmp_path):
    build = KINDS["tagged"]
    whole = build.filter(build["k"].is_valid())
    for join in built(tmp_path, build, (0, 2), 200):
        texts, numbers = build_keys(join, (1, 0), ROWS, 1 << 20)
        assert values(texts) == values([whole["n"]])
        assert values(numbers) == values([whole["k"]])


def test_a_dictionary_table_has_its_keys_in_its_cells(tmp_path):
    rows = 1 << 17
    keys = pa.array([3 * row - rows for row in range(rows)], pa.int32())
    build = pa.table({"k": keys, "t": pa.array(["ab"[row % 2] for row in range(rows)])})
    for join in built(tmp_path, build, (0,), 4000, JoinType.SEMI):
        assert join.table_kind == "dictionary"
        (found,) = build_keys(join, (0,), rows, 1 << 20)
        assert found[0].type == pa.int32()
        assert values(found) == keys.to_pylist()


def test_without_rows_there_is_an_empty_array(tmp_path):
    for join in built(tmp_path, KINDS["dense"].slice(0, 0), (0,), 60):
        (found,) = build_keys(join, (0,), ROWS, 1 << 20)
        assert [array.type for array in found] == [pa.int32()]
        assert values(found) == []


def test_too_many_are_not_looked_through(tmp_path):
    for join in built(tmp_path, KINDS["text"], (0,), 400):
        assert build_keys(join, (0,), 100, 1 << 20) is None
        assert build_keys(join, (0,), ROWS, 100) is None


def test_a_build_side_that_is_not_complete_has_none(tmp_path):
    for join in built(tmp_path, KINDS["dense"], (0,), 60):
        list(join.finish_probe())
        with pytest.raises(ValueError, match="complete build side"):
            build_keys(join, (0,), ROWS, 1 << 20)
