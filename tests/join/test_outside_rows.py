"""Joins of rows whose values lie outside of them: kept as references, read when they are given out."""

import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.records.row_codec import RowCodec
from tests.join.join_oracle import oracle_join, rows_of, run_join, table_rows
from tests.records.test_outside_values import store

__all__ = ["store"]


def side(rows, keys, letter):
    """Return a table of texts, most of them wide, some null or short."""
    texts = [None if n % 11 == 5 else letter * (60_000 + 997 * n if n % 3 else 20) + str(n) for n in range(rows)]
    return pa.table({"k": pa.array([n % keys for n in range(rows)], pa.int64()), "text": texts})


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT, JoinType.FULL, JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize(("pages", "force_spill"), [(40, False), (512, False), (40, True)])
def test_rows_with_values_outside_join_like_the_oracle_in_batches_of_bounded_size(
    tmp_path, store, how, build_is_left, pages, force_spill
):
    left, right = side(60, 13, "l"), side(45, 9, "r")
    run = run_join(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages, force_spill=force_spill,
        value_owner=store,
    )  # fmt: skip
    assert rows_of(run.batches) == oracle_join(how, table_rows(left), table_rows(right), [0], [0], (2, 2))
    assert store.values, "values lay outside"
    # a megabyte of the probe side, and one of what lay outside on the build side
    assert all(batch.nbytes <= 2_200_000 or batch.num_rows == 1 for batch in run.batches if how is JoinType.INNER)


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.FULL, JoinType.SEMI])
@pytest.mark.parametrize(("pages", "force_spill"), [(40, False), (512, False), (40, True)])
def test_rows_that_arrive_with_their_values_have_them_outside_on_the_build_side(
    tmp_path, store, how, pages, force_spill
):
    left, right = side(60, 13, "l"), side(45, 9, "r")
    run = run_join(
        tmp_path, how, left, right, [0], [0], pages=pages, force_spill=force_spill, value_owner=store,
        batch_rows=7, add_build=lambda join, batch: join.add_build_rows(RowCodec(batch.schema).to_rows(batch)),
    )  # fmt: skip
    assert rows_of(run.batches) == oracle_join(how, table_rows(left), table_rows(right), [0], [0], (2, 2))
    wide = {text.encode() for text in right["text"].to_pylist() if text is not None and len(text) > 1000}
    assert wide <= set(store.values)
