"""Projections and filters that threads which read make ahead: the same rows in the same order, and the same errors."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, rand, when
from engine.errors import DataError
from engine.operators.work_ahead import WorkAhead
from engine.optimizer import scan_planning

ROWS, GROUP_ROWS = 800_000, 100_000
CONFIG = {"debug.small-part-size": "1gb", "parallelism.default": 4, "parallelism.max-per-processor": 4}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ahead") / "t.parquet"
    texts = [f"row {number}" for number in range(ROWS)]
    pq.write_table(pa.table({"n": range(ROWS), "t": texts}), path, row_group_size=GROUP_ROWS)
    return path


@pytest.fixture
def data(path, monkeypatch):
    monkeypatch.setattr(scan_planning, "THREAD_BYTES", 1e6)
    with Environment(config=CONFIG) as env:
        yield env.read_parquet(str(path))


@pytest.fixture
def taken(monkeypatch):
    """What was taken that had been made ahead: its number of rows."""
    found, take = [], WorkAhead.take

    def counted(self, batch):
        made = take(self, batch)
        if made is not None:
            found.append(made.num_rows)
        return made

    monkeypatch.setattr(WorkAhead, "take", counted)
    return found


@pytest.mark.parametrize("every", [1, 3, 1000])
def test_rows_are_the_same_in_the_same_order(data, taken, every):
    found = data.filter(col("n") % every == 0).select(m=col("n") * 2).to_arrow()
    assert found["m"].to_pylist() == [2 * number for number in range(0, ROWS, every)]
    assert bool(taken) == (every < 1000)  # small batches are put together first


def test_texts_are_made_ahead_when_it_is_known_how_wide_they_are(data, taken):
    found = data.select(u=col("t").str.replace_all("row ([0-9]+)", r"\1!", regex=True)).to_arrow()
    assert found["u"].to_pylist() == [f"{number}!" for number in range(ROWS)]
    assert taken


def test_a_filter_and_what_is_behind_it_are_made_ahead(data, taken):
    made = data.select(m=col("n") * 3, t=col("t")).filter(col("m") % 2 == 0).select(h=(col("m") / 2).cast("int64"))
    assert made.to_arrow()["h"].to_pylist() == [number // 2 * 3 for number in range(0, ROWS, 2)]
    assert len(taken) > 1


def test_what_is_passed_on_and_what_depends_on_places_is_not_made_ahead(data, taken):
    data.select(a=col("n"), b=col("t")).to_arrow()
    data.select(r=rand(7)).to_arrow()
    assert not taken


def test_the_first_row_that_fails_is_named(data):
    broken = when(col("n") >= 123_456).then(col("t")).otherwise("1")
    with pytest.raises(DataError, match="row 123456"):
        data.select(number=broken.cast("int64")).to_arrow()


def test_what_is_left_by_a_limit_is_dropped(data):
    for _ in range(10):
        assert data.select(m=col("n") + 1).limit(3).to_arrow()["m"].to_pylist() == [1, 2, 3]
