"""Random numbers follow from seed, subtask and row, and an expression with them is neither moved nor repeated."""

from uuid import RFC_4122, UUID

import pyarrow as pa
import pytest

from engine import Environment, SchemaError, col, count, rand, row_place, sum_, uuid
from engine.expressions.evaluate import compile_expression
from engine.expressions.random_numbers import SUBTASK, random_numbers, row_places, uuids
from engine.graph.function_table import SAFE_FUNCTIONS, is_deterministic
from engine.graph.operator_descriptor import ProjectOperator


def batch(rows):
    return pa.record_batch({"a": pa.array(range(rows), pa.int64())})


def test_numbers_do_not_depend_on_how_rows_lie_in_batches():
    whole = random_numbers(7)(batch(1000)).to_pylist()
    parts = random_numbers(7)
    assert [*parts(batch(1)).to_pylist(), *parts(batch(0)).to_pylist(), *parts(batch(999)).to_pylist()] == whole
    assert all(0 <= one < 1 for one in whole)
    assert len(set(whole)) == 1000
    assert 0.45 < sum(whole) / 1000 < 0.55
    assert random_numbers(8)(batch(1000)).to_pylist() != whole


def test_subtasks_draw_different_numbers():
    token = SUBTASK.set(1)
    try:
        other = random_numbers(7)(batch(3)).to_pylist()
    finally:
        SUBTASK.reset(token)
    assert other != random_numbers(7)(batch(3)).to_pylist()


def test_a_projection_with_them_is_not_repeatable_and_no_filter_passes_it():
    drawn = (rand(1) + col("a")).alias("r").named()
    assert not is_deterministic(drawn.expression)
    assert not ProjectOperator((drawn,)).traits.is_repeatable
    assert ProjectOperator((col("a").named(),)).traits.is_repeatable
    assert "rand" not in SAFE_FUNCTIONS
    compiled = compile_expression(drawn.expression, batch(1).schema)
    assert compiled(batch(5)).to_pylist() != compiled(batch(5)).to_pylist()


def test_each_subtask_counts_from_its_first_row():
    for drawn in (rand(1), row_place()):
        first, second = (compile_expression(drawn.expression, batch(1).schema) for _ in range(2))
        values = first(batch(5)).to_pylist()
        assert second(batch(5)).to_pylist() == values
        assert first(batch(5)).to_pylist() != values


def test_places_grow_within_a_subtask_and_from_one_to_the_next():
    token = SUBTASK.set(3)
    try:
        places = row_places()
    finally:
        SUBTASK.reset(token)
    assert places(batch(2)).to_pylist() == [3 * 2**44, 3 * 2**44 + 1]
    assert places(batch(1)).to_pylist() == [3 * 2**44 + 2]


def test_a_column_of_them_has_one_value_in_a_row_whatever_is_made_of_it():
    with Environment() as env:
        rows = env.from_arrow(pa.table({"a": list(range(1000))})).with_columns(r=rand(3))
        kept = rows.filter(col("r") < 0.5).with_columns(twice=col("r") + col("r"), once=col("r"))
        found = kept.to_arrow()
    assert 400 < found.num_rows < 600
    assert max(found["r"].to_pylist()) < 0.5
    assert found["once"].to_pylist() == found["r"].to_pylist()
    assert [one * 2 for one in found["r"].to_pylist()] == found["twice"].to_pylist()


def test_elsewhere_than_in_a_projection_they_are_refused():
    with Environment() as env:
        rows = env.from_arrow(pa.table({"a": [1, 2]}))
        for wrong in (
            lambda: rows.filter(rand() < 0.5),
            lambda: rows.group_by("a").agg(s=sum_(rand())),
            lambda: rows.join(rows.rename(a="b"), how="cross", condition=rand(1) < col("b")),
        ):
            with pytest.raises(SchemaError, match="make it a column first"):
                wrong()
        assert rows.with_columns(r=rand()).group_by().agg(n=count()).collect()[0].n == 2
    with pytest.raises(SchemaError, match="the seed is an int"):
        rand("a")


def test_uuids_are_of_version_4_and_differ_by_row_and_subtask():
    texts = uuids(7)(batch(2000)).to_pylist()
    assert all(str(UUID(text)) == text and UUID(text).version == 4 for text in texts)
    assert all(UUID(text).variant == RFC_4122 for text in texts)
    assert len(set(texts)) == 2000
    assert {text[19] for text in texts} == set("89ab")
    parts = uuids(7)
    assert [*parts(batch(1)).to_pylist(), *parts(batch(1999)).to_pylist()] == texts
    token = SUBTASK.set(1)
    try:
        assert not {*uuids(7)(batch(2000)).to_pylist()} & {*texts}
    finally:
        SUBTASK.reset(token)


def test_uuids_stand_in_projections_alone():
    with Environment(config={"parallelism.default": 2}) as env:
        data = env.sequence(1, 3000)
        found = data.rebalance().select(a=uuid(), b=uuid()).to_arrow()
        assert len({*found.column("a").to_pylist(), *found.column("b").to_pylist()}) == 6000
        with pytest.raises(SchemaError, match=r"uuid\(\) and row_place\(\) stand in select"):
            data.filter(uuid() == "x")
